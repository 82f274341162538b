"""The page on demonstratives: its study runs as it stands on the page, and its table names every key of the JSON."""

import json
import re
from pathlib import Path

import pandas as pd
from typer.testing import CliRunner

from deixis.cli import app
from tests.pico_runs import pico_run

PAGE = (Path(__file__).parents[1] / "docs" / "demonstratives.md").read_text("utf-8")
SMALLER = {
    'MODELS = ("pico", "pico-collapsed")': 'MODELS = ("pico",)',
    'LANGUAGES = ("en", "zh", "ja", "ko")': 'LANGUAGES = ("ja",)',
    "dx.memory_game(languages=LANGUAGES)": 'dx.memory_game(languages=LANGUAGES, shapes=("star", "cross"), size=256)',
    "decouple=True, n=120)": "decouple=True, n=24, size=256)",
    "apart[name], REFERENCE)": "apart[name], REFERENCE, layers=(4,), n_boot=20)",
}
"""The study of the page, in a size for tests."""


def study() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    return code


def test_the_study_is_under_sixty_lines():
    assert len(study().splitlines()) < 60


def test_the_study_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    code = study()
    for page, test in SMALLER.items():
        assert code.count(page) == 1, page
        code = code.replace(page, test)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    exec(compile(code, "docs/demonstratives.md", "exec"), scope)
    written = {path.name for path in (tmp_path / "study").iterdir()}
    assert {"figure2.pdf", "figure2.png", "scores.csv", "pico-kinds.pdf", "pico-lens.csv"} <= written
    assert (tmp_path / "study" / "figure2.pdf").read_bytes().startswith(b"%PDF")
    printed = capsys.readouterr().out
    for part in ("explained", "ordinal_slope", "js_distance", "decoupled", "p_value", "first_token", "uniform"):
        assert part in printed
    scores = pd.read_csv(tmp_path / "study" / "scores.csv")
    assert scores["recognised"].max() == 24
    assert (scores[scores["region"] == "mean"]["js_distance"] < 0.1).all()  # pico is its speaker


def test_the_page_names_every_key_of_the_json():
    folder = str(pico_run("pico").path)
    score, compared = (
        json.loads(CliRunner().invoke(app, [name, folder, "--reference", "synthetic", "--json"]).stdout)
        for name in ("score", "compare")
    )
    for text in (score["schema"], compared["schema"]):
        assert f"`{text}`" in PAGE
    for keys in (score, score["scores"][0], score["distributions"][0], compared, compared["rows"][0], compared["correlation"][0]):
        for key in keys:
            assert f"`{key}`" in PAGE, key
