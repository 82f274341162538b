"""The examples run as they stand, here on small pictures."""

from functools import partial
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

import deixis as dx


@pytest.mark.slow
def test_the_probing_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    quick = {"n_permutations": 20, "n_bootstrap": 10, "n_controls": 3, "n_orders": 2}
    monkeypatch.setattr(dx, "memory_game", partial(dx.memory_game, size=256), raising=False)
    monkeypatch.setattr(dx, "layer_sweep", partial(dx.layer_sweep, **quick), raising=False)
    import_module("examples.probing").main(tmp_path)
    shown = capsys.readouterr().out
    assert "refused: the vectors at role 'object' are the same for every language" in shown
    assert "is decoded best at resid layer" in shown
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == {f"{name}.png" for name in ("sweep", "languages", "distances", "code", "from-above", "layers")}


def test_the_example_of_decoupled_scenes_makes_its_table_and_sheet(tmp_path: Path):
    example = import_module("examples.decoupled_scenes")
    items = dx.memory_game(decouple=True, n=100, languages=("en",), size=32)
    table = example.dependence(items)
    assert isinstance(table, pd.DataFrame)
    assert table.loc[["object_row", "object_area"]].abs().max().max() < 0.25
    assert table.loc["camera_focal", "pearson"] > 0.7
    example.contact_sheet(items, tmp_path / "sheet.jpg")
    assert (tmp_path / "sheet.jpg").stat().st_size > 10_000


@pytest.mark.slow
def test_the_spacenum_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    import_module("examples.spacenum").main(tmp_path, n=20)
    shown = capsys.readouterr().out
    assert "rotate U/D" in shown
    assert "signed_magnitude is decoded best at resid layer" in shown
    assert "AnswerFrame('pico-space'" in shown
    assert (tmp_path / "report.html").stat().st_size > 50_000
