"""From the benchmark that a command names to items whose pictures are drawn."""

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deixis.cli.choice import BenchmarkChoice
from deixis.console import note, progress_bar

if TYPE_CHECKING:
    from deixis.benchmarks import Items
    from deixis.benchmarks.images import ImageHandle


def benchmark_items(name: str, choice: BenchmarkChoice, conditions: Sequence[str] = ("real",)) -> "Items":
    """The items of a benchmark, or those saved under a path, in each of the conditions, one after the other.

    Raises:
        ValueError: No such benchmark or condition, or an option that would have no effect.
    """
    if not conditions:
        raise ValueError(f"no condition was named; name one or more of: {', '.join(condition_names())}.")
    items = choice.items(name, conditions)
    parts = [items if each == "real" else items.with_condition(each, seed=choice.seed) for each in conditions]
    return sum(parts[1:], start=parts[0])


def condition_names() -> tuple[str, ...]:
    """Every condition that a command may name."""
    from deixis.benchmarks.conditions import known_conditions

    return ("real", *known_conditions())


def draw(items: "Items", workers: int) -> None:
    """Put the items' pictures into the cache, in processes of their own."""
    from deixis.benchmarks.images import CachedImage

    scenes: dict[str, dict[str, CachedImage]] = {}
    for item in items:
        for image in map(_below, item.images):
            if isinstance(image, CachedImage) and not image.path.exists():
                scenes.setdefault(item.groups.get("scene", item.id), {})[image.key] = image
    missing = [list(images.values()) for images in scenes.values()]
    if missing and workers > 1:
        for _ in _in_processes(_load, missing, workers, "drawing scenes"):
            pass


def write(items: "Items", folder: Path, workers: int) -> str:
    """Draw the items' pictures and write all that a model sees to ``folder``; a later call goes on where this one was stopped.

    Returns:
        The items' fingerprint.
    """
    from deixis.benchmarks.saving import UnfinishedFolder, write_pictures

    unfinished = UnfinishedFolder(items, folder)
    try:
        if unfinished.n_written:
            note(f"going on: {unfinished.n_written} of {unfinished.n_pictures} pictures are there")
        missing = list(unfinished.missing())
        for images, hashes in zip(
            missing,
            _in_processes(partial(write_pictures, place=unfinished.place), missing, workers, "drawing scenes"),
            strict=True,
        ):
            unfinished.note(images, hashes)
        return unfinished.finish()
    finally:
        unfinished.close()


def _in_processes(function: Callable[[list[Any]], Any], parts: list[list[Any]], workers: int, what: str) -> Iterable[Any]:
    """``function`` of each part, in order, in processes of their own, with a bar; a part is a scene, which is costly to build."""
    if workers == 1 or len(parts) < 2:
        yield from progress_bar(map(function, parts), len(parts), what)
        return
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield from progress_bar(pool.map(function, parts), len(parts), what)
    finally:
        pool.shutdown(cancel_futures=True)  # stopped: what is not begun yet is not begun any more


def _below(image: Any) -> Any:
    """The picture that is drawn, below whatever lies over it."""
    while hasattr(image, "source"):
        image = image.source
    return image


def _load(images: "list[ImageHandle]") -> None:
    for image in images:
        image.load()
