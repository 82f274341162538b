"""Lettered options: which letter stands before what, balanced over a set of items and permuted in cycles."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

import numpy as np

from deixis.benchmarks.items import Box, Item, Items, Option

_PICTURE = re.compile(r"Image (\d+)")
_PER_OPTION = ("magnitudes", "placements")
_PER_PICTURE = ("poses", "visible", "shown")
"""Entries of an item's facts that are lists, one entry an option or a picture."""


@dataclass(frozen=True, kw_only=True)
class Lettered:
    """Options in the order of their letters, and where each came from."""

    options: tuple[Option, ...]
    order: tuple[int, ...]
    """What stands at letter ``k``, counted in the order in which it was given: 0 is the right one."""

    @property
    def truth(self) -> str:
        """The right letter."""
        return self.options[self.order.index(0)].label


def letter_forms(letter: str) -> tuple[str, ...]:
    """The surface forms of an answer that is one letter.

    None begins with a bracket: all options would then share their first token, and every item would have to be scored as whole
    strings. An answer in brackets is still read; see :mod:`deixis.benchmarks.judge`.
    """
    return (letter, f" {letter}", f"{letter}.", f"{letter})")


def lettered(
    texts: Sequence[str],
    values: Sequence[float] | None = None,
    kinds: Sequence[str] | None = None,
    right_at: int = 0,
    rng: np.random.Generator | None = None,
) -> Lettered:
    """Options with letters; the first of ``texts`` is the right one.

    Args:
        texts: What stands behind the letters: the right one, then the distractors.
        values: Of the options, in the same order.
        kinds: What is right or wrong about each, in the same order.
        right_at: The right one's letter, from 0 for A.
        rng: Shuffles the distractors; without it they keep their order, which may then tell which is which.

    Raises:
        ValueError: There are no two options or more than letters, two read the same, or ``right_at`` is no option's place.
    """
    _check(texts, right_at)
    rest = np.arange(1, len(texts)) if rng is None else rng.permutation(np.arange(1, len(texts)))
    order = tuple(int(k) for k in np.insert(rest, right_at, 0))
    options = tuple(
        Option(
            label=letter,
            forms=letter_forms(letter),
            value=None if values is None else float(values[k]),
            text=texts[k],
            kind=None if kinds is None else kinds[k],
        )
        for letter, k in zip(ascii_uppercase, order, strict=False)
    )
    return Lettered(options=options, order=order)


def lettered_pictures(
    n: int,
    first: int,
    values: Sequence[float] | None = None,
    kinds: Sequence[str] | None = None,
    right_at: int = 0,
    rng: np.random.Generator | None = None,
) -> Lettered:
    """Options that are pictures: the letters name ``Image first``, ``Image first + 1``, ... in order, whatever they show.

    ``order`` says which of the pictures, the right one first, is to be shown at each place.

    Raises:
        ValueError: As for :func:`lettered`.
    """
    found = lettered([f"#{k}" for k in range(n)], values, kinds, right_at, rng)
    named = tuple(replace(option, text=f"Image {first + k}") for k, option in enumerate(found.options))
    return Lettered(options=named, order=found.order)


def _check(texts: Sequence[str], right_at: int) -> None:
    if not 2 <= len(texts) <= len(ascii_uppercase):
        raise ValueError(f"{len(texts)} options were given, where letters need 2 to {len(ascii_uppercase)}.")
    twice = next((text for text in texts if list(texts).count(text) > 1), None)
    if twice is not None:
        raise ValueError(f"two options read {twice!r}; choose values that differ as they are written.")
    if not 0 <= right_at < len(texts):
        raise ValueError(f"right_at={right_at} is no place among {len(texts)} options; use 0 to {len(texts) - 1}.")


