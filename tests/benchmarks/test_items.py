"""Sets of items: joining, choosing, conditions, fingerprints."""

from dataclasses import replace

import pytest

from deixis.benchmarks import Item, Items, Option, memory_game
from deixis.benchmarks.images import UniformImage

ITEM = Item(
    id="a",
    benchmark="mine",
    task="count",
    language="en",
    images=(UniformImage(width=6, height=4, grey=3),),
    prompt="?",
    options=(Option(label="A", forms=("A",)),),
    targets={"distance_m": 1.0},
    groups={"scene": "s"},
    nuisances={"brightness": 0.5},
)


def test_two_items_with_one_id_are_refused():
    with pytest.raises(ValueError, match="two items have the id 'a'"):
        Items([ITEM, ITEM])
    with pytest.raises(ValueError, match="two items have the id 'a'"):
        Items([ITEM]) + Items([ITEM])


def test_slices_joins_and_filters_keep_the_order():
    items = Items(replace(ITEM, id=name) for name in "abcd")
    assert [i.id for i in items[1:3] + items[:1]] == ["b", "c", "a"]
    assert [i.id for i in items.filter(lambda i: i.id in "db")] == ["b", "d"]
    assert items[-1].id == "d"
    assert len(items) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "!"},
        {"images": (UniformImage(width=6, height=4, grey=4),)},
        {"images": ()},
        {"options": (Option(label="A", forms=("A", " A")),)},
        {"truth": "A"},
        {"condition": "blank"},
        {"id": "b"},
    ],
)
def test_the_fingerprint_changes_with_whatever_decides_an_answer(changes):
    assert Items([replace(ITEM, **changes)]).fingerprint != Items([ITEM]).fingerprint


def test_the_fingerprint_is_that_of_the_pixels_and_not_of_the_handle():
    drawn = memory_game(shapes=("star",), colours=("red",), languages=("en",), size=32)
    assert drawn.fingerprint == memory_game(shapes=("star",), colours=("red",), languages=("en",), size=32).fingerprint
    assert drawn[::-1].fingerprint != drawn.fingerprint


def test_the_real_condition_changes_nothing_and_is_no_way_back():
    items = Items([ITEM, replace(ITEM, id="b")])
    assert list(items.with_condition("real")) == list(items)
    with pytest.raises(ValueError, match="'a\\+blank' is in condition 'blank' already; start from the real items"):
        items.with_condition("blank").with_condition("real")


@pytest.mark.parametrize("forms", [(), ("",), ("A", " ")])
def test_an_option_without_forms_or_with_an_empty_one_is_refused(forms):
    with pytest.raises(ValueError, match=r"the option 'A' has the forms .*; give at least one, and none that is empty"):
        Option(label="A", forms=forms)


def test_an_item_with_one_label_twice_is_refused():
    with pytest.raises(ValueError, match=r"item 'a' has options with the labels \['A', 'A'\]; give no label twice"):
        replace(ITEM, options=(Option(label="A", forms=("A",)), Option(label="A", forms=("B",))))


def test_the_frame_has_a_row_per_item_and_a_column_per_quantity():
    frame = Items([ITEM, replace(ITEM, id="b", targets={"x_m": 2.0})]).to_frame()
    assert frame["id"].tolist() == ["a", "b"]
    assert {"scene", "distance_m", "x_m", "brightness", "truth", "condition"} <= set(frame)
    assert frame["distance_m"].isna().tolist() == [False, True]
    assert list(Items([]).to_frame()) == ["id", "benchmark", "task", "language", "condition", "truth"]


def test_what_later_items_hold_leaves_fingerprints_of_earlier_ones_as_they_were():
    """The fingerprint and the JSON of ITEM as the version before options had texts wrote them."""
    assert Items([ITEM]).fingerprint == "d026b0adf4774d8857f2f98fbc07937f421c1c1b0066ab68d4cc8b5e310857dc"
    assert set(ITEM.seen()["options"][0]) == {"label", "forms", "term", "value"}
    assert "facts" not in ITEM.seen()
    told = replace(ITEM, facts={"poses": [1.5]}, options=(Option(label="A", forms=("A",), text="50 degrees", kind="correct"),))
    assert told.seen()["facts"] == {"poses": [1.5]}
    assert told.seen()["options"][0]["text"] == "50 degrees"
    assert Items([told]).fingerprint != Items([ITEM]).fingerprint
