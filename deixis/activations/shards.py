"""Shards: HDF5 files of a few dozen items each, written batch by batch, whole or not there.

A shard holds, one dataset each, ``<site>/<layer>/<role>`` (rows in item order), ``counts/<role>`` (tokens of each item;
``counts/<site>/<role>`` its rows in the vision tower), ``ran/<site>/<layer>`` (0 for items whose pass leaves that layer out; only
for models that have such layers),
``options/logit``, ``options/count``, ``options/whole`` (item by item), ``answers/utf8``, ``answers/length`` (bytes of each
item's answer), ``batches`` (where each batch begins among the shard's items as they ran), ``order`` (the items as they ran, by
their number within the shard; only where that is not their own order), and the attention as
:mod:`deixis.activations.attention` says. bfloat16, which HDF5 does not have, is
kept as its bits in uint16 with the attribute ``dtype``. Beside each shard lies its SHA-256 in the format of ``sha256sum``.
Reading a damaged part fails: the file format's own structures are checksummed, chunks carry Fletcher-32 sums for other tools, and
each dataset a CRC-32 of its own, since a Fletcher sum takes 0x0000 and 0xFFFF for the same.
"""

import contextlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from deixis.activations.disk import SUFFIX, replacing, sha256_of, write_text
from deixis.activations.errors import DamagedShardError
from deixis.activations.hdf5 import FORMAT, Sink, UnsafeError, opened, plain_attribute, plain_dataset
from deixis.hooks import SITES, Seen

CHUNK_BYTES = 512 * 1024
OF_THE_SHARD = frozenset({"batches", "order"})
"""Datasets that number things within their shard."""
PER_IMAGE_TOKEN = frozenset(
    {
        *(f"image_tokens/{name}" for name in ("box", "picture", "object")),
        *(f"peaks/{name}" for name in ("phi", "dim", "vision_phi")),
        "attention/maps",
        "vision_attention/maps",
    }
)
"""Datasets of the attention with a row for each image token; the others have one for each item."""
BFLOAT16_NAN = 0x7FC0
_CRC32 = "crc32"
"""Attribute of each dataset: the CRC-32 of its bytes, in order."""


@dataclass(frozen=True)
class BatchRecord:
    """Everything recorded of one batch."""

    seen: Mapping[tuple[str, int, str], Seen]
    n_items: int
    logits: Sequence[Sequence[float]] | None = None
    """Of each item's options; None where they are not kept."""
    whole: Sequence[bool] = ()
    """Whether the item's options were scored as whole strings."""
    answers: Sequence[str] | None = None
    pooled: bool = True
    """Whether activations have a row for each item; else one for each token."""
    may_skip: bool = False
    """Whether the model has layers that some items pass by."""
    attention: Mapping[str, np.ndarray] = field(default_factory=dict)
    """By name of the dataset; see :mod:`deixis.activations.attention`."""


def dataset_name(site: str, layer: int, role: str) -> str:
    """Where a shard keeps one site, layer and role."""
    return f"{site}/{layer}/{role}"


def counts_name(site: str, role: str) -> str:
    """Where a shard keeps how many tokens, or rows of the vision tower, each item has of a role."""
    return f"counts/{site}/{role}" if SITES[site].vision else f"counts/{role}"


def ran_name(site: str, layer: int) -> str:
    """Where a shard keeps which items a layer ran for."""
    return f"ran/{site}/{layer}"


def shard_path(run: Path, number: int) -> Path:
    """The file of shard ``number``."""
    return run / "shards" / f"{number:06d}.h5"


def checksum_path(shard: Path) -> Path:
    """The file beside ``shard`` that holds its SHA-256."""
    return shard.with_suffix(".sha256")


