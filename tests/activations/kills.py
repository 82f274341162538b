"""Record, be killed, record again: run as a program of its own, since whoever is killed cannot report.

``python -m tests.activations.kills FOLDER N`` leaves ``FOLDER/undisturbed`` and, for each flush and renaming and for N random
moments, a run beside it that was killed just then and afterwards finished.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deixis as dx
from deixis.activations import recording
from tests.toys import toy_items, toy_vlm


def killed_at(operation: int) -> Callable[[], None]:
    """Arrange for this process to be killed just before its n-th flush or renaming."""
    left = operation

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    def arrange() -> None:
        os.fsync = counted(os.fsync)
        Path.replace = counted(Path.replace)  # type: ignore[method-assign]

    return arrange


def in_a_child(job: Callable[[], None], before: Callable[[], None] = lambda: None, kill_after: float | None = None) -> bool:
    """Do ``job`` in a forked process; whether it came to its end."""
    child = os.fork()
    if child == 0:
        before()
        job()
        os._exit(0)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] == 0


def main(folder: Path, n_random: int) -> None:
    recording.SHARD_ITEMS["mean"] = 4
    vlm, items = toy_vlm(), toy_items(6)
    items.fingerprint  # noqa: B018 - draws the pictures once

    def record(name: str) -> Callable[[], None]:
        return lambda: (dx.record(vlm, items, folder / name, batch_size=2, max_new_tokens=3, progress=False), None)[1]

    started = time.perf_counter()
    if not in_a_child(record("undisturbed")):
        raise RuntimeError("the undisturbed run failed")
    whole = time.perf_counter() - started
    operation = 1
    while not in_a_child(record(f"operation-{operation}"), before=killed_at(operation)):
        if not in_a_child(record(f"operation-{operation}")):
            raise RuntimeError(f"resuming after operation {operation} failed")
        operation += 1
    moments, killed, number = random.Random(0), 0, 0
    while killed < n_random:  # one that had ended already was not killed
        ended = in_a_child(record(f"moment-{number}"), kill_after=moments.uniform(0.0, 1.0) * whole)
        killed += not ended
        if not ended and not in_a_child(record(f"moment-{number}")):
            raise RuntimeError(f"resuming after moment {number} failed")
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
