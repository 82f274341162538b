"""Shards are written by a thread of their own while the model runs the next batch."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue

from deixis.activations.shards import BatchRecord, ShardWriter

IN_MEMORY = 2
"""Batches at a time: one that the model works on, and one that is being written."""


class BackgroundWriter:
    """Writes shards one after the other, in the order in which they are handed over.

    For the time of a ``with`` block. On leaving it without an error, all that was finished is on disk; after one, a shard that
    was not finished leaves nothing, and those that were are there. What goes wrong with the disk is raised by the next call, or
    on leaving.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._room = threading.Semaphore(IN_MEMORY)
        self._failure: BaseException | None = None
        self._shard: ShardWriter | None = None
        self._thread = threading.Thread(target=self._work, name="shard writer", daemon=True)

    def __enter__(self) -> "BackgroundWriter":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._jobs.put(None)
        self._thread.join()
        if kind is None:
            self._check()

    def wait_for_room(self) -> None:
        """Wait until another batch may be in memory; call it before the batch is made.

        Raises:
            OSError: An earlier batch could not be written.
        """
        self._room.acquire()
        if self._failure is not None:
            self.give_room_back()
        self._check()

    def give_room_back(self) -> None:
        """Say that the batch that room was waited for does not come."""
        self._room.release()

    def begin(self, path: Path, n_items: int, identity: str, order: Sequence[int]) -> None:
        """Begin a shard; see :class:`~deixis.activations.shards.ShardWriter`."""

        def job() -> None:
            if self._failure is None:
                self._shard = ShardWriter(path, n_items, identity, order)

        self._jobs.put(job)

    def add(self, batch: BatchRecord) -> None:
        """Append a batch to the shard, in room that was waited for."""
        held = [batch]  # let go of as soon as it is written, not when the thread has found something else to do

        def job() -> None:
            try:
                if self._shard is not None:
                    self._shard.add(held.pop())
            finally:
                held.clear()
                self._room.release()

        self._jobs.put(job)

    def finish(self, next_batch_size: int) -> None:
        """Finish the shard; see :meth:`~deixis.activations.shards.ShardWriter.finish`.

        Raises:
            OSError: An earlier batch could not be written.
        """

        def job() -> None:
            if self._shard is not None:
                self._shard.finish(next_batch_size)
                self._close()

        self._jobs.put(job)
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _close(self) -> None:
        shard, self._shard = self._shard, None
        if shard is not None:
            shard.__exit__(None, None, None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()  # after a failure it only lets go of what it holds
            except BaseException as error:  # noqa: BLE001 - raised in the thread that records
                self._failure = self._failure or error
                self._abandon()
            del job
        self._abandon()

    def _abandon(self) -> None:
        """Take away what there is of a shard that was not finished."""
        try:
            self._close()
        except OSError as error:
            self._failure = self._failure or error
