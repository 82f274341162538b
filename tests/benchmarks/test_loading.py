"""Lists of one's own: tables and rows in memory give what a JSONL file gives."""

import io
import json
from typing import Any

import pytest
from PIL import Image

from deixis.benchmarks import ItemsError, Option, load_items
from deixis.benchmarks.images import ImageError
from deixis.benchmarks.saved import items_from_jsonl, items_to_jsonl

RECORD = {
    "id": "q/1",
    "prompt": "Near, or far?",
    "images": ["a.png", "sub/b.png"],
    "options": ["near", "far"],
    "truth": "far",
    "task": "distance",
    "targets": {"x_m": 0.25},
    "groups": {"scene": "s1"},
}
TABLE = (
    "id,prompt,images,options,truth,task,targets.x_m,groups.scene\n"
    'q/1,"Near, or far?",a.png; sub/b.png,near|far,far,distance,0.25,s1\n'
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    Image.new("RGB", (5, 4), (1, 2, 3)).save(tmp_path / "a.png")
    Image.new("RGB", (5, 4), (4, 5, 6)).save(tmp_path / "sub/b.png")
    (tmp_path / "mine.jsonl").write_text(json.dumps(RECORD))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.csv", TABLE), ("a.tsv", TABLE.replace(",", "\t").replace('"Near\t', '"Near,')), ("a.json", json.dumps([RECORD]))],
)
def test_a_table_gives_the_items_of_the_same_jsonl(folder, name, text):
    (folder / name).write_text("\ufeff" + text)
    assert load_items(folder / name).fingerprint == load_items(folder / "mine.jsonl").fingerprint


def test_cells_that_are_empty_are_left_out(folder):
    (folder / "a.csv").write_text("id,prompt,images,options,truth,targets.x_m,groups.scene\nq,?,a.png,A|B,,,\n\n")
    (item,) = load_items(folder / "a.csv")
    assert (item.truth, item.targets, item.groups) == (None, {}, {})
    assert item.options == (Option(label="A", forms=("A", " A")), Option(label="B", forms=("B", " B")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no item; write one a row"),
        ("id,id\n", "has a column twice in id, id; keep one"),
        ("id,prompt\nq\n", "a.csv, line 2: it has 1 cells and the head 2; make them agree"),
        ("id,prompt,images,options\nq,?,gone.png,A\n", r"row 1: the image 'gone.png' is missing"),
        ("id,prompt,images,options,colour\nq,?,a.png,A,red\n", r"row 1: the field 'colour' is not known"),
        ("id,prompt,images,options,targets.x_m\nq,?,a.png,A,much\n", r"row 1: targets.x_m is 'much', not a finite number"),
        ("id,prompt,images\nq,?,a.png\n", r"row 1: the field 'options' is missing"),
    ],
)
def test_what_is_wrong_in_a_table_is_told_by_row(folder, text, message):
    (folder / "a.csv").write_text(text)
    with pytest.raises((ItemsError, ImageError), match=message):
        load_items(folder / "a.csv")


class Dataset(list[dict[str, Any]]):
    """What a ``datasets.Dataset`` is to its reader: an iterable of rows, with pictures in memory."""


def test_rows_in_memory_may_hold_paths_pictures_and_bytes(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("DEIXIS_CACHE", str(tmp_path / "cache"))
    buffer = io.BytesIO()
    Image.open(folder / "a.png").save(buffer, "PNG")
    forms = ("a.png", Image.open(folder / "a.png"), {"bytes": buffer.getvalue(), "path": None}, {"path": "a.png"})
    rows = Dataset(RECORD | {"id": f"q/{k}", "images": [form, "sub/b.png"]} for k, form in enumerate(forms))
    items = load_items(rows, images=folder)
    assert len({image.sha256 for item in items for image in item.images}) == 2
    assert items_from_jsonl(items_to_jsonl(items)).fingerprint == items.fingerprint, "a run finds the pictures again"
    with pytest.raises(ItemsError, match="row 1: a picture is 3, which is neither a path nor a picture"):
        load_items(Dataset([RECORD | {"images": [3]}]), images=folder)
    with pytest.raises(ImageError, match="row 1: the bytes of a picture can't be read"):
        load_items(Dataset([RECORD | {"images": [{"bytes": b"x"}]}]), images=folder)


def test_arguments_that_would_change_nothing_are_refused(folder):
    saved = load_items(folder / "mine.jsonl").save(folder / "saved")
    with pytest.raises(ItemsError, match="images, allow_missing can't change the saved items in"):
        load_items(saved, images=folder, allow_missing=True)
    with pytest.raises(ItemsError, match=r"allow_missing can't change .*mine\.jsonl, a list of your own"):
        load_items(folder / "mine.jsonl", allow_missing=True)
