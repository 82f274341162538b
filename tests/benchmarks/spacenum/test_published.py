"""The published form, from rows written here by hand: what is read, what is refused by row, what may be left out."""

import json
from typing import Any

import pytest
from PIL import Image

from deixis.benchmarks import Items, ItemsError, ItemsWarning, cyclic_permutations, interventions, load_items
from deixis.benchmarks.images import ImageError
from deixis.benchmarks.judge import judge
from deixis.benchmarks.saved import items_from_jsonl, items_to_jsonl

FLOOR = "exploration/sim/FloorPlan12/FloorPlan12_RotateRight"
LIST = "Options: A. Image 2; B. Image 3; C. Image 4; D. Image 5."
MAP = '["sofa": [(0, 0), (2, 0.9)], "tree": [(3.1, 0.2), (3.6, 0.7)], "crate": {}]'


def rotation(**changes: Any) -> dict[str, Any]:
    question = f"The first of five views is yours. After rotating right by 30 degrees, which one is? {LIST}"
    row = {
        "task": "dynamic-n2s",
        "subtask": "Rotate Right (R)",
        "QA_prompt": question,
        "GT_answer": "C",
        "meta_info": {
            "option_meta_pattern": {"A": "wrong", "B": "less_correct", "C": "correct", "D": "less_wrong"},
            "option_meta_info": {"A": "70", "B": "40", "C": "30", "D": "10"},
        },
        "image": [f"{FLOOR}_30_3_0.png", *(f"{FLOOR}_{n}_3_1.png" for n in (70, 40, 30, 10))],
        "QA_prompt_with_image_tag": "<image><image><image><image><image>\n" + question,
    }
    return row | changes


def movement(**changes: Any) -> dict[str, Any]:
    question = (
        "Two views, one step backwards between them. How long was it?\nA. 0.4 meters\nB. 1.0 meters\nC. 2.2 meters\nD. 1.6 meters"
    )
    row = {
        "task": "dynamic-s2n",
        "subtask": "Move Backward (B)",
        "QA_prompt": question,
        "GT_answer": "B",
        "meta_info": {
            "option_meta_pattern": {"A": "less_correct", "B": "correct", "C": "wrong", "D": "less_wrong"},
            "option_meta_info": {"A": "0.4", "B": "1.0", "C": "2.2", "D": "1.6"},
        },
        "image": ["exploration/sim/FloorPlan7/a_0.png", "exploration/sim/FloorPlan7/a_1.png"],
        "QA_prompt_with_image_tag": f"Before: <image1> after: <image2>. {question}",
    }
    return row | changes


def line_map(**changes: Any) -> dict[str, Any]:
    question = "Which picture agrees with the map?\nMap: " + MAP.format("[(1, 1), (2, 2)]") + "\nA. Image 1\nB. Image 2"
    row = {
        "task": "static-n2s",
        "subtask": "1D-Map (desk)",
        "QA_prompt": question,
        "GT_answer": "A",
        "meta_info": {"option_meta_pattern": {"A": "correct", "B": "size_wrong"}, "option_meta_info": {}},
        "image": ["layout/d1.png", "layout/d2.png"],
        "QA_prompt_with_image_tag": f"<|image|> <|image|> {question}",
    }
    return row | changes


def room_map(**changes: Any) -> dict[str, Any]:
    boxes = ("[(1, 1), (2, 2)]", "[(1.5, 1), (2.5, 2)]", "[(1, 1), (1.4, 1.4)]", "[(1.5, 1), (1.9, 1.4)]")
    listed = "\n".join(f"{letter}. {box}" for letter, box in zip("ABCD", boxes, strict=True))
    row = {
        "task": "static-s2n",
        "subtask": "2D-Map (room)",
        "QA_prompt": f"What belongs at [x]?\nMap: {MAP.format('[x]')}\n{listed}",
        "GT_answer": "A",
        "meta_info": {"option_meta_pattern": {"A": "correct", "B": "position", "C": "size", "D": "both"}},
        "image": "layout/r1.png",
    }
    return row | changes


ROWS = [rotation(), movement(), line_map(), room_map()]


def written(folder, rows, name="bench.json", without=()):
    names = {str(n) for row in rows for n in ([row["image"]] if isinstance(row["image"], str) else row["image"])}
    for k, image in enumerate(sorted(names - set(without))):
        (folder / image).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 5), (k, 2 * k, 9)).save(folder / image)
    text = json.dumps(rows) if name.endswith(".json") else "".join(json.dumps(row) + "\n" for row in rows)
    (folder / name).write_text(text, "utf-8")
    return folder / name


