"""Choices by the likelihood of what stands behind each letter, as language-model benchmarks score options."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from deixis.analyses.choice_table import Choice, best_of
from deixis.analyses.run_checks import refuse_other_weights

if TYPE_CHECKING:
    from deixis.activations import Run
    from deixis.benchmarks import Item, Option
    from deixis.models import VLM


def string_choices(run: "Run", vlm: "VLM", items: "Sequence[Item]", batch_size: int = 16) -> "Iterator[tuple[str, Choice]]":
    """Score every option's text behind the prompt as a whole string; items whose options have none are left out.

    ``string`` takes the log probability of the text (with and without a blank before it, added up), ``string_per_byte`` divides
    it by the text's length in bytes, which takes off most of the advantage of short texts (as ``acc_norm`` of the
    evaluation harness of EleutherAI does).

    Raises:
        ValueError: The run was recorded with other weights.
    """
    refuse_other_weights(run, vlm)
    with_texts = [item for item in items if all(option.text for option in item.options)]
    for start in range(0, len(with_texts), batch_size):
        part = with_texts[start : start + batch_size]
        for item, scores in zip(part, text_scores(vlm, part), strict=True):
            lengths = [len((option.text or "").encode()) for option in item.options]
            for way, values in (("string", scores), ("string_per_byte", scores / np.array(lengths))):
                yield item.id, best_of(item, way, values, _softmax(values))


def text_scores(vlm: "VLM", items: "Sequence[Item]") -> list[np.ndarray]:
    """Log probability of each option's text behind the prompts of a batch, in nats."""
    import torch

    from deixis.activations.options import option_logits
    from deixis.activations.passes import PromptPass

    spelled = [replace(item, options=tuple(map(_spelled, item.options))) for item in items]
    with torch.no_grad():
        try:
            state = PromptPass.run(vlm, vlm.prepare(items))
            return [np.array(scores) for scores in option_logits(state, spelled, whole=True)]
        finally:
            vlm.reset()


def _spelled(option: "Option") -> "Option":
    """The option as its text instead of its letter."""
    return replace(option, forms=(str(option.text), f" {option.text}"))


def _softmax(values: np.ndarray) -> np.ndarray:
    weights = np.exp(values - values.max())
    return weights / weights.sum()
