"""From a name, or from objects in memory, to a checked :class:`~deixis.models.vlm.VLM`."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from deixis.models.checks import Check, check_vlm
from deixis.models.families import REMOTE_CODE, Family, family_of
from deixis.models.resolver import ResolveError, resolve
from deixis.models.vlm import VLM

BUNDLED: dict[str, Path] = {
    path.name: path for path in sorted((Path(__file__).parent / "bundled").iterdir()) if (path / "config.json").exists()
}
"""The models that come with the library, by name. They were trained on a synthetic speaker, not on human data."""


class ModelError(ValueError):
    """A model that cannot be loaded, or that does not pass its family's checks."""


def load(
    name: str,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "auto",
    revision: str | None = None,
    trust_remote_code: bool = False,
    check: bool | str = True,
    **from_pretrained: Any,
) -> VLM:
    """Load a vision-language model and check that its family's record fits it.

    Args:
        name: ``"pico"``, ``"pico-collapsed"``, a folder, or a name on the Hugging Face hub.
        device: ``"auto"`` for a GPU if there is one, under torchrun the one of this process; left alone when ``device_map`` or
            ``quantization_config`` is given.
        dtype: ``"auto"`` for the one it was saved in, or such as ``"float32"``.
        revision: Of a model on the hub.
        trust_remote_code: Whether code that comes with the model may run.
        check: Whether to check the record by effect (six small calls of the model); ``"full"`` for the slow checks too. What
            could not be checked is in :attr:`VLM.unchecked`.
        **from_pretrained: Passed on to transformers, such as ``device_map`` or ``quantization_config``.

    Raises:
        ModelError: No such model, no record for its family, or a check that fails; the message says which.
    """
    _checked_option(check)
    if isinstance(dtype, str) and dtype != "auto" and not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise ModelError(f"dtype={dtype!r} is no dtype of torch; use 'auto', 'float32', 'bfloat16' or 'float16'.")
    source = str(BUNDLED.get(name, name))
    refuse_unknown(name, source)
    where = {"revision": revision, "trust_remote_code": trust_remote_code}
    with explained(name):
        model, processor = _from_pretrained(source, where, {"dtype": dtype, **from_pretrained})
    if "device_map" not in from_pretrained and getattr(model.config, "quantization_config", None) is None:
        model = _moved(model, device)
    return wrap(model.eval(), processor, name=name, revision=revision, check=check)


