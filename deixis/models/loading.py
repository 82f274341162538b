"""From a name, or from objects in memory, to a checked :class:`~deixis.models.vlm.VLM`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from deixis.models.checks import check_vlm
from deixis.models.families import family_of
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
    check: bool = True,
    **from_pretrained: Any,
) -> VLM:
    """Load a vision-language model and check that its family's record fits it.

    Args:
        name: ``"pico"``, ``"pico-collapsed"``, a folder, or a name on the Hugging Face hub.
        device: ``"auto"`` for a GPU if there is one; left alone when ``device_map`` is given.
        dtype: ``"auto"`` for the one it was saved in, or such as ``"float32"``.
        revision: Of a model on the hub.
        trust_remote_code: Whether code that comes with the model may run.
        check: Whether to check the record by effect (five small forward passes).
        **from_pretrained: Passed on to transformers, such as ``device_map`` or ``quantization_config``.

    Raises:
        ModelError: No such model, no record for its family, or a check that fails; the message says which.
    """
    from transformers import AutoModelForImageTextToText, AutoProcessor

    if isinstance(dtype, str) and dtype != "auto" and not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise ModelError(f"dtype={dtype!r} is no dtype of torch; use 'auto', 'float32', 'bfloat16' or 'float16'.")
    source = str(BUNDLED.get(name, name))
    _refuse_unknown(name, source)
    try:
        with _without_progress_bars():
            processor = AutoProcessor.from_pretrained(source, revision=revision, trust_remote_code=trust_remote_code)
            model: Any = AutoModelForImageTextToText.from_pretrained(
                source, dtype=dtype, revision=revision, trust_remote_code=trust_remote_code, **from_pretrained
            )
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"model {name!r} can't be loaded: {first} Known without a download: {', '.join(BUNDLED)}.") from error
    if "device_map" not in from_pretrained:
        model = _moved(model, device)
    return wrap(model.eval(), processor, name=name, revision=revision, check=check)


def wrap(model: Any, processor: Any, name: str | None = None, revision: str | None = None, check: bool = True) -> VLM:
    """Use a model and a processor that are in memory already.

    Args:
        model: A transformers model with a record in :data:`~deixis.models.families.FAMILIES`, in evaluation mode.
        processor: Its processor, with a tokenizer and a chat template.
        name: What results call it; None for the name it was loaded from.
        revision: Recorded with results.
        check: Whether to check the record by effect.

    Raises:
        ModelError: No record for its family, training mode, no processor, or a check that fails.
    """
    if getattr(model, "training", False):
        raise ModelError("the model is in training mode, where dropout changes what is seen; call model.eval() first.")
    if not hasattr(processor, "tokenizer") or not hasattr(processor, "image_processor"):
        raise ModelError(f"{type(processor).__name__} is no processor of pictures and text; give what AutoProcessor loads.")
    config = model.config
    if not getattr(config, "architectures", None):
        config.architectures = [type(model).__name__]
    try:
        family = family_of(config)
    except KeyError as error:
        raise ModelError(error.args[0]) from error
    vlm = VLM(
        model=model,
        processor=processor,
        family=family,
        name=name or getattr(config, "_name_or_path", "") or type(model).__name__,
        revision=revision,
    )
    if check:
        for done in check_vlm(vlm):
            if done.passed is False:
                raise ModelError(f"{vlm.name} does not fit the record of {family.architecture}: {done.said}")
    return vlm


def _refuse_unknown(name: str, source: str) -> None:
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
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
