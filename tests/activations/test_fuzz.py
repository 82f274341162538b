"""However a shard is damaged: it is refused, or the right data comes out."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deixis.activations import DamagedShardError
from tests.activations.fuzz import contents, little_memory, same, write

ROOT = Path(__file__).parents[2]


def fuzzed(folder: Path, cases: int, seed: int) -> tuple[int, int]:
    """How many damaged shards were refused, and how many read rightly; in a process that may crash."""
    command = [sys.executable, "-m", "tests.activations.fuzz", str(folder), str(cases), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=max(600, cases), check=False)
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


def edited(data: bytes, edits: list[tuple[float, bytes]]) -> bytes:
    """Bytes written over others, each at a place between 0 and 1."""
    found = bytearray(data)
    for place, new in edits:
        at = int(place * (len(found) - 1))
        found[at : at + len(new)] = new
    return bytes(found)


@pytest.mark.parametrize("examples", [60, pytest.param(3000, marks=pytest.mark.slow)])
def test_any_bytes_in_any_places_are_refused_or_read_rightly(tmp_path: Path, examples: int):
    write(tmp_path / "whole.h5")
    data, right, path = (tmp_path / "whole.h5").read_bytes(), contents(tmp_path / "whole.h5"), tmp_path / "edited.h5"
    refused: list[bool] = []

    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(edits=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=64)), min_size=1, max_size=3))
    def read(edits: list[tuple[float, bytes]]) -> None:
        path.write_bytes(edited(data, edits))
        try:
            found = contents(path)
        except DamagedShardError:
            refused.append(True)
            return
        refused.append(False)
        assert same(found, right)

    with little_memory():
        read()
    assert sum(refused) > examples / 3


def test_the_memory_limit_is_one():
    with little_memory(), pytest.raises(MemoryError):
        bytearray(2 << 30)
    assert len(bytearray(2 << 20)) == 2 << 20


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
