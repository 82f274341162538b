"""Roles within the prompt's own words: its last token, and the tokens that name the options."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool
from torch import Tensor

from deixis.benchmarks import Item
from deixis.benchmarks.items import IMAGE_MARK
from deixis.models import VLM

Masks = Mapping[str, Bool[Tensor, "batch position"]]


def with_prompt_roles(
    wanted: Sequence[str], roles: Masks, inputs: Mapping[str, Tensor], items: Sequence[Item], vlm: VLM
) -> dict[str, Bool[Tensor, "batch position"]]:
    """The roles, and those of ``all``, ``last_text`` and ``options`` that are wanted.

    ``all`` is every position that is no padding. ``last_text`` is the token that holds the last character of the item's prompt,
    before what the chat template adds. ``options`` are the tokens that hold the options' labels where the prompt names them
    (the last time it does: "A", "B" in a multiple-choice question); an item whose prompt does not name them has none. Where a
    prompt says where its pictures stand, only what is behind the last of them is searched.

    Raises:
        ValueError: An item's prompt is not found in what the model is given.
    """
    found = dict(roles)
    if "all" in wanted:
        found["all"] = roles["image"] | roles["text"]
    if not {"last_text", "options"} & set(wanted):
        return found
    last, named = torch.zeros_like(roles["text"]), torch.zeros_like(roles["text"])
    for row, item in enumerate(items):
        text, spans = _words(inputs["input_ids"][row], roles["text"][row], vlm)
        asked = item.prompt.rpartition(IMAGE_MARK)[2].strip()
        start = text.rfind(asked)
        if start < 0:
            raise ValueError(
                f"item {item.id!r}: its prompt is not found in the model's input; leave out 'last_text' and 'options'."
            )
        stop = start + len(asked)
        for position, low, high in spans:
            last[row, position] = low < stop <= high
            named[row, position] = any(low < b and high > a for a, b in _labels(item, text, start, stop))
    return found | {"last_text": last, "options": named}


def _words(ids: Tensor, text: Tensor, vlm: VLM) -> tuple[str, list[tuple[int, int, int]]]:
    """The text behind the last picture, and where in it each token's characters lie.

    A character of several tokens (many are, in Chinese) belongs to the last of them.
    """
    positions = text.nonzero()[:, 0].tolist()
    gaps = [index for index, (a, b) in enumerate(pairwise(positions)) if b > a + 1]
    tail = positions[gaps[-1] + 1 if gaps else 0 :]
    tokens = ids[tail].tolist()
    ends = [len(vlm.tokenizer.decode(tokens[: n + 1]).rstrip("\N{REPLACEMENT CHARACTER}")) for n in range(len(tokens))]
    return vlm.tokenizer.decode(tokens), [(p, a, b) for p, (a, b) in zip(tail, pairwise([0, *ends]), strict=True)]


def _labels(item: Item, text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The last place in the prompt at which each option's label stands as a word of its own."""
    for option in item.options:
        places = list(re.finditer(rf"(?<!\w){re.escape(option.label)}(?!\w)", text[start:stop]))
        if places:
            yield start + places[-1].start(), start + places[-1].end()
