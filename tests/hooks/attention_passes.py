"""Passes with and without a watch on the attention."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from deixis.benchmarks import Item
from deixis.hooks.attention import AttentionWatch
from deixis.hooks.attention_plan import AttentionPlan
from deixis.models import VLM


def watched(vlm: VLM, items: Sequence[Item], plan: AttentionPlan) -> tuple[dict[str, np.ndarray], Tensor]:
    inputs = vlm.prepare(items)
    with torch.no_grad(), AttentionWatch(vlm, plan) as watch:
        watch.follow(inputs, items)
        vlm.reset()
        logits = vlm.model(**inputs).logits
        seen = watch.read()
    vlm.reset()
    return seen, logits


def bare(vlm: VLM, items: Sequence[Item]) -> Tensor:
    vlm.reset()
    with torch.no_grad():
        logits = vlm.model(**vlm.prepare(items)).logits
    vlm.reset()
    return logits
