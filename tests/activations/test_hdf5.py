"""Files from strangers are refused before anything of theirs is read, allocated or run; a full disk is an error."""

import multiprocessing
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from deixis.activations import DamagedShardError
from deixis.activations.hdf5 import FORMAT, Sink, new_file
from deixis.activations.shards import Shard

N = 6


def marked(path: Path, fill: Callable[[Any], None]) -> Path:
    """A file with a shard's head and whatever ``fill`` puts into it."""
    with h5py.File(path, "w", libver=FORMAT) as file:
        file.attrs["n_items"] = file.attrs["next_batch_size"] = N
        file.attrs["identity"] = np.bytes_(b"a run 0")
        fill(file)
    return path


def external_link(file: Any) -> None:
    with h5py.File(Path(file.filename).with_name("other.h5"), "w") as other:
        other["x"] = np.ones((N, 2), np.float32)
    file["x"] = h5py.ExternalLink("other.h5", "x")


def soft_link(file: Any) -> None:
    file["real"] = np.ones((N, 2), np.float32)
    file["x"] = h5py.SoftLink("/real")


def virtual(file: Any) -> None:
    layout = h5py.VirtualLayout(shape=(N, 2), dtype="f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(N, 2))
    file.create_virtual_dataset("x", layout)


def external_storage(file: Any) -> None:
    secret = Path(file.filename).with_name("secret")
    secret.write_bytes(b"x" * 48)
    file.create_dataset("x", shape=(N, 2), dtype="f4", external=[(str(secret), 0, 48)])


def huge_shape(file: Any) -> None:
    file.create_dataset("x", shape=(2**40, 2**10), dtype="f4", chunks=(1, 2))


def huge_chunk(file: Any) -> None:
    file.create_dataset("x", shape=(N, 2), maxshape=(None, 2**20), dtype="f4", chunks=(2**9, 2**20))


def compressed(file: Any) -> None:
    file.create_dataset("x", data=np.zeros((N, 2**16), np.float32), compression="gzip")


def words(file: Any) -> None:
    file["x"] = ["this"] * N


def group(file: Any) -> None:
    file.create_group("x")


def empty(file: Any) -> None:
    file["x"] = h5py.Empty("f4")


def compound(file: Any) -> None:
    file["x"] = np.zeros(N, dtype=[("a", "f4"), ("b", "i4")])


def wrong_meaning(file: Any) -> None:
    file["x"] = np.ones((N, 2), np.float32)
    file["x"].attrs["dtype"] = np.bytes_(b"bfloat16")


def text_in_a_heap(file: Any) -> None:
    file["x"] = np.ones((N, 2), np.uint16)
    file["x"].attrs["dtype"] = "bfloat16"


def meaning_in_many_words(file: Any) -> None:
    file["x"] = np.ones((N, 2), np.uint16)
    file["x"].attrs["dtype"] = ["bfloat16"] * 9


HOSTILE = {
    external_link: "holds a link to elsewhere at x",
    soft_link: "holds a link to elsewhere at x",
    virtual: "holds numbers that are kept in another file at x",
    external_storage: "holds numbers that are kept in another file at x",
    huge_shape: "holds a shape larger than the file at x",
    huge_chunk: "holds a shape larger than the file at x",
    compressed: "holds a filter that no recorder uses at x",
    words: "holds no numbers at x",
    group: "holds no numbers at x",
    empty: "holds no numbers at x",
    compound: "holds no numbers at x",
    wrong_meaning: "holds float32 that is said to mean 'bfloat16' at x",
    text_in_a_heap: "holds no plain dtype beside it at x",
    meaning_in_many_words: "holds no plain dtype beside it at x",
}


@pytest.mark.parametrize("fill", HOSTILE, ids=lambda fill: fill.__name__)
def test_what_no_recorder_writes_is_refused_by_name(fill: Callable[[Any], None], tmp_path: Path):
    with Shard(marked(tmp_path / "0.h5", fill)) as shard:
        with pytest.raises(DamagedShardError, match=HOSTILE[fill]):
            shard.array("x")
        with pytest.raises(DamagedShardError):
            shard.array("x/y")


@pytest.mark.parametrize("fill", [external_storage, virtual, huge_shape, wrong_meaning])
def test_a_list_of_contents_is_refused_too(fill: Callable[[Any], None], tmp_path: Path):
    with Shard(marked(tmp_path / "0.h5", fill)) as shard, pytest.raises(DamagedShardError, match="holds"):
        shard.names()


@pytest.mark.parametrize("value", ["six", [6, 6], 6.5, np.zeros(1000)], ids=["a word", "two", "a fraction", "an array"])
def test_a_head_without_a_plain_number_is_refused(value: Any, tmp_path: Path):
    path = marked(tmp_path / "0.h5", lambda file: file.attrs.__setitem__("n_items", value))
    with pytest.raises(DamagedShardError, match=r"n_items .*at its head"):
        Shard(path)


def test_a_shard_of_another_run_or_place_is_refused(tmp_path: Path):
    path = marked(tmp_path / "0.h5", lambda _: None)
    with Shard(path, N, "a run 0"):
        pass
    for n_items, identity in ((N + 1, "a run 0"), (N, "a run 1"), (N, "another 0")):
        with pytest.raises(DamagedShardError, match="belongs to another run or to another place in it"):
            Shard(path, n_items, identity)


class _Full(Sink):
    """A disk with room for so many bytes."""

    def __init__(self, path: Path, room: int) -> None:
        super().__init__(path)
        self._room = room
        real = self._file

        class Limited:
            def write(self, data: Any) -> int:
                if real.tell() + len(data) > room:
                    raise OSError(28, "No space left on device")
                return real.write(data)

            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

        self._file = Limited()  # pyright: ignore[reportAttributeAccessIssue]


def _fill_up(path: str, room: int, monkey: Any) -> None:
    import deixis.activations.hdf5 as module

    module.Sink = lambda at: _Full(at, room)  # type: ignore[assignment,misc]
    try:
        with new_file(Path(path)) as file:
            for number in range(20):
                file.create_dataset(
                    f"d{number}", data=np.random.default_rng(0).random((64, 64)), chunks=(64, 64), fletcher32=True
                )
    except OSError as error:
        monkey.put(str(error))
    else:
        monkey.put("fine")


def test_a_disk_that_fills_up_at_any_byte_is_an_error_and_no_crash(tmp_path: Path):
    """In a process of its own: what went wrong here used to take the process with it."""
    context = multiprocessing.get_context("fork")
    rooms = [0, 40, 100, 2000, *random.Random(0).sample(range(3000, 700_000), 12), 10_000_000]
    said = []
    for room in rooms:
        queue = context.SimpleQueue()
        child = context.Process(target=_fill_up, args=(str(tmp_path / "x.h5"), room, queue))
        child.start()
        child.join(60)
        assert child.exitcode == 0, f"crashed with room for {room} bytes"
        said.append(queue.get())
    assert said[-1] == "fine"
    assert all("No space left on device" in words for words in said[:-1])
