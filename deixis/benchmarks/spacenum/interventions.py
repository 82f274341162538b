"""Interventions on items: the pictures or the words are changed in one respect, and the truth stays.

Each is a function ``Items -> Items``: ``numbers_as_words(items)``. An item's id gets the intervention's name behind a plus sign
and its ``condition`` is that name, joined with ``+`` where several are applied; it is the same to write
``items.with_condition("numbers_as_words+black")``. Targets, groups, facts and the right letter stay those of the item, so that
conditions line up item by item.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from deixis.benchmarks.conditions import Condition
from deixis.benchmarks.images import FileImage, ImageHandle
from deixis.benchmarks.items import Item, Items
from deixis.benchmarks.render.blender import SAMPLES, check_samples
from deixis.benchmarks.spacenum.anchored import AnchoredImage
from deixis.benchmarks.spacenum.number_words import spelled
from deixis.benchmarks.spacenum.numbers_in_text import Number, in_centimetres, numbers_in, with_numbers
from deixis.benchmarks.spacenum.prompts import ANSWER_LINE, NO_THINK_LINE, THINK_LINE

_TURN = re.compile(r"(?P<turn>\brotat(?:e|es|ed|ing|ion)\s+(?:to\s+the\s+)?)(?P<way>left|right|up|down)\b", re.IGNORECASE)
_OPPOSITE = {"left": "right", "right": "left", "up": "down", "down": "up"}


def blank(items: Items) -> Items:
    """Uniform grey pictures."""
    return items.with_condition("blank")


def black(items: Items) -> Items:
    """All-black pictures: the paper's blind test."""
    return items.with_condition("black")


def visual_anchors(items: Items) -> Items:
    """Cross-hair lines through the centre and two rings over every picture, whatever draws it."""
    return items.with_condition("visual_anchors")


def fewer_objects(items: Items) -> Items:
    """Layouts without the things that stand around: only the anchors and the target are left.

    Boxes and the nuisances that depend on what is visible are taken anew.

    Raises:
        ValueError: An item's pictures are no layouts that this library draws.
    """
    return items.with_condition("fewer_objects")


def numbers_as_words(items: Items) -> Items:
    """Quantities and coordinates in words, digit by digit behind the point: "zero point four meters".

    Raises:
        ValueError: An item has no number with a unit and no coordinates.
    """
    return items.with_condition("numbers_as_words")


def numbers_as_integers(items: Items) -> Items:
    """Lengths in whole centimetres instead of metres; degrees are whole already and stay.

    Raises:
        ValueError: An item has no number with a unit and no coordinates, or one that is no whole number then.
    """
    return items.with_condition("numbers_as_integers")


def as_points(items: Items) -> Items:
    """Layout pictures replaced by points: seen from above, the two corners of each object that a 2D map names.

    Boxes and the nuisances that depend on them are those of what is drawn.

    Raises:
        ValueError: An item's pictures are no layouts that this library draws.
    """
    return items.with_condition("as_points")


def as_boxes_2d(items: Items) -> Items:
    """Layout pictures replaced by rectangles: seen from above, the ground that each object takes.

    Boxes and the nuisances that depend on them are those of what is drawn.

    Raises:
        ValueError: An item's pictures are no layouts that this library draws.
    """
    return items.with_condition("as_boxes_2d")


def as_boxes_3d(items: Items) -> Items:
    """Layout pictures replaced by the objects' boxes in space, through the camera that saw the layout.

    Boxes and the nuisances that depend on them are those of what is drawn.

    Raises:
        ValueError: An item's pictures are no layouts that this library draws.
    """
    return items.with_condition("as_boxes_3d")


def blender(items: Items, samples: int = SAMPLES) -> Items:
    """The same scenes drawn by Blender's Cycles, whatever lies over them; boxes and everything else stay true.

    Pictures are drawn when they are first looked at, and it is then that Blender must be there
    (:func:`~deixis.benchmarks.render.blender.blender_python`).

    Args:
        items: Of the memory game or SpaceNum.
        samples: Light paths per pixel, 1 to 4096.

    Raises:
        ValueError: An item's pictures are no scenes that this library draws, or ``samples`` is out of range.
    """
    check_samples(samples)
    drawn = items.with_condition("blender")
    return Items(replace(item, images=tuple(_sampled(image, samples) for image in item.images)) for item in drawn)


