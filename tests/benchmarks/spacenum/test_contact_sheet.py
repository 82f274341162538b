"""The sheet shows every picture of every item where it belongs, and marks the right one."""

import numpy as np
import pytest

from deixis.benchmarks.images import UniformImage
from deixis.benchmarks.items import Item
from deixis.benchmarks.spacenum.contact_sheet import contact_sheet
from deixis.benchmarks.spacenum.options import lettered, lettered_pictures

GREYS = (2, 6, 10, 14, 18)  # darker than any ink
GREEN = (20, 130, 60)


def item(direction: str, right_at: int) -> Item:
    values, unit = [10.0, 20.0, 30.0, 40.0], "deg"
    if direction == "num2space":
        options = lettered_pictures(4, first=2, values=values, right_at=right_at).options
    else:
        options = lettered(["10 degrees", "20 degrees", "30 degrees", "40 degrees"], values=values, right_at=right_at).options
    return Item(
        id=f"{direction}-{right_at}",
        benchmark="spacenum",
        task=f"transition-{direction}",
        language="en",
        images=tuple(UniformImage(width=64, height=64, grey=grey) for grey in GREYS[: 5 if direction == "num2space" else 2]),
        prompt="",
        options=options,
        truth="ABCD"[right_at],
        groups={"kind": "transition", "direction": direction},
        facts={"action": "rotate up", "magnitude": 10.0, "unit": unit},
    )


def places(sheet, grey: int) -> np.ndarray:
    """Rows and columns of the pixels of this grey."""
    return np.argwhere((np.asarray(sheet) == grey).all(axis=2))


def test_every_picture_is_on_the_sheet_from_left_to_right():
    sheet = contact_sheet([item("num2space", 0)], tile=64)
    lefts = []
    for grey in GREYS:
        found = places(sheet, grey)
        assert len(found) >= (64 - 6) ** 2
        lefts.append(found[:, 1].min())
    assert lefts == sorted(lefts)


@pytest.mark.parametrize("right_at", range(4))
def test_the_right_picture_has_a_green_frame_and_no_other_has(right_at):
    sheet = np.asarray(contact_sheet([item("num2space", right_at)], tile=64))
    for number, grey in enumerate(GREYS):
        rows, columns = places(sheet, grey).T
        framed = (sheet[rows.min() - 1, columns.min() : columns.max()] == GREEN).all()
        assert framed == (number == right_at + 1)


def test_rows_stand_below_each_other_and_texts_beside_their_pictures():
    one, both = (
        contact_sheet([item("space2num", 1)], tile=64),
        contact_sheet([item("space2num", 1), item("num2space", 2)], tile=64),
    )
    assert both.height == 2 * one.height
    assert one.width > 2 * 64 + 60
    green = (np.asarray(one) == GREEN).all(axis=2)
    assert green.any()
    assert green[:, : 2 * 64].sum() == 0


def test_nothing_to_show_is_refused():
    with pytest.raises(ValueError, match="0 items at 160 pixels make no sheet; give at least one item and 32 pixels"):
        contact_sheet([])
    with pytest.raises(ValueError, match="1 items at 16 pixels make no sheet"):
        contact_sheet([item("num2space", 0)], tile=16)
