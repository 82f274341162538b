"""Outline: a model's architecture and processor without its weights, for arithmetic about it."""

from typing import Any

import torch
from torch import nn

from deixis.models.families import family_of
from deixis.models.loading import BUNDLED, explained, refuse_unknown, without_progress_bars
from deixis.models.vlm import VLM


def outline(name: str, dtype: str | torch.dtype = "auto", revision: str | None = None, trust_remote_code: bool = False) -> VLM:
    """A model that can prepare items and be measured, and can't be run: its weights are shapes without numbers.

    Of a model on the hub only the configuration and the processor are fetched, a few megabytes whatever the model's size.

    Args:
        name: As for :func:`deixis.load`.
        dtype: ``"auto"`` for the one its configuration names.
        revision: Of a model on the hub.
        trust_remote_code: Whether code that comes with the model may run.

    Raises:
        ModelError: No such model, or none with a record.
    """
    from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor

    source = str(BUNDLED.get(name, name))
    refuse_unknown(name, source)
    where: dict[str, Any] = {"revision": revision, "trust_remote_code": trust_remote_code}
    with explained(name), without_progress_bars():
        config = AutoConfig.from_pretrained(source, **where)
        processor = AutoProcessor.from_pretrained(source, **where)
        wanted = (getattr(config, "dtype", None) or torch.float32) if dtype == "auto" else dtype
        with torch.device("meta"):
            model = AutoModelForImageTextToText.from_config(
                config, dtype=getattr(torch, wanted) if isinstance(wanted, str) else wanted, trust_remote_code=trust_remote_code
            )
        family = family_of(config)
    return in_memory(VLM(model=model.eval(), processor=processor, family=family, name=name, revision=revision))


def in_memory(vlm: VLM) -> VLM:
    """The same model, whose inputs are prepared on the CPU: they go where the embeddings are.

    The embeddings become one zero that stands for all of them, which takes no memory.
    """
    module = vlm.model.get_submodule(vlm.family.embeddings)
    zero = torch.zeros((), dtype=module.weight.dtype)
    tied = vlm.head.weight is module.weight
    module.weight = nn.Parameter(zero.expand(module.weight.shape), requires_grad=False)
    if tied:
        vlm.head.weight = module.weight
    return vlm


def is_outline(vlm: VLM) -> bool:
    """Whether a model has no weights to run."""
    return next(vlm.blocks.parameters()).device.type == "meta"
