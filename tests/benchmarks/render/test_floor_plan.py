"""Footprints and free ways, against linear programming and against many points on the way."""

import numpy as np
import pytest
from scipy.optimize import linprog

from deixis.benchmarks.render.floor_plan import Footprint


def drawn(rng: np.random.Generator) -> Footprint:
    (x0, y0), (width, depth), (x, y) = (rng.uniform(a, b, 2).tolist() for a, b in ((-1, 0), (0.1, 1.5), (-1.2, 1.2)))
    return Footprint((x0, y0), (x0 + width, y0 + depth), (x, y), float(rng.uniform(-180, 180)))


def have_common_point(one: Footprint, two: Footprint) -> bool:
    """Second route: a point that lies on the inner side of all eight edges, by a small margin, found by a linear program."""
    rows, limits = [], []
    for corners in (one.corners, two.corners):
        for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            outward = np.array([b[1] - a[1], a[0] - b[0]]) / np.linalg.norm(b - a)
            rows.append(outward)
            limits.append(float(outward @ a) - 1e-6)
    return linprog([0, 0], A_ub=np.array(rows), b_ub=limits, bounds=[(None, None)] * 2).status == 0


def test_rectangles_overlap_where_they_have_a_point_in_common():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(60):
        one, two = drawn(rng), drawn(rng)
        found.append(one.overlaps(two))
        assert found[-1] == two.overlaps(one) == have_common_point(one, two)
    assert 10 < sum(found) < 50


def test_the_distance_to_a_way_is_that_of_its_nearest_point():
    rng = np.random.default_rng(1)
    crossed = 0
    for _ in range(60):
        item = drawn(rng)
        start, end = rng.uniform(-2, 2, (2, 2))
        points = start + (end - start) * np.linspace(0, 1, 2001)[:, None]
        turn = np.radians(item.turn_deg)
        turned = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        own = (points - np.array(item.at)) @ turned.T
        gaps = np.maximum(np.maximum(np.array(item.low) - own, own - np.array(item.high)), 0)
        expected = float(np.hypot(*gaps.T).min())
        crossed += expected == 0
        found = item.distance_to_way((float(start[0]), float(start[1])), (float(end[0]), float(end[1])))
        assert found == pytest.approx(expected, abs=2e-3)
    assert 5 < crossed < 55


def test_standing_still_is_a_way_too():
    item = Footprint((0.0, 0.0), (1.0, 2.0))
    assert item.distance_to_way((4.0, 6.0), (4.0, 6.0)) == pytest.approx(5.0)
    assert item.distance_to_way((0.5, 0.5), (0.5, 0.5)) == 0.0


def test_growing_adds_the_same_on_every_side():
    assert Footprint((0.0, -1.0), (1.0, 2.0)).grown(0.5) == Footprint((-0.5, -1.5), (1.5, 2.5))
