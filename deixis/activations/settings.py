"""What made a run: everything that decides its numbers, and how two such records are compared."""

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from deixis.activations.errors import NotARunError, SchemaError, SettingsError
from deixis.models import VLM
from deixis.models.sites import SITES

SCHEMA = 2
"""Raise it when older code could misread what newer code writes."""
HEADER, LINES, VIEW, SHARDS = "run.json", "items.jsonl", "run.h5", "shards"
LIBRARIES = ("deixis", "torch", "transformers", "torchvision", "numpy", "h5py", "pillow")
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_CHUNK, _ODD = 1 << 22, 0x9E3779B1
LINES_HASH = "items_file"
"""Setting that holds the checksum of the run's own list of items; it follows from the others."""


def describe_model(vlm: VLM) -> dict[str, Any]:
    """What identifies a model and how it computes."""
    return {
        "model": vlm.name,
        "revision": vlm.revision,
        "weights": weights_fingerprint(vlm.model),
        "processor": processor_fingerprint(vlm),
        "family": vlm.family.architecture,
        "n_layers": vlm.n_layers,
        "d_model": vlm.d_model,
        "dtype": str(vlm.model.dtype).removeprefix("torch."),
        "attention_implementation": getattr(vlm.model.config, "_attn_implementation", None),
        "device": vlm.device.type,
    }


def weights_fingerprint(model: torch.nn.Module) -> str:
    """Hash over every parameter's name, shape and dtype, and two sums over all of its bits.

    The sums are of integers that wrap around, one plain and one weighted by position, so that they are exact, the same on every
    device, and move with any single weight.
    """
    digest = hashlib.sha256()
    for name, weight in model.named_parameters():
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype} {_bit_sums(weight)} ".encode())
    return digest.hexdigest()


def _bit_sums(weight: torch.Tensor) -> tuple[int, int]:
    if weight.device.type == "meta":  # kept elsewhere until it is needed
        return 0, 0
    bits = weight.detach().reshape(-1).view(_BITS[weight.element_size()])
    plain = weighted = 0
    for start in range(0, bits.numel(), _CHUNK):
        part = bits[start : start + _CHUNK].long()
        place = torch.arange(start, start + len(part), device=part.device) * _ODD + 1
        plain += int(part.sum())
        weighted += int((part * place).sum())
    return plain % 2**64, weighted % 2**64


def processor_fingerprint(vlm: VLM) -> str:
    """Hash over what turns pictures and prompts into inputs: image settings, chat template, tokenizer."""
    processor, tokenizer = vlm.processor, vlm.tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    # Padding and truncation are left out: the tokenizer keeps there what the last call asked for.
    words = (
        {} if backend is None else {k: v for k, v in json.loads(backend.to_str()).items() if k not in ("padding", "truncation")}
    )
    parts = (
        processor.image_processor.to_dict(),
        getattr(processor, "chat_template", None) or getattr(tokenizer, "chat_template", None),
        words or sorted(tokenizer.get_vocab().items()),
    )
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def library_versions() -> dict[str, str]:
    """Versions of the libraries that a run's numbers depend on."""
    return {name: version(name) for name in LIBRARIES}


def write_header(settings: Mapping[str, Any]) -> str:
    """The text of ``run.json``."""
    return json.dumps({"schema": SCHEMA, **settings}, indent=2, ensure_ascii=False) + "\n"


def identity(settings: Mapping[str, Any], number: int) -> str:
    """What shard ``number`` of a run says of where it belongs: a hash over all that decides its numbers."""
    ignored = {"schema", "libraries", "device"}
    text = json.dumps({k: v for k, v in settings.items() if k not in ignored}, sort_keys=True)
    return f"{hashlib.sha256(text.encode()).hexdigest()[:32]} {number}"


def read_header(path: Path) -> dict[str, Any]:
    """The settings in a run's ``run.json``.

    Raises:
        NotARunError: ``path`` is missing, or holds no readable ``run.json``.
        SchemaError: It was written by another version's layout.
    """
    way_out = "name a directory that dx.record wrote."
    if not path.is_dir():
        raise NotARunError(f"{path} is no directory; {way_out}")
    try:
        header = json.loads((path / HEADER).read_text("utf-8"))
    except FileNotFoundError:
        raise NotARunError(f"{path} is no run, it holds no {HEADER}; {way_out}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise NotARunError(f"{path / HEADER} can't be read ({error}); {way_out}") from error
    if not isinstance(header, dict) or "schema" not in header:
        raise NotARunError(f"{path / HEADER} is not a run's header; {way_out}")
    if header["schema"] != SCHEMA:
        raise SchemaError(
            f"{path} has schema version {header['schema']!r} and this deixis reads version {SCHEMA}; "
            "read it with the deixis that wrote it, or record it again elsewhere."
        )
    _check_header(path, header)
    return header


def _check_header(path: Path, header: Mapping[str, Any]) -> None:
    """Refuse a header that no recorder has written."""
    fine = {
        "model": lambda v: isinstance(v, str),
        "n_items": lambda v: type(v) is int and v > 0,
        "shard_items": lambda v: type(v) is int and v > 0,
        "layers": lambda v: isinstance(v, dict) and bool(v) and all(site in SITES and _all_of(int, v[site]) for site in v),
        "roles": lambda v: _all_of(str, v) and bool(v),
        "pool": lambda v: v in ("mean", None),
        "answers": lambda v: isinstance(v, bool),
        "options": lambda v: isinstance(v, bool),
        "weights": lambda v: isinstance(v, str),
        LINES_HASH: lambda v: isinstance(v, str),
    }
    given = {"options": True} | dict(header)
    wrong = [name for name, check in fine.items() if name not in given or not check(given[name])]
    wrong += [] if _plausible_attention(header.get("attention")) else ["attention"]
    if wrong:
        raise NotARunError(f"{path / HEADER} has been changed: {', '.join(wrong)} cannot be right; restore it or record again.")


def _all_of(kind: type, found: Any) -> bool:
    return isinstance(found, list) and all(type(each) is kind for each in found)


def _plausible_attention(found: Any) -> bool:
    """Whether this could be what :meth:`deixis.AttentionWatch.settings` gives, or says that there is none."""
    if not isinstance(found, dict):
        return found is None or found is False
    sites = found.get("sites")
    return (
        isinstance(sites, dict)
        and all(isinstance(found.get(name), bool) for name in ("maps", "spread"))
        and all(isinstance(v, dict) and _all_of(int, v.get("layers")) and _all_of(str, v.get("queries")) for v in sites.values())
    )


def check_same(path: Path, there: Mapping[str, Any], here: Mapping[str, Any], *, finished: bool) -> None:
    """Refuse to mix settings in one run.

    Library versions and the device count only while items remain to be recorded: a finished run is read, not continued.

    Raises:
        SettingsError: Something differs; the message shows each difference.
    """
    ignored = {"schema", LINES_HASH} | ({"libraries", "device"} if finished else set())
    names = [name for name in dict.fromkeys((*here, *there)) if name not in ignored]
    differences = [
        f"{name} is {there.get(name)!r} there and {here.get(name)!r} here" for name in names if there.get(name) != here.get(name)
    ]
    if differences:
        raise SettingsError(
            f"{path} holds a run with other settings: {'; '.join(differences)}; use these settings again, or another path."
        )