def rotational_equivalent(items: Items) -> Items:
    """Turns the other way round: rotate left by 20 degrees becomes rotate right by 340 degrees, in prompt and options.

    Options' values follow; targets, groups and facts stay those of the turn as it was made.

    Raises:
        ValueError: An item is no rotation, or has no number of degrees between 0 and 360.
    """
    return items.with_condition("rotational_equivalent")


def think(items: Items) -> Items:
    """The prompt asks for reasoning before the letter; let such items write long answers (``max_new_tokens``)."""
    return items.with_condition("think")


def no_think(items: Items) -> Items:
    """The prompt forbids reasoning before the letter."""
    return items.with_condition("no_think")


def _each(change: Callable[[Item], Item]) -> Callable[[Sequence[Item], int], list[Item]]:
    return lambda items, _seed: [change(item) for item in items]


def _anchored(item: Item) -> Item:
    return replace(item, images=tuple(AnchoredImage(source=image) for image in item.images))


def _through_blender(item: Item) -> Item:
    from deixis.benchmarks.blender_pictures import BlenderImage

    def within(image: ImageHandle) -> ImageHandle:
        source = getattr(image, "source", None)
        if isinstance(source, ImageHandle):
            return replace(image, source=within(source))  # pyright: ignore[reportArgumentType]
        try:
            return BlenderImage(source=image)
        except ValueError as error:
            raise ValueError(f"item {item.id!r}: {error}") from error

    return replace(item, images=tuple(within(image) for image in item.images))


def _sampled(image: Any, samples: int) -> ImageHandle:
    """The picture with another number of samples, where one below what lies over it has some."""
    if hasattr(image, "samples"):
        return replace(image, samples=samples)
    return replace(image, source=_sampled(image.source, samples))


def _in_words(item: Item) -> Item:
    return with_numbers(item, _spelled, "numbers_as_words")


def _spelled(number: Number) -> str:
    unit = {"°": "degrees"}.get(number.written_unit, number.written_unit)
    return spelled(number.text) + (f" {unit}" if unit else "")


def _in_integers(item: Item) -> Item:
    def whole(number: Number) -> str:
        metric = number.unit in ("m", None)
        value = Decimal(number.text) * (100 if metric else 1)
        if value != value.to_integral_value():
            unit = "degrees" if number.unit == "deg" else "centimeters"
            raise ValueError(
                f"item {item.id!r}: {number.text} is {value.normalize():f} {unit}, no whole number; leave the item out, or make "
                "items of whole ones."
            )
        written = {"m": f"{number.gap}centimeters", None: ""}.get(number.unit, f"{number.gap}{number.written_unit}")
        return f"{int(value)}{written}"

    changed = with_numbers(item, whole, "numbers_as_integers")
    return replace(changed, prompt=in_centimetres(changed.prompt))


def _turned_round(item: Item) -> Item:
    texts = [item.prompt, *(option.text or "" for option in item.options)]
    degrees = [number for text in texts for number in numbers_in(text) if number.unit == "deg"]
    if not _TURN.search(item.prompt) or not degrees:
        raise ValueError(
            f"item {item.id!r} asks for no rotation by degrees, and only rotations have an equivalent the other way round; "
            "keep those whose group 'action' begins with 'rotate'."
        )

    def rest(number: Number) -> str:
        if number.unit != "deg":
            return f"{number.text}{number.gap}{number.written_unit}"
        if not 0 < Decimal(number.text) < 360:
            raise ValueError(f"item {item.id!r}: {number.text} degrees is no turn between 0 and 360; leave the item out.")
        return f"{360 - Decimal(number.text)}{number.gap}{number.written_unit}"

    changed = with_numbers(item, rest, "rotational_equivalent")
    options = tuple(replace(o, value=None if o.value is None else 360 - o.value) for o in changed.options)
    return replace(changed, prompt=_TURN.sub(_other_way, changed.prompt), options=options)


def _other_way(match: re.Match[str]) -> str:
    way = _OPPOSITE[match["way"].lower()]
    return match["turn"] + (way.capitalize() if match["way"][0].isupper() else way)


