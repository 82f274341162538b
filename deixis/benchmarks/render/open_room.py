"""A bright room without furniture, and single pieces that fill a given box: the stage and the things of room-scale layouts.

The origin is the middle of the floor; +y runs to the wall that the viewer faces, +x to the right.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from deixis.benchmarks.render import fixtures
from deixis.benchmarks.render.finish import drawn_finish, glow, paint
from deixis.benchmarks.render.furniture import FURNITURE
from deixis.benchmarks.render.mesh import box
from deixis.benchmarks.render.room_shell import ACCENTS, FLOORS, WALLS, Shell, Wall, add_shell
from deixis.benchmarks.render.scene import Material, Parts, RectLight, Scene, linear_rgb
from deixis.benchmarks.render.small_things import fitted
from deixis.benchmarks.render.solids import bounds, rotated

ROOM_WIDTH_M, ROOM_DEPTH_M, ROOM_HEIGHT_M = 6.8, 7.6, 2.7
COLOURED = ("sofa", "armchair", "stool", "bench", "pouf", "office chair", "bed", "bin")
"""Kinds that show their colour all over, so that they are called by it."""
PLAIN = (
    "chair", "bookshelf", "chest of drawers", "television", "fridge", "floor lamp", "plant", "tree", "basket", "trunk", "piano",
    "wardrobe",
)  # fmt: skip
"""Kinds that are called by their name alone."""
BACKGROUND_ONLY = ("sideboard", "table", "round table", "desk", "nightstand", "coffee table", "coat stand")
"""Kinds with something on top that would make their box higher than they look; they stand around, but no map names them."""
PIECE_COLOURS = ("red", "blue", "green", "yellow", "orange", "purple", "teal", "white")
_LAMP_LIGHT = 1.25
_AIR_POINTS = (8, 8, 4)


@dataclass(frozen=True, kw_only=True)
class RoomSetting:
    """What the stage looks like."""

    floor: int = 0
    """Place in :data:`~deixis.benchmarks.render.room_shell.FLOORS`."""
    wall: int = 0
    """Place in :data:`~deixis.benchmarks.render.room_shell.WALLS`; it also says which fixtures hang where."""
    brightness: float = 1.0
    """Of the lights, 1 being standard."""


def room_stage(setting: RoomSetting) -> Scene:
    """Floor, walls, ceiling with its lamps, door, window and pictures, and no furniture."""
    rng = np.random.default_rng((setting.floor, setting.wall))
    texture, first, second, scale = FLOORS[setting.floor]
    shell = Shell(
        width=ROOM_WIDTH_M,
        depth=ROOM_DEPTH_M,
        height=ROOM_HEIGHT_M,
        wall=linear_rgb(WALLS[setting.wall]),
        accent=("north", "east", "west", None)[int(rng.integers(4))],
        second=linear_rgb(ACCENTS[int(rng.integers(len(ACCENTS)))]),
        floor=Material(linear_rgb(first), linear_rgb(second), texture, scale),
        floor_turn_deg=90.0 * int(rng.integers(2)),
    )
    scene = Scene()
    add_shell(scene, shell)
    # An open room's light varies slowly: a third of the usual points serve a picture that shares its light with no other.
    scene.air = replace(shell.air, counts=_AIR_POINTS)
    for y in (-ROOM_DEPTH_M / 4, ROOM_DEPTH_M / 4):
        _add_lamp(scene, y, setting.brightness)
    _add_fixtures(scene, shell, rng)
    return scene


def _add_lamp(scene: Scene, y: float, brightness: float) -> None:
    panel: Parts = [
        (box((0, 0, -0.02), (1.1, 0.5, 0.04)), paint("#d9d8d4")),
        (box((0, 0, -0.041), (1.0, 0.4, 0.006)), glow("#ffffff", 1.3)),
    ]
    scene.add("lamp", panel, (0.0, y, ROOM_HEIGHT_M))
    half = (0.5, 0.2)
    radiance = _LAMP_LIGHT * brightness * ROOM_WIDTH_M * ROOM_DEPTH_M / 2 / (4 * half[0] * half[1])
    scene.lights.append(RectLight((0.0, y, ROOM_HEIGHT_M - 0.06), (half[0], 0.0, 0.0), (0.0, -half[1], 0.0), radiance))


def _add_fixtures(scene: Scene, shell: Shell, rng: np.random.Generator) -> None:
    """On the far wall a door on one side and a picture, a window on the wall beside it and a picture on the other."""
    north, _, east, west = shell.walls
    side = 1.0 if rng.random() < 0.5 else -1.0
    beside, other = (west, east) if side > 0 else (east, west)
    for name, build, wall, along, high in (
        ("door", fixtures.door, north, 2.3 * side, 1.03),
        ("picture", fixtures.picture, north, -0.9 * side, 1.6),
        ("window", fixtures.window, beside, 1.6, 1.52),
        ("picture", fixtures.picture, other, 1.2, 1.6),
    ):
        _hang(scene, name, build(drawn_finish(rng), rng), wall, along, high)


def _hang(scene: Scene, name: str, parts: Parts, wall: Wall, along: float, high: float) -> None:
    x, y = wall.point(along, 0.0)
    scene.add(name, parts, (x, y, high), wall.turn_deg)


@lru_cache(maxsize=256)
def _built(kind: str, colour: str) -> Parts:
    """The piece as it always looks in this colour; its front turned to -y like that of small things."""
    rng = np.random.default_rng(zlib.crc32(f"{colour} {kind}".encode()))
    finish = drawn_finish(np.random.default_rng(zlib.crc32(colour.encode())), colour)
    return [(rotated(solid, "z", 180.0), material) for solid, material in FURNITURE[kind].build(finish, rng)]


@lru_cache(maxsize=256)
def usual_size(kind: str, colour: str) -> tuple[float, float, float]:
    """Width, depth and height of the piece as it is built, in metres."""
    low, high = bounds([solid for solid, _ in _built(kind, colour)])
    x, y, z = (round(float(value), 4) for value in high - low)
    return x, y, z


def piece(kind: str, colour: str, size: Sequence[float]) -> Parts:
    """A piece of furniture that fills the box of edge lengths ``size`` (x, y, z in metres), its front towards -y."""
    return fitted(_built(kind, colour), size)
