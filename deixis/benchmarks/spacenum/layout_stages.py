"""What holds for layouts of each scale: the kinds of things, the ground that they stand on, and the cameras that see them."""

from collections.abc import Callable
from dataclasses import dataclass

from deixis.benchmarks.render import desk, room_shell
from deixis.benchmarks.render.desk import DESK_DEPTH_M, DESK_WIDTH_M
from deixis.benchmarks.render.open_room import (
    BACKGROUND_ONLY,
    COLOURED,
    PIECE_COLOURS,
    PLAIN,
    ROOM_DEPTH_M,
    ROOM_HEIGHT_M,
    ROOM_WIDTH_M,
    usual_size,
)
from deixis.benchmarks.render.small_things import COLOURS, SMALL_THINGS
from deixis.benchmarks.spacenum.placing import DESK, ROOM, Spacing


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What holds for one scale."""

    spacing: Spacing
    kinds: tuple[str, ...]
    """Of anchors and targets."""
    background: tuple[str, ...]
    """Of clutter, beside those that are left of :attr:`kinds`."""
    colours: tuple[str, ...]
    usual: Callable[[str, str], tuple[float, float, float]]
    """Size of a kind in a colour, in metres."""
    factor: tuple[float, float]
    """By which a thing's size differs from the usual one."""
    tallest_m: float
    surfaces: int
    """How many woods or floors there are."""
    walls: int
    middle_m: tuple[tuple[float, float], tuple[float, float]]
    """Spans of x and y in which the layout's middle lies."""
    ground_m: tuple[tuple[float, float], tuple[float, float]]
    """Spans of x and y that things may stand on."""
    pitch_deg: tuple[float, float]
    focal_mm: tuple[float, float]
    away_m: tuple[float, float]
    """Nearest and farthest camera."""
    inside_m: tuple[tuple[float, float], tuple[float, float], tuple[float, float]]
    """Spans of x, y and z in which the camera is."""
    clutter: tuple[int, int]
    """Fewest and most pieces."""


def _small_size(kind: str, _colour: str) -> tuple[float, float, float]:
    return SMALL_THINGS[kind].size_m


_EDGE, _WALL = 0.03, 0.15
_HALF_WIDTH, _HALF_DEPTH = ROOM_WIDTH_M / 2, ROOM_DEPTH_M / 2
STAGES = {
    "desk": Stage(
        spacing=DESK,
        kinds=tuple(SMALL_THINGS),
        background=(),
        colours=tuple(COLOURS),
        usual=_small_size,
        factor=(0.9, 1.25),
        tallest_m=0.6,
        surfaces=len(desk.WOODS),
        walls=len(desk.WALLS),
        middle_m=((-0.2, 0.2), (0.5, 0.75)),
        ground_m=((_EDGE - DESK_WIDTH_M / 2, DESK_WIDTH_M / 2 - _EDGE), (_EDGE, DESK_DEPTH_M - _EDGE)),
        pitch_deg=(-52.0, -30.0),
        focal_mm=(30.0, 42.0),
        away_m=(0.36, 1.7),
        inside_m=((-2.4, 2.4), (-2.2, 2.1), (0.1, 1.7)),
        clutter=(2, 4),
    ),
    "room": Stage(
        spacing=ROOM,
        kinds=(*COLOURED, *PLAIN),
        background=BACKGROUND_ONLY,
        colours=PIECE_COLOURS,
        usual=usual_size,
        factor=(0.9, 1.1),
        tallest_m=2.2,
        surfaces=len(room_shell.FLOORS),
        walls=len(room_shell.WALLS),
        middle_m=((-0.7, 0.7), (0.3, 1.6)),
        ground_m=((_WALL - _HALF_WIDTH, _HALF_WIDTH - _WALL), (_WALL - _HALF_DEPTH, _HALF_DEPTH - _WALL)),
        pitch_deg=(-34.0, -16.0),
        focal_mm=(20.0, 27.0),
        away_m=(1.6, 6.0),
        inside_m=((0.2 - _HALF_WIDTH, _HALF_WIDTH - 0.2), (0.2 - _HALF_DEPTH, _HALF_DEPTH - 0.2), (1.0, ROOM_HEIGHT_M - 0.2)),
        clutter=(2, 4),
    ),
}
