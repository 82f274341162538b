"""Runs of many shards: opening reads the header, reading one layer reads that layer."""

import json
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from deixis.activations import Run, open_run, record, shards
from deixis.activations.settings import identity, write_header
from deixis.activations.shards import shard_path
from tests.toys import toy_items, toy_vlm

SHARDS, PER_SHARD, WIDTH, LAYERS = 1000, 10, 64, 16


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of 10,000 items in 1,000 shards: every shard the same numbers, each marked for its own place."""
    folder = tmp_path_factory.mktemp("runs")
    settings = dict(record(toy_vlm(), toy_items(1), folder / "small", max_new_tokens=1, progress=False).settings)
    del settings["schema"]
    settings |= {
        "n_items": SHARDS * PER_SHARD,
        "shard_items": PER_SHARD,
        "roles": ["answer"],
        "layers": {"resid": [*range(LAYERS)]},
    }
    path = folder / "large"
    (path / "shards").mkdir(parents=True)
    (path / "run.json").write_text(write_header(settings))
    pattern = folder / "pattern.h5"
    values = np.arange(PER_SHARD * WIDTH, dtype=np.float32).reshape(PER_SHARD, WIDTH)
    with h5py.File(pattern, "w", libver=("v110", "v110")) as file:
        for layer in range(LAYERS):
            dataset = file.create_dataset(f"resid/{layer}/answer", data=values + layer, chunks=values.shape, fletcher32=True)
            dataset.attrs["crc32"] = np.uint32(zlib.crc32((values + layer).tobytes()))
        file.attrs["n_items"], file.attrs["next_batch_size"] = PER_SHARD, PER_SHARD
        file.attrs["identity"] = np.bytes_(b"")
    for number in range(SHARDS):
        target = shard_path(path, number)
        target.write_bytes(pattern.read_bytes())
        with h5py.File(target, "r+", libver=("v110", "v110")) as file:
            file.attrs["identity"] = np.bytes_(identity(json.loads((path / "run.json").read_text()), number).encode())
    return open_run(path)


@pytest.fixture
def files_opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every shard that is opened."""
    found: list[Path] = []
    real = shards.opened
    monkeypatch.setattr(shards, "opened", lambda path: (found.append(path), real(path))[1])
    return found


def test_opening_a_run_opens_no_shard_and_reading_a_layer_each_once(large: Run, files_opened: list[Path]):
    opened = open_run(large.path)
    assert opened.finished
    assert "10000 items" in repr(opened)
    assert files_opened == []
    opened.resid(2)
    assert files_opened == [shard_path(large.path, number) for number in range(SHARDS)]


def test_a_run_of_a_thousand_shards_opens_at_once(large: Run):
    started = time.process_time()
    opened = open_run(large.path)
    assert opened.finished
    assert opened.n_shards == SHARDS
    assert time.process_time() - started < 1.0


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts bytes as Linux does")
def test_one_layer_of_one_role_reads_that_layers_bytes_only(large: Run):
    def bytes_read() -> int:
        return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])

    large.resid(3)  # whatever is loaded once
    before = bytes_read()
    values = large.resid(5)
    read = bytes_read() - before
    assert values.shape == (SHARDS * PER_SHARD, WIDTH)
    assert float(values[-1, 0]) == (PER_SHARD - 1) * WIDTH + 5
    whole = sum(path.stat().st_size for path in (large.path / "shards").iterdir())
    layer = values.nbytes
    structure = whole - LAYERS * layer
    assert layer < read < layer + structure
    assert read < whole / 4


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak as Linux tells it")
def test_four_thousand_items_need_no_more_memory_than_four_hundred(tmp_path: Path):
    peaks = {}
    for n in (400, 4000):
        program = [sys.executable, "-m", "tests.activations.peak", str(tmp_path / f"{n}"), str(n)]
        here = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(program, env=here, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
        assert done.returncode == 0, done.stderr
        peaks[n] = int(done.stdout)
    assert peaks[4000] < 1.05 * peaks[400], peaks
