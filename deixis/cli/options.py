"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

FIGURES = (".png", ".svg", ".pdf")


def _table_or_figure(path: Path | None) -> Path | None:
    if path is not None and path.suffix not in (".csv", *FIGURES):
        raise typer.BadParameter(f"{path} must end in .csv, {', '.join(FIGURES[:-1])} or {FIGURES[-1]}.")
    # Asked before the work, not after it.
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"{path.parent} is no folder; make it first, or name another.")
    if path is not None and path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file.")
    return path


RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that 'deixis record' wrote.", show_default=False)]
RunFolders = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folders that 'deixis record' wrote.", show_default=False)
]
Written = Annotated[
    Path | None,
    typer.Option(help="Also write a table (.csv) or a figure (.png, .svg, .pdf).", show_default=False, callback=_table_or_figure),
]
_CHOICE = "For memory-game"
Languages = Annotated[str, typer.Option(help="Codes, separated by commas.", rich_help_panel=_CHOICE)]
Tasks = Annotated[str, typer.Option(help="demonstrative, distance, or both with a comma between.", rich_help_panel=_CHOICE)]
Count = Annotated[
    int | None,
    typer.Option("--n", min=1, help="Scenes drawn at random, not the standard 60.", show_default=False, rich_help_panel=_CHOICE),
]
Seed = Annotated[int, typer.Option(help="Of everything random.", rich_help_panel=_CHOICE)]
Size = Annotated[int, typer.Option(help="Width and height of the pictures in pixels.", rich_help_panel=_CHOICE)]
Workers = Annotated[int, typer.Option(min=1, help="Processes that draw pictures.")]
Reference = Annotated[
    str | None, typer.Option(help="'synthetic', or a CSV file: language,region,term,proportion,n.", show_default=False)
]


def listed(text: str) -> list[str]:
    """The parts of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
