"""Shards are written beside the model's work: in order, with two batches in memory at most, and no error is lost."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from deixis.activations import open_run, recording
from deixis.activations.background import IN_MEMORY, BackgroundWriter
from deixis.activations.recorder import Recorder
from deixis.activations.shards import BatchRecord, Shard, ShardWriter
from deixis.hooks import Seen
from tests.activations.test_recording import failing_at, recorded
from tests.toys import toy_items, toy_vlm


def batch(value: float, n: int = 2) -> BatchRecord:
    seen = {("resid", 0, "answer"): Seen(values=torch.full((n, 4), value), counts=torch.ones(n, dtype=torch.long))}
    return BatchRecord(seen, n, logits=[[value]] * n, whole=[False] * n)


def written(path: Path, batches: int) -> None:
    """A shard of so many batches, written in the background."""
    with BackgroundWriter() as writer:
        writer.begin(path, 2 * batches, "", range(2 * batches))
        for number in range(batches):
            writer.wait_for_room()
            writer.add(batch(float(number)))
        writer.finish(2)


def test_shards_are_written_in_the_order_in_which_they_come(tmp_path: Path):
    with BackgroundWriter() as writer:
        for number in range(3):
            writer.begin(tmp_path / f"{number}.h5", 4, "", range(4))
            for half in range(2):
                writer.wait_for_room()
                writer.add(batch(10.0 * number + half))
            writer.finish(2)
    for number in range(3):
        with Shard(tmp_path / f"{number}.h5", 4) as shard:
            assert shard.array("resid/0/answer")[:, 0].tolist() == [10.0 * number] * 2 + [10.0 * number + 1] * 2
    assert not list(tmp_path.glob("*.tmp"))


def test_no_third_batch_is_made_before_the_first_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    may_write, made = threading.Event(), []
    real = ShardWriter.add

    def slow(self: ShardWriter, record: BatchRecord) -> None:
        may_write.wait(10)
        real(self, record)

    monkeypatch.setattr(ShardWriter, "add", slow)

    real_wait = BackgroundWriter.wait_for_room
    monkeypatch.setattr(BackgroundWriter, "wait_for_room", lambda self: (real_wait(self), made.append(len(made)))[0])
    maker = threading.Thread(target=written, args=(tmp_path / "0.h5", 4))
    maker.start()
    deadline = time.monotonic() + 10
    while len(made) < IN_MEMORY and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    assert made == [0, 1]
    may_write.set()
    maker.join(10)
    assert made == [0, 1, 2, 3]


def test_an_error_of_the_disk_is_raised_where_the_recording_is_and_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "add", full)
        with pytest.raises(OSError, match="No space left"):
            written(tmp_path / "0.h5", 200)  # never hangs, whenever the error is noticed
    assert list(tmp_path.iterdir()) == []


def test_an_error_at_the_very_end_is_raised_on_leaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ShardWriter, "finish", full)
    with pytest.raises(OSError, match="No space left"):
        written(tmp_path / "0.h5", 1)
    assert list(tmp_path.iterdir()) == []


def test_what_is_finished_stays_when_the_recording_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The shard before is being flushed while the model fails in the next one."""
    monkeypatch.setattr(recording, "SHARD_ITEMS", {"mean": 2, None: 2})
    vlm, items = toy_vlm(), toy_items(6)
    failing_at(monkeypatch, lambda attempt, _: ValueError("odd") if attempt == 2 else None)
    with pytest.raises(ValueError, match="odd"):
        recorded(vlm, items, tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run" / "shards").glob("*")) == [
        f"00000{number}.{kind}" for number in range(2) for kind in ("h5", "sha256")
    ]
    assert all(thread.name != "shard writer" for thread in threading.enumerate())
    assert not open_run(tmp_path / "run").finished


def test_writing_runs_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The second batch is being made before the first has been written."""
    second_begun, order = threading.Event(), []
    real_write, real_pass = ShardWriter.add, Recorder._recorded

    def write(self: ShardWriter, record: BatchRecord) -> None:
        second_begun.wait(10)
        order.append("written")
        real_write(self, record)

    def run_pass(self: Recorder, items: list[Any]) -> BatchRecord:
        order.append("pass")
        if order.count("pass") == 2:
            second_begun.set()
        return real_pass(self, items)

    monkeypatch.setattr(ShardWriter, "add", write)
    monkeypatch.setattr(Recorder, "_recorded", run_pass)
    run = recorded(toy_vlm(), toy_items(4), tmp_path / "run")
    assert order[:2] == ["pass", "pass"]
    assert np.isfinite(run.resid(1)).all()
