"""Ranks: several processes, on one machine or many, that record one run by way of its directory alone.

Shard n belongs to rank n modulo the number of ranks, so that nobody needs to talk to anybody: each rank loads the model, writes
its own shards, and waits for the others' files. Rank 0 begins the run; the lowest rank still there ends it.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deixis.activations.disk import SUFFIX
from deixis.activations.errors import LockedRunError, RunError, UnfinishedRunError
from deixis.activations.lock import FAILED, LOCK, Hold, hold_of, locked, refusal
from deixis.activations.settings import VIEW

PATIENCE = "DEIXIS_PATIENCE"
"""Environment variable: seconds that a rank waits for another that has not shown itself; 900 if it is not set."""
_DONE = "done"
_PART = ".rank-{}-of-{}"
_POLL, _BEAT = 0.2, 5.0
_SILENCE = 120.0
"""Seconds without a sign of life after which a rank on another machine is given up: network file systems show news late."""


@dataclass(frozen=True)
class Rank:
    """One of the processes that record a run together."""

    number: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.number < self.of:
            raise ValueError(f"rank {self.number} of {self.of} can't be; ranks count from 0 to {max(0, self.of - 1)}.")

    @property
    def part(self) -> str:
        """What its lock file's name ends with."""
        return _PART.format(self.number, self.of)

    def owns(self, shard: int) -> bool:
        """Whether a shard is this rank's to record."""
        return shard % self.of == self.number


ALONE = Rank(0, 1)


def rank_in(environment: Mapping[str, str]) -> Rank:
    """The rank that the launcher gave this process.

    ``RANK`` and ``WORLD_SIZE`` are what torchrun sets. Slurm's ``SLURM_PROCID`` and ``SLURM_NTASKS`` count only with
    ``DEIXIS_SLURM=1``: they are also set in a batch script that runs one process, which would then wait for others in vain.

    Raises:
        ValueError: One of the two is missing, or they are no whole numbers, or no such rank can be.
    """
    names = ("SLURM_PROCID", "SLURM_NTASKS") if environment.get("DEIXIS_SLURM") == "1" else ("RANK", "WORLD_SIZE")
    found = [environment.get(name) for name in names]
    if found == [None, None] and names[0] == "RANK":
        return ALONE
    try:
        return Rank(*(int(value) for value in found))  # type: ignore[arg-type]  # None is told below
    except (TypeError, ValueError) as error:
        given = " and ".join(f"{name}={value}" for name, value in zip(names, found, strict=True))
        raise ValueError(
            f"{given} in the environment is no rank among several (0 of 2, 1 of 2); unset them, or set them as torchrun does."
        ) from error


@contextmanager
def recording_alone(run: Path) -> Iterator[None]:
    """Hold a whole run; ranks at work on it, and every other process, are refused.

    Raises:
        LockedRunError: Another process, or a rank, is recording into it.
    """
    with locked(run):
        _refuse(run, rank_locks(run))
        yield


