"""Repair: what is damaged is recorded again, and nothing else is touched."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from deixis.activations import DamagedShardError, NotARunError, Run, SettingsError, open_run, record, recording, repair
from deixis.benchmarks import Items
from deixis.models import VLM
from tests.activations.test_recording import same_files
from tests.toys import toy_items, toy_vlm


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@pytest.fixture(scope="module")
def whole(vlm: VLM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three shards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "SHARD_ITEMS", {"mean": 4, None: 4})
        path = tmp_path_factory.mktemp("runs") / "run"
        return record(vlm, toy_items(10), path, batch_size=2, max_new_tokens=3, progress=False).path


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Run:
    return open_run(shutil.copytree(whole, tmp_path / "copy"))


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_damaged_and_missing_shards_come_back_byte_for_byte(vlm: VLM, whole: Path, copied: Run):
    shards = copied.path / "shards"
    damage(shards / "000001.h5")
    (shards / "000002.h5").unlink()
    untouched = (shards / "000000.h5").stat().st_mtime_ns
    assert list(copied.faults()) == [1, 2]
    repaired = repair(vlm, copied, progress=False)
    assert repaired.verify() == 3
    same_files(whole, copied.path)
    assert (shards / "000000.h5").stat().st_mtime_ns == untouched


def test_a_sound_run_needs_no_pass(vlm: VLM, copied: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("deixis.activations.recorder.Recorder.shard", None)
    np.testing.assert_array_equal(repair(vlm, copied, progress=False).resid(1), copied.resid(1))


def test_another_model_is_refused_and_nothing_is_touched(copied: Run):
    damaged = copied.path / "shards" / "000001.h5"
    damage(damaged)
    before = damaged.read_bytes()
    with pytest.raises(SettingsError, match="weights is"):
        repair(toy_vlm(seed=1), copied, progress=False)
    assert damaged.read_bytes() == before


def test_a_damaged_list_of_items_cannot_be_repaired_from_the_run(vlm: VLM, copied: Run):
    lines = copied.path / "items.jsonl"
    lines.write_text(lines.read_text("utf-8").replace("star", "cross", 1), "utf-8")
    with pytest.raises(NotARunError, match="is not the list that was recorded"):
        repair(vlm, copied, progress=False)


def test_a_shard_in_anothers_place_and_a_shard_of_another_run_are_named(vlm: VLM, copied: Run, tmp_path: Path):
    shards = copied.path / "shards"
    for suffix in (".h5", ".sha256"):
        shutil.copy(shards / f"000000{suffix}", shards / f"000001{suffix}")
    (shards / "000001.sha256").write_text((shards / "000001.sha256").read_text().replace("000000", "000001"))
    with pytest.raises(DamagedShardError, match=r"000001\.h5 belongs to another run or to another place in it"):
        copied.verify()
    with pytest.raises(DamagedShardError, match=r"000001\.h5 belongs to another"):
        copied.resid(0)
    other = record(vlm, Items(list(toy_items(10))[::-1]), tmp_path / "other", batch_size=2, max_new_tokens=3, progress=False)
    for suffix in (".h5", ".sha256"):
        shutil.copy(other.path / "shards" / f"000000{suffix}", shards / f"000000{suffix}")
    assert list(copied.faults()) == [0, 1]
    repair(vlm, copied, progress=False)
    assert copied.verify() == 3


def test_files_that_are_no_shards_of_the_run_are_named(copied: Run):
    shutil.copy(copied.path / "shards" / "000000.h5", copied.path / "shards" / "000007.h5")
    with pytest.raises(DamagedShardError, match=r"000007\.h5 is no shard of this run; take it away"):
        copied.verify()
