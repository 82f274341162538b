"""Several processes that record one run: equal to one process, and nobody waits for the dead."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from deixis.activations import LockedRunError, RunError, UnfinishedRunError, ranks, record, recording
from deixis.activations.lock import LOCK, locked
from deixis.activations.ranks import Crew, Rank, rank_in, recording_alone, take_away_stale
from tests.activations.test_recording import same_files
from tests.toys import toy_items, toy_vlm

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The runs of :mod:`tests.activations.rank`, and by their names how each rank ended, attempt by attempt."""
    folder = tmp_path_factory.mktemp("ranks")
    program = [sys.executable, "-m", "tests.activations.rank", str(folder)]
    here = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(program, env=here, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    ends: dict[str, Any] = {"folder": folder}
    for name, lines in re.findall(r"\[(\w+)\]\n((?:[^\[].*\n)*)", done.stdout):
        ends.setdefault(name, []).append(lines.splitlines())
    return ends


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its ranks")
@pytest.mark.parametrize(("name", "of"), [("two", 2), ("seven", 7)])
def test_several_ranks_record_what_one_process_records(told: dict[str, Any], name: str, of: int):
    assert told[name] == [["finished=True"] * of]
    same_files(told["folder"] / "one", told["folder"] / name)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its ranks")
@pytest.mark.parametrize(("name", "of"), [("resumed", 2), ("alone", 1)])
def test_after_a_killed_rank_the_other_ends_its_part_and_the_same_call_ends_the_run(told: dict[str, Any], name: str, of: int):
    first, second = told[name]
    (said,) = first  # the killed one said nothing
    assert re.match(r"UnfinishedRunError: .* lacks 1 shards \(000003\.h5\) of rank 1 \(no longer there\) among 2; what is", said)
    assert second == ["finished=True"] * of
    same_files(told["folder"] / "one", told["folder"] / name)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its ranks")
def test_a_rank_whose_peers_never_come_gives_up_and_says_what_is_missing(told: dict[str, Any]):
    ((lonely,),), ((late,),) = told["lonely"], told["late"]
    assert re.search(r"lacks 2 shards \(000001\.h5, 000003\.h5\) of rank 1 \(never seen\) among 2", lonely)
    assert re.match(r"RunError: rank 0 of 2 did not begin the run at .*; see what it said, and start all ranks again", late)


TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")


def ran(*program: str) -> str:
    """What a module of Python printed on stdout."""
    command, here = [sys.executable, "-m", *program], os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=here, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its ranks")
def test_torchrun_records_what_one_process_records(told: dict[str, Any]):
    ran(*TORCHRUN, "tests.activations.rank", str(told["folder"]), "torchrun")
    same_files(told["folder"] / "one", told["folder"] / "torchrun")


@pytest.mark.slow
def test_the_command_under_torchrun_records_what_it_records_alone(tmp_path: Path):
    pictures = ["--size", "32", "--shapes", "star", "--colours", "red", "--distances", "0.5,1.5,2.5", "--languages", "en,ja"]
    rest = ["--prompts", "all", "--batch-size", "4", "--roles", "answer", "--workers", "1", "--json", "--out"]
    command = ["deixis", "record", "pico", "memory-game", *pictures, *rest]
    several = json.loads(ran(*TORCHRUN, *command, str(tmp_path / "several")))  # one object: only the first rank speaks
    assert several["items"] > 64
    ran(*command, str(tmp_path / "one"))
    same_files(tmp_path / "one", tmp_path / "several")


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({}, Rank(0, 1)),
        ({"RANK": "1", "WORLD_SIZE": "4"}, Rank(1, 4)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, Rank(0, 1)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "DEIXIS_SLURM": "1"}, Rank(1, 4)),
    ],
    ids=["none", "torchrun", "Slurm, not asked for", "Slurm"],
)
def test_the_launcher_says_which_rank_this_is(environment: dict[str, str], rank: Rank):
    assert rank_in(environment) == rank


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"RANK": "1"}, "RANK=1 and WORLD_SIZE=None in the environment is no rank among several"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 and WORLD_SIZE=2 in the environment"),
        ({"RANK": "first", "WORLD_SIZE": "2"}, "RANK=first"),
        ({"DEIXIS_SLURM": "1"}, "SLURM_PROCID=None and SLURM_NTASKS=None"),
    ],
)
def test_half_a_rank_is_refused(environment: dict[str, str], message: str):
    with pytest.raises(ValueError, match=message):
        rank_in(environment)


