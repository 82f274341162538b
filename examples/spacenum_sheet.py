"""A contact sheet of SpaceNum: transitions and layouts in both directions, and what interventions do to them.

python examples/spacenum_sheet.py docs/images/spacenum.jpg
"""

import sys
from collections.abc import Callable
from pathlib import Path

import deixis as dx
from deixis.benchmarks.spacenum.contact_sheet import contact_sheet

Change = Callable[[dx.Items], dx.Items]


def transition(action: str, seed: int, direction: str = "num2space") -> dx.Items:
    """One item of one action."""
    return dx.spacenum("transition", n=1, seed=seed, directions=(direction,), actions=(action,))


def layout(scale: str, seed: int, direction: str = "num2space") -> dx.Items:
    """One item with a map seen from above."""
    return dx.spacenum("layout", n=1, seed=seed, directions=(direction,), scales=(scale,), maps=("2D",))


def sheet_items() -> dx.Items:
    """A row each."""
    rows = [transition("rotate up", 7), transition("rotate left", 8), transition("move forward", 9), transition("move right", 10)]
    rows += [transition("rotate down", 11, "space2num"), layout("desk", 7), layout("room", 7), layout("desk", 9, "space2num")]
    changes: list[tuple[Change, dx.Items]] = [
        (dx.interventions.visual_anchors, transition("move left", 12, "space2num")),
        (dx.interventions.fewer_objects, layout("desk", 7)),
        (dx.interventions.as_boxes_3d, layout("room", 7)),
    ]
    return dx.Items(item for items in (*rows, *(change(items) for change, items in changes)) for item in items)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    contact_sheet(sheet_items(), tile=200).save(target, quality=86)
    print(target)