def balanced_letters(n: int, k: int, rng: np.random.Generator) -> list[int]:
    """Places of the right option for ``n`` items of ``k`` options: blocks of all ``k`` places, each in random order.

    So every letter is right equally often, within one, among any first items, and the first items' letters don't depend on ``n``.
    """
    blocks = [rng.permutation(k) for _ in range(-(-n // k))]
    return [int(place) for block in blocks for place in block][:n]


def cyclic_permutations(items: Items) -> Items:
    """Every item once for each cyclic shift of its options, so that a letter's own appeal averages out.

    Of ``k`` options, permutation ``p`` puts what stood at letter number ``j`` to letter number ``(j + p) % k``; permutation 0 is
    the item itself, the others' ids end in ``/p1`` and so on. Where the options are pictures, the pictures move, with their
    boxes and facts, and the prompt stays; otherwise the options' texts move in the prompt. Groups ``letter`` and ``permutation``
    follow; so, of a set in which every item has all its permutations, every letter is right equally often.

    Raises:
        ValueError: An item's options are no letters with texts, its prompt doesn't list them, or it is permuted already.
    """
    return Items(_shifted(item, shift) for item in items for shift in range(len(item.options)))


def _shifted(item: Item, shift: int) -> Item:
    if any(option.text is None for option in item.options):
        raise ValueError(f"item {item.id!r} has options without a text behind a letter; permute items of multiple choice only.")
    if item.groups.get("permutation", "0") != "0":
        raise ValueError(f"item {item.id!r} is permutation {item.groups['permutation']} already; start from the first ones.")
    if shift == 0:
        return replace(item, groups={**item.groups, "permutation": "0"})
    pictured = pictures_of_options(item)
    k = len(item.options)
    source = [(place - shift) % k for place in range(k)]  # what comes to stand at each letter
    options = tuple(_moved(item, place, source[place], keeps_text=bool(pictured)) for place in range(k))
    truth = None if item.truth is None else item.options[(_place(item, item.truth) + shift) % k].label
    groups = {**item.groups, "permutation": str(shift)} | ({} if truth is None else {"letter": truth})
    facts = _listed_facts(item.facts, _PER_OPTION, source, k)
    moved = replace(item, id=_permuted_id(item, shift), options=options, truth=truth, groups=groups, facts=facts)
    if not pictured:
        return replace(moved, prompt=with_option_texts(item, [str(option.text) for option in options]))
    return _with_moved_pictures(moved, pictured, source)


def _permuted_id(item: Item, shift: int) -> str:
    """The permutation stands before the condition, whichever of the two was made first."""
    condition = "" if item.condition == "real" else f"+{item.condition}"
    return f"{item.id.removesuffix(condition)}/p{shift}{condition}"


def pictures_of_options(item: Item) -> list[int]:
    """The picture, from 0, that each option names (``Image 2`` is picture 1); empty where the options are no pictures."""
    found = [_PICTURE.fullmatch(option.text or "") for option in item.options]
    numbers = [int(match[1]) - 1 for match in found if match is not None]
    return numbers if len(numbers) == len(item.options) and all(0 <= k < len(item.images) for k in numbers) else []


def _moved(item: Item, place: int, source: int, keeps_text: bool) -> Option:
    """What stood at ``source``, with the letter of ``place``."""
    here, there = item.options[place], item.options[source]
    return replace(there, label=here.label, forms=here.forms, text=here.text if keeps_text else there.text)


def _place(item: Item, label: str) -> int:
    return [option.label for option in item.options].index(label)


def _with_moved_pictures(item: Item, pictured: Sequence[int], source: Sequence[int]) -> Item:
    shows = list(range(len(item.images)))  # the old picture at each place
    for place, origin in enumerate(source):
        shows[pictured[place]] = pictured[origin]
    return replace(
        item,
        images=tuple(item.images[k] for k in shows),
        objects=tuple(_renumbered(item.objects, shows)),
        facts=_listed_facts(item.facts, _PER_PICTURE, shows, len(item.images)),
    )


def _renumbered(objects: Sequence[Box], shows: Sequence[int]) -> list[Box]:
    return [replace(box, image=now) for now, old in enumerate(shows) for box in objects if box.image == old]


def _listed_facts(facts: Any, names: Sequence[str], source: Sequence[int], n: int) -> dict[str, Any]:
    moved = dict(facts)
    for name in names:
        if name in moved and len(moved[name]) == n:
            moved[name] = [moved[name][k] for k in source]
    return moved


def with_option_texts(item: Item, texts: Sequence[str]) -> str:
    """The item's prompt with other texts behind its letters, wherever it lists them (``A. 50 degrees``, ``(B) 20 degrees``).

    Raises:
        ValueError: The prompt doesn't list all the options in order.
    """
    gap = r"[\s;,|/]*"
    parts = [rf"\(?{re.escape(o.label)}[.):]\s*(?P<text{k}>{re.escape(o.text or '')})" for k, o in enumerate(item.options)]
    matches = list(re.finditer(gap.join(parts), item.prompt))
    if not matches:
        raise ValueError(
            f"item {item.id!r}: the prompt does not list its options as 'A. {item.options[0].text}' and so on, in order; "
            "write them so, or leave the item out."
        )
    match, prompt = matches[-1], item.prompt  # the list stands after the question, which may quote one
    for k in reversed(range(len(texts))):
        start, end = match.span(f"text{k}")
        prompt = prompt[:start] + texts[k] + prompt[end:]
    return prompt
