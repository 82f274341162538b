"""The demo as a command."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deixis.cli.app import app
from deixis.cli.drawing import draw
from deixis.cli.options import Workers, listed
from deixis.console import Outcome, command, is_watched, note, records, table

if TYPE_CHECKING:
    import pandas as pd

BENCHMARKS = ("memory-game", "spacenum")


def _known(benchmark: str) -> str:
    if benchmark not in BENCHMARKS:
        raise typer.BadParameter(f"{benchmark!r} is not one of: {', '.join(map(repr, BENCHMARKS))}.")
    return benchmark


@command(app, "demo")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("deixis-demo"),
    benchmark: Annotated[str, typer.Option(help="memory-game or spacenum.", callback=_known)] = "memory-game",
    models: Annotated[
        str | None, typer.Option(help="Models, separated by commas; the bundled ones by default.", show_default=False)
    ] = None,
    workers: Workers = 2,
) -> Outcome:
    """The main job on the bundled models: where space is decoded, and whose answers use it."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the demo's models are in the package
    shown = _memory_game if benchmark == "memory-game" else _spacenum
    return shown(out, None if models is None else listed(models), workers)


def _memory_game(out: Path, models: list[str] | None, workers: int) -> Outcome:
    from deixis.analyses.demo import DEMO_COLUMNS, DEMO_MODELS, run_demo

    drawing = partial(draw, workers=workers)
    result = run_demo(out, DEMO_MODELS if models is None else models, draw=drawing, progress=is_watched(), say=note)
    data = {
        "models": records(result.frame),
        "conclusions": dict(result.conclusions),
        "in_words": result.in_words,
        "report": str(result.report),
    }
    shown = (table(result.frame, DEMO_COLUMNS), "", result.in_words, "", f"The whole report: {result.report}")
    return Outcome(data, shown)


def _spacenum(out: Path, models: list[str] | None, workers: int) -> Outcome:
    from deixis.analyses.demo_spacenum import COLUMNS, SPACENUM_MODELS, run_spacenum_demo

    drawing = partial(draw, workers=workers)
    names = SPACENUM_MODELS if models is None else models
    result = run_spacenum_demo(out, names, draw=drawing, progress=is_watched(), say=note)
    headings = COLUMNS if len(result.runs) == 1 else {"model": "model"} | COLUMNS
    data = {"scores": records(result.frame), "in_words": result.in_words, "report": str(result.report)}
    shown = (table(_rounded(result.frame), headings), "", result.in_words, "", f"The whole report: {result.report}")
    return Outcome(data, shown)


def _rounded(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Percentages of some dozens of items have no decimals to show."""
    names = {"num2space": "number to picture", "space2num": "pictures to number"}
    whole = {name: [f"{value:.0f}" for value in frame[name]] for name in ("right", "chance", "majority")}
    return frame.assign(direction=frame["direction"].replace(names), **whole)
