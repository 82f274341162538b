"""A contact sheet of SpaceNum: both kinds of items with their options, and what the interventions do to a picture.

python examples/spacenum_sheet.py docs/images/spacenum.jpg
"""

import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

import deixis as dx
from deixis.benchmarks import Item

TILE, GAP, LINE = 224, 6, 20
ACTIONS = ("rotate up", "rotate left", "move forward", "move right")


def tile(picture: Image.Image, words: str, *, strong: bool = False) -> Image.Image:
    """A picture with a line below it."""
    found = Image.new("RGB", (TILE, TILE + LINE), "white")
    found.paste(picture.resize((TILE, TILE), Image.Resampling.LANCZOS), (0, 0))
    draw = ImageDraw.Draw(found)
    draw.text((2, TILE + 3), words, fill="#0b6e4f" if strong else "#333333", font=ImageFont.load_default(13))
    return found


def options_of(item: Item) -> list[Image.Image]:
    """The pictures that are options, each with its letter and what it is."""
    found = []
    for picture, option in zip(item.images[-len(item.options) :], item.options, strict=True):
        right = option.label == item.truth
        what = f"{option.value:g}" if option.value is not None else str(option.kind)
        found.append(tile(picture.load(), f"{option.label}: {what}" + (" (right)" if right else ""), strong=right))
    return found


def rows() -> list[list[Image.Image]]:
    """Four actions, a desk and a room, and the interventions."""
    found = []
    for seed, action in enumerate(ACTIONS, start=7):
        item = dx.spacenum("transition", n=1, seed=seed, directions=("num2space",), actions=(action,))[0]
        found.append([tile(item.images[0].load(), f"{action} by {item.targets['magnitude']:g}"), *options_of(item)])
    for scale in ("desk", "room"):
        item = dx.spacenum("layout", n=1, seed=7, directions=("num2space",), scales=(scale,), maps=("2D",))[0]
        found.append([*options_of(item), *_changed(item, scale)])
    return found


def _changed(item: Item, scale: str) -> list[Image.Image]:
    names = ("fewer_objects", "as_points", "as_boxes_2d", "as_boxes_3d", "visual_anchors")
    wanted = names[:1] if scale == "desk" else names[3:4]
    return [tile(_shown(item, name), name.replace("_", " ")) for name in wanted]


def _shown(item: Item, name: str) -> Image.Image:
    changed = getattr(dx.interventions, name)(dx.Items([item]))[0]
    return changed.images[[option.label for option in item.options].index(str(item.truth))].load()


def sheet() -> Image.Image:
    """All rows below one another."""
    lines = rows()
    width = max(len(line) for line in lines) * (TILE + GAP) - GAP
    found = Image.new("RGB", (width, len(lines) * (TILE + LINE + GAP) - GAP), "white")
    for row, line in enumerate(lines):
        for column, picture in enumerate(line):
            found.paste(picture, (column * (TILE + GAP), row * (TILE + LINE + GAP)))
    return found


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    sheet().save(target, quality=86)
    print(target)