def test_ranks_and_a_lone_process_refuse_each_other(tmp_path: Path):
    with Crew(tmp_path, Rank(0, 2)).at_work():
        with pytest.raises(LockedRunError, match=rf"process {os.getpid()} .* has been recording"), recording_alone(tmp_path):
            pytest.fail("a rank is at work")
        with pytest.raises(LockedRunError, match=r"delete .*lock\.rank-0-of-2"), Crew(tmp_path, Rank(0, 2)).at_work():
            pytest.fail("the same rank twice")
        with pytest.raises(LockedRunError, match=r"delete .*lock\.rank-0-of-2"), Crew(tmp_path, Rank(1, 3)).at_work():
            pytest.fail("ranks of another number")
        with Crew(tmp_path, Rank(1, 2)).at_work():
            pass
    with recording_alone(tmp_path), pytest.raises(LockedRunError, match=r"delete .*lock\)"), Crew(tmp_path, Rank(0, 2)).at_work():
        pytest.fail("a process records alone")
    take_away_stale(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_the_dead_have_left_holds_nobody_up_and_tells_nothing_of_the_living(tmp_path: Path):
    dead = {"pid": 2**22 + 1, "host": socket.gethostname(), "since": "yesterday"}
    left = tmp_path / f"{LOCK}.rank-1-of-2"
    left.write_text(json.dumps(dead))
    crew = Crew(tmp_path, Rank(0, 2))
    with crew.at_work():
        assert crew.state(1) == "absent"  # it may be about to start again
        with Crew(tmp_path, Rank(1, 2)).at_work():
            assert crew.state(1) == "working"
        assert crew.state(1) == "gone"
        left.write_text(json.dumps(dead | {"since": "today"}))
        assert crew.state(1) == "gone"
    with recording_alone(tmp_path):
        pass
    take_away_stale(tmp_path)
    assert not left.exists()


def test_a_rank_on_another_machine_lives_as_long_as_it_gives_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    monkeypatch.setattr(ranks.time, "monotonic", lambda: now[0])
    left = tmp_path / f"{LOCK}.rank-1-of-2"
    left.write_text(json.dumps({"pid": 1, "host": "another-machine"}))
    crew = Crew(tmp_path, Rank(0, 2))
    with crew.at_work():
        assert crew.state(1) == "working"  # cannot be told yet
        now[0] += 130
        assert crew.state(1) == "absent"
        os.utime(left, ns=(1, 1))  # a clock that went back by decades: any change is a sign
        assert crew.state(1) == "working"
        now[0] += 119
        assert crew.state(1) == "working"
        now[0] += 2
        assert crew.state(1) == "gone"


def test_a_rank_gives_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranks, "_BEAT", 0.01)
    own = tmp_path / f"{LOCK}.rank-0-of-2"
    with Crew(tmp_path, Rank(0, 2)).at_work():
        os.utime(own, ns=(1, 1))
        waited = threading.Event()
        for _ in range(500):
            if own.stat().st_mtime_ns != 1:
                break
            waited.wait(0.01)
        assert own.stat().st_mtime_ns != 1
    assert threading.active_count() == 1 or all(thread.name != "sign of life" for thread in threading.enumerate())


def test_a_rank_that_failed_says_so_to_the_others(tmp_path: Path):
    crew = Crew(tmp_path, Rank(0, 2))
    with crew.at_work():
        with pytest.raises(KeyError), Crew(tmp_path, Rank(1, 2)).at_work():
            raise KeyError("anything")
        assert crew.state(1) == "gone"
        with pytest.raises(UnfinishedRunError, match=r"lacks 1 shards \(000003\.h5\) of rank 1 \(no longer there\)"):
            crew.wait_for_others(lambda: [3], lambda: False, lambda: None)


