"""Files that are whole or not there, whenever the process is killed."""

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from deixis.activations.errors import DiskError

SUFFIX = ".tmp"
"""Of files that are being written."""


_OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE}


@contextlib.contextmanager
def told_of_the_disk(run: Path) -> Iterator[None]:
    """Say in one sentence that a run's directory can't be written to.

    Raises:
        DiskError: The disk is full, read-only, gone, or not ours to write to.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_THE_DISK or isinstance(error, DiskError):
            raise
        raise DiskError(
            error.errno,
            f"{run} can't be written to ({error.strerror}); free some space, or see to the disk, and make the same call again: "
            "what is finished stays",
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file, or leave the one that was there as it is."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())


@contextlib.contextmanager
def replacing(path: Path, mark: str = "") -> Iterator[Path]:
    """A temporary path beside ``path``; what is written there is flushed to disk and takes its name at the end.

    After an exception the temporary file is removed and ``path`` is as it was. Writers at the same time need different marks.
    """
    temporary = path.with_name(path.name + mark + SUFFIX)
    try:
        yield temporary
        sync_file(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Flush a written file to disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's names to disk, where the system can (Windows cannot open folders)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