@pytest.mark.parametrize("name", ["bench.json", "bench.jsonl"])
def test_rows_become_items_with_the_groups_of_the_papers_tables(tmp_path, name):
    turned, moved, line, room = load_items(written(tmp_path, ROWS, name))
    assert [i.task for i in (turned, moved, line, room)] == [
        "transition-num2space",
        "transition-space2num",
        "layout-num2space",
        "layout-space2num",
    ]
    assert {i.benchmark for i in (turned, moved, line, room)} == {"spacenum"}
    assert (turned.groups["action"], turned.groups["column"], turned.truth) == ("rotate right", "rotate L/R", "C")
    assert (moved.groups["action"], moved.groups["column"], moved.truth) == ("move backward", "move F/B", "B")
    assert (line.groups["map"], line.groups["scale"], line.groups["column"]) == ("1D", "desk", "1D D")
    assert (room.groups["map"], room.groups["scale"], room.groups["column"]) == ("2D", "room", "2D R")
    assert [len(i.images) for i in (turned, moved, line, room)] == [5, 2, 2, 1]
    assert [len(i.options) for i in (turned, moved, line, room)] == [4, 4, 2, 4]


def test_options_have_their_texts_values_and_kinds(tmp_path):
    turned, moved, line, room = load_items(written(tmp_path, ROWS))
    assert [(o.text, o.value, o.kind) for o in turned.options] == [
        ("Image 2", 70.0, "wrong"),
        ("Image 3", 40.0, "less_correct"),
        ("Image 4", 30.0, "correct"),
        ("Image 5", 10.0, "less_wrong"),
    ]
    assert [o.text for o in moved.options] == ["0.4 meters", "1.0 meters", "2.2 meters", "1.6 meters"]
    assert [o.kind for o in line.options] == ["correct", "size"]
    assert [o.text for o in room.options][1] == "[(1.5, 1), (2.5, 2)]"
    assert [o.kind for o in room.options] == ["correct", "position", "size", "both"]
    assert turned.targets == {"magnitude": 30.0, "signed_magnitude": 30.0, "action_type": 7.0, "magnitude_deg": 30.0}
    assert moved.targets == {"magnitude": 1.0, "signed_magnitude": -1.0, "action_type": 1.0, "magnitude_m": 1.0}


def test_pictures_stand_where_the_tags_were_and_first_without_tags(tmp_path):
    turned, moved, line, room = load_items(written(tmp_path, ROWS))
    assert turned.prompt.startswith("<image><image><image><image><image>\nThe first of five")
    assert moved.prompt.startswith("Before: <image> after: <image>. Two views")
    assert line.prompt.count("<image>") == 2
    assert "<" not in room.prompt
    assert turned.images[0].load().getpixel((0, 0)) != turned.images[1].load().getpixel((0, 0))


def test_answers_are_judged(tmp_path):
    turned, *_ = load_items(written(tmp_path, ROWS))
    assert judge("(C)", turned).outcome == "correct"
    assert judge("Answer: A", turned).outcome == "wrong"


def test_rows_that_share_a_picture_or_a_room_are_one_scene(tmp_path):
    elsewhere = movement(image=["exploration/sim/FloorPlan12/b_0.png", "exploration/sim/FloorPlan12/b_1.png"])
    shares = line_map(image=["layout/d2.png", "layout/d3.png"])
    last = room_map(image="layout/d3.png")
    items = load_items(written(tmp_path, [*ROWS, elsewhere, shares, last]))
    scene = [item.groups["scene"] for item in items]
    assert scene[0] == scene[4] == "FloorPlan12"
    assert scene[1] == "FloorPlan7"
    assert scene[2] == scene[5] == scene[6], "d1-d2, d2-d3, d3: one scene through the middle one"
    assert len(set(scene)) == 4


