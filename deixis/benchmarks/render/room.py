"""A furnished room, every choice by chance: walls, door, windows, pictures, furniture, lamps.

The origin is the middle of the floor; x runs along the width, y along the depth, z up, all in metres.
"""

from dataclasses import dataclass

import numpy as np

from deixis.benchmarks.render.floor_plan import Footprint, Point
from deixis.benchmarks.render.furnishing import Furnisher
from deixis.benchmarks.render.room_shell import BACKGROUND, Shell, drawn_shell
from deixis.benchmarks.render.scene import Scene

_MOST_PIECES = 14


@dataclass(frozen=True)
class Theme:
    """What a kind of room has: the first things it must have, then some of the rest."""

    first: tuple[str, ...]
    along_walls: tuple[str, ...]
    standing_free: tuple[str, ...]


_ANYWHERE = ("plant", "tree", "floor lamp", "bookshelf", "chest of drawers", "armchair", "basket", "coat stand", "trunk", "bench")
THEMES = {
    "living room": Theme(
        ("sofa", "television"), (*_ANYWHERE, "sideboard", "piano", "fireplace"), ("pouf", "armchair", "round table", "stool")
    ),
    "bedroom": Theme(("bed", "wardrobe"), (*_ANYWHERE, "desk", "television"), ("pouf", "chair", "stool", "armchair")),
    "study": Theme(("desk", "bookshelf"), (*_ANYWHERE, "sofa", "bin", "piano"), ("armchair", "stool", "round table")),
    "dining room": Theme(("table", "sideboard"), (*_ANYWHERE, "fridge", "bin", "fireplace"), ("stool", "chair", "plant")),
}


@dataclass(frozen=True)
class Room:
    """A scene, what stands on its floor, and which of its objects count as such."""

    scene: Scene
    shell: Shell
    theme: str
    obstacles: tuple[Footprint, ...]
    """Furniture, and what sticks out of the walls."""
    counted: tuple[int, ...]
    """Numbers of the objects that are things and not floor, walls or ceiling."""

    def is_free(self, start: Point, end: Point, radius: float) -> bool:
        """Whether somebody of this radius can walk straight from one point to the other without touching wall or furniture."""
        half_width, half_depth = self.shell.width / 2 - radius, self.shell.depth / 2 - radius
        inside = all(abs(x) <= half_width and abs(y) <= half_depth for x, y in (start, end))
        return inside and all(item.distance_to_way(start, end) >= radius for item in self.obstacles)


def furnished_room(rng: np.random.Generator) -> Room:
    """A room drawn from ``rng``: the same state of it gives the same room, byte for byte."""
    shell = drawn_shell(rng)
    furnisher = Furnisher(shell, rng)
    theme = list(THEMES)[int(rng.integers(len(THEMES)))]
    plan = THEMES[theme]
    furnisher.openings()
    furnisher.along_walls(list(plan.first), most=_MOST_PIECES)
    furnisher.along_walls(_some(plan.along_walls, rng), most=int(rng.integers(8, 12)))
    furnisher.standing_free(_some(plan.standing_free, rng)[:2], most=_MOST_PIECES)
    furnisher.wall_things(count=int(rng.integers(7, 11)))
    furnisher.floor_and_ceiling()
    numbers = tuple(n for n, name in enumerate(furnisher.scene.names) if name not in BACKGROUND)
    return Room(furnisher.scene, shell, theme, (*furnisher.obstacles, *furnisher.protruding), numbers)


def _some(names: tuple[str, ...], rng: np.random.Generator) -> list[str]:
    return [names[int(i)] for i in rng.permutation(len(names))]
