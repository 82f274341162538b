"""What is saved comes back; what is damaged is refused with its line."""

import json
from dataclasses import replace

import pytest
from PIL import Image

from deixis.benchmarks import Box, ImageError, Item, Items, ItemsError, Option, load_items, memory_game
from deixis.benchmarks.images import FileImage, ImageHandle, UniformImage
from deixis.benchmarks.saved import SCHEMA, items_from_jsonl, items_to_jsonl

GREY = UniformImage(width=8, height=6)
RICH = Item(
    id="a/1",
    benchmark="mine",
    task="count",
    language="fr",
    images=(GREY, UniformImage(width=8, height=6, grey=7), GREY),
    prompt='Combien ? "deux"\u2028\U0001f600\n',
    options=(Option(label="A", forms=("A", " A"), value=0.1), Option(label="là", forms=("là",), term="distal")),
    truth="là",
    targets={"distance_m": 0.1 + 0.2, "size_m": float("nan")},
    groups={"scene": "s1"},
    nuisances={"object_row": 1e-17},
    objects=(Box(name="cup", left=1.5, top=0.0, right=4.0, bottom=5.25, image=2),),
)


def drawn(n: int = 1) -> Items:
    return memory_game(shapes=("star",), colours=("red",), languages=("en", "ja"), size=32)[: 2 * n]


@pytest.fixture
def saved(tmp_path):
    return Items([RICH, replace(RICH, id="a/2", truth=None)]).save(tmp_path / "deep" / "items")


def lines(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "items.jsonl").read_text("utf-8").split("\n") if line]


def rewrite(folder, records) -> None:
    (folder / "items.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def test_a_saved_set_comes_back_with_its_fingerprint(tmp_path):
    items = drawn(2)
    items = items + items.with_condition("blank") + Items([RICH])
    back = load_items(items.save(tmp_path / "set"))
    assert back.fingerprint == items.fingerprint
    for a, b in zip(items, back, strict=True):
        # NaN is no equal of itself, so it is compared as JSON.
        assert json.dumps(a.seen()) == json.dumps(b.seen())
        assert [i.load().tobytes() for i in a.images] == [i.load().tobytes() for i in b.images]
    assert load_items(back.save(tmp_path / "again")).fingerprint == items.fingerprint


def test_facts_and_what_stands_behind_letters_come_back(tmp_path):
    facts = {"poses": [{"yaw_deg": 0.1 + 0.2, "at": [1, 2.5, -1e-17]}], "shown": ["both"], "none": None, "yes": True}
    options = (
        Option(label="A", forms=("A",), text="50 degrees", kind="correct", value=50.0),
        Option(label="B", forms=("B",), text="x"),
    )
    item = replace(RICH, facts=facts, options=options, truth="A")
    for back in (load_items(Items([item]).save(tmp_path / "set"))[0], items_from_jsonl(items_to_jsonl(Items([item])))[0]):
        assert back.facts == facts
        assert back.options == options
    with pytest.raises(ItemsError, match=r"item 'a/1' has facts that JSON does not know \(.*set.*\); use plain numbers"):
        items_to_jsonl(Items([replace(item, facts={"poses": {1.0}})]))
    with pytest.raises(ItemsError, match="holds an infinite number or NaN in a box, an option or its facts; make it finite"):
        items_to_jsonl(Items([replace(item, facts={"poses": [float("inf")]})]))


def test_each_picture_is_written_once_under_its_hash(saved):
    names = sorted(path.name for path in (saved / "images").iterdir())
    assert names == sorted(f"{image.sha256}.png" for image in RICH.images[:2])


def test_the_same_items_are_saved_as_the_same_bytes(tmp_path):
    files = [{p.name: p.read_bytes() for p in Items([RICH]).save(tmp_path / name).rglob("*") if p.is_file()} for name in "ab"]
    assert files[0] == files[1]


def test_saving_overwrites_nothing(saved):
    before = (saved / "items.jsonl").read_bytes()
    with pytest.raises(FileExistsError, match="nothing is overwritten"):
        drawn().save(saved)
    assert (saved / "items.jsonl").read_bytes() == before


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "empty").mkdir()
    assert len(load_items(drawn().save(tmp_path / "empty"))) == 2


@pytest.mark.parametrize("fault", ["picture", "number"])
def test_a_save_that_fails_leaves_nothing(tmp_path, fault):
    bad = replace(RICH, id="bad")
    bad = replace(bad, images=(FileImage(path=tmp_path / "gone.png"),)) if fault == "picture" else bad
    bad = replace(bad, targets={"x_m": float("inf")}) if fault == "number" else bad
    with pytest.raises(ValueError, match="can't be read" if fault == "picture" else "'bad' holds an infinite number"):
        Items([RICH, bad]).save(tmp_path / "set")
    assert list(tmp_path.iterdir()) == []