def test_published_items_take_permutations_and_interventions(tmp_path):
    items = load_items(written(tmp_path, ROWS))
    permuted = cyclic_permutations(items)
    assert len(permuted) == 4 + 4 + 2 + 4
    first = permuted[1]
    assert first.truth == "D"
    assert first.images[4].sha256 == items[0].images[3].sha256
    assert "A. 1.6 meters\nB. 0.4 meters" in permuted[5].prompt
    (turned,) = interventions.rotational_equivalent(items[:1])
    assert "rotating left by 330 degrees" in turned.prompt
    assert "one step backwards" in interventions.numbers_as_integers(items[1:2])[0].prompt
    assert interventions.numbers_as_integers(items[1:2])[0].options[2].text == "220 centimeters"
    words = interventions.numbers_as_words(items[3:])[0]
    assert words.options[1].text == "[(one point five, one), (two point five, two)]"
    assert '"tree": [(three point one, zero point two), (three point six, zero point seven)]' in words.prompt


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (rotation(difficulty="hard"), r"row 2: the column 'difficulty' is not known; known are task, subtask"),
        (rotation(meta_info={"seed": 3}), r"row 2: the column 'meta_info.seed' is not known"),
        (
            rotation(meta_info={"option_meta_pattern": {"A": "correct", "B": "so-so"}}, GT_answer="A"),
            r"row 2: option_meta_pattern holds 'so-so', which is not one of: correct, less_correct, less_wrong, wrong",
        ),
        (
            line_map(meta_info={"option_meta_pattern": {"A": "correct", "B": "less_wrong"}}),
            "holds 'less_wrong', which is not one of: both",
        ),
        (rotation(GT_answer="E"), "row 2: GT_answer is 'E', which is no option's letter; its letters are A, B, C, D"),
        (rotation(GT_answer="A"), "row 2: GT_answer is A and option_meta_pattern calls C correct; they must agree"),
        (rotation(task="dynamic"), "row 2: task is 'dynamic', which must say either n2s or s2n"),
        (rotation(task="n2s"), "row 2: task is 'n2s', which must say either dynamic or static"),
        (rotation(subtask="Jump (J)"), "row 2: subtask is 'Jump .J.', which says no action"),
        (room_map(subtask="room"), "row 2: subtask is 'room', which says no kind of map"),
        (
            rotation(QA_prompt_with_image_tag="<image> one"),
            "row 2: QA_prompt_with_image_tag has 1 image tags and image 5 pictures",
        ),
        (movement(QA_prompt_with_image_tag="<image2> <image1>"), r"row 2: QA_prompt_with_image_tag numbers its images \[2, 1\]"),
        (rotation(image=[]), "row 2: image names no picture"),
        (rotation(image=None), "row 2: the column 'image' is missing; needed are task"),
        (rotation(QA_prompt=3), "row 2: QA_prompt_with_image_tag|row 2: QA_prompt is 3, not a text"),
        (rotation(meta_info=[1]), r"row 2: meta_info is \[1\], not an object"),
        (rotation(meta_info={"option_meta_info": {"A": "1", "C": "2"}}), r"row 2: its options have the letters \['A', 'C'\]"),
        (movement(image=["../a.png", "b.png"]), "row 2: the image path '../a.png' holds '..'"),
        ("text", "row 2: this is 'text', not an object with columns"),
    ],
)
def test_what_a_row_says_wrongly_is_told_by_row(tmp_path, row, message):
    (tmp_path / "deep").mkdir()
    path = written(tmp_path / "deep", [room_map()])
    if isinstance(row, dict) and isinstance(row.get("image"), list):
        (tmp_path / "deep/b.png").write_bytes((tmp_path / "deep/layout/r1.png").read_bytes())
    if row == rotation(QA_prompt=3):
        row = {name: value for name, value in row.items() if name != "QA_prompt_with_image_tag"}
    path.write_text(json.dumps([room_map(), row]))
    with pytest.raises(ItemsError, match=message) as caught:
        load_items(path)
    assert "1 of 2 rows can't be used" in str(caught.value)
    assert str(caught.value).count(". ") == 0 or "; " in str(caught.value)


def test_all_rows_at_fault_are_told_together(tmp_path):
    path = written(tmp_path, [room_map()])
    path.write_text(json.dumps([rotation(GT_answer="Q")] * 7))
    with pytest.raises(ItemsError, match=r"7 of 7 rows can't be used \(row 1: .*; row 5: .*; and 2 more\); correct them"):
        load_items(path)


def test_numbers_of_any_script_and_with_exponents_are_read(tmp_path):
    meta = movement()["meta_info"] | {"option_meta_info": {"A": "4e-1", "B": "\u0661", "C": "\uff12.\uff12", "D": "1.6 m"}}
    (item,) = load_items(written(tmp_path, [movement(meta_info=meta)]))
    assert [option.value for option in item.options] == [0.4, 1.0, 2.2, 1.6]


def test_rows_a_line_in_a_json_file_are_told_their_proper_name(tmp_path):
    path = written(tmp_path, ROWS)
    path.write_text("\n".join(map(json.dumps, ROWS)))
    with pytest.raises(ItemsError, match=r"is not JSON .*; name it \.jsonl if it has one row a line"):
        load_items(path)
    assert len(load_items(path.rename(path.with_suffix(".jsonl")))) == len(ROWS)


