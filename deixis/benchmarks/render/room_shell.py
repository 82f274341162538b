"""A room's floor, walls and ceiling, and the air between them; the origin is the middle of the floor."""

from dataclasses import dataclass

import numpy as np

from deixis.benchmarks.render.finish import paint
from deixis.benchmarks.render.mesh import Solid, box
from deixis.benchmarks.render.scene import Air, Material, Rgb, Scene, linear_rgb

BACKGROUND = ("floor", "walls", "ceiling", "skirting")
"""Objects that every room has and that are no things in it."""
_THICK = 0.1
WALLS = ("#d6cfc0", "#bccacd", "#d4c6b0", "#c3cdb8", "#dccbc4", "#b3c0cf", "#e0ddd4", "#cbbfd0")
ACCENTS = ("#5f7f86", "#8b5f4d", "#5d6e52", "#6a6488", "#b58f4a", "#3f5673")
FLOORS = (
    ("planks", "#b98f60", "#97704a", 1.0),
    ("planks", "#7d5a3e", "#644630", 1.0),
    ("planks", "#d2b78e", "#bda177", 1.0),
    ("tiles", "#c9c3b5", "#8d877b", 0.5),
    ("tiles", "#a9735a", "#7d675c", 0.3),
    ("weave", "#9aa0a0", "#8b9192", 3.0),
    ("weave", "#b7a68b", "#a7967a", 3.0),
)
_AIR_SPACING_M = 0.75
_AIR_MARGIN_M = 0.12


@dataclass(frozen=True)
class Wall:
    """One of four: where it is, and which way things on it face."""

    side: str
    at: float
    """Of its surface along the axis that it stands across: y for north and south, x for east and west."""
    length: float
    turn_deg: float
    """Takes a thing's front, +y in its own frame, into the room."""

    def point(self, along: float, out: float) -> tuple[float, float]:
        """Place ``along`` the wall (the room's x or y) and ``out`` metres before its surface."""
        inward = self.at - out if self.at > 0 else self.at + out
        return (along, inward) if self.side in ("north", "south") else (inward, along)


@dataclass(frozen=True)
class Shell:
    """Sizes in metres and what the surfaces are made of."""

    width: float
    depth: float
    height: float
    wall: Rgb
    accent: str | None
    """The side whose wall has the second colour."""
    second: Rgb
    floor: Material
    floor_turn_deg: float

    @property
    def walls(self) -> tuple[Wall, ...]:
        """North (y above 0), south, east (x above 0), west."""
        return (
            Wall("north", self.depth / 2, self.width, 180.0),
            Wall("south", -self.depth / 2, self.width, 0.0),
            Wall("east", self.width / 2, self.depth, 90.0),
            Wall("west", -self.width / 2, self.depth, -90.0),
        )

    @property
    def air(self) -> Air:
        """Where bounced light is gathered."""
        sizes = (self.width, self.depth, self.height)
        x, y, z = (round(size / _AIR_SPACING_M) + 2 for size in sizes)
        across, along = self.width / 2 - _AIR_MARGIN_M, self.depth / 2 - _AIR_MARGIN_M
        return Air((-across, -along, _AIR_MARGIN_M), (across, along, self.height - _AIR_MARGIN_M), (x, y, z))


def drawn_shell(rng: np.random.Generator) -> Shell:
    """Sizes, colours and floor by chance."""
    texture, first, second, scale = FLOORS[int(rng.integers(len(FLOORS)))]
    sides = ("north", "south", "east", "west")
    return Shell(
        width=round(float(rng.uniform(4.8, 6.6)), 2),
        depth=round(float(rng.uniform(5.4, 7.6)), 2),
        height=round(float(rng.uniform(2.5, 2.8)), 2),
        wall=linear_rgb(WALLS[int(rng.integers(len(WALLS)))]),
        accent=sides[int(rng.integers(4))] if rng.random() < 0.6 else None,
        second=linear_rgb(ACCENTS[int(rng.integers(len(ACCENTS)))]),
        floor=Material(linear_rgb(first), linear_rgb(second), texture, scale),
        floor_turn_deg=90.0 * int(rng.integers(2)),
    )


def add_shell(scene: Scene, shell: Shell) -> None:
    """Add the objects of :data:`BACKGROUND`, and say where the air is."""
    width, depth, height = shell.width, shell.depth, shell.height
    longest = max(width, depth) + 4 * _THICK
    scene.add("floor", [(box((0, 0, -_THICK / 2), (longest, longest, _THICK)), shell.floor)], turn_deg=shell.floor_turn_deg)
    scene.add("ceiling", [(box((0, 0, height + _THICK / 2), (longest, longest, _THICK)), paint("#f1f0ec"))])
    plain, second = Material(shell.wall), Material(shell.second)
    sides = {wall.side: _slab(wall, height / 2, (wall.length + 2 * _THICK, height), _THICK, -1.0) for wall in shell.walls}
    scene.add("walls", [(slab, second if side == shell.accent else plain) for side, slab in sides.items()])
    strips = [_slab(wall, 0.05, (wall.length, 0.1), 0.016, 1.0) for wall in shell.walls]
    scene.add("skirting", [(strip, paint("#e9e6df")) for strip in strips])
    scene.air = shell.air


def _slab(wall: Wall, middle: float, size: tuple[float, float], thick: float, side: float) -> Solid:
    """An upright box on the wall's surface, towards the room (side 1) or behind it (-1)."""
    x, y = wall.point(0.0, side * thick / 2)
    along, high = size
    flat = (along, thick, high) if wall.side in ("north", "south") else (thick, along, high)
    return box((x, y, middle), flat)
