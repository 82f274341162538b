"""SpaceNum on the command line: every option reaches the library, none is ignored in silence."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

import deixis as dx
from deixis.cli import app
from deixis.cli.spacenum import SpaceNumChoice

DESK = ("--scales", "desk", "--maps", "1D", "--n", 1, "--size", 32)
SAME = {"scales": ("desk",), "maps": ("1D",), "n": 1, "size": 32}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def rendered(folder: Path, *arguments: object, benchmark: object = "spacenum") -> "dx.Items":
    result = run("render", benchmark, folder, "--workers", 1, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    items = dx.load_items(folder)
    assert json.loads(result.stdout)["fingerprint"] == items.fingerprint
    return items


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("options", "kind", "arguments"),
    [
        (("--kind", "layout"), "layout", {}),
        (("--seed", 2, "--directions", "space2num"), "layout", {"seed": 2, "directions": ("space2num",)}),
    ],
)
def test_options_mean_the_librarys_arguments(options: tuple[Any, ...], kind: str, arguments: dict[str, Any], tmp_path: Path):
    assert rendered(tmp_path / "items", *DESK, *options).fingerprint == dx.spacenum(kind, **SAME | arguments).fingerprint


def test_actions_and_values_of_ones_own_are_rendered(tmp_path: Path):
    options = ("--actions", "rotate left", "--magnitudes", "rotate left=5,15,25, 35", "--n", 1, "--size", 32)
    items = rendered(tmp_path / "items", *options, "--directions", "space2num", "--permutations")
    own = {"rotate left": (5.0, 15.0, 25.0, 35.0)}
    expected = dx.spacenum("transition", n=1, size=32, directions=("space2num",), actions=("rotate left",), magnitudes=own)
    assert items.fingerprint == dx.cyclic_permutations(expected).fingerprint
    assert {option.value for option in items[0].options} == {5.0, 15.0, 25.0, 35.0}


def test_both_kinds_are_there_unless_an_option_says_which():
    small = {"n": 1, "size": 16}
    both = SpaceNumChoice().items(**small)
    assert [item.id for item in both] == [item.id for kind in ("transition", "layout") for item in dx.spacenum(kind, **small)]
    assert {item.groups["kind"] for item in SpaceNumChoice(scales="desk").items(**small)} == {"layout"}
    assert {item.groups["kind"] for item in SpaceNumChoice(actions="move left").items(**small)} == {"transition"}


def test_interventions_are_conditions_of_the_command(tmp_path: Path):
    items = rendered(tmp_path / "items", *DESK, "--condition", "real,numbers_as_words+black")
    real = dx.spacenum("layout", **SAME)
    assert items.fingerprint == (real + dx.interventions.black(dx.interventions.numbers_as_words(real))).fingerprint


def test_items_are_recorded_and_estimated(tmp_path: Path):
    options = ("record", "pico", "spacenum", "--out", tmp_path / "run", *DESK, "--roles", "answer,anchor_a,anchor_b:0", "--json")
    planned = run(*options, "--dry-run")
    assert planned.exit_code == 0, planned.stderr
    assert json.loads(planned.stdout)["items"] == 2
    assert not (tmp_path / "run").exists()
    result = run(*options, "--workers", 1)
    assert result.exit_code == 0, result.stderr
    recorded = dx.open_run(tmp_path / "run")
    assert [item.id for item in recorded.items] == [item.id for item in dx.spacenum("layout", **SAME)]
    assert recorded.activations("resid", 1, "anchor_a").shape[0] == 2
    assert recorded.items.fingerprint == dx.spacenum("layout", **SAME).fingerprint, "the run rebuilds the pictures"


def test_a_published_file_is_a_benchmark_and_what_is_missing_is_told(tmp_path: Path):
    row = {
        "task": "dynamic-s2n",
        "subtask": "Move Left (L)",
        "GT_answer": "A",
        "QA_prompt": "How far?\nA. 0.2 meters\nB. 0.4 meters",
    }
    rows = [row | {"image": ["a.png", "b.png"]}, row | {"image": ["a.png", "gone.png"]}]
    (tmp_path / "pictures").mkdir()
    for name, colour in (("a.png", "red"), ("b.png", "blue")):
        Image.new("RGB", (8, 8), colour).save(tmp_path / "pictures" / name)
    (tmp_path / "bench.json").write_text(json.dumps(rows))
    arguments = ("render", tmp_path / "bench.json", tmp_path / "items", "--pictures", tmp_path / "pictures")
    said = refused(*arguments)
    assert "1 of 2 rows have pictures that are missing or damaged (row 2: the image 'gone.png' is missing" in said
    assert "--allow-missing" in said
    result = run(*arguments, "--allow-missing", "--workers", 1)
    assert result.exit_code == 0, result.stderr
    (told,) = result.stderr.splitlines()
    assert "row 2: the image 'gone.png' is missing" in told
    assert "they are left out" in told
    assert len(dx.load_items(tmp_path / "items")) == 1
    (tmp_path / "bench.json").write_text(json.dumps([rows[0] | {"colour": "red"}]))
    assert "the column 'colour' is not known" in refused("render", tmp_path / "bench.json", tmp_path / "more", *arguments[3:])
    assert run("render", tmp_path / "bench.json", tmp_path / "more", *arguments[3:], "--allow-unknown").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("spacenum", "--languages", "en"), "--languages can't change items of spacenum; leave it out"),
        (
            ("memory-game", "--maps", "1D", "--permutations"),
            "--maps, --permutations can't change items of memory-game; leave them out",
        ),
        (("memory-game", "--allow-missing"), "--allow-missing can't change items of memory-game"),
        (("spacenum", "--kind", "dynamic"), "kind holds 'dynamic', which is not one of: 'transition', 'layout'"),
        (("spacenum", "--actions", "jump"), "actions holds 'jump', which is not one of: 'move forward'"),
        (("spacenum", "--maps", "4D"), "maps holds '4D', which is not one of: '1D', '2D', '3D'"),
        (("spacenum", "--kind", "layout", "--actions", "move left"), "actions can't change kind='layout'"),
        (("spacenum", "--magnitudes", "much"), "--magnitudes 'much' is not of the form 'rotate up=5,15,25,35; move left"),
        (("spacenum", "--magnitudes", "move left=0.1,0.2,0.3,9"), r"magnitudes['move left'] has 9, which is not in (0, 5 m]"),
        (("spacenum", "--directions", "up"), "directions holds 'up', which is not one of: 'num2space', 'space2num'"),
        (("nowhere",), "benchmark 'nowhere' is neither 'memory-game', 'spacenum' nor a folder or file of items"),
    ],
)
def test_bad_options_are_one_sentence(arguments: tuple[Any, ...], words: str, tmp_path: Path):
    said = refused("render", arguments[0], tmp_path / "items", *arguments[1:])
    assert words in said
    assert not (tmp_path / "items").exists()


def test_options_that_saved_items_would_ignore_are_refused(tmp_path: Path):
    rendered(tmp_path / "items", *DESK)
    said = refused("render", tmp_path / "items", tmp_path / "again", "--maps", "2D")
    assert "--maps would choose items of SpaceNum, but BENCHMARK names the items in" in said
    assert "leave it out, or name spacenum" in said
    assert "--allow-missing is for files of rows" in refused("render", tmp_path / "items", tmp_path / "again", "--allow-missing")
