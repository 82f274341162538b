"""However a shard is damaged: it is refused, or the right data comes out."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from deixis.activations import DamagedShardError
from tests.activations.fuzz import contents, same, write

ROOT = Path(__file__).parents[2]


def fuzzed(folder: Path, cases: int, seed: int) -> tuple[int, int]:
    """How many damaged shards were refused, and how many read rightly; in a process that may crash."""
    command = [sys.executable, "-m", "tests.activations.fuzz", str(folder), str(cases), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600, check=False)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    refused, fine = map(int, done.stdout.split())
    return refused, fine


def test_a_damaged_shard_is_refused_or_reads_rightly(tmp_path: Path):
    refused, fine = fuzzed(tmp_path, 600, 0)
    assert refused + fine == 600
    assert refused > 400


@pytest.mark.slow
def test_ten_thousand_damaged_shards_are_refused_or_read_rightly(tmp_path: Path):
    refused, fine = fuzzed(tmp_path, 10_000, 1)
    assert refused + fine == 10_000


def test_damage_that_a_fletcher_sum_does_not_see_is_seen(tmp_path: Path):
    path = tmp_path / "0.h5"
    write(path)
    right = contents(path)
    counts = right["counts/answer"][0]
    data = path.read_bytes()
    at = data.index(counts.tobytes()) + 2
    assert data[at : at + 2] == b"\0\0"
    path.write_bytes(data[:at] + b"\xff\xff" + data[at + 2 :])
    with h5py.File(path) as file:
        assert (file["counts/answer"][()] != counts).sum() == 1
    with pytest.raises(DamagedShardError, match="numbers that do not match their checksum at counts/answer"):
        contents(path)


def test_the_comparison_sees_one_other_bit():
    right = {"x": (np.arange(4, dtype=np.float32), None)}
    assert same({"x": (np.arange(4, dtype=np.float32), None)}, right)
    other = np.arange(4, dtype=np.float32)
    other.view(np.uint32)[2] ^= 1
    assert not same({"x": (other, None)}, right)
    assert not same({}, right)
