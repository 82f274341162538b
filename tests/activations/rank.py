"""Several ranks that record one run, each a forked process: run as a program of its own, which loads the toy model once.

``python -m tests.activations.rank FOLDER`` leaves runs in ``FOLDER``: ``one`` (recorded by one process), ``two`` (two ranks),
``seven`` (more ranks than shards), ``resumed`` (a rank killed, then both again), ``alone`` (a rank killed, then one process),
``lonely`` and ``late`` (a rank whose peer never comes), and prints how each rank ended. ``python -m tests.activations.rank FOLDER
NAME`` records that run alone, by the rank in its environment: what torchrun starts.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deixis as dx
from deixis.activations import recording
from deixis.activations.ranks import PATIENCE
from deixis.activations.recorder import Recorder
from deixis.activations.shards import shard_path
from tests.toys import toy_items, toy_vlm

N_ITEMS, PER_SHARD = 9, 2


def die_at(batch: int) -> None:
    """Kill this process when it comes to its n-th batch, and the batch before, which is a shard, is on disk."""
    left, before, real = batch, 0, Recorder._recorded

    def recorded(self: Recorder, items: list[Any]) -> Any:
        nonlocal left, before
        left -= 1
        if left == 0:
            while not shard_path(self._run.path, before).exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        before = int(items[0].id.removeprefix("toy/")) // PER_SHARD
        return real(self, items)

    Recorder._recorded = recorded  # type: ignore[method-assign]


def tell(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def forked(job: Callable[[], object]) -> int:
    """The number of a process that does ``job`` and says what became of it."""
    child = os.fork()
    if child == 0:
        try:
            said = f"finished={job()}"
        except Exception as error:  # noqa: BLE001 - told to whoever reads
            said = f"{type(error).__name__}: {error}"
        tell(said)
        os._exit(0)
    return child


def recorded(vlm: dx.VLM, items: dx.Items, path: Path, ranks: tuple[int, int] | str) -> bool:
    return dx.record(vlm, items, path, batch_size=2, max_new_tokens=3, progress=False, ranks=ranks).finished


def main(folder: Path) -> None:
    vlm, items = toy_vlm(), toy_items(N_ITEMS)
    items.fingerprint  # noqa: B018 - draws the pictures once

    def record(name: str, ranks: tuple[int, int], dies: int | None = None) -> Callable[[], bool]:
        def job() -> bool:
            if dies is not None:
                die_at(dies)
            return recorded(vlm, items, folder / name, ranks)

        return job

    def together(name: str, of: int, dies: dict[int, int] | None = None) -> None:
        tell(f"[{name}]")
        ranks = [forked(record(name, (number, of), (dies or {}).get(number))) for number in range(of)]
        for child in ranks:
            os.waitpid(child, 0)

    together("one", 1)
    together("two", 2)
    together("seven", 7)
    for name in ("resumed", "alone"):
        together(name, 2, dies={1: 2})
    together("resumed", 2)
    together("alone", 1)
    os.environ[PATIENCE] = "0.5"
    tell("[lonely]")
    os.waitpid(forked(record("lonely", (0, 2))), 0)
    tell("[late]")
    os.waitpid(forked(record("late", (1, 2))), 0)


if __name__ == "__main__":
    recording.SHARD_ITEMS["mean"] = PER_SHARD
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        recorded(toy_vlm(), toy_items(N_ITEMS), Path(sys.argv[1]) / sys.argv[2], "auto")
