"""deixis attention, as a new user would call it on a saved run."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deixis.activations import record
from deixis.cli import app
from tests.analyses.planted import planted_items, planted_vlm


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    record(planted_vlm(), planted_items(folder, n=8), folder / "run", attention=True, answers=False, progress=False)
    return folder / "run"


def test_the_command_tells_layers_collapsed_heads_and_what_it_does_not_show(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["attention", str(run), "--out", str(tmp_path / "heads.png")])
    assert done.exit_code == 0, done.output
    assert "1 sink" in done.output
    assert "1 fixed" in done.output
    assert "no proof of use" in done.output
    assert (tmp_path / "heads.png").stat().st_size > 1000


def test_json_holds_every_head(run: Path) -> None:
    done = CliRunner().invoke(app, ["attention", str(run), "--json"])
    found = json.loads(done.output)
    kinds = {(row["layer"], row["head"]): row["kind"] for row in found["heads"]}
    assert len(kinds) == 12
    assert (kinds[1, 0], kinds[1, 1], kinds[1, 2], kinds[1, 3]) == ("sink", "none", "fixed", "uniform")
    assert found["query"] == "answer"


def test_what_was_not_recorded_is_one_sentence(run: Path) -> None:
    done = CliRunner().invoke(app, ["attention", str(run), "--vision"])
    assert done.exit_code == 2
    assert "'vision_attention' was not recorded; this run holds attention at: attention." in done.output.replace("\n", " ")
