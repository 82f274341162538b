import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from deixis.activations import lock
from deixis.activations.errors import LockedRunError
from deixis.activations.lock import LOCK, locked

HOLD = """
import sys, time
from pathlib import Path
from deixis.activations.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path: Path):
    """Another process that holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_process_is_refused_and_told_who_holds_it(tmp_path: Path, other: subprocess.Popen[str]):
    with (
        pytest.raises(LockedRunError, match=rf"process {other.pid} on {socket.gethostname()} has been recording"),
        locked(tmp_path),
    ):
        pytest.fail("it was held")
    assert json.loads((tmp_path / LOCK).read_text())["pid"] == other.pid


def test_the_lock_of_a_killed_process_is_stale(tmp_path: Path, other: subprocess.Popen[str]):
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert not (tmp_path / LOCK).exists()


def test_it_is_let_go_of_after_an_error(tmp_path: Path):
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError("anything")
    with locked(tmp_path):
        pass


def test_one_process_cannot_hold_it_twice(tmp_path: Path):
    with locked(tmp_path), pytest.raises(LockedRunError, match=str(os.getpid())), locked(tmp_path):
        pytest.fail("it was held")


def test_parts_are_held_side_by_side(tmp_path: Path):
    with locked(tmp_path, ".0"), locked(tmp_path, ".1"):
        assert len(list(tmp_path.iterdir())) == 2


def test_a_file_that_its_holder_removed_meanwhile_is_not_taken_for_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real, calls = lock._system_lock, []

    def removed_first(handle: int, **_: bool) -> bool | None:
        calls.append(handle)
        if len(calls) == 1:
            (tmp_path / LOCK).unlink()
        return real(handle)

    monkeypatch.setattr(lock, "_system_lock", removed_first)
    with locked(tmp_path), pytest.raises(LockedRunError), locked(tmp_path):
        pytest.fail("it was held")
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("holder", "refused"),
    [
        ({"pid": 1, "host": socket.gethostname()}, True),
        ({"pid": 2**22 + 1, "host": socket.gethostname()}, False),
        ({"pid": 2**22 + 1, "host": "another-host"}, True),
        ({"host": socket.gethostname()}, True),
        ("half a li", False),
    ],
    ids=["alive", "dead", "elsewhere", "no number", "torn"],
)
def test_without_locks_of_the_system_the_files_content_decides(
    holder: object, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lock, "_system_lock", lambda *_, **__: None)
    (tmp_path / LOCK).write_text(holder if isinstance(holder, str) else json.dumps(holder))
    if not refused:
        with locked(tmp_path):
            pass
        return
    with pytest.raises(LockedRunError, match=r"delete .*lock"), locked(tmp_path):
        pytest.fail("it was held")
