"""Where two anchors and a target stand: whole steps of a grid in the anchors' frame, so that a map's text is the exact truth.

The frame: the origin is a corner of the first anchor's box, on the ground; x runs from the first anchor's middle to the second's;
z points up and y to the left of x as seen from above. All three objects are turned with the frame, so that their boxes in it
are tight. The frame itself lies at any angle to the camera, which keeps its coordinates apart from those of the picture.

The target's four placements cross two positions with two sizes. Whichever of them is right, the others are wrong in position,
in size and in both, and each value occurs twice among the options: the options alone don't tell which is right.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float

KINDS = ("correct", "position", "size", "both")
"""What is wrong with a placement; the order of :attr:`Layout.placements`."""
_TRIES = 400

Steps = tuple[int, int, int]
"""Along x, y, z, in steps of the grid."""


@dataclass(frozen=True, kw_only=True)
class Spacing:
    """What holds for the layouts of one scale."""

    step_m: float
    """The grid: every coordinate of every box is a whole number of steps."""
    gap: int
    """Least free space between two boxes, in steps."""
    anchors_apart: tuple[int, int]
    """Least and greatest free space between the anchors, in steps."""
    shift: int
    """Least difference along x between the right and the wrong position, in steps; y is free."""
    reach: int
    """Farthest that the target's middle lies from the middle between the anchors along x and y, in steps."""
    smaller: tuple[float, float]
    """The smaller of the target's sizes, in shares of the usual one."""
    growth: tuple[float, float]
    """The larger size, in shares of the smaller; each edge grows by at least two steps and a quarter of itself."""


DESK = Spacing(step_m=0.01, gap=3, anchors_apart=(8, 20), shift=8, reach=32, smaller=(0.8, 0.95), growth=(1.4, 1.7))
ROOM = Spacing(step_m=0.05, gap=3, anchors_apart=(8, 26), shift=10, reach=36, smaller=(0.75, 0.9), growth=(1.4, 1.6))


@dataclass(frozen=True)
class StepBox:
    """An axis-aligned box in the anchors' frame."""

    low: Steps
    high: Steps

    def metres(self, step_m: float) -> list[list[float]]:
        """Least and greatest corner, without the noise of binary fractions."""
        return [[round(value * step_m, 6) for value in corner] for corner in (self.low, self.high)]

    def apart(self, other: "StepBox", gap: int) -> bool:
        """Whether the footprints are at least ``gap`` apart along x or y."""
        return any(self.low[axis] - other.high[axis] >= gap or other.low[axis] - self.high[axis] >= gap for axis in range(2))


@dataclass(frozen=True)
class Layout:
    """Boxes of the anchors and of the target's four placements, in the order of :data:`KINDS`."""

    anchor_a: StepBox
    anchor_b: StepBox
    placements: tuple[StepBox, StepBox, StepBox, StepBox]


def draw_layout(rng: np.random.Generator, spacing: Spacing, usual: tuple[Steps, Steps, Steps]) -> Layout | None:
    """A layout of objects with the usual sizes of anchor A, anchor B and target, or None where ``rng`` found none.

    Anchor B is made one step deeper where the anchors' middles could not lie on one line of the grid otherwise.
    """
    a_size, b_size, target = usual
    b_size = (b_size[0], b_size[1] + (b_size[1] - a_size[1]) % 2, b_size[2])
    a = StepBox((0, 0, 0), a_size)
    b_low = a_size[0] + int(rng.integers(spacing.anchors_apart[0], spacing.anchors_apart[1] + 1))
    b_side = (a_size[1] - b_size[1]) // 2
    b = StepBox((b_low, b_side, 0), (b_low + b_size[0], b_side + b_size[1], b_size[2]))
    sizes = _two_sizes(rng, spacing, target)
    places = _two_places(rng, spacing, (a, b), sizes[1])
    if places is None:
        return None
    # Either may be the right one: no rule that looks at the options alone does better than chance.
    places = places[::-1] if rng.random() < 0.5 else places
    sizes = sizes[::-1] if rng.random() < 0.5 else sizes
    (right, right_size), (wrong, wrong_size) = zip(places, sizes, strict=True)
    boxes = [_standing(*pair) for pair in ((right, right_size), (wrong, right_size), (right, wrong_size), (wrong, wrong_size))]
    return Layout(a, b, (boxes[0], boxes[1], boxes[2], boxes[3]))


def steps_of(size_m: tuple[float, float, float], spacing: Spacing) -> Steps:
    """A size in whole steps, at least three."""
    x, y, z = (max(3, round(edge / spacing.step_m)) for edge in size_m)
    return x, y, z


