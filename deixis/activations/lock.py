"""One recorder at a time for a run: a file that names who holds it, and that the system lets go of when its holder dies."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deixis.activations.errors import LockedRunError

LOCK = "lock"
"""Name of the lock file in a run's directory; it goes when its holder is done."""
FAILED = "failed"
"""What a kept lock file says of a holder that an error ended."""


@contextlib.contextmanager
def locked(run: Path, part: str = "", *, kept_after_error: bool = False) -> Iterator[Callable[..., None]]:
    """Hold a run's directory, made if it is not there, or a part of it, so that no second process records into it.

    What it yields adds words to what the file says of its holder. After an error the file goes too, unless it is to be kept; it
    then says so (``state`` is ``failed``), and holds nobody up.

    Two things together decide: the file's content, which names process and host, and an advisory lock of the operating system on
    it, which ends with its holder however that ends. Where the file system has no such locks (some network file systems), a
    holder on this host is asked after by its process number, and one on another host is believed.

    Raises:
        LockedRunError: Another process holds it; the message names its process number and host.
    """
    run.mkdir(parents=True, exist_ok=True)
    path = run / f"{LOCK}{part}"
    handle = _held(run, path)
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S %z")}

    def say(**words: str) -> None:
        holder.update(words)
        _write(handle, holder)

    try:
        say()
        yield say
    except BaseException:
        if kept_after_error:
            say(state=FAILED)
        raise
    finally:
        # Removed while it is still held: a file that is let go of first may be another's by the time it is removed.
        if not kept_after_error or holder.get("state") != FAILED:
            path.unlink(missing_ok=True)
        os.close(handle)


@dataclass(frozen=True)
class Hold:
    """What can be told of a lock that somebody else may hold."""

    system: bool | None
    """Whether the system says that it is held; None where it has no locks."""
    holder: dict[str, Any]
    """What the file says; empty if that can't be read."""
    changed: int
    """When the file was last written or touched, in nanoseconds of its file system's clock: to be compared with itself only."""

    @property
    def here(self) -> bool:
        """Whether the holder is, or was, on this host."""
        return self.holder.get("host") == socket.gethostname()

    @property
    def may_live(self) -> bool:
        """Whether the holder could still be at work, by the rules of :func:`locked`."""
        if self.holder.get("state") == FAILED and self.system is not True:
            return False
        return self.system is True or (self.system is None and bool(self.holder) and _may_live(self.holder))


def hold_of(path: Path) -> Hold | None:
    """Look at a lock file without taking it; None if it is not there."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        free = _system_lock(handle, shared=True)
        system = None if free is None else not free
        return Hold(system=system, holder=_holder(handle) or {}, changed=os.fstat(handle).st_mtime_ns)
    finally:
        os.close(handle)


def _held(run: Path, path: Path) -> int:
    """A handle on the lock file, which is then ours."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        system_lock = _system_lock(handle)
        holder = _holder(handle)
        failed = holder is not None and holder.get("state") == FAILED
        if system_lock is False or (system_lock is None and holder is not None and not failed and _may_live(holder)):
            os.close(handle)
            raise LockedRunError(refusal(run, path, holder or {}))
        if _is_named(handle, path):
            return handle
        os.close(handle)  # its holder removed it after we had opened it: what we hold has no name any more


def _is_named(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _system_lock(handle: int, *, shared: bool = False) -> bool | None:
    """Whether the system gave us the lock, or a share in it to look at; None where it has none to give."""
    try:
        import fcntl
    except ImportError:  # Windows: the file's content decides alone
        return None
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _holder(handle: int) -> dict[str, Any] | None:
    """Who wrote the file; None if nobody did, or was killed while writing."""
    try:
        found = json.loads(os.pread(handle, 4096, 0))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _write(handle: int, holder: dict[str, Any]) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(holder).encode(), 0)
    os.fsync(handle)


def _may_live(holder: dict[str, Any]) -> bool:
    """Whether a holder could still be at work: its process is there, or it is on a host that can't be asked."""
    if holder.get("host") != socket.gethostname() or not isinstance(holder.get("pid"), int):
        return True
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return holder["pid"] != os.getpid()


def refusal(run: Path, path: Path, holder: dict[str, Any]) -> str:
    """Who records into the run, and what to do."""
    who = f"process {holder.get('pid', '(not named)')} on {holder.get('host', '(not named)')}"
    return (
        f"{who} has been recording into {run} since {holder.get('since', 'an unknown time')}; wait for it, or name another path "
        f"(if no such process runs any more, delete {path})."
    )