def _from_pretrained(source: str, where: dict[str, Any], how: dict[str, Any]) -> tuple[Any, Any]:
    from transformers import AutoModelForImageTextToText, AutoProcessor

    with without_progress_bars():
        model = AutoModelForImageTextToText.from_pretrained(source, **where, **how)
        try:
            return model, AutoProcessor.from_pretrained(source, **where)
        except (AttributeError, TypeError) as error:  # without a tokenizer, transformers stumbles
            raise ValueError(f"Can't make its processor: {error}") from error


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn what transformers says about a model into one sentence with a way out."""
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError) as error:
        text = str(error).strip()
        first = text.splitlines()[0] if text else type(error).__name__
        if "trust_remote_code" in text:
            said = "it comes with code of its own; read that code, then pass trust_remote_code=True (as Ovis2.5 needs)."
        elif "Unrecognized configuration class" in text:
            kind = text.partition("configuration_")[2].partition(" ")[0].rpartition(".")[2].rstrip("'>") or "its class"
            said = f"{kind} is of no model that takes pictures and text and writes text; name a vision-language model."
        elif "rocessor" in first and not isinstance(error, ImportError):
            said = (
                f"it comes without a whole processor of pictures and text ({first.partition('. ')[0]}); put the files of its "
                "processor and tokenizer beside it, or load both yourself and use dx.wrap."
            )
        else:
            said = f"{first} Known without a download: {', '.join(BUNDLED)}."
        raise ModelError(f"model {name!r} can't be loaded: {said}") from error


def wrap(model: Any, processor: Any, name: str | None = None, revision: str | None = None, check: bool | str = True) -> VLM:
    """Use a model and a processor that are in memory already.

    Args:
        model: A transformers model in evaluation mode, perhaps with an adapter of peft on top. A class without a record in
            :data:`~deixis.models.families.FAMILIES` is resolved by its structure.
        processor: Its processor, with a tokenizer and a chat template.
        name: What results call it; None for the name it was loaded from.
        revision: Recorded with results.
        check: Whether to check the record by effect; ``"full"`` for the slow checks too.

    Raises:
        ModelError: No record for its family and none found, training mode, text only, no processor, an adapter that adds
            tokens, or a check that fails.
    """
    _checked_option(check)
    if getattr(model, "training", False):
        raise ModelError("the model is in training mode, where dropout changes what is seen; call model.eval() first.")
    if not hasattr(processor, "tokenizer") or not hasattr(processor, "image_processor"):
        raise ModelError(f"{type(processor).__name__} is no processor of pictures and text; give what AutoProcessor loads.")
    model = _below_adapter(model)
    config = model.config
    if config.get_text_config() is config:
        raise ModelError(f"{type(model).__name__} takes text only; deixis needs a model that takes pictures too.")
    if not getattr(config, "architectures", None):
        config.architectures = [type(model).__name__]

    def vlm_of(family: Family) -> VLM:
        known = name or getattr(config, "_name_or_path", "") or type(model).__name__
        return VLM(model=model, processor=processor, family=family, name=known, revision=revision)

    try:
        vlm = vlm_of(family_of(config))
    except KeyError as known:
        vlm = _resolved(vlm_of, model, known.args[0])
    return _checked(vlm, check)


def _need_template(processor: Any, name: str) -> None:
    if getattr(processor, "chat_template", None) is None:
        raise ModelError(
            f"{name} has no chat template, so no prompt can be written for it; load model and processor yourself, set "
            "processor.chat_template to the one that the model was tuned with, and use dx.wrap."
        )


def _checked_option(check: bool | str) -> None:
    if check not in (True, False, "full"):
        raise ModelError(f"check={check!r} is not one of: True, False, 'full'.")


def _checked(vlm: VLM, check: bool | str) -> VLM:
    """The model with what could not be checked, once nothing fails."""
    if not check:
        return replace(vlm, unchecked=("nothing was checked: check=False.",))
    if vlm.family.prompt is None:
        _need_template(vlm.processor, vlm.name)
    done = check_vlm(vlm, full=check == "full")
    for one in done:
        if one.passed is False:
            raise ModelError(f"{vlm.name} does not fit the record of {vlm.family.architecture}: {one.said}")
    return replace(vlm, unchecked=tuple(f"{one.name}: {why}" for one in done for why in _open(one)))


def _open(check: Check) -> tuple[str, ...]:
    """What a check that did not fail leaves open."""
    return (check.said,) if check.passed is None else check.left_out


def _resolved(vlm_of: Callable[[Family], VLM], model: Any, why: str) -> VLM:
    architecture = model.config.architectures[0]
    try:
        return resolve(vlm_of, model, architecture)
    except ResolveError as error:
        reason = f"{why} " if architecture in REMOTE_CODE else ""
        raise ModelError(f"{reason}{error}") from error


def _below_adapter(model: Any) -> Any:
    """The model that an adapter of peft was put into; its layers hold the adapter, so that nothing of it is lost.

    Raises:
        ModelError: The adapter lies outside the layers: it puts tokens or keys before the prompt.
    """
    if not hasattr(model, "peft_config") or not hasattr(model, "get_base_model"):
        return model
    for name, settings in model.peft_config.items():
        if getattr(settings, "is_prompt_learning", False):
            raise ModelError(
                f"the adapter {name!r} ({settings.peft_type}) puts positions of its own before the prompt, which no role knows; "
                "use an adapter that changes weights, such as LoRA."
            )
    return model.get_base_model()


def refuse_unknown(name: str, source: str) -> None:
    """A plain word that is neither bundled nor a folder is a slip, not a name on the hub."""
    if name in BUNDLED or Path(source).is_dir() or source.count("/") == 1:
        return
    raise ModelError(
        f"model {name!r} is neither bundled ({', '.join(BUNDLED) or 'none'}), nor a folder, nor a hub name such as 'owner/model'."
    )


def _moved(model: Any, device: str | torch.device) -> Any:
    try:
        return model.to(_device(device))
    except (RuntimeError, AssertionError) as error:
        first = str(error).strip().splitlines()[0]
        raise ModelError(f"device={str(device)!r} can't be used: {first} Use 'auto', 'cpu', or a GPU that is there.") from error


def _device(device: str | torch.device) -> torch.device:
    if str(device) != "auto":
        return torch.device(device)
    return torch.device(_own_gpu(os.environ, torch.cuda.device_count()))


def _own_gpu(environment: Mapping[str, str], n_gpus: int) -> str:
    """The GPU of this process among those that its launcher started on this machine (torchrun says which it is)."""
    rank = environment.get("SLURM_LOCALID" if environment.get("DEIXIS_SLURM") == "1" else "LOCAL_RANK")
    if n_gpus < 2 or rank is None:  # a launcher that shows each process one GPU has chosen already
        return "cuda" if n_gpus else "cpu"
    return f"cuda:{rank}"


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Keep transformers from drawing bars."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
