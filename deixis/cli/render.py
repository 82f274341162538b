"""Drawing a benchmark."""

from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.app import app
from deixis.cli.choice import BenchmarkChoice, takes_benchmark
from deixis.cli.drawing import benchmark_items, write
from deixis.cli.options import Condition, Workers, listed
from deixis.console import Outcome, command


@command(app, "render")
@takes_benchmark
def render(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="memory-game, spacenum, or a folder or file of items.", show_default=False)
    ],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for items and pictures.", show_default=False)],
    condition: Condition = "real",
    workers: Workers = 2,
    *,
    choice: BenchmarkChoice,
) -> Outcome:
    """Draw a benchmark's items and write all that a model sees to DIR; the same command goes on where it was stopped."""
    from deixis.benchmarks.saving import check_is_free

    check_is_free(folder)  # said before the items are made, not after it
    items = benchmark_items(benchmark, choice, listed(condition))
    fingerprint = write(items, folder, workers)
    scenes = len({item.groups.get("scene", item.id) for item in items})
    data = {"folder": str(folder), "items": len(items), "scenes": scenes, "fingerprint": fingerprint}
    return Outcome(data, (f"{len(items)} items on {scenes} scenes: {folder}",))
