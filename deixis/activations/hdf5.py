"""HDF5 files written so that a full disk is an error and not a crash, and read so that a file from a stranger can do no harm."""

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py

FORMAT = ("v110", "v110")
"""The first HDF5 file format whose structures are all checksummed; h5py 3, MATLAB and Julia read it."""
_FLETCHER32 = 3  # the number that HDF5 gives this filter


class Sink(io.RawIOBase):
    """A file for the HDF5 library to write, which keeps a failed write until it is asked for.

    The library crashes the process if the disk is full while it closes a file. Here it never hears of it: after the first
    failure everything is accepted and nothing written, and :meth:`check` raises what happened.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb+", buffering=0)
        self._failure: OSError | None = None

    def check(self) -> None:
        """Raise what went wrong in writing, if anything did.

        Raises:
            OSError: As the system gave it, such as ``No space left on device``.
        """
        if self._failure is not None:
            raise self._failure

    def write(self, data: Any) -> int:
        """Write all of ``data``, or note why not."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        while self._failure is None and len(rest):
            try:
                rest = rest[self._file.write(rest) :]
            except OSError as error:
                self._failure = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Cut or grow the file."""
        try:
            return self._file.truncate(size)
        except OSError as error:
            self._failure = self._failure or error
            return size or 0

    def readinto(self, buffer: Any) -> int | None:
        """Fill ``buffer`` from the file."""
        return self._file.readinto(buffer)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a place in the file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The place in the file."""
        return self._file.tell()

    def close(self) -> None:
        """Close the file; what failed before can still be asked for."""
        self._file.close()
        super().close()

    def readable(self) -> bool:
        """Always."""
        return True

    def writable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Any]:
    """An HDF5 file to fill.

    Raises:
        OSError: The disk is full, or can't be written to for another reason.
    """
    sink = Sink(path)
    try:
        with h5py.File(sink, "w", libver=FORMAT) as file:
            yield file
    finally:
        sink.close()
        sink.check()


def opened(path: Path) -> Any:
    """An HDF5 file to read, without the library's own lock: finished files never change, and some file systems have none."""
    return h5py.File(path, "r", locking=False)


def plain_dataset(file: Any, name: str) -> h5py.Dataset:
    """A dataset of numbers that lie in this file, as many of them as the file has room for.

    Nothing is read or allocated before that is clear: links to other files, data kept elsewhere, filters that could make much of
    little (or that load code), and shapes that are larger than the file are refused.

    Raises:
        KeyError: There is nothing of this name.
        UnsafeError: It is something else.
    """
    place = file
    for part in name.split("/"):
        if not isinstance(place, h5py.Group):
            raise UnsafeError("a dataset where a group should be")
        link = place.get(part, getlink=True)
        if link is not None and not isinstance(link, h5py.HardLink):
            raise UnsafeError("a link to elsewhere")
        place = place[part]
    if not isinstance(place, h5py.Dataset) or place.dtype.kind not in "fiu" or place.shape is None:
        raise UnsafeError("no numbers")
    made = place.id.get_create_plist()
    if place.is_virtual or made.get_external_count():
        raise UnsafeError("numbers that are kept in another file")
    if any(made.get_filter(index)[0] != _FLETCHER32 for index in range(made.get_nfilters())):
        raise UnsafeError("a filter that no recorder uses")
    # Nothing is compressed, so neither the whole nor one chunk of it can be larger than the file.
    chunk = place.dtype.itemsize
    for length in place.chunks or ():
        chunk *= length
    if max(place.nbytes, chunk) > file.id.get_filesize():
        raise UnsafeError("a shape larger than the file")
    return place


def plain_attribute(place: Any, name: str) -> int | str | None:
    """One number or one short text that stands beside a file, group or dataset; None if there is none of this name.

    Texts have a fixed length: HDF5 keeps others in a heap, the one structure of its that has no checksum.

    Raises:
        UnsafeError: It is something else.
    """
    if name not in place.attrs:
        return None
    made = place.attrs.get_id(name)
    if made.dtype.kind not in "iuS" or made.get_space().get_simple_extent_npoints() != 1:
        raise UnsafeError(f"no plain {name} beside it")
    found = place.attrs[name]
    return found.decode() if isinstance(found, bytes) else int(found)


class UnsafeError(ValueError):
    """Something in an HDF5 file that no recorder writes."""
