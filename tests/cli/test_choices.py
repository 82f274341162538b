"""deixis score on a run of multiple-choice items."""

import json

import pytest
from typer.testing import CliRunner

import deixis as dx
from deixis.cli import app
from tests.analyses.written_choices import small_set, with_conditions
from tests.toys import THIS_THAT, toy_item, toy_vlm


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four of the twenty columns, real and black, with permutations of the letters."""
    kept = ("rotate L/R", "2D D")
    items = small_set(2, permuted=True).filter(lambda i: i.groups["column"] in kept)
    path = tmp_path_factory.mktemp("choices") / "run"
    dx.record(toy_vlm(), with_conditions(items, "black"), path, roles=("answer",), layers=[0], max_new_tokens=1, progress=False)
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "80"})


def test_the_table_can_be_read_at_eighty_columns(folder):
    result = run("score", folder)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in result.stdout
    for text in ("Num2Space", "rotate L/R", "Avg", "majority", "by the letters' logits", "Error proximity:", "Wrong layouts"):
        assert text in result.stdout
    assert "Avg is missing like 16 of the 20 columns; the mean of the other 4 is " in result.stdout
    assert "nan" not in result.stdout
    assert "Against the real items, question by question" in result.stdout
    assert "Over 4 permutations:" in result.stdout


def test_the_json_has_these_keys_and_says_what_the_library_says(folder):
    result = run("score", folder, "--json")
    assert result.exit_code == 0, result.stderr
    data = json.loads(result.stdout)
    assert list(data) == [
        "schema", "model", "ways", "agreement", "positions", "permutations", "scores", "missing", "proximity", "error_shares",
        "directions", "interventions",
    ]  # fmt: skip
    assert data["schema"] == "deixis.score.choices/1"
    assert data["ways"] == ["logits", "written"]
    scores = dx.spacenum_scores(dx.open_run(folder)).to_frame()
    assert [row["accuracy"] for row in data["scores"] if row["accuracy"] is not None] == scores["accuracy"].dropna().tolist()
    assert len(data["missing"]) == 16


def test_way_and_condition_are_chosen_and_written_to_a_file(folder, tmp_path):
    assert (
        "condition black, by the letter that was written"
        in run("score", folder, "--way", "written", "--condition", "black").stdout
    )
    for name in ("scores.csv", "scores.png"):
        result = run("score", folder, "--out", tmp_path / name)
        assert result.exit_code == 0, result.stderr
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--way", "string"), "--way string is not in this run, which has: logits, written; --texts and --draws add ways."),
        (("--condition", "blank"), "--condition blank is not in this run, which has: real, black."),
        (("--reference", "synthetic"), "--reference changes nothing in a run of multiple-choice items; leave it out."),
    ],
)
def test_what_changes_nothing_is_refused(folder, arguments, told):
    result = run("score", folder, *arguments)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())


def test_a_run_of_other_items_takes_no_way(tmp_path):
    items = dx.Items([toy_item(0, options=THIS_THAT)])
    dx.record(toy_vlm(), items, tmp_path / "run", roles=("answer",), layers=[0], max_new_tokens=1, progress=False)
    result = run("score", tmp_path / "run", "--way", "written")
    assert result.exit_code == 2
    assert "--way is for runs of multiple-choice items, and this one has others" in " ".join(result.stderr.split())
