"""The commands that edit a model."""

import json
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from deixis.cli import app
from tests.analyses.pico_run import pico_run

SMALL = ("--languages", "en", "--size", "256", "--n", "2", "--roles", "object,answer", "--layers", "1,5")


def parsed(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_patch_prints_the_sweeps_rows_and_writes_the_map(tmp_path):
    data = parsed("patch", "pico", *SMALL, "--out", tmp_path / "patches.csv")
    frame = pd.DataFrame(data["rows"])
    assert set(frame["role"]) == {"object", "answer", "image"}
    assert pd.read_csv(tmp_path / "patches.csv")["effect"].tolist() == pytest.approx(frame["effect"].tolist())
    shown = CliRunner().invoke(app, ["patch", "pico", *SMALL], env={"COLUMNS": "200"})
    assert "Controls: the whole image 1.00, another colour at most 0.0" in shown.stdout


def test_a_layer_that_is_no_number_or_is_not_there_is_refused():
    for layers, words in (
        ("nose", "layers='nose' is neither 'all' nor numbers"),
        ("9", "layers=[9] must be some of the model's"),
    ):
        result = CliRunner().invoke(app, ["patch", "pico", "--languages", "en", "--n", "1", "--size", "64", "--layers", layers])
        assert result.exit_code == 2
        assert words in " ".join(result.stderr.split())


def test_steer_prints_the_slopes():
    data = parsed("steer", pico_run().path, "--n", 2, "--doses", "-1,1")
    slopes = {row["kind"]: row["slope"] for row in data["slopes"]}
    assert slopes["target"] < -0.4
    assert {row["dose"] for row in data["rows"]} == {-1.0, 1.0}


def test_the_gap_takes_patches():
    (row,) = parsed("gap", pico_run().path, "--patches", 2)["rows"]
    assert (row["observed"], row["patched"], row["case"], row["patch_pairs"]) == (True, True, "encoded and used", 2)
