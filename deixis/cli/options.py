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
Workers = Annotated[int, typer.Option(min=1, help="Processes that draw pictures.")]
Condition = Annotated[
    str,
    typer.Option(
        help="What is done to the pictures, separated by commas: real, blank, black, text_only, shuffled, decoloured, blender; "
        "for spacenum also visual_anchors, fewer_objects, as_points, as_boxes_2d, as_boxes_3d, numbers_as_integers, "
        "numbers_as_words, rotational_equivalent, think, no_think; or several joined, as in shuffled+decoloured."
    ),
]
Reference = Annotated[
    str | None, typer.Option(help="'synthetic', or a CSV file: language,region,term,proportion,n.", show_default=False)
]


def listed(text: str) -> list[str]:
    """The parts of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
