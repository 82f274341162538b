"""The eight actions, their grids of magnitudes, and what each does to a camera."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from deixis.benchmarks.render.scene import View

N_OPTIONS = 4
_NOISE = 1e-9
DECIMALS = 2
"""Of a magnitude: whole centimetres, hundredths of a degree."""
_LARGEST = {
    "move F/B": (5.0, "5 m]"),
    "move L/R": (5.0, "5 m]"),
    "rotate U/D": (160.0, "160 deg]"),
    "rotate L/R": (180.0, "180 deg)"),
}
"""Largest magnitude of a list of one's own, and the end of the interval in words: turning further up or down would stand on one's
head, and left 180 is right 180."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """One kind of action."""

    name: str
    column: str
    """Of the paper's tables, which take an action and its opposite together."""
    unit: str
    """``m`` or ``deg``."""
    sign: int
    """1 for forward, right and up, -1 for their opposites."""
    grid: tuple[float, ...]
    """The paper's magnitudes (arXiv 2605.23898)."""

    @property
    def number(self) -> int:
        """Place among :data:`ACTIONS`."""
        return ACTIONS.index(self.name)


@dataclass(frozen=True, kw_only=True)
class Pose:
    """Where a camera is in a room, and where it looks."""

    position_m: tuple[float, float, float]
    yaw_deg: float
    """0 looks along y, more to the left."""
    pitch_deg: float
    """Above the horizon."""
    focal_mm: float = 20.0
    """On a 36 mm sensor: 84 degrees are in view."""

    def view(self, size: int) -> View:
        """The pinhole camera of a square picture ``size`` pixels wide."""
        return View(
            position=self.position_m, yaw=self.yaw_deg, pitch=self.pitch_deg, focal=self.focal_mm, width=size, height=size
        )

    def as_facts(self) -> dict[str, float | list[float]]:
        """Field names and values, ready for JSON."""
        return asdict(self) | {"position_m": list(self.position_m)}


def _steps(step: float, count: int, decimals: int) -> tuple[float, ...]:
    return tuple(round(step * k, decimals) for k in range(1, count + 1))


_FORWARD, _SIDEWAYS, _TURN = _steps(0.2, 12, 1), _steps(0.2, 6, 1), _steps(10.0, 7, 0)
_TABLE = (
    Action(name="move forward", column="move F/B", unit="m", sign=1, grid=_FORWARD),
    Action(name="move backward", column="move F/B", unit="m", sign=-1, grid=_FORWARD),
    Action(name="move left", column="move L/R", unit="m", sign=-1, grid=_SIDEWAYS),
    Action(name="move right", column="move L/R", unit="m", sign=1, grid=_SIDEWAYS),
    Action(name="rotate up", column="rotate U/D", unit="deg", sign=1, grid=_TURN),
    Action(name="rotate down", column="rotate U/D", unit="deg", sign=-1, grid=_TURN),
    Action(name="rotate left", column="rotate L/R", unit="deg", sign=-1, grid=_TURN),
    Action(name="rotate right", column="rotate L/R", unit="deg", sign=1, grid=_TURN),
)
ACTION = {action.name: action for action in _TABLE}
ACTIONS = tuple(ACTION)
COLUMNS = tuple(dict.fromkeys(action.column for action in _TABLE))


def after(pose: Pose, action: Action, magnitude: float) -> Pose:
    """The pose that an action leads to, exactly.

    A move keeps the height and follows the heading, whatever the pitch; left and right are square to it. A turn to the left or
    right is about the vertical, one up or down changes the pitch.
    """
    step = action.sign * magnitude
    if action.column == "rotate U/D":
        return replace(pose, pitch_deg=pose.pitch_deg + step)
    if action.column == "rotate L/R":
        return replace(pose, yaw_deg=pose.yaw_deg - step)
    heading = math.radians(pose.yaw_deg)
    forward = (-math.sin(heading), math.cos(heading))
    dx, dy = forward if action.column == "move F/B" else (forward[1], -forward[0])
    x, y, z = pose.position_m
    return replace(pose, position_m=(x + step * dx, y + step * dy, z))


def grids(magnitudes: Mapping[str, Sequence[float | int]] | None) -> dict[str, tuple[float, ...]]:
    """Every action's magnitudes: the paper's, or the list given for it.

    Raises:
        ValueError: A list is for no known action or none of numbers, has fewer than four values or one twice, or a value is out
            of range or has more than two decimals.
    """
    if not isinstance(magnitudes, Mapping | None):
        raise ValueError(f"magnitudes={magnitudes!r} is no mapping; give one like {{'rotate up': [5, 15, 25, 35]}}.")
    given = dict(magnitudes or {})
    for name in given:
        if name not in ACTION:
            raise ValueError(f"magnitudes has {name!r}, which is not one of: {', '.join(map(repr, ACTIONS))}.")
    return {name: _checked(action, given[name]) if name in given else action.grid for name, action in ACTION.items()}


def _checked(action: Action, values: Sequence[float | int]) -> tuple[float, ...]:
    numbers = isinstance(values, Sequence | np.ndarray) and all(isinstance(v, int | float | np.integer) for v in values)
    if not numbers or isinstance(values, str) or any(isinstance(v, bool) for v in values):
        raise ValueError(
            f"magnitudes[{action.name!r}]={values!r} is not a list of numbers; give at least {N_OPTIONS}, none twice."
        )
    found = tuple(_tidy(float(value)) for value in values)
    largest, interval = _LARGEST[action.column]
    for value in found:
        if not 0 < value <= largest or (value == largest and interval.endswith(")")):
            raise ValueError(
                f"magnitudes[{action.name!r}] has {value:g}, which is not in (0, {interval}; the paper's grid is "
                f"{', '.join(f'{step:g}' for step in action.grid)}."
            )
        if round(value, DECIMALS) != value:
            raise ValueError(
                f"magnitudes[{action.name!r}] has {value!r}, which prompts could not write exactly; give at most {DECIMALS} "
                "decimals."
            )
    if len(set(found)) < max(N_OPTIONS, len(found)):
        raise ValueError(
            f"magnitudes[{action.name!r}] has {len(found)} values, {len(set(found))} of them different; give at least "
            f"{N_OPTIONS}, none twice."
        )
    return found


def _tidy(value: float) -> float:
    """Without the noise of binary fractions, such as that of ``np.arange(0.2, 1.3, 0.1)``."""
    near = round(value, DECIMALS)
    return near if near and abs(near - value) < _NOISE else value