def _answered_by(line: str) -> Callable[[Item], Item]:
    """Another last line in place of the one that asks for a letter; behind the prompt where it has none."""

    def change(item: Item) -> Item:
        *before, last = item.prompt.rstrip().split("\n")
        if last in (THINK_LINE, NO_THINK_LINE):
            raise ValueError(f"item {item.id!r} is told already whether to reason; start from the real items.")
        asks = re.search(r"\bletters?\b", last, re.IGNORECASE) is not None or last == ANSWER_LINE
        kept = before if asks and before else [*before, last]
        return replace(item, prompt="\n".join([*kept, line]))

    return change


def _layout_pictures(name: str, change: Callable[[Any], ImageHandle]) -> Callable[[Item], Item]:
    """A change of the layout pictures of an item, below whatever lies over them."""

    def within(image: ImageHandle, item: Item) -> ImageHandle:
        source = getattr(image, "source", None)
        if isinstance(source, ImageHandle):
            return replace(image, source=within(source, item))  # pyright: ignore[reportArgumentType]
        from deixis.benchmarks.spacenum.layout_picture import LayoutImage

        if not isinstance(image, LayoutImage):
            raise ValueError(
                f"item {item.id!r} has a picture that is no drawn layout, and {name} needs to know what stands where; "
                "take items of dx.spacenum('layout'), or a folder of them."
            )
        return change(image)

    return lambda item: replace(item, images=tuple(within(image, item) for image in _drawn_again(item)))


def _drawn_again(item: Item) -> tuple[ImageHandle, ...]:
    """The item's pictures; of a layout that was read from a folder, what its facts say that they show.

    Only where the files are the layout as it was drawn: what another condition made of a picture could not be told from facts.
    """
    from deixis.benchmarks.conditions import known_conditions
    from deixis.benchmarks.spacenum.layout_picture import layout_of

    shown, table = item.facts.get("shown"), known_conditions()
    changed = [part for part in item.condition.split("+") if part != "real" and not (part in table and table[part].of_words)]
    if changed or not isinstance(shown, list | tuple) or len(shown) != len(item.images):
        return item.images
    if not all(isinstance(image, FileImage) for image in item.images):
        return item.images
    try:
        return tuple(layout_of(item.facts, kind, image.size[0]) for kind, image in zip(shown, item.images, strict=True))
    except (KeyError, TypeError, ValueError):
        return item.images  # facts of some other kind, which say nothing of a layout


def _redrawn(name: str, change: Callable[[Any], ImageHandle]) -> Callable[[Item], Item]:
    """A change of layout pictures after which boxes, and what depends on them, are taken from the new pictures."""
    pictures = _layout_pictures(name, change)

    def redrawn(item: Item) -> Item:
        from deixis.benchmarks.spacenum.layout import seen_anew

        return seen_anew(pictures(item))

    return redrawn


def _without_clutter(image: Any) -> ImageHandle:
    return image.without_clutter()


def _abstracted(name: str, form: str) -> Callable[[Sequence[Item], int], list[Item]]:
    return _each(_redrawn(name, lambda image: image.abstracted(form)))


INTERVENTIONS: dict[str, Condition] = {
    condition.name: condition
    for condition in (
        Condition("fewer_objects", "layouts without the things around", True, _each(_redrawn("fewer_objects", _without_clutter))),
        Condition("as_points", "layouts as points", True, _abstracted("as_points", "points")),
        Condition("as_boxes_2d", "layouts as rectangles", True, _abstracted("as_boxes_2d", "boxes_2d")),
        Condition("as_boxes_3d", "layouts as boxes in space", True, _abstracted("as_boxes_3d", "boxes_3d")),
        Condition("blender", "drawn by Blender's Cycles", True, _each(_through_blender)),
        Condition("visual_anchors", "cross-hair lines and two rings", True, _each(_anchored)),
        Condition("numbers_as_integers", "centimetres for metres", True, _each(_in_integers), of_words=True),
        Condition("rotational_equivalent", "turns the other way round", True, _each(_turned_round), of_words=True),
        Condition("numbers_as_words", "numbers in words", True, _each(_in_words), of_words=True),
        Condition("think", "reasoning asked for", True, _each(_answered_by(THINK_LINE)), of_words=True),
        Condition("no_think", "reasoning forbidden", True, _each(_answered_by(NO_THINK_LINE)), of_words=True),
    )
}
"""In the order in which joined ones are applied: numbers are changed before they are put into words."""
