"""The options that choose items: each reaches the library, none is ignored in silence."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import deixis as dx
from deixis.benchmarks import PROMPTS
from deixis.benchmarks.memory_pictures import picture_name
from deixis.cli import app
from deixis.cli.drawing import condition_names
from deixis.cli.memory_game import MemoryGameChoice

SMALL = ("--languages", "en", "--size", 32, "--shapes", "star", "--colours", "red")
SAME = {"languages": ("en",), "size": 32, "shapes": ("star",), "colours": ("red",)}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def rendered(folder: Path, *arguments: object) -> "dx.Items":
    result = run("render", "memory-game", folder, "--workers", 1, *arguments, "--json")
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
    ("options", "arguments"),
    [
        (("--decouple", "--n", 3, "--seed", 2), {"decouple": True, "n": 3, "seed": 2}),
        (("--distances", "0.5,1.75"), {"distances": (0.5, 1.75)}),
        (("--distances", "0.25:2.75:6"), {"distances": (0.25, 0.75, 1.25, 1.75, 2.25, 2.75)}),
        (("--camera-sides", "left,right"), {"camera_sides": ("left", "right")}),
        (("--addressees", "none,near"), {"addressees": ("none", "near")}),
        (("--prompts", "all", "--distances", "1.5"), {"prompts": PROMPTS, "distances": (1.5,)}),
        (("--prompts", "standard,paraphrase-1:dmp"), {"prompts": ("standard", "paraphrase-1:dmp")}),
        (("--tasks", "distance"), {"tasks": ("distance",)}),
    ],
)
def test_options_mean_the_librarys_arguments(options: tuple[Any, ...], arguments: dict[str, Any], tmp_path: Path):
    assert rendered(tmp_path / "items", *SMALL, *options).fingerprint == dx.memory_game(**SAME | arguments).fingerprint


def test_what_is_not_given_is_the_librarys_default():
    assert MemoryGameChoice().given() == {}
    assert [item.id for item in MemoryGameChoice().items()] == [item.id for item in dx.memory_game()]


def test_conditions_are_rendered_one_after_the_other_and_shuffled_by_the_seed(tmp_path: Path):
    items = rendered(tmp_path / "items", *SMALL, "--condition", "real,black,text_only,shuffled+decoloured", "--seed", 4)
    real = dx.memory_game(**SAME, seed=4)
    expected = real + real.with_condition("black") + real.with_condition("text_only")
    assert items.fingerprint == (expected + real.with_condition("shuffled+decoloured", seed=4)).fingerprint


def test_every_condition_is_named_in_the_help():
    shown = CliRunner().invoke(app, ["record", "--help"], env={"COLUMNS": "300", "TERM": "dumb"}).output
    assert all(name in shown for name in condition_names())


def test_pictures_of_the_paper_are_a_benchmark(tmp_path: Path):
    (tmp_path / "theirs").mkdir()
    for item in dx.memory_game(**SAME):
        name = picture_name("star", "red", item.targets["distance_m"])
        item.images[0].load().save(tmp_path / "theirs" / name)
    options = ("--languages", "en", "--shapes", "star", "--colours", "red", "--pictures", tmp_path / "theirs")
    items = rendered(tmp_path / "items", *options)
    assert [item.groups["scene"] for item in items] == [f"star-red-{d}m-pictures" for d in ("0.25", "1.5", "2.75")]
    said = refused("render", "memory-game", tmp_path / "more", *options, "--size", 64)
    assert "are pictures that are there already, so size can't change them" in said


def test_a_table_of_your_own_is_a_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("deixis.benchmarks.languages._added", {})
    english = Path(dx.__file__).parent / "benchmarks/languages/en.toml"
    shutil.copy(english, tmp_path / "en-mine.toml")
    items = rendered(tmp_path / "items", *SMALL[2:], "--languages", f"en,{tmp_path / 'en-mine.toml'}")
    assert [item.language for item in items] == ["en", "en-mine"] * 3


def test_options_that_saved_items_would_ignore_are_refused(tmp_path: Path):
    rendered(tmp_path / "items", *SMALL)
    said = refused("record", "pico", tmp_path / "items", "--out", tmp_path / "run", "--n", 3, "--camera-sides", "left")
    assert "--n, --camera-sides would choose items of the memory game, but BENCHMARK names the saved items in" in said
    assert "leave them out, or name memory-game" in said
    said = refused("record", "pico", tmp_path / "items", "--out", tmp_path / "run", "--decouple")
    assert "--decouple would choose" in said
    assert "leave it out" in said
    said = refused("render", tmp_path / "items", tmp_path / "again", "--seed", 1)
    assert "--seed would choose" in said
    assert not (tmp_path / "run").exists()


def test_the_seed_of_shuffling_is_not_idle_for_saved_items(tmp_path: Path):
    items = rendered(tmp_path / "items", *SMALL)
    result = run("render", tmp_path / "items", tmp_path / "shuffled", "--condition", "shuffled", "--seed", 3, "--workers", 1)
    assert result.exit_code == 0, result.stderr
    assert dx.load_items(tmp_path / "shuffled").fingerprint == items.with_condition("shuffled", seed=3).fingerprint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--distances", "near"), "--distances 'near' is neither metres with commas between"),
        (("--distances", "0.25:2.75"), "nor a sweep (0.25:2.75:11)"),
        (("--distances", "9"), "distances holds 9.0; a disk must lie between 0 and 3.6 m"),
        (("--condition", "blank+black"), "contradicts itself: 'blank' leaves no scene"),
        (("--condition", "grey"), "condition='grey' is not one of: 'blank', 'black'"),
        (("--condition", ","), "no condition was named; name one or more of: real, blank, black"),
        (("--prompts", "polite"), "prompts holds 'polite'"),
        (("--languages", "xx"), "language='xx' is not one of"),
        (("--languages", "no/such/nl.toml"), "can't be read"),
        (("--shapes", "hexagon"), "shapes holds 'hexagon'"),
        (("--pictures", "no/such/folder"), "is no folder"),
        (("--n", 3, "--decouple", "--addressees", "near"), "an addressee would often be out of frame"),
    ],
)
def test_bad_options_are_one_sentence(options: tuple[Any, ...], words: str, tmp_path: Path):
    assert words in refused("render", "memory-game", tmp_path / "items", *options)
    assert not (tmp_path / "items").exists()


def test_text_only_and_shuffled_items_are_recorded(tmp_path: Path):
    """The model is asked without a picture; roles of a picture have no tokens then, which the run counts."""
    options = ("--condition", "real,text_only,shuffled", "--workers", 1, *SMALL)
    result = run("record", "pico", "memory-game", "--out", tmp_path / "run", *options, "--json")
    assert result.exit_code == 0, result.stderr
    recorded = dx.open_run(tmp_path / "run")
    conditions = [item.condition for item in recorded.items]
    assert conditions == ["real"] * 3 + ["text_only"] * 3 + ["shuffled"] * 3
    image = recorded.activations("resid", 1, "image")
    assert [bool(row.any()) for row in ~(image != image)] == [True] * 3 + [False] * 3 + [True] * 3
    shown = {item.groups["scene"]: row for item, row in zip(recorded.items, image, strict=True) if item.condition == "real"}
    for item, row in zip(recorded.items, image, strict=True):
        if item.condition == "shuffled":
            assert row == pytest.approx(shown[item.groups["shown"]], abs=1e-4)