def test_a_runs_lines_give_equal_items(tmp_path):
    items = drawn(1) + drawn(1).with_condition("blank")
    back = items_from_jsonl(items_to_jsonl(items))
    assert list(back) == list(items)
    assert back[0].images[0] is back[1].images[0]  # one handle, so one drawing
    files = load_items(items.save(tmp_path / "set"))
    again = items_from_jsonl(items_to_jsonl(files))
    assert again.fingerprint == items.fingerprint
    assert again[0].images[0] == replace(files[0].images[0], expected=items[0].images[0].sha256)


def test_a_runs_lines_keep_the_hash_of_a_picture_on_disk(tmp_path):
    items = load_items(drawn().save(tmp_path / "set"))
    text = items_to_jsonl(items)
    picture = items[0].images[0].path
    Image.new("RGB", (32, 32)).save(picture)
    with pytest.raises(ImageError, match="not the picture that was saved"):
        items_from_jsonl(text)[0].images[0].load()


def test_a_picture_of_an_unknown_class_cannot_go_into_a_run():
    class Mine(ImageHandle):
        size = (4, 4)
        sha256 = "0"

        def load(self):
            return Image.new("RGB", (4, 4))

    with pytest.raises(ItemsError, match="'a/1' has a picture of class Mine"):
        items_to_jsonl(Items([replace(RICH, images=(Mine(),))]))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: this is not JSON"),
        ("[1]", r"line 2: this is \[1\], not a JSON object"),
        ("[" * 100_000, "line 2: this is not JSON"),
        ('{"id": "b", "id": "c"}', "line 2: the field 'id' comes twice"),
        ({"id": "a/1"}, r"line 2 \(item 'a/1'\): line 1 has this id already"),
        ({"id": 5}, "id is 5, not a string"),
        ({"id": " "}, "id is empty"),
        ({"prompt": None}, r"line 2 \(item 'b'\): prompt is None, not a string"),
        ({"colour": "red"}, "the field 'colour' is not known; allowed are id, prompt, images, options, benchmark"),
        ({"prompt": ...}, "the field 'prompt' is missing; needed are id, prompt, images, options"),
        ({"options": []}, "give at least one"),
        ({"options": ["A", "A"]}, "no label twice"),
        ({"options": [{"label": "A", "term": "here"}]}, "options.term is 'here'; allowed are null, proximal, medial, distal"),
        ({"options": [{"label": "A", "value": True}]}, "options.value is True, not a finite number"),
        ({"options": [{"label": "A", "forms": []}]}, "'A' has no forms"),
        ({"options": [{"label": "A", "colour": 1}]}, "in options the field 'colour' is not known"),
        ({"truth": "Z"}, "truth is 'Z', which is no option's label"),
        ({"targets": {"x_m": "1"}}, "targets.x_m is '1', not a finite number"),
        ({"targets": {"x_m": 10**400}}, r"line 2 \(item 'b'\): targets.x_m is 1000*\.\.\., a whole number too large for a float"),
        ({"prompt": "a \ud800"}, r"line 2: a text holds '\\ud800', half of a surrogate pair"),
        ({"groups": {"\udc00": "s"}}, r"line 2: a text holds '\\udc00', half of a surrogate pair"),
        (
            {"images": ["a" * 5000]},
            r"line 2 \(item 'b'\): the image path 'a{56}\.\.\. can't be used|the image 'a{56}\.\.\. is missing",
        ),
        ({"options": [{"label": "A", "forms": ["A", ""]}]}, r"line 2 \(item 'b'\): options.forms is empty"),
        ({"facts": [1]}, r"facts is \[1\], not an object"),
        ({"options": [{"label": "A", "text": 3}]}, "options.text is 3, not a string"),
        ({"options": [{"label": "A", "kind": " "}]}, "options.kind is empty"),
        ({"targets": [1]}, r"targets is \[1\], not an object"),
        ({"groups": {"scene": 3}}, "groups.scene is 3, not a string"),
        ({"objects": [{"name": "a", "left": 5, "top": 0, "right": 1, "bottom": 1}]}, "left and top come first"),
        ({"objects": [{"name": "a", "left": 0, "top": 0, "right": 1, "bottom": 1, "image": 1}]}, "whole numbers from 0 to 0"),
        ({"images": "a.png"}, "images is 'a.png', not a list"),
        ({"images": [3]}, "neither a path nor an object"),
        ({"images": ["gone.png"]}, r"line 2 \(item 'b'\): the image 'gone.png' is missing"),
        ({"images": ["/etc/passwd"]}, "'/etc/passwd' is absolute"),
        ({"images": ["C:\\a.png"]}, "is absolute"),
        ({"images": ["../a.png"]}, "holds '..'"),
        ({"images": ["sub\\..\\..\\a.png"]}, "holds '..'"),
        ({"images": ["a\0.png"]}, "can't be used|is missing"),
        ({"images": ["notes.txt"]}, r"line 2 \(item 'b'\): .*notes.txt is no picture"),
        ({"images": ["cut.png"]}, r"line 2 \(item 'b'\): .*cut.png is damaged"),
        ({"images": ["huge.png"]}, r"line 2 \(item 'b'\): .*huge.png has 8001 x 8001 pixels; at most 64 megapixels"),
        ({"images": ["link.png"]}, "'link.png' leads out of its folder through a link"),
    ],
)
def test_a_bad_line_is_refused_by_number(tmp_path, line, message):
    folder = tmp_path / "mine"
    folder.mkdir()
    Image.effect_noise((64, 64), 50).save(folder / "ok.png")
    (folder / "cut.png").write_bytes((folder / "ok.png").read_bytes()[:1500])
    (folder / "notes.txt").write_text("no picture")
    if "huge" in str(line):
        Image.new("1", (8001, 8001)).save(folder / "huge.png")
    (tmp_path / "out.png").write_bytes((folder / "ok.png").read_bytes())
    (folder / "link.png").symlink_to(tmp_path / "out.png")
    good = {"id": "a/1", "prompt": "?", "images": ["ok.png"], "options": ["A", "B"]}
    if isinstance(line, dict):
        changed = good | {"id": "b"} | line
        line = json.dumps({key: value for key, value in changed.items() if value is not ...})
    (folder / "mine.jsonl").write_text(json.dumps(good) + "\n" + line + "\n", "utf-8")
    with pytest.raises((ItemsError, ImageError), match=message) as caught:
        load_items(folder / "mine.jsonl")
    assert "mine.jsonl, line 2" in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_file_of_ones_own_may_leave_out_what_is_not_known(tmp_path):
    Image.new("L", (5, 4), 9).save(tmp_path / "grey.png")
    record = {"id": "q", "prompt": "Which?", "images": ["grey.png"], "options": ["A", {"label": "B", "value": 2}], "truth": "B"}
    (tmp_path / "mine.jsonl").write_text("\ufeff" + json.dumps(record) + "\r\n\n", "utf-8")
    (item,) = load_items(str(tmp_path / "mine.jsonl"))
    assert item.options == (Option(label="A", forms=("A", " A")), Option(label="B", forms=("B", " B"), value=2.0))
    assert (item.benchmark, item.condition, item.truth, item.targets) == ("custom", "real", "B", {})
    assert item.images[0].load().getpixel((0, 0)) == (9, 9, 9)
    Image.new("L", (5, 4), 10).save(tmp_path / "grey.png")
    with pytest.raises(ImageError, match="its hash differs"):
        item.images[0].load()  # held to the picture that was loaded