def test_a_rank_at_work_is_waited_for_and_the_lowest_ends_the_run(tmp_path: Path):
    left, order = [3], []
    both_done = threading.Event()

    def second() -> None:
        crew = Crew(tmp_path, Rank(1, 2))
        with crew.at_work():
            started.set()
            both_done.wait(5)
            left.clear()
            crew.wait_for_others(lambda: left, lambda: bool(order), lambda: order.append(1))

    started = threading.Event()
    thread = threading.Thread(target=second)
    crew = Crew(tmp_path, Rank(0, 2))
    with crew.at_work():
        thread.start()
        assert started.wait(5)
        both_done.set()
        crew.wait_for_others(lambda: list(left), lambda: bool(order), lambda: order.append(0))
    thread.join()
    # A rank that never saw the lowest done, because it was gone at the next look, ends the run once more: that changes nothing.
    assert order in ([0], [0, 1])


def test_wrong_ranks_are_refused(tmp_path: Path):
    vlm, items = toy_vlm(), toy_items(2)
    for given, message in (("some", "neither 'auto' nor this process's rank"), ((2, 2), "rank 2 of 2 can't be")):
        with pytest.raises(ValueError, match=message):
            record(vlm, items, tmp_path / "run", ranks=given, progress=False)
    with pytest.raises(ValueError, match="resume=False can't be asked of several ranks"):
        record(vlm, items, tmp_path / "run", ranks=(0, 2), resume=False, progress=False)
    assert not (tmp_path / "run").exists()


def test_a_rank_of_other_settings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recording, "SHARD_ITEMS", {"mean": 2, None: 2})
    monkeypatch.setenv(ranks.PATIENCE, "0")
    vlm, items = toy_vlm(), toy_items(4)
    with pytest.raises(UnfinishedRunError):
        record(vlm, items, tmp_path / "run", ranks=(0, 2), batch_size=2, progress=False)
    with pytest.raises(RunError, match="max_new_tokens is 16 there and 3 here"):
        record(vlm, items, tmp_path / "run", ranks=(1, 2), batch_size=2, max_new_tokens=3, progress=False)
    assert record(vlm, items, tmp_path / "run", ranks=(1, 2), batch_size=2, progress=False).finished
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"items.jsonl", "run.h5", "run.json", "shards"}


def test_a_damaged_shard_is_recorded_again_by_its_own_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recording, "SHARD_ITEMS", {"mean": 2, None: 2})
    monkeypatch.setenv(ranks.PATIENCE, "0")
    vlm, items = toy_vlm(), toy_items(8)
    arguments: dict[str, Any] = {"batch_size": 2, "max_new_tokens": 2, "progress": False}
    whole = record(vlm, items, tmp_path / "whole", **arguments)
    run = record(vlm, items, tmp_path / "run", **arguments)
    shards = run.path / "shards"
    (shards / "000001.h5").unlink()
    (shards / "000002.h5").write_bytes((shards / "000002.h5").read_bytes()[:-7])
    with pytest.raises(UnfinishedRunError, match=r"lacks 1 shards \(000001\.h5\)"):
        record(vlm, items, run.path, ranks=(0, 2), **arguments)
    record(vlm, items, run.path, ranks=(1, 2), **arguments)
    same_files(whole.path, run.path)


def test_a_lock_in_the_way_of_an_early_return_is_no_error(tmp_path: Path):
    vlm, items = toy_vlm(), toy_items(2)
    run = record(vlm, items, tmp_path / "run", progress=False)
    with locked(run.path, ".rank-0-of-2", kept_after_error=True) as say:
        say(state="done")
        with pytest.raises(LockedRunError):
            record(vlm, items, run.path, progress=False)
    assert record(vlm, items, run.path, progress=False).finished
