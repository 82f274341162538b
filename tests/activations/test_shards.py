"""A shard gives back every bit, and says so when it cannot."""

import hashlib
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from torch import Tensor

from deixis.activations import DamagedShardError
from deixis.activations.shards import BatchRecord, Shard, ShardWriter, check_shard, checksum_path, from_stored, to_stored
from deixis.hooks import Seen

# Every bfloat16 there is but the NaNs, whose payload is tested apart: all 65,536 patterns of 16 bits.
EVERY_BFLOAT16 = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).reshape(64, 1024)


def batch(values: Tensor, first: int) -> BatchRecord:
    n = len(values)
    return BatchRecord(
        seen={("resid", 0, "answer"): Seen(values=values, counts=torch.ones(n, dtype=torch.long))},
        n_items=n,
        logits=[[float(first + row), 0.5] for row in range(n)],
        whole=[row % 2 == 1 for row in range(n)],
        answers=[f"答え {first + row}" if row else "" for row in range(n)],
    )


def write(path: Path, values: Tensor, sizes: tuple[int, ...]) -> None:
    with ShardWriter(path, sum(sizes)) as writer:
        start = 0
        for size in sizes:
            writer.add(batch(values[start : start + size], start))
            start += size
        writer.finish(next_batch_size=sizes[-1])


def test_every_bfloat16_comes_back_bit_for_bit(tmp_path: Path) -> None:
    write(tmp_path / "0.h5", EVERY_BFLOAT16, (40, 24))
    with h5py.File(tmp_path / "0.h5") as file:
        stored = file["resid/0/answer"]
        assert stored.attrs["dtype"] == b"bfloat16"
        assert torch.equal(torch.from_numpy(stored[()].view(np.int16)), EVERY_BFLOAT16.view(torch.int16))
    with Shard(tmp_path / "0.h5") as shard:
        values = from_stored(*shard.read("resid/0/answer"))
    np.testing.assert_array_equal(values, EVERY_BFLOAT16.float().numpy())


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_other_dtypes_are_stored_as_they_are(dtype: torch.dtype) -> None:
    values = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    stored, kind = to_stored(values)
    assert kind is None
    assert stored.dtype == values.numpy().dtype
    np.testing.assert_array_equal(from_stored(stored, kind), values.float().numpy())


def test_a_shard_knows_its_batches_options_and_answers(tmp_path: Path) -> None:
    write(tmp_path / "0.h5", torch.zeros(7, 3), (4, 2, 1))
    with Shard(tmp_path / "0.h5") as shard:
        assert shard.n_items == 7
        assert shard.next_batch_size == 1
        assert shard.array("batches").tolist() == [0, 4, 6]
        assert shard.array("options/logit").reshape(7, 2)[:, 0].tolist() == list(range(7))
        assert shard.array("options/whole").tolist() == [0, 1, 0, 1, 0, 1, 0]
        text, length = shard.array("answers/utf8").tobytes().decode(), shard.array("answers/length")
    assert text == "答え 1答え 2答え 3答え 5"
    assert length.tolist() == [0, 8, 8, 8, 0, 8, 0]


def test_the_same_batches_give_the_same_bytes(tmp_path: Path) -> None:
    values = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    for name in ("a.h5", "b.h5"):
        write(tmp_path / name, values, (4, 2))
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_an_unfinished_shard_leaves_nothing(tmp_path: Path) -> None:
    with ShardWriter(tmp_path / "0.h5", 4) as writer:
        writer.add(batch(torch.zeros(2, 3), 0))
    assert list(tmp_path.iterdir()) == []


def test_the_checksum_is_one_that_sha256sum_reads(tmp_path: Path) -> None:
    write(tmp_path / "0.h5", torch.zeros(2, 3), (2,))
    digest, name = checksum_path(tmp_path / "0.h5").read_text().split()
    assert (digest, name) == (hashlib.sha256((tmp_path / "0.h5").read_bytes()).hexdigest(), "0.h5")
    check_shard(tmp_path / "0.h5")


def test_changed_values_are_noticed_by_reading_them(tmp_path: Path) -> None:
    path = tmp_path / "0.h5"
    values = torch.randn(8, 64, generator=torch.Generator().manual_seed(0))
    write(path, values, (8,))
    whole = bytearray(path.read_bytes())
    at = whole.index(values[3].numpy().tobytes())
    whole[at] ^= 1
    path.write_bytes(whole)
    with Shard(path) as shard, pytest.raises(DamagedShardError, match=r"0\.h5 is damaged at resid/0/answer .*; delete it"):
        shard.read("resid/0/answer")
    with pytest.raises(DamagedShardError, match=r"0\.h5 does not match its checksum"):
        check_shard(path)


def test_truncated_missing_and_foreign_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "0.h5"
    with pytest.raises(DamagedShardError, match=r"0\.h5 is missing; call dx\.record"):
        Shard(path)
    write(path, torch.zeros(8, 64), (8,))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DamagedShardError, match=r"0\.h5 is damaged or truncated"):
        Shard(path)
    path.write_bytes(b"no HDF5 at all")
    with pytest.raises(DamagedShardError, match=r"0\.h5 is damaged or truncated"):
        Shard(path)
    checksum_path(path).write_text("")
    with pytest.raises(DamagedShardError, match=r"0\.sha256 holds no checksum"):
        check_shard(path)
    checksum_path(path).unlink()
    with pytest.raises(DamagedShardError, match=r"0\.sha256 is missing"):
        check_shard(path)


def test_objects_are_never_loaded(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "0.h5", "w") as file:
        file.attrs["n_items"] = file.attrs["next_batch_size"] = 1
        file.attrs["identity"] = np.bytes_(b"")
        file["words"] = ["this"]
    with Shard(tmp_path / "0.h5") as shard, pytest.raises(DamagedShardError, match="holds no numbers at words"):
        shard.read("words")
