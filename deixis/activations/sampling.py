"""Answers drawn from a model's distribution, as benchmarks often score them."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from deixis.activations.passes import Choose, PromptPass, written_answers
from deixis.benchmarks import Item, Items
from deixis.models import VLM

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("model", "item", "draw", "answer")


@dataclass(frozen=True, kw_only=True)
class SampledAnswers:
    """Answers drawn for each item, and how."""

    model: str
    temperature: float
    top_p: float
    top_k: int
    seed: int
    max_new_tokens: int
    items: tuple[str, ...]
    """Ids, in the order of ``answers``."""
    answers: tuple[tuple[str, ...], ...]
    """Of each item, one for each draw."""

    def __repr__(self) -> str:
        n = len(self.answers[0]) if self.answers else 0
        return f"SampledAnswers({self.model!r}, {len(self.items)} items, {n} draws each; .to_frame())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per item and draw: ``model item draw answer``."""
        import pandas as pd

        rows = [
            (self.model, item, draw, answer)
            for item, drawn in zip(self.items, self.answers, strict=True)
            for draw, answer in enumerate(drawn)
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS))


def sample_answers(
    vlm: VLM,
    items: Items,
    n: int = 1,
    *,
    temperature: float = 0.7,
    top_p: float = 0.9,
    top_k: int = 50,
    seed: int = 0,
    max_new_tokens: int = 16,
    batch_size: int = 16,
) -> SampledAnswers:
    """Draw ``n`` answers to each item; the defaults are the settings of SpaceNum (arXiv 2605.23898, section 3).

    The next token's distribution is that of transformers' ``generate(do_sample=True)``: logits over the temperature, then the
    ``top_k`` most likely tokens, then the fewest of these that hold ``top_p`` of the probability. The random numbers of an answer
    depend on the seed, the item's id and the draw only, so that neither the batch size nor other items change it.

    Args:
        vlm: The model.
        items: What is asked.
        n: Draws for each item.
        temperature: Above 0.
        top_p: Above 0, at most 1 (1 keeps all tokens).
        top_k: At least 1.
        seed: Of the draws.
        max_new_tokens: Most tokens of an answer; give models that reason first a few thousand.
        batch_size: Items a forward pass.

    Raises:
        ValueError: An argument is outside its range.
    """
    _check(n, temperature, top_p, top_k, max_new_tokens, batch_size)
    warp = _warpers(temperature, top_p, top_k)
    answers: list[tuple[str, ...]] = []
    for start in range(0, len(items), batch_size):
        answers.extend(_drawn(vlm, list(items[start : start + batch_size]), n, warp, seed, max_new_tokens))
    return SampledAnswers(
        model=vlm.name,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        seed=seed,
        max_new_tokens=max_new_tokens,
        items=tuple(item.id for item in items),
        answers=tuple(answers),
    )


def _check(n: int, temperature: float, top_p: float, top_k: int, max_new_tokens: int, batch_size: int) -> None:
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} must be above 0; greedy answers are those of a run (run.answers).")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p} must be above 0 and at most 1.")
    counts = {"n": n, "top_k": top_k, "max_new_tokens": max_new_tokens, "batch_size": batch_size}
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name}={value} must be at least 1.")


def _warpers(temperature: float, top_p: float, top_k: int) -> Any:
    """What ``generate`` applies to the logits before it draws, in its order."""
    from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    # Each refuses whole numbers where it expects fractions.
    return LogitsProcessorList(
        [TemperatureLogitsWarper(float(temperature)), TopKLogitsWarper(top_k), TopPLogitsWarper(float(top_p))]
    )


def _drawn(vlm: VLM, items: Sequence[Item], n: int, warp: Any, seed: int, max_new_tokens: int) -> Iterator[tuple[str, ...]]:
    """Every draw for each item of a batch, from one pass over the prompts."""
    with torch.no_grad():
        try:
            state = PromptPass.run(vlm, vlm.prepare(items))
            draws = []
            for draw in range(n):
                streams = [_stream(seed, item.id, draw) for item in items]
                copied = state if draw == n - 1 else state.rows(range(len(items)))
                draws.append(written_answers(copied, max_new_tokens, _drawing(warp, streams)))
        finally:
            vlm.reset()
    return zip(*draws, strict=True)


def _stream(seed: int, item: str, draw: int) -> np.random.Generator:
    return np.random.default_rng((seed, zlib.crc32(item.encode()), draw))


def _drawing(warp: Any, streams: Sequence[np.random.Generator]) -> Choose:
    """Draws one token a row, each row from a stream of its own."""

    def choose(logits: Float[Tensor, "batch vocab"]) -> Int[Tensor, " batch"]:
        shares = warp(None, logits.clone()).softmax(dim=-1).double().cpu().numpy()
        return torch.tensor([drawn_from(row, stream.random()) for row, stream in zip(shares, streams, strict=True)])

    return choose


def drawn_from(shares: Float[np.ndarray, " token"], at: float) -> int:
    """The token in whose part of the unit interval ``at`` lies, the tokens side by side with lengths ``shares``."""
    (kept,) = np.nonzero(shares)
    ends = np.cumsum(shares[kept])
    return int(kept[min(int(np.searchsorted(ends, at * ends[-1], side="right")), len(kept) - 1)])
