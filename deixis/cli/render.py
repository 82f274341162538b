"""Drawing a benchmark."""

from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.app import app
from deixis.cli.drawing import benchmark_items, draw
from deixis.cli.memory_game import MemoryGameChoice, takes_memory_game
from deixis.cli.options import Condition, Workers, listed
from deixis.console import Outcome, command


@command(app, "render")
@takes_memory_game
def render(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="memory-game.", show_default=False)],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for items and pictures.", show_default=False)],
    condition: Condition = "real",
    workers: Workers = 2,
    *,
    choice: MemoryGameChoice,
) -> Outcome:
    """Draw a benchmark's items and write all that a model sees to DIR."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):  # said before the drawing, not after it
        raise FileExistsError(f"{folder} holds something already; nothing is overwritten, so name a new folder.")
    items = benchmark_items(benchmark, choice, listed(condition))
    draw(items, workers)
    items.save(folder)
    scenes = len({item.groups["scene"] for item in items})
    data = {"folder": str(folder), "items": len(items), "scenes": scenes, "fingerprint": items.fingerprint}
    return Outcome(data, (f"{len(items)} items on {scenes} scenes: {folder}",))
