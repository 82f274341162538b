"""Pictures of the memory game that somebody else drew, found by their names (``pic_disk-0-25_star_green.png``)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from deixis.benchmarks.images import FileImage, ImageError
from deixis.benchmarks.memory_scenes import COLOURS
from deixis.benchmarks.render import SHAPES

_NAME = re.compile(rf"pic_disk-(\d+)(?:-(\d+))?_({'|'.join(SHAPES)})_({'|'.join(COLOURS)})\.png")
_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif")
_MOST_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class NamedPicture:
    """A picture and what its name says."""

    shape: str
    colour: str
    distance_m: float
    image: FileImage


def picture_name(shape: str, colour: str, distance_m: float) -> str:
    """The name that the paper's pictures have: the distance with a hyphen for the point."""
    return f"pic_disk-{f'{distance_m:g}'.replace('.', '-')}_{shape}_{colour}.png"


def named_pictures(folder: Path, shapes: Sequence[str], colours: Sequence[str], distances: Sequence[float]) -> list[NamedPicture]:
    """Every combination's picture, in the order of the standard set; each is read once, and held to its pixels from now on.

    Raises:
        ImageError: The folder is none, a combination has no picture or two, a picture has a name that says nothing, or can't be
            read.
    """
    if not folder.is_dir():
        raise ImageError(f"images={str(folder)!r} is no folder; name the one that holds pic_disk-0-25_star_green.png and so on.")
    found = _found(folder)
    wanted = list(product(shapes, colours, distances))
    missing = [picture_name(*each) for each in wanted if each not in found]
    if missing:
        raise ImageError(
            f"{folder} lacks {len(missing)} of {len(wanted)} pictures: {_listed(missing)}; add them, or ask for fewer shapes, "
            "colours or distances."
        )
    return [
        NamedPicture(shape=shape, colour=colour, distance_m=distance, image=_held(found[shape, colour, distance]))
        for shape, colour, distance in wanted
    ]


def _found(folder: Path) -> dict[tuple[str, str, float], Path]:
    found: dict[tuple[str, str, float], Path] = {}
    strange = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in _PICTURES or path.name.startswith("."):
            continue
        match = _NAME.fullmatch(path.name)
        if match is None:
            strange.append(path.name)
            continue
        whole, part, shape, colour = match.groups()
        key = (shape, colour, float(f"{whole}.{part or 0}"))
        if key in found:
            raise ImageError(f"{found[key].name} and {path.name} in {folder} say the same; keep one.")
        found[key] = path
    if strange:
        raise ImageError(
            f"{folder} holds pictures whose names say nothing: {_listed(strange)}; name them like pic_disk-0-25_star_green.png "
            f"(distance, then one of {', '.join(SHAPES)}, then one of {', '.join(COLOURS)}), or move them away."
        )
    return found


def _held(path: Path) -> FileImage:
    return FileImage(path=path, expected=FileImage(path=path).sha256)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
