"""Disks and clocks that misbehave: a clear error, nothing half written, and the same call goes on."""

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from deixis.activations import lock, open_run, record, recording
from deixis.activations.errors import DiskError
from deixis.models import VLM
from tests.activations.test_recording import same_files
from tests.toys import toy_items, toy_vlm

ARGUMENTS: dict[str, Any] = {"batch_size": 2, "max_new_tokens": 2, "progress": False}


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@pytest.fixture
def whole(vlm: VLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(recording, "SHARD_ITEMS", {"mean": 2, None: 2})
    return record(vlm, toy_items(6), tmp_path / "whole", **ARGUMENTS).path


def test_a_finished_run_where_nothing_can_be_written_is_returned(vlm: VLM, whole: Path, monkeypatch: pytest.MonkeyPatch):
    def refused(*_: Any, **__: Any) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", refused)
    assert record(vlm, toy_items(6), whole, **ARGUMENTS).finished


def test_a_directory_that_turns_read_only_is_an_error_and_goes_on_later(
    vlm: VLM, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    real, left = Path.replace, [5]

    def replace(self: Path, target: Path) -> Path:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.EROFS, "Read-only file system")
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(
            DiskError, match=r"can't be written to \(Read-only file system\); free some space, or see to the disk"
        ):
            record(vlm, toy_items(6), tmp_path / "run", **ARGUMENTS)
    assert not list((tmp_path / "run").rglob("*.tmp"))
    assert not open_run(tmp_path / "run").finished
    record(vlm, toy_items(6), tmp_path / "run", **ARGUMENTS)
    same_files(whole, tmp_path / "run")


def test_a_clock_that_jumps_back_changes_nothing(vlm: VLM, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hour = iter(range(10_000))
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: 2e9 - 3600.0 * next(hour))
        patch.setattr(time, "strftime", lambda *_: f"1970-01-01 00:00:{next(hour)} +0000")
        run = record(vlm, toy_items(6), tmp_path / "run", **ARGUMENTS)
    for path in run.path.rglob("*"):
        os.utime(path, ns=(1, 1))
    (run.path / "shards" / "000001.h5").unlink()
    record(vlm, toy_items(6), run.path, **ARGUMENTS)
    same_files(whole, run.path)


def test_a_file_system_without_locks_records_the_same(vlm: VLM, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lock, "_system_lock", lambda *_, **__: None)
    record(vlm, toy_items(6), tmp_path / "run", **ARGUMENTS)
    same_files(whole, tmp_path / "run")
