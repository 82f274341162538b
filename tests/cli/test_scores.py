"""deixis score and deixis compare: what they print for people, and what scripts may rely on."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import deixis as dx
from deixis.analyses.behaviour import COLUMNS, SCORE_COLUMNS
from deixis.analyses.compare import COLUMNS as COMPARE_COLUMNS
from deixis.cli import app
from tests.pico_runs import MODELS, pico_run


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})


def parsed(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def folders() -> list[Path]:
    return [pico_run(model).path for model in MODELS]


def test_the_json_of_score_has_these_keys_and_no_others(folders):
    data = parsed("score", folders[0], "--reference", "synthetic")
    assert list(data) == ["schema", "model", "reference", "base", "answers", "scores", "distributions"]
    assert {name: data[name] for name in ("schema", "model", "reference", "base", "answers")} == {
        "schema": "deixis.score/1", "model": "pico", "reference": "synthetic", "base": 2.0, "answers": "all",
    }  # fmt: skip
    assert list(data["scores"][0]) == list(SCORE_COLUMNS)
    assert list(data["distributions"][0]) == list(COLUMNS)
    expected = dx.behaviour(pico_run("pico"), "synthetic").scores()
    assert [row["js_distance"] for row in data["scores"]] == pytest.approx(list(expected["js_distance"]))
    assert [row["region"] for row in data["scores"]] == [1, 2, 3, "mean"] * 2


def test_score_takes_recognised_answers_alone(folders):
    data = parsed("score", folders[0], "--answers", "recognised", "--reference", "synthetic")
    assert data["answers"] == "recognised"
    assert [row["n_scored"] for row in data["scores"]] == [row["recognised"] for row in data["scores"]]


def test_the_json_of_compare_has_these_keys_and_no_others(folders):
    data = parsed("compare", *folders, "--reference", "synthetic")
    assert list(data) == ["schema", "reference", "min_recognised", "rows", "table1", "table2", "correlation"]
    assert data["schema"] == "deixis.compare/1"
    assert list(data["rows"][0]) == list(COMPARE_COLUMNS)
    found = dx.compare([pico_run(model) for model in MODELS], "synthetic")
    assert [row["js_distance"] for row in data["rows"]] == pytest.approx(list(found.to_frame()["js_distance"]))
    assert data["table1"] == found.table1().to_dict("records")
    assert [row["answers"] for row in data["correlation"]] == ["recognised", "all"]
    assert data["correlation"][0]["n"] == 4
    assert data["correlation"][0]["r"] is None  # every cell is recognised: there is no spread, and NaN is null


def test_compare_prints_both_tables_and_the_correlation(folders):
    shown = run("compare", *folders, "--reference", "synthetic").stdout
    for part in (
        "Recognised answers",
        "English",
        "Japanese",
        "pico-collapsed",
        "uniform",
        "Jensen-Shannon distance (base 2)",
        "over 4 cells",
    ):
        assert part in shown
    without = run("compare", *folders).stdout
    assert "Jensen-Shannon" not in without
    assert "Recognised answers" in without


def test_compare_writes_a_table_and_both_pictures(folders, tmp_path):
    assert run("compare", *folders, "--reference", "synthetic", "--out", tmp_path / "rows.csv").exit_code == 0
    assert tuple(pd.read_csv(tmp_path / "rows.csv")) == COMPARE_COLUMNS
    assert run("compare", *folders, "--reference", "synthetic", "--out", tmp_path / "distances.png").exit_code == 0
    result = run(
        "compare", *folders, "--figure2", "--palette", "ordered", "--min-recognised", 1, "--out", tmp_path / "figure2.svg"
    )
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "distances.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figure2.svg").read_text().count("<svg") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--palette", "grey", "--figure2", "--out", "x.png"), "palette='grey' is not one of"),
        (("--reference", "nowhere.csv"), "the reference nowhere.csv can't be read"),
    ],
)
def test_bad_input_is_one_sentence(folders, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("compare", *folders, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    twice = run("compare", folders[0], folders[0])
    assert (twice.exit_code, "two runs are of the model 'pico'" in twice.stderr) == (2, True)