def test_what_is_not_known_may_be_left_out(tmp_path):
    rows = [
        rotation(difficulty="hard", subtask="Jump (J)"),
        line_map(meta_info={"option_meta_pattern": {"A": "correct", "B": "odd"}, "seed": 1}),
    ]
    jumped, line = load_items(written(tmp_path, rows), allow_unknown=True)
    assert "action" not in jumped.groups
    assert "column" not in jumped.groups
    assert jumped.groups["subtask"] == "Jump (J)"
    assert jumped.targets == {}
    assert [o.kind for o in line.options] == ["correct", None]


def test_missing_pictures_are_listed_and_the_rest_is_usable(tmp_path):
    path = written(tmp_path, ROWS, without=(f"{FLOOR}_70_3_1.png", "layout/d2.png"))
    (tmp_path / "layout/r1.png").write_bytes(b"no picture")
    with pytest.raises(
        ImageError,
        match=r"3 of 4 rows have pictures that are missing or damaged \(row 1: the image 'exploration/sim/FloorPlan12/",
    ) as caught:
        load_items(path)
    assert "row 3: the image 'layout/d2.png' is missing" in str(caught.value)
    assert "row 4: " in str(caught.value)
    assert "r1.png is no picture that pillow can read; use PNG or JPEG" in str(caught.value)  # and no address in memory
    assert "allow_missing=True (--allow-missing)" in str(caught.value)
    with pytest.warns(ItemsWarning, match="3 of 4 rows have pictures .*; they are left out"):
        items = load_items(path, allow_missing=True)
    assert [item.id for item in items] == ["spacenum/published-00002/transition-space2num"]
    with pytest.raises(ImageError, match=r"so none is left; images=\.\.\. names the folder"):
        load_items(_bare(tmp_path), allow_missing=True)


def _bare(folder):
    (folder / "bare").mkdir()
    (folder / "bare/bench.json").write_text(json.dumps([room_map()]))
    return folder / "bare/bench.json"


def test_pictures_may_lie_elsewhere_than_the_file(tmp_path):
    (tmp_path / "pictures").mkdir()
    path = written(tmp_path / "pictures", ROWS).rename(tmp_path / "bench.json")
    assert len(load_items(path, images=tmp_path / "pictures")) == 4
    with pytest.raises(ItemsError, match="is no folder; name the one below which the pictures are"):
        load_items(path, images=tmp_path / "none")


def test_a_file_that_holds_no_rows_is_refused(tmp_path):
    path = tmp_path / "a.json"
    for text, message in (("[", "is not JSON"), ("3", "holds 3, not an array of rows"), ("[]", "holds no item; write one a row")):
        path.write_text(text)
        with pytest.raises(ItemsError, match=message):
            load_items(path)
    written(tmp_path, [room_map()])
    path.write_text(json.dumps({"test": [room_map()]}))
    assert len(load_items(path)) == 1


def test_a_saved_copy_of_published_items_comes_back(tmp_path):
    items = load_items(written(tmp_path, ROWS))
    assert load_items(items.save(tmp_path / "saved")).fingerprint == items.fingerprint
    assert isinstance(items, Items)


JUNK = (
    None,
    "",
    " ",
    0,
    -1,
    1.5,
    True,
    [],
    {},
    [None],
    {"A": None},
    "A",
    "<image>",
    ["a.png", 3],
    {"option_meta_info": []},
    "\x00",
    "é" * 300,
)


@pytest.mark.parametrize("allow_unknown", [False, True])
@pytest.mark.parametrize("name", list(rotation()))
def test_junk_in_any_column_is_read_or_refused_in_a_sentence(tmp_path, name, allow_unknown):
    path = written(tmp_path, [rotation()])
    for value in JUNK:
        path.write_text(json.dumps([rotation(**{name: value})]))
        said, items = _read(path, allow_unknown)
        assert (said is None) != (items is None)
        if said is not None:
            assert said.endswith(".")
            assert "row 1: " in said
        if items is not None:
            assert items[0].truth in {option.label for option in items[0].options}
            assert items_from_jsonl(items_to_jsonl(items))[0].seen() == items[0].seen()


def _read(path, allow_unknown):
    try:
        return None, load_items(path, allow_unknown=allow_unknown)
    except (ItemsError, ImageError) as error:
        return str(error), None
