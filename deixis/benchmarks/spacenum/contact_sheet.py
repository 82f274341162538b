"""Items as one picture, for looking at many at once: a row for each, its pictures side by side, the right option marked."""

from collections.abc import Iterable

from PIL import Image, ImageDraw, ImageFont

from deixis.benchmarks.items import Item
from deixis.benchmarks.spacenum.options import pictures_of_options

_MARGIN, _LINE = 6, 18
_INK, _FAINT, _RIGHT, _PAPER = (25, 25, 25), (110, 110, 110), (20, 130, 60), (255, 255, 255)


def contact_sheet(items: Iterable[Item], tile: int = 160) -> Image.Image:
    """Draw items one below the other; pictures are drawn or read now.

    Above each row stands the item's question in short (the action or map, and what is asked); under each picture its number or
    letter and, where the options are pictures, what the option is (``kind``, and the magnitude of an action). A green frame
    marks the right picture; where the options are texts, they stand behind the pictures, the right one in green.

    Args:
        items: SpaceNum's, or any with letters for options.
        tile: Width and height of a picture on the sheet, in pixels.

    Raises:
        ValueError: There is no item, or ``tile`` is below 32.
    """
    rows = [_row(item, tile) for item in items]
    if not rows or tile < 32:
        raise ValueError(f"{len(rows)} items at {tile} pixels make no sheet; give at least one item and 32 pixels.")
    width, height = max(row.width for row in rows), sum(row.height for row in rows)
    sheet, top = Image.new("RGB", (width, height), _PAPER), 0
    for row in rows:
        sheet.paste(row, (0, top))
        top += row.height
    return sheet


def _row(item: Item, tile: int) -> Image.Image:
    pictured = pictures_of_options(item)
    texts = [] if pictured else [f"{option.label}. {option.text}" for option in item.options]
    beside = max((_width(text) for text in texts), default=0) + (2 * _MARGIN if texts else 0)
    width = max(len(item.images) * (tile + _MARGIN) + _MARGIN + beside, _width(_title(item)) + 2 * _MARGIN)
    row = Image.new("RGB", (width, tile + 2 * _LINE + 2 * _MARGIN), _PAPER)
    draw = ImageDraw.Draw(row)
    draw.text((_MARGIN, _MARGIN), _title(item), fill=_INK, font=_font())
    for number, image in enumerate(item.images):
        left, top = _MARGIN + number * (tile + _MARGIN), _MARGIN + _LINE
        row.paste(image.load().resize((tile, tile), Image.Resampling.LANCZOS), (left, top))
        caption, right = _caption(item, number, pictured)
        draw.text((left, top + tile + 2), caption, fill=_RIGHT if right else _FAINT, font=_font())
        if right:
            draw.rectangle((left, top, left + tile - 1, top + tile - 1), outline=_RIGHT, width=3)
    for line, (text, option) in enumerate(zip(texts, item.options, strict=False)):
        at = (_MARGIN + len(item.images) * (tile + _MARGIN) + _MARGIN, _MARGIN + _LINE * (line + 2))
        draw.text(at, text, fill=_RIGHT if option.label == item.truth else _INK, font=_font())
    return row


def _title(item: Item) -> str:
    """What is asked: for transitions the action, for others the line of the prompt that holds the map."""
    if item.groups.get("kind") == "transition":
        facts = item.facts
        asked = f"{facts['magnitude']:g} {facts['unit']}" if item.groups.get("direction") == "num2space" else "by how much?"
        return f"{facts['action']}: {asked}"
    lines = [line for line in item.prompt.splitlines() if line.startswith("Map:")]
    return lines[0] if lines else item.id


def _caption(item: Item, number: int, pictured: list[int]) -> tuple[str, bool]:
    """Under a picture, and whether it is the right option."""
    if number not in pictured:
        return f"Image {number + 1}", False
    option = item.options[pictured.index(number)]
    value = "" if option.value is None else f" {option.value:g}"
    kind = "" if option.kind is None else f" {option.kind.replace('_', ' ')}"
    return f"{option.label}{value}{kind}", option.label == item.truth


def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(12)


def _width(text: str) -> int:
    return int(ImageDraw.Draw(Image.new("L", (1, 1))).textlength(text, font=_font())) + 1
