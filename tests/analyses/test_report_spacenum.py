"""The report of SpaceNum runs: what is inside, which frame, questions with their options drawn; and the demo's words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deixis.activations import record
from deixis.analyses.demo_spacenum import accuracy_sentences, accuracy_table
from deixis.analyses.findings import find
from deixis.analyses.option_pictures import Reply, example_items, question_panel, question_text, replies
from deixis.analyses.report import conclusions, render
from deixis.analyses.report_spacenum import answer_sentences, examples_section, frames_section, inside_section
from deixis.analyses.spacenum_inside import spacenum_inside
from deixis.benchmarks import Item, Items
from deixis.benchmarks.images import UniformImage
from deixis.benchmarks.items import IMAGE_MARK
from deixis.benchmarks.spacenum.options import lettered, lettered_pictures
from deixis.benchmarks.spacenum.prompts import transition_prompt
from tests.analyses.made_layouts import LogitRun, made_layouts
from tests.analyses.test_frame_answers import by_sides
from tests.analyses.test_frames import holding


def turn(number: int, direction: str) -> Item:
    """A turn up whose pictures are grey, the lighter the larger it was."""
    values = [10.0 * (1 + (number + k) % 7) for k in range(4)]
    if direction == "num2space":
        made = lettered_pictures(4, first=2, values=values, right_at=number % 4)
        shown, words = [values[k] for k in made.order], f"{values[0]:g} degrees"
    else:
        made = lettered([f"{value:g} degrees" for value in values], values=values, right_at=number % 4)
        shown, words = [values[0]], None
    greys = [20, *(int(60 + 2 * value) for value in shown)]
    return Item(
        id=f"spacenum/room{number}/transition-{direction}", benchmark="spacenum", task=f"transition-{direction}", language="en",
        images=tuple(UniformImage(width=64, height=64, grey=grey) for grey in greys),
        prompt=transition_prompt(direction, "rotate up", words, made.options, len(greys)), options=made.options, truth=made.truth,
        targets={"magnitude": values[0], "signed_magnitude": values[0], "action": 4.0},
        groups={"scene": f"room{number} {direction}", "kind": "transition", "direction": direction, "column": "rotate U/D",
                "action": "rotate up", "letter": made.truth, "permutation": "0"},
        facts={"unit": "deg"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory):
    from tests.toys import toy_vlm

    items = Items(turn(number, way) for number in range(10) for way in ("num2space", "space2num"))
    items = Items(replace(i, groups={**i.groups, "scene": i.id.split("/")[1]}, images=_own(i)) for i in items)
    run = record(toy_vlm(), items, tmp_path_factory.mktemp("run") / "toy", roles=("answer", "image:1"), max_new_tokens=2)
    return find([run], {}, reference=None)


def _own(item: Item) -> tuple[UniformImage, ...]:
    """Pictures of a room that no other room has."""
    number = int(item.id.split("/room")[1].split("/")[0])
    return tuple(replace(image, width=64, grey=image.grey + number) for image in item.images)


def test_a_recorded_run_makes_a_whole_page_without_any_section_on_demonstratives(findings):
    page = render(findings)
    assert "Where the numbers are, layer by layer" in page
    assert "What it was asked and what it chose" in page
    assert "Numbers and space" in page
    assert "demonstrative" not in page
    assert "<h2>In which frame" not in page  # no layouts were asked
    assert conclusions(findings)[findings.models[0]] in page.replace("&#39;", "'")


def test_magnitudes_are_swept_unsigned_at_the_answer_and_signed_at_the_second_picture(findings):
    swept = next(iter(findings.inside.values())).best
    assert dict(zip(swept["role"], swept["target"], strict=True)) == {"answer": "magnitude", "image:1": "signed_magnitude"}
    assert set(swept["items"]) == {"rotate U/D"}
    assert set(swept["task"]) == {"transition-space2num"}
    assert inside_section(findings) is not None


def test_a_question_shows_every_picture_with_its_letter_and_marks_the_right_one():
    item = turn(1, "num2space")
    panel = question_panel(item, [Reply("toy", "A", {"A": 0.7, "B": 0.1, "C": 0.1, "D": 0.1})])
    assert panel.svg.count("<img") == 5
    assert f'<div class="picture right"><img src="{_address(item, item.truth)}"' in panel.svg
    assert panel.svg.count('"picture right"') == 1
    assert "Image 1</span>" in panel.svg
    assert "chose A (<em>wrong</em>)" in panel.svg
    assert f"Right: {item.truth}. toy chose A." in panel.alt


def _address(item, letter):
    from deixis.analyses.report_scenes import data_address

    place = next(option.text for option in item.options if option.label == letter)
    return data_address(item.images[int(place.split()[1]) - 1], 256)


def test_a_question_of_numbers_lists_them_and_its_text_has_no_marks():
    item = turn(2, "space2num")
    panel = question_panel(item, [Reply("toy", str(item.truth), {"A": 1.0})])
    right = next(option for option in item.options if option.label == item.truth)
    assert f'<li class="right">{right.label}. {right.text}' in panel.svg
    assert "(<em>right</em>)" in panel.svg
    text = question_text(item)
    assert IMAGE_MARK not in text
    assert "How large was the action?" in text
    assert "30 degrees" not in text


def test_names_from_outside_are_escaped():
    panel = question_panel(turn(1, "space2num"), [Reply("<b>x</b>", "A", {"A": 1.0})])
    assert "&lt;b&gt;x&lt;/b&gt;" in panel.svg


def test_examples_are_one_of_each_kind_from_different_scenes(findings):
    items = example_items(findings.runs[0])
    assert [item.task for item in items] == ["transition-num2space", "transition-space2num"]
    assert len({item.groups["scene"] for item in items}) == 2
    said = replies(findings.runs, [item.id for item in items])
    for item in items:
        logits = findings.runs[0].options.set_index(["item", "option"])["logit"][item.id]
        assert said[item.id][0].letter == logits.idxmax()
        assert sum(said[item.id][0].shares.values()) == pytest.approx(1)
    assert len(examples_section(findings).figures[0].panels) == 2


class PlantedLayouts(LogitRun):
    """Logits of a reader, vectors that hold a frame."""

    def __init__(self, anchor: float, image: float, *frames: str) -> None:
        held = holding(*frames, n=60, layers=(0, 1), conditions=("real", "blank"))
        super().__init__(made_layouts(60, conditions=("real", "blank")), by_sides(anchor, image))
        self.features = held.features


@pytest.mark.parametrize(
    ("weights", "frame", "told"),
    [
        ((1.0, 0.0), "allocentric", "follow the anchors' frame"),
        ((0.0, 1.0), "egocentric", "follow the picture's left, right, up and down instead"),
    ],
)
def test_planted_frames_are_told_in_words_and_tables(findings, weights, frame, told):
    inside = spacenum_inside(PlantedLayouts(*weights, frame))
    assert told in answer_sentences(inside)[0]
    section = frames_section(replace(findings, inside={"fake": inside}))
    other = {"allocentric": "egocentric", "egocentric": "allocentric"}[frame]
    assert f"the {frame} frame is decoded beyond the other one" in section.lead
    assert f"the {other} frame is not decoded beyond the other one" in section.lead
    frames = pd.DataFrame([row.cells for row in section.grids[0].rows], columns=[c.heading for c in section.grids[0].columns])
    unique = frames.set_index("frame")["unique R2"]
    assert float(unique[frame]) > 0.7
    place = next(place for place in inside.places if place.role == "answer")
    assert (place.score[-1, 0] > 0.7) == (frame == "allocentric")


def test_the_demo_claims_nothing_that_a_constant_letter_reaches():
    rows = [("m", "space2num", "rotate U/D", 80.0, "70 to 90", 25.0, 30.0, 40, 70.0)]
    rows += [("m", "num2space", "rotate U/D", 32.0, "26 to 40", 25.0, 30.0, 40, 26.0)]
    columns = ["model", "direction", "column", "right", "interval", "chance", "majority", "n", "low"]
    assert accuracy_sentences(pd.DataFrame(rows, columns=columns)) == [
        "m answers better than chance and than any constant letter: rotate U/D, pictures to number: 80 %.",
        "It is no better than that on: rotate U/D, number to picture: 32 %.",
    ]


def test_the_demo_table_is_accuracy_in_percent(findings):
    table = accuracy_table(findings.runs)
    for row in table.to_dict("records"):
        items = [i for i in findings.runs[0].items if i.groups["direction"] == row["direction"]]
        logits = findings.runs[0].options.set_index(["item", "option"])["logit"]
        right = np.mean([logits[i.id].idxmax() == i.truth for i in items])
        assert row["right"] == pytest.approx(100 * right)
        assert row["chance"] == 25.0


def test_probe_takes_the_items_of_a_task_and_of_a_group(findings):
    from typer.testing import CliRunner

    from deixis.cli import app

    folder = str(findings.runs[0].path)
    asked = ["probe", folder, "--target", "magnitude", "--controls", "permutation", "--json"]
    found = CliRunner().invoke(app, [*asked, "--task", "transition-space2num", "--where", "column=rotate U/D"])
    assert found.exit_code == 0, found.output
    assert '"n_groups": 10' in found.stdout
    other = CliRunner().invoke(app, [*asked, "--task", "transition-space2num", "--where", "column=move F/B"])
    assert other.exit_code == 2
    assert "no items with column='move F/B'" in " ".join(other.output.split())
    bad = CliRunner().invoke(app, [*asked, "--where", "column"])
    assert bad.exit_code != 0
    assert "write name=value" in bad.output


def test_the_demo_of_an_unknown_benchmark_is_a_usage_error(tmp_path: Path):
    from typer.testing import CliRunner

    from deixis.cli import app

    result = CliRunner().invoke(app, ["demo", "--benchmark", "spacenum2", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "not one of: 'memory-game', 'spacenum'" in " ".join(result.output.replace("│", " ").split())