class ShardWriter:
    """Writes one shard of ``n_items`` batch by batch; until :meth:`finish` there is only a temporary file.

    Args:
        path: Where it is to be.
        n_items: How many items it will hold.
        identity: Which run it belongs to, and which place in it.
        order: The items in the order in which the batches bring them, by their number within the shard; None for their own. The
            finished shard has them in their own order.
    """

    def __init__(self, path: Path, n_items: int, identity: str = "", order: Sequence[int] | None = None) -> None:
        self._path = path
        self._n_items = n_items
        self._identity = identity
        self._temporary = path.with_name(path.name + SUFFIX)
        self._sink = Sink(self._temporary)
        self._file: Any = h5py.File(self._sink, "w", libver=FORMAT)
        self._sizes: list[int] = []
        self._open: dict[str, h5py.Dataset] = {}
        self._sums: dict[str, int] = {}
        self._order = None if order is None or list(order) == list(range(n_items)) else np.array(order, np.int32)
        self._lengths: dict[str, list[np.ndarray]] = {}

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()
        self._sink.close()
        self._temporary.unlink(missing_ok=True)

    def add(self, batch: BatchRecord) -> None:
        """Append one batch.

        Raises:
            OSError: The disk is full, or can't be written to for another reason.
        """
        with self._told():
            self._add(batch)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Say what went wrong with the disk, and not what HDF5 made of it."""
        try:
            yield
        finally:  # instead of any error of the library's
            self._sink.check()

    def _add(self, batch: BatchRecord) -> None:
        self._sizes.append(batch.n_items)
        for (site, layer, role), seen in batch.seen.items():
            values, kind = to_stored(seen.values)
            self._append(dataset_name(site, layer, role), values, kind, None if batch.pooled else seen.counts.numpy())
        for name, counts in {counts_name(site, role): seen.counts for (site, _, role), seen in batch.seen.items()}.items():
            self._append(name, counts.numpy().astype(np.int32))
        ran = {(site, layer): seen.ran for (site, layer, _), seen in batch.seen.items() if not SITES[site].vision}
        for name, did in ((ran_name(*point), did) for point, did in ran.items() if batch.may_skip):
            self._append(name, np.full(batch.n_items, did, np.uint8))
        if batch.logits is not None:
            counts = np.array([len(item) for item in batch.logits], np.int32)
            self._append("options/logit", np.array([x for item in batch.logits for x in item], np.float32), lengths=counts)
            self._append("options/count", counts)
            self._append("options/whole", np.array(batch.whole, np.uint8))
        if batch.answers is not None:
            texts = [answer.encode() for answer in batch.answers]
            counts = np.array([len(text) for text in texts], np.int32)
            self._append("answers/utf8", np.frombuffer(b"".join(texts), np.uint8), lengths=counts)
            self._append("answers/length", counts)
        for name, values in batch.attention.items():
            self._append(name, values, lengths=batch.attention["image_tokens/count"] if name in PER_IMAGE_TOKEN else None)

    def finish(self, next_batch_size: int) -> None:
        """Close the file, flush it, note its checksum and give it its name.

        Args:
            next_batch_size: The batch size in force at the end; a resumed run starts the next shard with it.
        """
        with self._told():
            starts = np.cumsum([0, *self._sizes[:-1]])
            if self._order is not None:
                for name in self._open:
                    self._sort(name, np.argsort(self._order))
                self._append("order", self._order, one_each=False)
            self._append("batches", starts.astype(np.int32), one_each=False)
            for name, total in self._sums.items():
                self._open[name].attrs[_CRC32] = np.uint32(total)
            self._file.attrs["n_items"] = sum(self._sizes)
            self._file.attrs["next_batch_size"] = next_batch_size
            self._file.attrs["identity"] = np.bytes_(self._identity.encode())
            self._file.close()
        self._sink.close()
        with replacing(self._path) as temporary:
            # The checksum is there before the shard takes its name: no kill can leave a shard without one.
            write_text(checksum_path(self._path), f"{sha256_of(temporary)}  {self._path.name}\n")

    def _append(
        self,
        name: str,
        values: np.ndarray,
        kind: str | None = None,
        lengths: Int[np.ndarray, " item"] | None = None,
        *,
        one_each: bool = True,
    ) -> None:
        """Add rows to a dataset: ``lengths`` of them for each item of the batch, or one."""
        if self._order is not None and one_each:
            of_each = np.ones(self._sizes[-1], np.int64) if lengths is None else lengths
            if of_each.sum() != len(values):
                raise ValueError(f"{name} has {len(values)} rows where its items have {of_each.sum()}.")
            self._lengths.setdefault(name, []).append(of_each)
        if name not in self._open:
            self._open[name] = self._created(name, values, kind)
        dataset = self._open[name]
        before = dataset.shape[0]
        dataset.resize(before + len(values), axis=0)
        dataset[before:] = values
        self._sums[name] = zlib.crc32(np.ascontiguousarray(values).data, self._sums.get(name, 0))

    def _sort(self, name: str, places: Int[np.ndarray, " item"]) -> None:
        """Put a dataset's rows in the order of the items, each of which lies at its place among those that ran."""
        dataset = self._open[name]
        bounds = offsets_of(np.concatenate(self._lengths[name])).tolist()
        rows = np.concatenate([np.arange(bounds[place], bounds[place + 1]) for place in places.tolist()])
        values = dataset[()][rows]
        dataset[()] = values
        self._sums[name] = zlib.crc32(np.ascontiguousarray(values).data)

    def _created(self, name: str, values: np.ndarray, kind: str | None) -> h5py.Dataset:
        width = values.shape[1:]
        row_bytes = values.dtype.itemsize * int(np.prod(width))
        # One chunk where that is small, judged by the first batch: fewer reads, and no space for rows that never come.
        expected = max(self._n_items, -(-len(values) * self._n_items // self._sizes[0]))
        chunk = (max(1, min(expected, CHUNK_BYTES // max(1, row_bytes))), *width)
        dataset = self._file.create_dataset(
            name, shape=(0, *width), maxshape=(None, *width), dtype=values.dtype, chunks=chunk, fletcher32=True
        )
        if kind is not None:
            dataset.attrs["dtype"] = np.bytes_(kind.encode())
        return dataset


class Shard:
    """One finished shard, open for reading.

    Args:
        path: The file.
        n_items: How many items it must hold, where that is known.
        identity: What it must say of the run that it belongs to, where that is known.

    Raises:
        DamagedShardError: The file is missing, no whole HDF5 file, or another run's.
    """

    def __init__(self, path: Path, n_items: int | None = None, identity: str | None = None) -> None:
        self.path = path
        try:
            self._file: Any = opened(path)
        except FileNotFoundError:
            raise DamagedShardError(f"{path} is missing; {_RECORD}") from None
        except OSError as error:
            raise DamagedShardError(f"{path} is damaged or truncated ({error}); {_WAY_OUT}") from error
        try:
            with self._damage("its head"):
                self.n_items: int = self._mark("n_items", int)
                self.next_batch_size: int = self._mark("next_batch_size", int)
                found: str = self._mark("identity", str)
            if n_items not in (None, self.n_items) or identity not in (None, found):
                raise DamagedShardError(f"{path} belongs to another run or to another place in it; {_WAY_OUT}")
        except DamagedShardError:
            self._file.close()
            raise

    def __enter__(self) -> "Shard":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def passed_by(self, site: str, layer: int) -> int:
        """How many items a layer did not run for."""
        name = ran_name(site, layer)
        with self._damage("its list of contents"):
            noted = name in self._file
        return int((self.array(name) == 0).sum()) if noted else 0

    def array(self, name: str) -> np.ndarray:
        """One dataset as it is stored; only its bytes are read.

        Raises:
            DamagedShardError: The dataset is not there, or its bytes do not match their checksum.
        """
        return self.read(name)[0]

    def read(self, name: str) -> tuple[np.ndarray, str | None]:
        """One dataset as it is stored, and the dtype that its bits mean where HDF5 has none for it.

        Raises:
            DamagedShardError: The dataset is not there, or its bytes do not match their checksum.
        """
        with self._damage(name):
            dataset = plain_dataset(self._file, name)
            kind, values = _meant(dataset), dataset[()]
            if zlib.crc32(np.ascontiguousarray(values).data) != plain_attribute(dataset, _CRC32):
                raise UnsafeError("numbers that do not match their checksum")
            return values, kind

    def names(self) -> dict[str, tuple[tuple[int, ...], np.dtype, str | None]]:
        """Shape, stored dtype and meant dtype of every dataset."""
        found: dict[str, tuple[tuple[int, ...], np.dtype, str | None]] = {}

        def note(name: str, node: Any) -> None:
            if isinstance(node, h5py.Dataset):
                dataset = plain_dataset(self._file, name)
                found[name] = (dataset.shape, dataset.dtype, _meant(dataset))

        with self._damage("its list of contents"):
            self._file.visititems(note)
        return found

    def _mark(self, name: str, kind: type) -> Any:
        found = plain_attribute(self._file, name)
        if not isinstance(found, kind):
            raise UnsafeError(f"no {name}")
        return found

    @contextlib.contextmanager
    def _damage(self, where: str) -> Iterator[None]:
        """Whatever the library stumbles over is damage."""
        try:
            yield
        except UnsafeError as error:
            raise DamagedShardError(f"{self.path} holds {error} at {where}; {_WAY_OUT}") from error
        except (OSError, LookupError, RuntimeError, ValueError, TypeError, OverflowError, MemoryError) as error:
            raise DamagedShardError(f"{self.path} is damaged at {where} ({error}); {_WAY_OUT}") from error


def _meant(dataset: h5py.Dataset) -> str | None:
    kind = plain_attribute(dataset, "dtype")
    if kind is None:
        return None
    if kind != "bfloat16" or dataset.dtype != np.uint16:
        raise UnsafeError(f"{dataset.dtype} that is said to mean {kind!r}")
    return "bfloat16"


_RECORD = "call dx.record with the same arguments again, which records its items."
_WAY_OUT = f"delete it and {_RECORD}"


def check_shard(path: Path, n_items: int | None = None, identity: str | None = None) -> None:
    """Compare a shard's bytes with its checksum, and what it says of itself with what it should say.

    Raises:
        DamagedShardError: Shard or checksum is missing, they do not match, or the shard is another run's.
    """
    try:
        expected = checksum_path(path).read_text("ascii").split()[0]
        found = sha256_of(path)
    except FileNotFoundError as error:
        raise DamagedShardError(f"{error.filename} is missing; {_RECORD}") from None
    except (IndexError, UnicodeDecodeError):
        raise DamagedShardError(f"{checksum_path(path)} holds no checksum; {_WAY_OUT}") from None
    if found != expected:
        raise DamagedShardError(f"{path} does not match its checksum, so it is damaged or truncated; {_WAY_OUT}")
    with Shard(path, n_items, identity):
        pass


def to_stored(values: Float[Tensor, "row width"]) -> tuple[np.ndarray, str | None]:
    """Values as numpy holds them, and the name of their dtype where numpy has none."""
    if values.dtype == torch.bfloat16:
        return values.contiguous().view(torch.uint16).numpy(), "bfloat16"
    return values.numpy(), None


def from_stored(stored: np.ndarray, kind: str | None) -> Float[np.ndarray, "row width"]:
    """Stored values as float32."""
    if kind == "bfloat16":  # the upper half of a float32's bits
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32, copy=False)


def offsets_of(counts: Int[np.ndarray, " item"]) -> Int[np.ndarray, " boundary"]:
    """Where each item's tokens begin in values laid end to end; one entry more than items."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
