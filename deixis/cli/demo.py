"""The demo as a command."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.app import app
from deixis.cli.drawing import draw
from deixis.cli.options import Workers, listed
from deixis.console import Outcome, command, is_watched, note, records, table


@command(app, "demo")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("deixis-demo"),
    models: Annotated[str, typer.Option(help="Models, separated by commas.")] = "pico,pico-collapsed",
    workers: Workers = 2,
) -> Outcome:
    """The main job on the bundled models: where distance is decoded, and whose demonstratives use it."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the demo's models are in the package
    from deixis.analyses.demo import DEMO_COLUMNS, run_demo

    drawing = partial(draw, workers=workers)
    result = run_demo(out, listed(models), draw=drawing, progress=is_watched(), say=note)
    data = {
        "models": records(result.frame),
        "conclusions": dict(result.conclusions),
        "in_words": result.in_words,
        "report": str(result.report),
    }
    shown = (table(result.frame, DEMO_COLUMNS), "", result.in_words, "", f"The whole report: {result.report}")
    return Outcome(data, shown)
