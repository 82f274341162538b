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

SCHEMA = 1
"""Raise it when older code could misread what newer code writes."""
HEADER, LINES, VIEW, SHARDS = "run.json", "items.jsonl", "run.h5", "shards"
LIBRARIES = ("deixis", "torch", "transformers", "torchvision", "numpy", "h5py", "pillow")
_SAMPLES = 64


def describe_model(vlm: VLM) -> dict[str, Any]:
    """What identifies a model and how it computes."""
    return {
        "model": vlm.name,
        "revision": vlm.revision,
        "weights": weights_fingerprint(vlm.model),
        "family": vlm.family.architecture,
        "n_layers": vlm.n_layers,
        "d_model": vlm.d_model,
        "dtype": str(vlm.model.dtype).removeprefix("torch."),
        "attention_implementation": getattr(vlm.model.config, "_attn_implementation", None),
        "device": vlm.device.type,
    }


def weights_fingerprint(model: torch.nn.Module) -> str:
    """Hash over the name, the shape and 64 evenly spaced values of every parameter: cheap, and fine-tuning changes it."""
    digest = hashlib.sha256()
    for name, weight in model.named_parameters():
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype} ".encode())
        if weight.device.type == "meta" or weight.numel() == 0:  # kept elsewhere until it is needed
            continue
        at = torch.linspace(0, weight.numel() - 1, min(_SAMPLES, weight.numel()), device=weight.device).long()
        digest.update(weight.detach().reshape(-1)[at].float().cpu().numpy().tobytes())
    return digest.hexdigest()


def library_versions() -> dict[str, str]:
    """Versions of the libraries that a run's numbers depend on."""
    return {name: version(name) for name in LIBRARIES}


def write_header(settings: Mapping[str, Any]) -> str:
    """The text of ``run.json``."""
    return json.dumps({"schema": SCHEMA, **settings}, indent=2, ensure_ascii=False) + "\n"


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
    except (OSError, ValueError) as error:
        raise NotARunError(f"{path / HEADER} can't be read ({error}); {way_out}") from error
    if not isinstance(header, dict) or "schema" not in header:
        raise NotARunError(f"{path / HEADER} is not a run's header; {way_out}")
    if header["schema"] != SCHEMA:
        raise SchemaError(
            f"{path} has schema version {header['schema']!r} and this deixis reads version {SCHEMA}; "
            "read it with the deixis that wrote it, or record it again elsewhere."
        )
    return header


def check_same(path: Path, there: Mapping[str, Any], here: Mapping[str, Any], *, finished: bool) -> None:
    """Refuse to mix settings in one run.

    Library versions and the device count only while items remain to be recorded: a finished run is read, not continued.

    Raises:
        SettingsError: Something differs; the message shows each difference.
    """
    ignored = {"schema", "libraries", "device"} if finished else {"schema"}
    names = [name for name in dict.fromkeys((*here, *there)) if name not in ignored]
    differences = [
        f"{name} is {there.get(name)!r} there and {here.get(name)!r} here" for name in names if there.get(name) != here.get(name)
    ]
    if differences:
        raise SettingsError(
            f"{path} holds a run with other settings: {'; '.join(differences)}; use these settings again, or another path."
        )
