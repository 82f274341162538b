"""Numbers in questions: which of them are quantities or coordinates, and how they are written otherwise.

Only these are numbers of space: a number with a unit (``0.4 meters``, ``50 degrees``, ``20°``), and the numbers of a map or of an
option, which stand in brackets (``[(0, 0), (1.2, 1.8)]``). "Image 2", "2D" and the digits of a name are left as they are.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from deixis.benchmarks.items import Item
from deixis.benchmarks.spacenum.options import with_option_texts

_NUMBER = r"-?\d+(?:\.\d+)?"
_UNITS = {"m": r"met(?:er|re)s?|m", "cm": r"centimet(?:er|re)s?|cm", "deg": r"degrees?|deg|°"}
_QUANTITY = re.compile(
    rf"(?<![\w.])(?P<number>{_NUMBER})(?P<gap>\s*)(?P<unit>{'|'.join(_UNITS.values())})(?!\w)",
)
_COORDINATES = re.compile(r"\[[\s\d().,;-]*\d[\s\d().,;-]*\]")
_METRES = re.compile(r"(?<!\w)(met(?:er|re)s)(?!\w)")


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number as it stands in a text."""

    text: str
    unit: str | None
    """``m``, ``cm`` or ``deg``; None for a coordinate, whose unit is that of the map."""
    written_unit: str = ""
    """The unit as it is written; empty for a coordinate."""
    gap: str = ""
    """What stands between number and unit."""


Rewrite = Callable[[Number], str]
"""A number to what is written instead of it, its unit included."""


def numbers_in(text: str) -> list[Number]:
    """Every quantity and coordinate, in order."""
    found: list[tuple[int, Number]] = [(match.start(), _quantity(match)) for match in _QUANTITY.finditer(text)]
    for block in _COORDINATES.finditer(text):
        found += [(block.start() + n.start(), Number(text=n[0], unit=None)) for n in re.finditer(_NUMBER, block[0])]
    return [number for _, number in sorted(found, key=lambda each: each[0])]


def rewritten(text: str, rewrite: Rewrite) -> str:
    """``text`` with every quantity and coordinate written otherwise."""

    def coordinates(block: re.Match[str]) -> str:
        return re.sub(_NUMBER, lambda number: rewrite(Number(text=number[0], unit=None)), block[0])

    # Coordinates first: a quantity's new words hold no brackets, but a map's numbers in words hold no digits any more.
    return _QUANTITY.sub(lambda match: rewrite(_quantity(match)), _COORDINATES.sub(coordinates, text))


def with_numbers(item: Item, rewrite: Rewrite, what: str) -> Item:
    """The item with the numbers of its prompt and of its options' texts written otherwise; truth and values stay.

    Raises:
        ValueError: There is no such number in it, or two options would read the same.
    """
    texts = [option.text or "" for option in item.options]
    if not any(numbers_in(text) for text in (item.prompt, *texts)):
        raise ValueError(
            f"item {item.id!r} has no number with a unit and no coordinates, so {what} changes nothing in it; leave it out."
        )
    if any(option.text is None for option in item.options):
        return replace(item, prompt=rewritten(item.prompt, rewrite))
    told = [rewritten(text, rewrite) for text in texts]
    if len(set(told)) < len(told):
        raise ValueError(f"item {item.id!r}: with {what} its options read {told}, of which two are the same; leave it out.")
    # The list of options is set apart first, so that what it holds is rewritten once and as the options' texts are.
    kept = [f"\x00{k}\x00" for k in range(len(told))]
    prompt = rewritten(with_option_texts(item, kept), rewrite)
    for mark, text in zip(kept, told, strict=True):
        prompt = prompt.replace(mark, text)
    options = tuple(replace(option, text=text) for option, text in zip(item.options, told, strict=True))
    return replace(item, prompt=prompt, options=options)


def in_centimetres(prompt: str) -> str:
    """The prompt with the word for metres replaced where it says the unit of a map."""
    return _METRES.sub(lambda match: f"centi{match[0].lower()}", prompt)


def _quantity(match: re.Match[str]) -> Number:
    unit = next(name for name, pattern in _UNITS.items() if re.fullmatch(pattern, match["unit"]))
    return Number(text=match["number"], unit=unit, written_unit=match["unit"], gap=match["gap"])
