"""Damage a shard in thousands of ways and read it: a program of its own, since what it looks for would take a test with it.

``python -m tests.activations.fuzz FOLDER CASES SEED`` prints how many were refused and how many gave the right data, and fails on
anything else: wrong data, another error, or memory beyond what the file could need.
"""

import random
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from deixis.activations import DamagedShardError
from deixis.activations.shards import BatchRecord, Shard, ShardWriter
from deixis.hooks import Seen

N = 12
IDENTITY = "0123456789abcdef0123456789abcdef 3"


ROOM = 512 << 20
"""Bytes of address space beyond what is in use that reading small files may ask for."""


@contextmanager
def little_memory(room: int = ROOM) -> Iterator[None]:
    """No more than so much address space beyond what this process has: a larger allocation fails."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def write(path: Path) -> None:
    """A shard with every kind of dataset that there is."""
    generator = torch.Generator().manual_seed(0)
    with ShardWriter(path, N, IDENTITY) as writer:
        for _ in range(3):
            values = torch.randn(4, 24, generator=generator)
            counts = torch.ones(4, dtype=torch.long)
            seen = {
                ("resid", layer, role): Seen(values=values.to(dtype), counts=counts)
                for layer in range(3)
                for role, dtype in (("answer", torch.bfloat16), ("object", torch.float32))
            }
            writer.add(BatchRecord(seen, 4, logits=[[0.5, 1.5]] * 4, whole=[False] * 4, answers=["答え", "", "this", "ano"]))
        writer.finish(4)


def contents(path: Path) -> dict[str, tuple[np.ndarray, str | None]]:
    """All that a reader can ask of a shard."""
    with Shard(path, N, IDENTITY) as shard:
        return {name: shard.read(name) for name in shard.names()} | {"head": (np.array(shard.next_batch_size), None)}


def damaged(data: bytes, chance: random.Random) -> bytes:
    """One of the ways in which files go bad, or are made bad."""
    at, length = chance.randrange(len(data)), chance.choice((1, 1, 1, 2, 4, 8, 64, 512))
    way = chance.randrange(7)
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + data[at + length :]
    if way == 2:
        return data[:at] + bytes(length) + data[at + length :]
    if way == 3:
        return data[:at] + b"\xff" * length + data[at + length :]
    if way == 4:  # another part of the same file
        other = chance.randrange(len(data))
        return data[:at] + data[other : other + length] + data[at + length :]
    if way == 5:
        return data[:at] + data[at : at + length] + data[at:]
    return data[:at] + bytes(byte ^ (1 << chance.randrange(8)) for byte in data[at : at + length]) + data[at + length :]


def same(found: dict[str, tuple[np.ndarray, str | None]], right: dict[str, tuple[np.ndarray, str | None]]) -> bool:
    """Whether all is there, bit for bit."""
    if found.keys() != right.keys():
        return False
    return all(f[1] == r[1] and f[0].dtype == r[0].dtype and f[0].tobytes() == r[0].tobytes() for f, r in _pairs(found, right))


def _pairs(one: dict, other: dict) -> list[tuple[tuple, tuple]]:
    return [(one[name], other[name]) for name in other]


def main(folder: Path, cases: int, seed: int) -> None:
    if not Path("/proc/self/statm").exists():
        return _read_all(folder, cases, seed)
    with little_memory():
        return _read_all(folder, cases, seed)


def _read_all(folder: Path, cases: int, seed: int) -> None:
    chance = random.Random(seed)
    write(folder / "whole.h5")
    data, right = (folder / "whole.h5").read_bytes(), contents(folder / "whole.h5")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = fine = 0
    path = folder / "damaged.h5"
    for case in range(cases):
        path.write_bytes(damaged(data, chance))
        try:
            found = contents(path)
        except DamagedShardError:
            refused += 1
            continue
        if not same(found, right):
            raise SystemExit(f"case {case}: wrong data")
        fine += 1
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    if grown > 100:
        raise SystemExit(f"memory grew by {grown:.0f} MB")
    print(refused, fine)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