def _two_sizes(rng: np.random.Generator, spacing: Spacing, usual: Steps) -> tuple[Steps, Steps]:
    """The smaller and the larger; edges on the ground differ by an even number of steps, so that the middle stays on the grid."""
    share, growth = rng.uniform(*spacing.smaller), rng.uniform(*spacing.growth)
    small = [max(3, round(edge * share)) for edge in usual]
    larger = [edge + 2 * max(1, round(edge * (growth - 1) / 2)) for edge in small]
    return (small[0], small[1], small[2]), (larger[0], larger[1], larger[2])


def _two_places(
    rng: np.random.Generator, spacing: Spacing, anchors: tuple[StepBox, StepBox], size: Steps
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Two middles in half steps at which the larger target is clear of both anchors, far enough apart along x."""
    middle = (anchors[0].high[0] + anchors[1].low[0], anchors[0].high[1])
    found: list[tuple[int, int]] = []
    for _ in range(_TRIES):
        x, y = (m + 2 * int(rng.integers(-spacing.reach, spacing.reach + 1)) for m in middle)
        place = (x + (x - size[0]) % 2, y + (y - size[1]) % 2)
        box = _standing(place, size)
        if not all(box.apart(anchor, spacing.gap) for anchor in anchors):
            continue
        if not found:
            found.append(place)
        elif abs(place[0] - found[0][0]) >= 2 * spacing.shift:
            return found[0], place
    return None


def _standing(middle: tuple[int, int], size: Steps) -> StepBox:
    """The box on the ground about a middle in half steps."""
    x, y = ((middle[axis] - size[axis]) // 2 for axis in range(2))
    return StepBox((x, y, 0), (x + size[0], y + size[1], size[2]))


@dataclass(frozen=True, kw_only=True)
class AnchorFrame:
    """The anchors' frame in the scene's: metres, z up in both."""

    origin_m: tuple[float, float, float]
    yaw_deg: float
    """From the scene's x axis to the frame's, counter-clockwise from above."""

    @property
    def axes(self) -> Float[np.ndarray, "axis xyz"]:
        """Unit vectors of x, y and z."""
        turn = math.radians(self.yaw_deg)
        cos, sin = math.cos(turn), math.sin(turn)
        return np.array([(cos, sin, 0.0), (-sin, cos, 0.0), (0.0, 0.0, 1.0)])

    def to_scene(self, points: Float[np.ndarray, "n xyz"]) -> Float[np.ndarray, "n xyz"]:
        """Points of the frame, in the scene's coordinates."""
        x, y, z = self.axes
        return np.array(self.origin_m) + points[:, :1] * x + points[:, 1:2] * y + points[:, 2:] * z

    def from_scene(self, points: Float[np.ndarray, "n xyz"]) -> Float[np.ndarray, "n xyz"]:
        """Points of the scene, in the frame's coordinates."""
        offset = points - np.array(self.origin_m)
        return np.stack([(offset * axis).sum(axis=1) for axis in self.axes], axis=1)


def box_corners(box: list[list[float]]) -> Float[np.ndarray, "8 xyz"]:
    """The eight corners of a box given by its least and greatest: x varies slowest."""
    low, high = box
    return np.array([list(corner) for corner in product(*zip(low, high, strict=True))])


def footprint_of(centre: tuple[float, float], size: tuple[float, float], yaw_deg: float, margin: float = 0.0) -> np.ndarray:
    """The four corners on the ground of a box turned by ``yaw_deg``, counter-clockwise, widened by ``margin`` on each side."""
    turn = math.radians(yaw_deg)
    cos, sin = math.cos(turn), math.sin(turn)
    half = [edge / 2 + margin for edge in size]
    corners = [(-half[0], -half[1]), (half[0], -half[1]), (half[0], half[1]), (-half[0], half[1])]
    return np.array([(centre[0] + x * cos - y * sin, centre[1] + x * sin + y * cos) for x, y in corners])


def footprints_overlap(one: Float[np.ndarray, "n xy"], other: Float[np.ndarray, "m xy"]) -> bool:
    """Whether two convex polygons share a point (separating axes: Gottschalk, Lin and Manocha 1996)."""
    for polygon in (one, other):
        edge = np.roll(polygon, -1, axis=0) - polygon
        for x, y in zip(-edge[:, 1], edge[:, 0], strict=True):
            first, second = (outline[:, 0] * x + outline[:, 1] * y for outline in (one, other))
            if first.max() < second.min() or second.max() < first.min():
                return False
    return True