def test_a_whole_surrogate_pair_and_plain_escapes_are_read(tmp_path):
    Image.new("L", (5, 4)).save(tmp_path / "grey.png")
    line = r'{"id": "q", "prompt": "\ud83d\ude00 \u3053", "images": ["grey.png"], "options": ["A"]}'
    (tmp_path / "mine.jsonl").write_text(line, "utf-8")
    assert load_items(tmp_path / "mine.jsonl")[0].prompt == "\U0001f600 こ"


@pytest.mark.parametrize("value", [float("inf"), -1.0, 10**400])
def test_a_camera_that_cannot_be_is_refused_with_its_line(value):
    first, second = items_to_jsonl(drawn(1)).splitlines()
    record = json.loads(second)
    record["images"][0]["drawn"]["camera"]["height_m"] = value
    with pytest.raises(ItemsError, match=r"line 2 \(item .*\): an entry of images can't be rebuilt"):
        items_from_jsonl(f"{first}\n{json.dumps(record)}\n")


@pytest.mark.parametrize("change", ["prompt", "dropped", "picture", "schema", "header", "lines", "no header"])
def test_a_saved_set_that_was_changed_is_refused(saved, change):
    records, message = lines(saved), "was changed after it was saved"
    if change == "prompt":
        records[1]["prompt"] = "else"
        rewrite(saved, records)
    elif change == "dropped":
        rewrite(saved, records[:1])
    elif change == "picture":
        Image.new("RGB", (8, 6), (1, 2, 3)).save(saved / records[0]["images"][0]["file"])
        message = r"line 1 \(item 'a/1'\): .*not the picture that was saved"
    elif change == "schema":
        header = json.loads((saved / "header.json").read_text()) | {"schema": SCHEMA + 1}
        (saved / "header.json").write_text(json.dumps(header))
        message = f"schema {SCHEMA + 1} and this deixis reads schema {SCHEMA}"
    elif change == "header":
        (saved / "header.json").write_text("{")
        message = "header.json can't be read"
    elif change == "lines":
        (saved / "items.jsonl").unlink()
        message = "has no items.jsonl"
    else:
        (saved / "header.json").unlink()
        message = "has no header.json"
    with pytest.raises((ItemsError, ImageError), match=message):
        load_items(saved)


@pytest.mark.parametrize("name", ["table.xlsx", "rows.parquet", "rows"])
def test_other_files_are_refused_with_what_is_allowed(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(
        ItemsError, match=r"name a folder that Items\.save wrote, a \.jsonl or \.csv file of your own, or SpaceNum"
    ):
        load_items(tmp_path / name)
    with pytest.raises(ItemsError, match="does not exist"):
        load_items(tmp_path / "none")
