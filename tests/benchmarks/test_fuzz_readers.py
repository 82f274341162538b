"""Whatever a file of items or a run's header holds: it is refused in a sentence of ours, or read rightly."""

import contextlib
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deixis.benchmarks import load_items
from deixis.benchmarks.images import ImageError
from deixis.benchmarks.item_json import ItemsError
from deixis.benchmarks.saved import items_from_jsonl, items_to_jsonl
from tests.toys import toy_items

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
QUICK = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
LINE = json.loads(items_to_jsonl(toy_items(1)))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in nested JSON."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in inside for place in places(child, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def read(text: str) -> bool:
    """Whether a run's list of items could be read; what is read can be written and read again without change."""
    try:
        items = items_from_jsonl(text)
    except (ItemsError, ImageError):
        return False
    assert len(items) == sum(bool(line.strip()) for line in text.split("\n"))
    try:
        assert items_to_jsonl(items_from_jsonl(items_to_jsonl(items))) == items_to_jsonl(items)
    except (ItemsError, ImageError, OSError):  # a picture file that is not there
        assert '"file"' in text
    return True


@QUICK
@given(place=st.sampled_from(places(LINE)), new=JSON)
def test_a_line_with_anything_in_any_place_is_refused_or_read(place: tuple[Any, ...], new: Any):
    read(json.dumps(replaced(LINE, place, new)))


@pytest.mark.parametrize("number", [10**400, -(10**400), 2**63, 2**31, -1, 0, 1e308, float("nan"), float("inf"), True])
def test_numbers_that_no_picture_can_have_are_refused_before_anything_is_drawn(number: Any):
    for place in places(LINE):
        value = LINE
        for key in place:
            value = value[key]
        if isinstance(value, int | float):
            read(json.dumps(replaced(LINE, place, number)))


def test_flipped_bytes_are_refused_or_read():
    right = items_to_jsonl(toy_items(2)).encode()
    chance = random.Random(0)
    fine = 0
    for _ in range(120):
        data = bytearray(right)
        for _ in range(chance.choice((1, 1, 2, 8))):
            kind, at = chance.randrange(3), chance.randrange(len(data))
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                del data[at : at + chance.randrange(1, 40)]
            else:
                data[at:at] = data[at : at + chance.randrange(1, 40)]
        fine += load(bytes(data))
    assert 0 < fine < 120


def load(data: bytes) -> bool:
    """The way of :func:`load_items`, and the way of a run's list."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.jsonl"
        path.write_bytes(data)
        with contextlib.suppress(ItemsError, ImageError):
            load_items(path)
    try:
        return read(data.decode())
    except UnicodeDecodeError:
        return False


@QUICK
@given(text=st.text(max_size=60) | JSON.map(json.dumps))
def test_any_text_is_refused_or_read(text: str):
    load(text.encode("utf-8", "replace"))


@pytest.mark.parametrize("deep", ['{"decoloured": ' * 50_000, "[" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000])
def test_nesting_without_end_is_refused(deep: str):
    assert not load(deep.encode())


def test_pictures_decoloured_without_end_are_refused():
    entry: Any = json.dumps(LINE["images"][0])
    for depth in (100, 400, 700, 900, 5000):
        nested = '{"decoloured": ' * depth + entry + "}" * depth
        read(json.dumps(LINE).replace(entry, nested))


@pytest.mark.parametrize("side", [0, -1, 2**31, 10**30])
def test_pictures_of_impossible_size_are_refused_before_they_are_made(side: int):
    entry = {"uniform": {"width": side, "height": 4, "grey": 1}}
    with pytest.raises(ItemsError, match="pixels, where 1 to 16384 are possible"):
        items_from_jsonl(json.dumps(LINE | {"images": [entry]}))
