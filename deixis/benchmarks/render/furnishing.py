"""Putting things into a room, one after the other, none in another's place."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from deixis.benchmarks.render import fixtures
from deixis.benchmarks.render.finish import Finish, drawn_finish
from deixis.benchmarks.render.fixtures import Build
from deixis.benchmarks.render.floor_plan import Footprint, Point
from deixis.benchmarks.render.furniture import FURNITURE
from deixis.benchmarks.render.room_shell import Shell, Wall, add_shell
from deixis.benchmarks.render.scene import Parts, RectLight, Scene
from deixis.benchmarks.render.solids import bounds

_GAP_M = 0.05
_TRIES = 30
_SHALLOW_M, _HEAD_ROOM_M = 0.06, 1.95
_DOOR_HALF_M, _DOOR_MIDDLE_M, _DOOR_SWING_M = 0.55, 1.03, 0.75
_WINDOW_MIDDLE_M = 1.52
# Which piece goes with which: where its origin lies in the other's frame (front is +y), and how it is turned.
_COMPANIONS: dict[str, tuple[tuple[str, Point, float], ...]] = {
    "sofa": (("coffee table", (0.0, 1.15), 0.0),),
    "desk": (("office chair", (0.0, 0.74), 165.0),),
    "bed": (("nightstand", (1.06, -0.78), 0.0), ("nightstand", (-1.06, -0.78), 0.0)),
    "table": (
        ("chair", (-0.32, 0.68), 180.0),
        ("chair", (0.32, 0.72), 172.0),
        ("chair", (-0.30, -0.70), 6.0),
        ("chair", (0.34, -0.68), 0.0),
    ),
    "round table": (("chair", (0.0, 0.80), 180.0), ("chair", (0.2, -0.80), 8.0)),
}
_LAMPS: dict[str, Build] = {
    "ceiling lamp": fixtures.ceiling_panel,
    "pendant lamp": fixtures.pendant_lamp,
    "bowl lamp": fixtures.bowl_lamp,
}
_CEILING: dict[str, Build] = {
    "ceiling fan": fixtures.ceiling_fan,
    "spotlights": fixtures.spot_bar,
    "hanging plant": fixtures.hanging_plant,
    "smoke alarm": fixtures.smoke_alarm,
}
_ON_WALLS: dict[str, Build] = {
    "picture": fixtures.picture,
    "wall clock": fixtures.wall_clock,
    "wall shelf": fixtures.wall_shelf,
    "wall lamp": fixtures.wall_lamp,
}
_RUGS: dict[str, Build] = {"rug": fixtures.rug, "round rug": fixtures.round_rug}
# Light that lamps and a window send down per square metre of floor, in units of radiance times area.
_LAMP_LIGHT, _WINDOW_RADIANCE, _UPWARD_SHARE = 1.0, 3.0, 0.03
Corner = Float[np.ndarray, " xyz"]
_Proposal = tuple[Point, float, Wall | None]
"""A place, a turn in degrees, and the wall behind."""
_Place = Callable[[Corner, Corner], _Proposal]
"""Proposes one for something with this lowest and highest corner."""


@dataclass(frozen=True)
class _WallPatch:
    side: str
    left: float
    right: float
    bottom: float
    top: float

    def meets(self, other: "_WallPatch", margin: float) -> bool:
        return self.side == other.side and not (
            self.left >= other.right + margin
            or other.left >= self.right + margin
            or self.bottom >= other.top + margin
            or other.bottom >= self.top + margin
        )


class Furnisher:
    """Fills one shell; what finds no free place after some tries is left out."""

    def __init__(self, shell: Shell, rng: np.random.Generator) -> None:
        self.scene, self.shell, self.rng = Scene(), shell, rng
        add_shell(self.scene, shell)
        self.obstacles: list[Footprint] = []
        """Furniture."""
        self.protruding: list[Footprint] = []
        """What sticks out of a wall or hangs low: no furniture is moved for it, but nobody walks into it."""
        self._kept: list[Footprint] = []
        self._patches: list[_WallPatch] = []
        self._rugs: list[Footprint] = []
        self._hung: list[Footprint] = []
        self._named: dict[str, int] = {}

    def openings(self) -> None:
        """A door, and a window or two on other walls, each sending daylight in."""
        walls = [self.shell.walls[int(i)] for i in self.rng.permutation(4)]
        self._add_door(walls[0])
        for number in range(1 + int(self.rng.random() < 0.4)):
            self._add_window(walls[1 + number])

    def along_walls(self, names: list[str], most: int) -> None:
        """Furniture with its back to a wall, with what goes with it."""
        for name in names:
            if len(self.obstacles) >= most:
                return
            self._stand(name, self._wall_place)

    def standing_free(self, names: list[str], most: int) -> None:
        """Furniture away from the walls, turned anyhow."""
        for name in names:
            if len(self.obstacles) >= most:
                return
            self._stand(name, self._free_place)

    def wall_things(self, count: int) -> None:
        """Pictures, a clock, a shelf and lamps where the wall is free, a radiator under a window."""
        for patch in [patch for patch in self._patches if 1.0 < (patch.bottom + patch.top) / 2 < 1.7 and patch.bottom > 0.5]:
            wall = next(wall for wall in self.shell.walls if wall.side == patch.side)
            self._hang("radiator", fixtures.radiator, wall, (patch.left + patch.right) / 2, 0.42)
        names = ["picture", "wall clock", "wall shelf", "wall lamp", *["picture"] * count]
        for name in names[:count]:
            for _ in range(_TRIES):
                wall = self.shell.walls[int(self.rng.integers(4))]
                along = float(self.rng.uniform(-0.42, 0.42)) * wall.length
                if self._hang(name, _ON_WALLS[name], wall, along, float(self.rng.uniform(1.5, 1.85))):
                    break

    def floor_and_ceiling(self) -> None:
        """Rugs, two lamps that light the room, and what else hangs from the ceiling."""
        for name in [("rug", "round rug")[int(self.rng.random() < 0.35)], *["rug"] * int(self.rng.random() < 0.35)]:
            self._lay_rug(name)
        self._add_lamps()
        for name in [list(_CEILING)[int(i)] for i in self.rng.permutation(len(_CEILING))[:3]]:
            self._hang_from_ceiling(name)

    # -- walls ---------------------------------------------------------------------------------------------------------------

    def _add_door(self, wall: Wall) -> None:
        along = float(self.rng.uniform(-1, 1)) * (wall.length / 2 - 0.75)
        self._hang("door", fixtures.door, wall, along, _DOOR_MIDDLE_M)
        swing = Footprint((-_DOOR_HALF_M, 0.0), (_DOOR_HALF_M, _DOOR_SWING_M), wall.point(along, 0.0), wall.turn_deg)
        self._kept.append(swing)

    def _add_window(self, wall: Wall) -> None:
        width, height = fixtures.WINDOW_SIZE
        along = float(self.rng.uniform(-1, 1)) * (wall.length / 2 - width / 2 - 0.5)
        if not self._hang("window", fixtures.window, wall, along, _WINDOW_MIDDLE_M):
            return
        x, y = wall.point(along, 0.22)
        turn = math.radians(wall.turn_deg)
        inward = (-math.sin(turn), math.cos(turn))
        u, v = (-inward[1] * width * 0.46, inward[0] * width * 0.46, 0.0), (0.0, 0.0, height * 0.46)
        self.scene.lights.append(RectLight((x, y, _WINDOW_MIDDLE_M), u, v, _WINDOW_RADIANCE))

    def _hang(self, name: str, build: Build, wall: Wall, along: float, middle: float) -> bool:
        parts = build(self._finish(), self.rng)
        low, high = bounds([solid for solid, _ in parts])
        half = float(max(-low[0], high[0]))
        patch = _WallPatch(wall.side, along - half, along + half, middle + float(low[2]), middle + float(high[2]))
        fits = abs(along) + half < wall.length / 2 - 0.1 and patch.bottom >= 0 and patch.top < self.shell.height - 0.05
        if not fits or any(patch.meets(other, 0.06) for other in self._patches):
            return False
        self._patches.append(patch)
        if high[1] > _SHALLOW_M:
            front = Footprint((float(low[0]), 0.0), (float(high[0]), float(high[1])), wall.point(along, 0.0), wall.turn_deg)
            self.protruding.append(front)
        self._add(name, parts, (*wall.point(along, 0.0), middle), wall.turn_deg)
        return True

    # -- furniture -----------------------------------------------------------------------------------------------------------

    def _stand(self, name: str, placed: _Place) -> None:
        finish = self._finish()
        parts = FURNITURE[name].build(finish, self.rng)
        for _ in range(_TRIES):
            at, turn, wall = placed(*bounds([solid for solid, _ in parts]))
            if self._put(name, parts, at, turn, wall):
                for other, offset, more in _COMPANIONS.get(name, ()):
                    self._stand_with(other, finish, at, turn, offset, more)
                return

    def _stand_with(self, name: str, finish: Finish, at: Point, turn: float, offset: Point, more: float) -> None:
        """A companion in a matching finish."""
        parts = FURNITURE[name].build(Finish(wood=finish.wood, colour=finish.accent, accent=finish.colour), self.rng)
        cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
        there = (at[0] + offset[0] * cos - offset[1] * sin, at[1] + offset[0] * sin + offset[1] * cos)
        self._put(name, parts, there, turn + more, None)

    def _wall_place(self, low: Corner, high: Corner) -> _Proposal:
        wall = self.shell.walls[int(self.rng.integers(4))]
        room = max(wall.length / 2 - float(max(-low[0], high[0])) - 0.05, 0.0)
        along = float(self.rng.uniform(-room, room))
        return wall.point(along, 0.025 - float(low[1])), wall.turn_deg, wall

    def _free_place(self, low: Corner, high: Corner) -> _Proposal:
        margin = float(max(high[0] - low[0], high[1] - low[1])) + 0.4
        x, y = (float(self.rng.uniform(-0.5, 0.5)) * max(size - margin, 0.0) for size in (self.shell.width, self.shell.depth))
        return (x, y), float(self.rng.uniform(-180, 180)), None

    def _put(self, name: str, parts: Parts, at: Point, turn: float, wall: Wall | None) -> bool:
        low, high = bounds([solid for solid, _ in parts])
        print_ = Footprint((float(low[0]), float(low[1])), (float(high[0]), float(high[1])), at, turn)
        others = [*self.obstacles, *self._kept]
        if not self._inside(print_) or any(print_.grown(_GAP_M).overlaps(other) for other in others):
            return False
        patch = self._shadow_on_walls(print_, float(high[2]), wall)
        if any(patch.meets(other, 0.02) for other in self._patches):
            return False
        self.obstacles.append(print_)
        self._patches.append(patch)
        self._add(name, parts, (*at, 0.0), turn)
        return True

    def _shadow_on_walls(self, print_: Footprint, top: float, wall: Wall | None) -> _WallPatch:
        """The part of a wall that a piece stands before; none for what stands free."""
        if wall is None:
            return _WallPatch("none", 0.0, 0.0, 0.0, 0.0)
        along = print_.corners[:, 0 if wall.side in ("north", "south") else 1]
        return _WallPatch(wall.side, float(along.min()), float(along.max()), 0.0, top)

    def _inside(self, print_: Footprint) -> bool:
        corners = np.abs(print_.corners)
        return bool(corners[:, 0].max() < self.shell.width / 2 - 0.02 and corners[:, 1].max() < self.shell.depth / 2 - 0.02)

    # -- floor and ceiling ---------------------------------------------------------------------------------------------------

    def _lay_rug(self, name: str) -> None:
        parts = _RUGS[name](self._finish(), self.rng)
        low, high = bounds([solid for solid, _ in parts])
        for _ in range(_TRIES):
            at, turn, _ = self._free_place(low, high)
            turn = round(turn / 90) * 90 + float(self.rng.uniform(-8, 8))
            print_ = Footprint((float(low[0]), float(low[1])), (float(high[0]), float(high[1])), at, turn)
            if self._inside(print_) and not any(print_.overlaps(other) for other in self._rugs):
                self._rugs.append(print_)
                self._add(name, parts, (*at, 0.0), turn)
                return

    def _add_lamps(self) -> None:
        name = list(_LAMPS)[int(self.rng.integers(len(_LAMPS)))]
        finish, count = self._finish(), 2
        long_x = self.shell.width > self.shell.depth
        reach = 0.25 * max(self.shell.width, self.shell.depth)
        for side in (-1, 1):
            parts = _LAMPS[name](finish, self.rng)
            x, y = (side * reach, 0.0) if long_x else (0.0, side * reach)
            low, high = bounds([solid for solid, _ in parts])
            self._add(name, parts, (x, y, self.shell.height), 0.0)
            self._keep_hung(Footprint((float(low[0]), float(low[1])), (float(high[0]), float(high[1])), (x, y)), float(low[2]))
            half_x, half_y = (0.42, 0.17) if name == "ceiling lamp" else (0.16, 0.16)
            light = _LAMP_LIGHT * self.shell.width * self.shell.depth / count / (4 * half_x * half_y)
            z = self.shell.height + float(low[2]) - 0.012
            self.scene.lights.append(RectLight((x, y, z), (half_x, 0.0, 0.0), (0.0, -half_y, 0.0), light))
            if name == "pendant lamp":
                self._light_upwards((x, y, self.shell.height + float(low[2]) + 0.26), half_x, light)

    def _light_upwards(self, at: tuple[float, float, float], half: float, light: float) -> None:
        """What a hanging shade lets out at its top, spread over its own width."""
        self.scene.lights.append(RectLight(at, (half, 0.0, 0.0), (0.0, half, 0.0), _UPWARD_SHARE * light))

    def _hang_from_ceiling(self, name: str) -> None:
        parts = _CEILING[name](self._finish(), self.rng)
        low, high = bounds([solid for solid, _ in parts])
        for _ in range(_TRIES):
            x, y = (float(self.rng.uniform(-0.5, 0.5)) * (size - 1.6) for size in (self.shell.width, self.shell.depth))
            if name == "ceiling fan":
                x, y = 0.3 * x, 0.3 * y
            turn = 90.0 * int(self.rng.integers(2))
            print_ = Footprint((float(low[0]), float(low[1])), (float(high[0]), float(high[1])), (x, y), turn)
            if not any(print_.grown(0.1).overlaps(other) for other in self._hung):
                self._keep_hung(print_, float(low[2]))
                self._add(name, parts, (x, y, self.shell.height), turn)
                return

    def _keep_hung(self, print_: Footprint, low: float) -> None:
        """Remember what hangs there, down to ``low`` below the ceiling."""
        self._hung.append(print_)
        if self.shell.height + low < _HEAD_ROOM_M:
            self.protruding.append(print_)

    # -- naming --------------------------------------------------------------------------------------------------------------

    def _finish(self) -> Finish:
        return drawn_finish(self.rng)

    def _add(self, name: str, parts: Parts, at: tuple[float, float, float], turn: float) -> None:
        """Add under a name of its own: ``chair``, ``chair 2``, ..."""
        self._named[name] = self._named.get(name, 0) + 1
        number = self._named[name]
        self.scene.add(name if number == 1 else f"{name} {number}", parts, at, turn)
