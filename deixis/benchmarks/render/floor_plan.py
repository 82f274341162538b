"""What stands where on a floor: rectangles that must not overlap, and free ways between them."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Point = tuple[float, float]


@dataclass(frozen=True)
class Footprint:
    """A rectangle on the floor: its edges lie along x and y of its own frame, which is turned about the origin, then moved."""

    low: Point
    high: Point
    at: Point = (0.0, 0.0)
    turn_deg: float = 0.0

    @property
    def corners(self) -> Float[np.ndarray, "4 xy"]:
        """In the room's frame, counter-clockwise."""
        (x0, y0), (x1, y1) = self.low, self.high
        return np.array([self._placed(corner) for corner in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))])

    def grown(self, by: float) -> "Footprint":
        """Larger by ``by`` metres on every side."""
        low, high = (self.low[0] - by, self.low[1] - by), (self.high[0] + by, self.high[1] + by)
        return Footprint(low, high, self.at, self.turn_deg)

    def overlaps(self, other: "Footprint") -> bool:
        """Whether the two have inner points in common (separating axes: Gottschalk et al. 1996)."""
        mine, theirs = self.corners, other.corners
        for turn in (self.turn_deg, other.turn_deg):
            for angle in (math.radians(turn), math.radians(turn + 90)):
                cos, sin = math.cos(angle), math.sin(angle)
                one, two = (corners[:, 0] * cos + corners[:, 1] * sin for corners in (mine, theirs))
                if one.max() <= two.min() + 1e-9 or two.max() <= one.min() + 1e-9:
                    return False
        return True

    def distance_to_way(self, start: Point, end: Point) -> float:
        """From the rectangle to the straight way between two points, 0 where it crosses."""
        one, two = self._own(start), self._own(end)
        if self._crosses(one, two):
            return 0.0
        corners = [(x, y) for x in (self.low[0], self.high[0]) for y in (self.low[1], self.high[1])]
        return min(*(self._to_point(p) for p in (one, two)), *(_point_to_way(corner, one, two) for corner in corners))

    def _placed(self, point: Point) -> Point:
        cos, sin = math.cos(math.radians(self.turn_deg)), math.sin(math.radians(self.turn_deg))
        return self.at[0] + point[0] * cos - point[1] * sin, self.at[1] + point[0] * sin + point[1] * cos

    def _own(self, point: Point) -> Point:
        cos, sin = math.cos(math.radians(self.turn_deg)), math.sin(math.radians(self.turn_deg))
        x, y = point[0] - self.at[0], point[1] - self.at[1]
        return x * cos + y * sin, y * cos - x * sin

    def _to_point(self, point: Point) -> float:
        gaps = [max(low - p, p - high, 0.0) for p, low, high in zip(point, self.low, self.high, strict=True)]
        return math.hypot(*gaps)

    def _crosses(self, start: Point, end: Point) -> bool:
        """Whether the way meets the rectangle: the way's part inside each pair of sides must have a common piece."""
        first, last = 0.0, 1.0
        for p, q, low, high in zip(start, end, self.low, self.high, strict=True):
            step = q - p
            if abs(step) < 1e-12:
                if not low <= p <= high:
                    return False
                continue
            near, far = sorted(((low - p) / step, (high - p) / step))
            first, last = max(first, near), min(last, far)
        return first <= last


def _point_to_way(point: Point, start: Point, end: Point) -> float:
    along = (end[0] - start[0], end[1] - start[1])
    square = along[0] ** 2 + along[1] ** 2
    share = 0.0 if square == 0 else ((point[0] - start[0]) * along[0] + (point[1] - start[1]) * along[1]) / square
    share = min(max(share, 0.0), 1.0)
    return math.hypot(point[0] - start[0] - share * along[0], point[1] - start[1] - share * along[1])
