"""From the benchmark that a command names to items whose pictures are drawn."""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from deixis.cli.memory_game import MemoryGameChoice
from deixis.console import progress_bar

if TYPE_CHECKING:
    from deixis.benchmarks import Items
    from deixis.benchmarks.images import ImageHandle


def benchmark_items(name: str, choice: MemoryGameChoice, conditions: Sequence[str] = ("real",)) -> "Items":
    """The items of a benchmark, or those saved under a path, in each of the conditions, one after the other.

    Raises:
        ValueError: No such benchmark or condition, or an option that would have no effect.
    """
    from deixis.benchmarks import load_items

    if not conditions:
        raise ValueError(f"no condition was named; name one or more of: {', '.join(condition_names())}.")
    if name == "memory-game":
        items = choice.items()
    elif Path(name).exists():
        # Who shows whom in shuffled pictures is random, whoever wrote the items.
        choice.refuse_for(name, used=("seed",) if any("shuffled" in each for each in conditions) else ())
        items = load_items(name)
    else:
        raise ValueError(f"benchmark {name!r} is neither 'memory-game' nor a folder or .jsonl file of saved items.")
    seed = 0 if choice.seed is None else choice.seed
    parts = [items if each == "real" else items.with_condition(each, seed=seed) for each in conditions]
    return sum(parts[1:], start=parts[0])


def condition_names() -> tuple[str, ...]:
    """Every condition that a command may name."""
    from deixis.benchmarks.conditions import known_conditions

    return ("real", *known_conditions())


def draw(items: "Items", workers: int) -> None:
    """Put the items' pictures into the cache, in processes of their own."""
    from deixis.benchmarks.images import DrawnImage, cache_folder

    sources = [getattr(image, "source", image) for item in items for image in item.images]
    images = {image.key: image for image in sources if isinstance(image, DrawnImage)}
    missing = [image for key, image in images.items() if not (cache_folder() / "images" / f"{key}.png").exists()]
    if not missing or workers == 1:
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for _ in progress_bar(pool.map(_load, missing, chunksize=2), len(missing), "drawing scenes"):
            pass


def _load(image: "ImageHandle") -> None:
    image.load()
