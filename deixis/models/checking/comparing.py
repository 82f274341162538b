"""When two tensors of a model count as equal, and what a check says when it does not apply."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 6e-2, torch.float16: 2e-2}
"""Largest difference that counts as equal, as a share of the values' spread, by the model's dtype.

``generate`` gives float32 logits for models in float64 too.
"""
QUANTISED = 0.25
"""The same for quantised weights, whose rounding depends on what else is in the batch."""


class CannotCheck(Exception):  # noqa: N818 - no error: the check does not apply here
    """A check does not apply to this model; the message says why."""


def tolerance(vlm: "VLM") -> float:
    """Largest difference that counts as equal, as a share of the spread."""
    if getattr(vlm.model.config, "quantization_config", None) is not None:
        return QUANTISED
    return TOLERANCE.get(vlm.model.dtype, 6e-2)


def close(vlm: "VLM", one: Tensor, two: Tensor) -> bool:
    """Whether two tensors are equal, as far as the model's dtype can tell."""
    spread = max(float(one.double().std()), 1e-6)
    return bool((one.double() - two.double()).abs().max() <= tolerance(vlm) * spread)