class Crew:
    """The ranks that record a run, seen from one of them."""

    def __init__(self, run: Path, rank: Rank) -> None:
        self._run, self._rank = run, rank
        self._started = time.monotonic()
        self._patience = _patience()
        self._first: dict[int, Hold | None] = {}
        self._seen: set[int] = set()
        self._led = False
        self._signs: dict[int, tuple[int, float]] = {}

    @contextmanager
    def at_work(self) -> Iterator["Crew"]:
        """Hold this rank's part of the run.

        Raises:
            LockedRunError: A process that records alone is at work, or ranks of another number, or this rank.
        """
        with ExitStack() as stack:
            self._say = self._taken(stack)
            others = (path for path in rank_locks(self._run) if not path.name.endswith(f"-of-{self._rank.of}"))
            _refuse(self._run, [self._run / LOCK, *others])
            # What the dead of an earlier attempt have left says nothing of those who may be starting now.
            self._first = {peer: self._hold(peer) for peer in self._peers()}
            stack.enter_context(_beating(self._own))
            yield self

    def look(self) -> None:
        """See who is there, so that one who is gone later is known to have been."""
        for peer in self._peers():
            self.state(peer)

    def state(self, peer: int) -> str:
        """``working``, ``done``, ``gone`` (ended, or died), or ``absent`` (nothing has been seen of it yet)."""
        hold = self._hold(peer)
        if hold is None or (hold == self._first.get(peer) and not _surely_held(hold)):
            if hold is not None and not hold.here and self._for_how_long() < _SILENCE:
                return "working"  # on another machine, and may not have had the time to give a sign of life
            return "gone" if peer in self._seen else "absent"
        self._seen.add(peer)
        said = hold.holder.get("state")
        if said == FAILED or not self._lives(peer, hold):
            return "gone"
        return "done" if said == _DONE else "working"

    def wait_for_header(self, ready: Callable[[], Any]) -> Any:
        """Wait until rank 0 has begun the run: until ``ready`` gives something.

        Raises:
            RunError: Rank 0 failed or died before, or showed nothing for as long as one is patient.
        """
        while (found := ready()) is None:
            state = self.state(0)
            if ready() is None and (state == "gone" or (state == "absent" and self._impatient())):
                raise RunError(
                    f"rank 0 of {self._rank.of} {'ended before it began' if state == 'gone' else 'did not begin'} the run at "
                    f"{self._run}; see what it said, and start all ranks again ({PATIENCE} sets how many seconds to wait)."
                )
            time.sleep(_POLL)
        return found

    def wait_for_others(self, missing: Callable[[], list[int]], ended: Callable[[], bool], end: Callable[[], object]) -> None:
        """Wait until every shard is there and the run is ended; the lowest rank that is there ends it.

        Raises:
            UnfinishedRunError: Shards are missing whose ranks are gone.
        """
        self._say(state=_DONE)
        pause = _POLL
        while self._must_wait(missing, ended):
            time.sleep(pause)
            pause = min(2.0, pause * 1.2)
        if not self._led or not ended():
            end()

    def _must_wait(self, missing: Callable[[], list[int]], ended: Callable[[], bool]) -> bool:
        # In this order: who is gone by now has left whatever it recorded.
        states = {peer: self.state(peer) for peer in self._peers()}
        lacking = missing()
        if "working" in states.values():  # it may even find a shard of its own damaged that is there now
            return True
        if not lacking:
            lower = any(states[peer] == _DONE for peer in range(self._rank.number))
            self._led |= lower
            return lower and not ended()
        owners = {number % self._rank.of for number in lacking}
        if any(states.get(peer) == "absent" for peer in owners) and not self._impatient():
            return True
        raise UnfinishedRunError(self._told(lacking, states))

    @property
    def _own(self) -> Path:
        return self._run / f"{LOCK}{self._rank.part}"

    def _taken(self, stack: ExitStack) -> Callable[..., None]:
        """This rank's lock; asked for several times, since others who look at it hold it for an instant."""
        for _ in range(4):
            with suppress(LockedRunError):
                return stack.enter_context(locked(self._run, self._rank.part, kept_after_error=True))
            time.sleep(0.05)
        return stack.enter_context(locked(self._run, self._rank.part, kept_after_error=True))

    def _peers(self) -> Iterator[int]:
        return (number for number in range(self._rank.of) if number != self._rank.number)

    def _hold(self, peer: int) -> Hold | None:
        return hold_of(self._run / f"{LOCK}{_PART.format(peer, self._rank.of)}")

    def _lives(self, peer: int, hold: Hold) -> bool:
        """Whether a rank is at work. On another machine only its signs of life tell, where locks are a machine's own affair."""
        if hold.here or hold.system is True:
            return hold.may_live
        now = time.monotonic()
        last, since = self._signs.get(peer, (None, now))
        if hold.changed != last:
            last, since = self._signs[peer] = (hold.changed, now)
        return now - since < _SILENCE

    def _for_how_long(self) -> float:
        return time.monotonic() - self._started

    def _impatient(self) -> bool:
        return self._for_how_long() > self._patience

    def _told(self, lacking: list[int], states: Mapping[int, str]) -> str:
        ranks = sorted({number % self._rank.of for number in lacking})
        names = ", ".join(f"{number:06d}.h5" for number in lacking[:5])
        who = ", ".join(f"rank {n} ({'never seen' if states.get(n) == 'absent' else 'no longer there'})" for n in ranks[:5])
        return (
            f"{self._run} lacks {len(lacking)} shards ({names}{', ...' if len(lacking) > 5 else ''}) of {who} among "
            f"{self._rank.of}; what is there stays: make the same call again, with ranks or without, and they are recorded."
        )


def _patience() -> float:
    given = os.environ.get(PATIENCE, "900")
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"{PATIENCE}={given} in the environment is no number of seconds; unset it, or give one.") from None


def take_away_stale(run: Path) -> None:
    """Remove what recorders that are gone have left: their lock files, and views half written."""
    for path in (run / LOCK, *rank_locks(run)):
        hold = hold_of(path)
        if hold is not None and not hold.may_live:
            path.unlink(missing_ok=True)
            (run / f"{VIEW}{path.name.removeprefix(LOCK)}{SUFFIX}").unlink(missing_ok=True)


def rank_locks(run: Path) -> list[Path]:
    """The ranks' lock files in a run, whoever holds them."""
    return sorted(run.glob(f"{LOCK}.rank-*"))


def _surely_held(hold: Hold) -> bool:
    return hold.system is True or (hold.here and hold.may_live)


def _refuse(run: Path, locks: Iterable[Path]) -> None:
    for path in locks:
        hold = hold_of(path)
        if hold is not None and hold.may_live:
            raise LockedRunError(refusal(run, path, hold.holder))


@contextmanager
def _beating(path: Path) -> Iterator[None]:
    """Touch a file now and then, from a thread of its own: a sign of life for machines that see nothing else."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(_BEAT):
            with suppress(OSError):
                os.utime(path)

    thread = threading.Thread(target=beat, name="sign of life", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
