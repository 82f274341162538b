"""Maps of a layout as text: per object the two opposite corners of its box, in metres, in the anchors' frame.

One form serves all three kinds of map; they differ in how many coordinates a corner has:

- 1D ``["red mug": [(0), (0.12)], "blue book": [(0.3), (0.45)]]``, along the line from the first anchor to the second;
- 2D ``["red mug": [(0, 0), (0.12, 0.09)], ...]``, seen from above;
- 3D ``["red mug": [(0, 0, 0), (0.12, 0.09, 0.1)], ...]``, with the height.

The 2D form is the one that the SpaceNum paper shows (arXiv 2605.23898, figure 1); it does not print the other two, so that they
are ours. What is asked for stands as ``[x]``. Numbers are written with at most two decimals and no trailing zeros.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence

MAPS = {"1D": 1, "2D": 2, "3D": 3}
"""Kinds of map and how many coordinates a corner has in each: x, y, z."""
DECIMALS = 2
HIDDEN = "[x]"

Corner = Sequence[float]
Box = tuple[Corner, Corner]
"""Least and greatest corner, in metres."""

_NUMBER = r"-?\d+(?:\.\d+)?"
_CORNER = rf"\(\s*{_NUMBER}(?:\s*,\s*{_NUMBER})*\s*\)"
_BOX = rf"\[\s*{_CORNER}\s*,\s*{_CORNER}\s*\]"
_ENTRY = re.compile(rf'\s*"([^"]*)"\s*:\s*({_BOX}|\[\s*x\s*\])\s*')


class MapError(ValueError):
    """A map that says nothing, or text that is no map."""


def number_text(metres: float) -> str:
    """A length in metres as maps write it: ``0``, ``1.2``, ``-0.05``."""
    text = f"{metres:.{DECIMALS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def box_text(box: Box, dimensions: int, number: Callable[[float], str] = number_text) -> str:
    """The two corners of a box, ``[(0, 0), (1.2, 1.8)]``.

    Args:
        box: Least and greatest corner in metres, of at least ``dimensions`` coordinates each; further ones are left out.
        dimensions: How many coordinates are written: 1, 2 or 3.
        number: Writes one coordinate.

    Raises:
        MapError: The box is not finite, has no size along a written axis, or none is left after rounding.
    """
    _check_size(box, dimensions)
    low, high = (", ".join(number(float(value)) for value in corner[:dimensions]) for corner in box)
    return f"[({low}), ({high})]"


def map_text(boxes: Mapping[str, Box], name: str, hidden: str | None = None, number: Callable[[float], str] = number_text) -> str:
    """The map of several objects.

    Args:
        boxes: Name of each object and its box, in the order in which they are written.
        name: One of :data:`MAPS`.
        hidden: Object of which ``[x]`` is written instead of its box.
        number: Writes one coordinate.

    Raises:
        MapError: ``name`` is no kind of map, ``hidden`` is no object, or a box has no size.
    """
    dimensions = dimensions_of(name)
    if hidden is not None and hidden not in boxes:
        raise MapError(f"the map has no {hidden!r} to hide; it has: {', '.join(map(repr, boxes))}.")
    entries = []
    for label, box in boxes.items():
        try:
            entries.append(f'"{label}": {HIDDEN if label == hidden else box_text(box, dimensions, number)}')
        except MapError as error:
            raise MapError(f"{label!r}: {error}") from error
    return f"[{', '.join(entries)}]"


def dimensions_of(name: str) -> int:
    """How many coordinates a corner has in this kind of map.

    Raises:
        MapError: ``name`` is none of :data:`MAPS`.
    """
    if name not in MAPS:
        raise MapError(f"map={name!r} is not one of: {', '.join(map(repr, MAPS))}.")
    return MAPS[name]


def parse_box(text: str) -> Box:
    """The box that :func:`box_text` wrote.

    Raises:
        MapError: The text is no box, its corners have different lengths, or it has no size.
    """
    if not re.fullmatch(_BOX, text.strip()):
        raise MapError(f"{text!r} is no box; write two corners like [(0, 0), (1.2, 1.8)].")
    low, high = (tuple(float(value) for value in re.findall(_NUMBER, corner)) for corner in re.findall(_CORNER, text))
    if len(low) != len(high) or len(low) > max(MAPS.values()):
        raise MapError(f"{text!r} has corners of {len(low)} and {len(high)} coordinates; give both one, two or three.")
    _check_size((low, high), len(low))
    return low, high


def parse_map(text: str) -> dict[str, Box | None]:
    """The boxes in a map's text, None for the hidden one.

    Raises:
        MapError: The text is no map, names an object twice, or a box has no size.
    """
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise MapError(f'{text!r} is no map; write ["name": [(0, 0), (1.2, 1.8)], ...].')
    boxes: dict[str, Box | None] = {}
    place, end = 1, len(inner) - 1
    while place < end:
        match = _ENTRY.match(inner, place, end)
        if match is None or (match.end() < end and inner[match.end()] != ","):
            raise MapError(f'{inner[place:end]!r} in a map is no entry; write "name": [(0, 0), (1.2, 1.8)] or "name": [x].')
        label, box = match.groups()
        if label in boxes:
            raise MapError(f"the map names {label!r} twice; keep one.")
        boxes[label] = parse_box(box) if "(" in box else None
        place = match.end() + 1
    return boxes


def check_distinct(texts: Sequence[str]) -> None:
    """Refuse options of which two read the same.

    Raises:
        MapError: Two texts are equal, as boxes are that differ by less than the last written decimal.
    """
    for place, text in enumerate(texts):
        if text in texts[:place]:
            raise MapError(
                f"two options read {text}: they are equal after rounding to {DECIMALS} decimals; make them differ by more "
                f"than {10**-DECIMALS:g} m."
            )


def _check_size(box: Box, dimensions: int) -> None:
    for axis, low, high in zip("xyz", box[0][:dimensions], box[1][:dimensions], strict=False):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise MapError(f"a box runs from {low} to {high} along {axis}; give finite numbers of metres.")
        if round(float(high), DECIMALS) <= round(float(low), DECIMALS):
            raise MapError(
                f"a box runs from {number_text(low)} to {number_text(high)} along {axis}, so that it has no size after rounding "
                f"to {DECIMALS} decimals; give a greater corner second."
            )
