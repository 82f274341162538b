"""From the benchmark that a command names to items whose pictures are drawn."""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from deixis.cli.options import listed
from deixis.console import progress_bar

if TYPE_CHECKING:
    from deixis.benchmarks import Items
    from deixis.benchmarks.images import ImageHandle


def benchmark_items(name: str, languages: str, tasks: str, n: int | None, seed: int, size: int) -> "Items":
    """The items of a benchmark, or those saved under a path."""
    from deixis.benchmarks import load_items, memory_game

    if name == "memory-game":
        return memory_game(tasks=listed(tasks), languages=listed(languages), n=n, seed=seed, size=size)
    if Path(name).exists():
        return load_items(name)
    raise ValueError(f"benchmark {name!r} is neither 'memory-game' nor a folder or .jsonl file of saved items.")


def in_conditions(items: "Items", names: Sequence[str]) -> "Items":
    """The items in each of the conditions, one after the other."""
    parts = [items if name == "real" else items.with_condition(name) for name in names]
    if not parts:
        raise ValueError("no condition was named; use real, blank, or real,blank.")
    return sum(parts[1:], start=parts[0])


def draw(items: "Items", workers: int) -> None:
    """Put the items' pictures into the cache, in processes of their own."""
    from deixis.benchmarks.images import DrawnImage, cache_folder

    images = {image.key: image for item in items for image in item.images if isinstance(image, DrawnImage)}
    missing = [image for key, image in images.items() if not (cache_folder() / "images" / f"{key}.png").exists()]
    if not missing or workers == 1:
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for _ in progress_bar(pool.map(_load, missing, chunksize=2), len(missing), "drawing scenes"):
            pass


def _load(image: "ImageHandle") -> None:
    image.load()
