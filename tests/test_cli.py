"""The commands: exit codes, one sentence for an error, JSON on stdout."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import deixis as dx
from deixis.cli import app
from deixis.console import cell, records, sentence, table
from deixis.probes import TooFewItemsWarning
from tests.toys import toy_model, toy_processor

COMMANDS = (
    "patch",
    "steer",
    "demo",
    "render",
    "record",
    "probe",
    "lens",
    "score",
    "compare",
    "gap",
    "verify",
    "families",
    "report",
    "doctor",
    "attention",
)
SMALL = ("--languages", "en", "--size", "64", "--workers", "1")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def parsed(*arguments: object) -> Any:
    """What a command prints with --json."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def refused(*arguments: object, code: int = 2) -> str:
    """The one sentence with which a command refuses."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("deixis: ")
    return line


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy model in a folder, as a user's own would be."""
    folder = tmp_path_factory.mktemp("model") / "toy"
    processor = toy_processor()
    toy_model(processor).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def recorded(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the toy on 15 scenes of random distance, both tasks, real and blank."""
    out = tmp_path_factory.mktemp("runs") / "toy"
    arguments = ("--n", 15, "--tasks", "demonstrative,distance", "--condition", "real,blank", *SMALL)
    data = parsed("record", model, "memory-game", "--out", out, *arguments)
    assert data == {"run": str(out), "model": str(model), "items": 60, "layers": 3}
    return out


def test_the_commands_are_these_and_all_take_json():
    assert {command.name for command in app.registered_commands} == set(COMMANDS)
    for name in COMMANDS:
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
        assert "--json" in shown
        assert "--debug" in shown


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "deixis", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == dx.__version__


def test_render_writes_items_that_load_with_the_same_fingerprint(tmp_path: Path):
    data = parsed("render", "memory-game", tmp_path / "items", "--n", 3, *SMALL)
    assert (data["items"], data["scenes"]) == (3, 3)
    assert dx.load_items(tmp_path / "items").fingerprint == data["fingerprint"]
    assert data["fingerprint"] == dx.memory_game(languages=["en"], n=3, size=64).fingerprint


def test_pictures_drawn_by_worker_processes_are_those_drawn_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DEIXIS_CACHE", str(tmp_path / "cache"))
    data = parsed("render", "memory-game", tmp_path / "items", "--n", 2, "--languages", "en", "--size", 32, "--workers", 2)
    assert len(list((tmp_path / "cache/images").glob("*.png"))) == 2
    monkeypatch.setenv("DEIXIS_CACHE", str(tmp_path / "other"))
    assert data["fingerprint"] == dx.memory_game(languages=["en"], n=2, size=32).fingerprint


def test_saved_items_are_a_benchmark(tmp_path: Path, model: Path):
    parsed("render", "memory-game", tmp_path / "items", "--n", 2, *SMALL)
    assert parsed("record", model, tmp_path / "items", "--out", tmp_path / "run", "--workers", 1)["items"] == 2


@pytest.mark.filterwarnings("ignore::deixis.probes.TooFewItemsWarning")
def test_probe_prints_the_sweeps_rows(recorded: Path, tmp_path: Path):
    data = parsed("probe", recorded, "--target", "distance_m", "--out", tmp_path / "sweep.csv")
    frame = dx.layer_sweep(dx.open_run(recorded), "distance_m").to_frame()
    assert [row["score"] for row in data["rows"]] == pytest.approx(list(frame["score"]))
    assert data["rows"][0]["residual"] is None
    assert data["warnings"][0].startswith("only 15 groups")
    assert data["best"]["layer"] == dx.layer_sweep(dx.open_run(recorded), "distance_m").best().layer
    assert list(pd.read_csv(tmp_path / "sweep.csv")["score"]) == pytest.approx(list(frame["score"]))


def test_activations_alone_of_some_layers_are_recorded(model: Path, tmp_path: Path):
    kept = ("--layers", "0, 1", "--activations-only", "--roles", "answer")
    parsed("record", model, "memory-game", "--out", tmp_path / "run", "--n", 2, "--tasks", "distance", *kept, *SMALL)
    opened = dx.open_run(tmp_path / "run")
    assert (opened.settings["layers"], opened.settings["answers"], opened.settings["options"]) == (
        {"resid": [0, 1]},
        False,
        False,
    )
    assert opened.resid(1).shape[0] == 2


def test_layers_that_are_no_numbers_are_refused(model: Path, tmp_path: Path):
    result = run("record", model, "memory-game", "--out", tmp_path / "run", "--layers", "first")
    assert result.exit_code == 2
    assert "first is neither all nor numbers" in result.stderr


def test_a_figure_is_written_where_it_is_asked_for(recorded: Path, tmp_path: Path):
    assert run("score", recorded, "--out", tmp_path / "terms.png").exit_code == 0
    assert (tmp_path / "terms.png").read_bytes().startswith(b"\x89PNG")


def test_lens_ends_with_the_runs_own_probabilities(recorded: Path):
    rows = pd.DataFrame(parsed("lens", recorded)["rows"])
    last = rows[rows["layer"] == 3].set_index(["item", "option"])["logit"]
    own = dx.open_run(recorded).options.set_index(["item", "option"])["logit"]
    own = own[own.index.isin(last.index)]
    assert len(own) > 60
    np.testing.assert_allclose(last.loc[own.index], own, atol=1e-3 * own.abs().max())


def test_lens_says_when_there_are_no_demonstratives(model: Path, tmp_path: Path):
    parsed("record", model, "memory-game", "--out", tmp_path / "run", "--n", 5, "--tasks", "distance", *SMALL)
    shown = run("lens", tmp_path / "run")
    assert shown.exit_code == 0
    assert "no demonstratives were asked for" in " ".join(shown.stdout.split())
    assert len(parsed("lens", tmp_path / "run")["rows"]) == 5 * 4 * 3


def test_score_prints_the_scores(recorded: Path):
    data = parsed("score", recorded, "--reference", "synthetic")
    expected = dx.behaviour(dx.open_run(recorded), "synthetic").scores()
    assert [row["js_distance"] for row in data["scores"]] == pytest.approx(list(expected["js_distance"]), nan_ok=True)


def test_gap_prints_verdicts_and_conclusions(recorded: Path, model: Path):
    data = parsed("gap", recorded)
    with pytest.warns(TooFewItemsWarning, match="only 15 groups") as told:
        found = dx.encoding_gap([dx.open_run(recorded)])
    assert [str(one.message) for one in told] == data["warnings"]  # each once, however many probes there were
    assert [row["case"] for row in data["rows"]] == list(found.to_frame()["case"])
    assert data["conclusions"] == {str(model): found.conclusion(str(model))}


def test_report_loads_the_model_from_its_folder_for_the_lens(recorded: Path, tmp_path: Path):
    data = parsed("report", recorded, "--out", tmp_path / "report.html")
    page = Path(data["report"]).read_text("utf-8")
    assert "Logit lens at the last prompt position" in page
    assert "No lens for" not in page


def test_verify_counts_the_shards_and_finds_damage(recorded: Path, tmp_path: Path):
    assert parsed("verify", recorded)["sound"] is True
    import shutil

    copy = shutil.copytree(recorded, tmp_path / "copy")
    shard = next((copy / "shards").glob("*.h5"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(bytes(data))
    assert shard.name in refused("verify", copy)


def test_families_names_what_is_known():
    from deixis.models import BUNDLED, FAMILIES
    from deixis.models.families import LEFT_OUT

    data = parsed("families")
    assert [row["architecture"] for row in data["families"]] == list(FAMILIES)
    assert (data["left_out"], data["bundled"]) == (LEFT_OUT, list(BUNDLED))
    shown = CliRunner().invoke(app, ["families"], env={"COLUMNS": "200", "TERM": "dumb"}).stdout
    assert all(name in shown for name in (*FAMILIES, *LEFT_OUT, *BUNDLED))


def test_doctor_says_what_holds_and_fails_where_a_check_does(model: Path, monkeypatch: pytest.MonkeyPatch):
    from deixis.models.checking import at_load, in_full

    data = parsed("doctor", model)
    assert [check["name"] for check in data["checks"]] == [*at_load.AT_LOAD, *in_full.IN_FULL]
    assert all(check["passed"] and check["seconds"] >= 0 for check in data["checks"])
    assert data["failed"] == []
    monkeypatch.setitem(at_load.AT_LOAD, "heads", ("nothing", lambda _evidence: "the heads are wrong."))
    result = run("doctor", model)
    assert result.exit_code == 1
    assert "FAILS" in result.stdout
    assert "1 of 12 checks fail: heads." in result.stdout
    as_json = run("doctor", model, "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["failed"] == ["heads"]


def test_the_demo_runs_on_any_model_and_reuses_its_runs(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = dx.memory_game(tasks=("demonstrative", "distance"), languages=("en",), shapes=("star", "cross"), size=64)
    monkeypatch.setattr("deixis.analyses.demo.demo_items", lambda: real + real.with_condition("blank"))
    data = parsed("demo", "--out", tmp_path / "demo", "--models", model, "--workers", 1)
    assert [row["model"] for row in data["models"]] == [str(model)]
    assert data["in_words"].startswith("Distance is encoded in ")
    assert data["conclusions"][str(model)] in Path(data["report"]).read_text("utf-8").replace("&#39;", "'").replace("&#34;", '"')
    shards = {path: path.stat().st_mtime_ns for path in (tmp_path / "demo/toy/shards").iterdir()}
    shown = run("demo", "--out", tmp_path / "demo", "--models", model, "--workers", 1)
    assert "demonstratives" in shown.stdout
    assert "The whole report:" in shown.stdout
    assert shown.stderr == ""
    assert all(len(line) <= 80 or "report" in line or "istance" in line for line in shown.stdout.splitlines())
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "demo/toy/shards").iterdir()} == shards


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("render", "memry-game", "x"), "benchmark 'memry-game' is neither 'memory-game', 'spacenum' nor a folder"),
        (("render", "memory-game", "x", "--languages", "en,xx"), "language='xx' is not one of: 'de', 'en', 'es'"),
        (("render", "memory-game", "."), "holds something already; nothing is overwritten, so name a new folder"),
        (("record", "pcio", "memory-game", "--out", "x", "--n", "1"), "model 'pcio' is neither bundled"),
        (("record", "pico", "memory-game", "--out", "x", "--condition", "night"), "condition='night' is not one of: 'blank'"),
        (("probe", ".", "--target", "distance_m"), "is no run, it holds no run.json; name a directory that dx.record wrote"),
        (("gap", "nowhere"), "nowhere is no directory"),
        (("report", ".", "--out", "x.html"), "is no run"),
        (("demo", "--models", ","), "no model was named; the demo's own are: pico, pico-collapsed"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "here").write_text("something")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("deixis.analyses.demo.demo_items", lambda: dx.memory_game(n=1, size=32))
    assert words in refused(*arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_other_settings_are_refused_with_the_difference(recorded: Path, model: Path):
    said = refused("record", model, "memory-game", "--out", recorded, "--n", 3, *SMALL)
    assert "other settings" in said
    assert "n_items is 60 there and 3 here" in said


def test_a_wrong_ending_is_bad_usage(recorded: Path):
    result = run("probe", recorded, "--target", "distance_m", "--out", "sweep.docx")
    assert result.exit_code == 2
    assert "must end in .csv, .png, .svg or .pdf" in " ".join(result.stderr.replace("│", " ").split())


def test_ctrl_c_says_how_to_go_on(recorded: Path, monkeypatch: pytest.MonkeyPatch):
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deixis.activations.open_run", stopped)
    assert refused("verify", recorded, code=130) == "deixis: stopped; run the same command again to continue."


def test_a_failure_that_nobody_foresaw_exits_with_1_and_names_the_way_to_more(recorded: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("deixis.activations.open_run", broken)
    said = refused("verify", recorded, code=1)
    assert said == "deixis: ZeroDivisionError: division by zero. Run 'deixis verify ... --debug' for the whole story."
    shown = run("verify", recorded, "--debug")
    assert shown.exit_code == 1
    assert "Traceback" in shown.stderr


def test_a_key_error_is_said_without_quotation_marks():
    assert sentence(KeyError("no record for 'x'; known: 'y'.")) == "no record for 'x'; known: 'y'."
    assert sentence(KeyError("x")) == "KeyError: x."
    assert sentence(ValueError("two\n lines.")) == "two lines."


def test_json_has_null_where_a_frame_has_nan():
    rows = records(pd.DataFrame({"a": [0.1 + 0.2, np.nan], "b": ["x", None], "region": [1, "mean"]}))
    assert rows == [{"a": pytest.approx(0.3, abs=1e-14), "b": "x", "region": 1}, {"a": None, "b": None, "region": "mean"}]


def test_tables_show_decimals_whole_numbers_and_dashes():
    assert [cell(v) for v in (1.005, 3, float("nan"), None, "x", True)] == ["1.00", "3", "-", "-", "x", "True"]
    shown = table(pd.DataFrame({"n": [1, 2], "score": [0.5, np.nan]}), {"n": "items", "score": "R2"})
    assert [column.header for column in shown.columns] == ["items", "R2"]
    assert [list(column.cells) for column in shown.columns] == [["1", "2"], ["0.50", "-"]]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_full_disk_under_stdout_is_one_sentence(more: tuple[str, ...]):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "deixis", "families", *more], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("deixis: the result can't be written to stdout (No space left on device).")


def test_a_reader_that_has_seen_enough_is_no_error():
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m deixis families --json | true"], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


@pytest.mark.parametrize(("name", "words"), [("no/such/sweep.csv", "is no folder; make it first"), ("here.csv", "is a folder")])
def test_an_out_that_cannot_be_written_is_seen_before_the_work(
    name: str, words: str, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "here.csv").mkdir()
    monkeypatch.setattr("deixis.activations.open_run", lambda _: pytest.fail("the work was begun"))
    result = run("score", recorded, "--out", tmp_path / name)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())


def test_tables_have_no_column_of_nothing_but_dashes(recorded: Path):
    shown = run("score", recorded).stdout  # no reference was given, so there is no distance from one
    assert "recognised" in shown
    assert "JS" not in shown
    assert "JS" in run("score", recorded, "--reference", "synthetic").stdout


def test_verify_repairs_what_is_damaged(model: Path, recorded: Path, tmp_path: Path):
    run_folder = Path(shutil.copytree(recorded, tmp_path / "run"))
    shard = run_folder / "shards" / "000000.h5"
    shard.write_bytes(shard.read_bytes()[:-8])
    assert "does not match its checksum" in refused("verify", run_folder)
    data = parsed("verify", run_folder, "--repair", "--model", model)
    assert data["repaired"] == [0]
    assert data["sound"] is True
    assert parsed("verify", run_folder, "--repair")["repaired"] == []
