"""``run.h5``: all shards as one file, for other tools. deixis itself reads the shards, where a missing one is an error."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from deixis.activations.disk import replacing
from deixis.activations.hdf5 import new_file
from deixis.activations.settings import VIEW
from deixis.activations.shards import BFLOAT16_NAN, OF_THE_SHARD, Shard, shard_path
from deixis.benchmarks import Items


def write_view(run: Path, shards: int, items: Items, mark: str = "") -> Path:
    """Write the virtual view over a run's shards; it holds their relative paths, so the run's directory can be moved.

    Each dataset of the shards is joined along its first axis. ``item`` holds the ids as fixed-length UTF-8. Where a shard is
    missing, other tools see NaN (0x7FC0 where the bits are bfloat16's; 0 in counts). ``mark`` keeps the temporary file of one
    writer from being another's.
    """
    tables: list[dict[str, Any]] = []
    for number in range(shards):
        with Shard(shard_path(run, number)) as shard:
            tables.append(shard.names())
    path = run / VIEW
    with replacing(path, mark) as temporary, new_file(temporary) as file:
        ids = [item.id.encode() for item in items]
        file.create_dataset("item", data=np.array(ids, dtype=h5py.string_dtype("utf-8", max(map(len, ids)))))
        for name in tables[0]:
            if name not in OF_THE_SHARD:
                _join(file, name, tables)
    return path


def _join(file: Any, name: str, tables: list[dict[str, Any]]) -> None:
    shape, dtype, kind = tables[0][name]
    lengths = [table[name][0][0] for table in tables]
    layout = h5py.VirtualLayout(shape=(sum(lengths), *shape[1:]), dtype=dtype)
    start = 0
    for number, length in enumerate(lengths):
        if length:
            source = h5py.VirtualSource(shard_path(Path(), number).as_posix(), name, shape=(length, *shape[1:]), dtype=dtype)
            layout[start : start + length] = source
        start += length
    dataset = file.create_virtual_dataset(name, layout, fillvalue=_fill(dtype, kind))
    if kind is not None:
        dataset.attrs["dtype"] = kind


def _fill(dtype: np.dtype, kind: str | None) -> float | int:
    if kind == "bfloat16":
        return BFLOAT16_NAN
    return float("nan") if dtype.kind == "f" else 0
