"""Solids are closed, as large as geometry says, and keep their shape when they are turned and moved."""

import math

import numpy as np
import pytest

from deixis.benchmarks.render.mesh import Solid, box
from deixis.benchmarks.render.scene import Material, Placement, Scene
from deixis.benchmarks.render.solids import (
    bounds,
    cylinder,
    joined,
    moved,
    rotated,
    rounded_box,
    scaled,
    sheet,
    sphere,
    torus,
)

CENTRE = (0.4, -1.0, 2.0)


def volume(solid: Solid) -> float:
    """Divergence theorem: signed tetrahedra from the origin; right only for closed, outward-facing surfaces."""
    a, b, c = np.moveaxis(solid.corners, 1, 0)
    return float((a * np.cross(b, c)).sum() / 6)


def rounded_volume(size, radius) -> float:
    """Steiner's formula for a box swept by a ball."""
    a, b, c = (edge - 2 * radius for edge in size)
    return a * b * c + 2 * radius * (a * b + b * c + c * a) + math.pi * radius**2 * (a + b + c) + 4 / 3 * math.pi * radius**3


@pytest.mark.parametrize(("size", "radius"), [((0.5, 0.8, 0.3), 0.05), ((1.0, 1.0, 1.0), 0.5), ((0.4, 0.1, 0.6), 0.02)])
def test_a_rounded_box_holds_what_steiners_formula_says(size, radius):
    solid = rounded_box(CENTRE, size, radius, steps=24)
    assert volume(solid) == pytest.approx(rounded_volume(size, radius), rel=5e-3)
    low, high = bounds([solid])
    np.testing.assert_allclose(high - low, size, atol=1e-12)
    np.testing.assert_allclose((high + low) / 2, CENTRE, atol=1e-12)


def test_a_radius_too_large_for_the_box_becomes_the_largest_that_fits():
    low, high = bounds([rounded_box((0, 0, 0), (0.2, 0.4, 0.4), 3.0)])
    np.testing.assert_allclose(high - low, (0.2, 0.4, 0.4))


def test_round_solids_hold_their_closed_form_volumes():
    assert volume(cylinder(CENTRE, 0.3, 2.0, 256)) == pytest.approx(math.pi * 0.09 * 2.0, rel=1e-3)
    frustum = math.pi * 2.0 / 3 * (0.3**2 + 0.3 * 0.1 + 0.1**2)
    assert volume(cylinder(CENTRE, 0.3, 2.0, 256, top_radius=0.1)) == pytest.approx(frustum, rel=1e-3)
    assert volume(sphere(CENTRE, 0.7, 128, 64)) == pytest.approx(4 / 3 * math.pi * 0.7**3, rel=2e-3)
    assert volume(torus(CENTRE, 0.5, 0.1, 256, 128)) == pytest.approx(2 * math.pi**2 * 0.5 * 0.01, rel=2e-3)


@pytest.mark.parametrize("solid", [rounded_box((0, 0, 0), (1, 2, 3), 0.2), sphere((0, 0, 0), 1.0), torus((0, 0, 0), 1.0, 0.2)])
def test_normals_have_length_one_and_lie_on_the_outer_side_of_their_triangles(solid):
    np.testing.assert_allclose(np.linalg.norm(solid.normals, axis=2), 1, atol=1e-9)
    face = np.cross(solid.corners[:, 1] - solid.corners[:, 0], solid.corners[:, 2] - solid.corners[:, 0])
    assert ((face[:, None] * solid.normals).sum(axis=2) > 0).all()


@pytest.mark.parametrize(
    ("axis", "point", "turned"), [("x", (0, 1, 0), (0, 0, 1)), ("y", (0, 0, 1), (1, 0, 0)), ("z", (1, 0, 0), (0, 1, 0))]
)
def test_a_quarter_turn_takes_one_axis_to_the_next(axis, point, turned):
    corners = np.array([[point] * 3], float)
    np.testing.assert_allclose(rotated(Solid(corners, corners), axis, 90.0).corners[0, 0], turned, atol=1e-12)


def test_turning_and_moving_keep_volume_and_an_uneven_scaling_multiplies_it():
    solid = rounded_box(CENTRE, (0.5, 0.8, 0.3), 0.05)
    assert volume(moved(rotated(solid, "y", 33.0), (1, 2, 3))) == pytest.approx(volume(solid))
    assert volume(scaled(solid, (2.0, 3.0, 0.5))) == pytest.approx(3.0 * volume(solid))
    assert volume(joined([solid, moved(solid, (5, 0, 0))])) == pytest.approx(2 * volume(solid))


def test_the_normals_of_an_uneven_scaling_stay_at_right_angles_to_the_surface():
    """A ball scaled to an ellipsoid has the closed-form normal (x/a^2, y/b^2, z/c^2)."""
    axes = np.array([2.0, 1.0, 0.5])
    solid = scaled(sphere((0, 0, 0), 1.0), tuple(axes))
    expected = solid.corners / axes**2
    expected /= np.linalg.norm(expected, axis=2, keepdims=True)
    np.testing.assert_allclose(solid.normals, expected, atol=1e-9)


def test_a_flat_sheet_faces_one_way():
    x, y = np.meshgrid([0.0, 1.0, 2.0], [0.0, 1.0], indexing="ij")
    solid = sheet(np.stack([x, y, 0 * x], axis=2))
    assert np.abs(solid.normals[..., 2]).min() == pytest.approx(1.0)
    assert len(solid.corners) == 4


def test_what_cannot_be_is_refused():
    solid = box((0, 0, 0), (1, 1, 1))
    with pytest.raises(ValueError, match="axis='up' is not one of: 'x', 'y', 'z'"):
        rotated(solid, "up", 10.0)
    with pytest.raises(ValueError, match=r"by=0.0 is not above 0 on every axis; give factors such as 1.2"):
        scaled(solid, 0.0)


def test_an_objects_own_frame_undoes_its_placement():
    scene = Scene()
    number = scene.add("block", [(box((0.1, 0.2, 0.3), (0.2, 0.4, 0.6)), Material((1.0, 1.0, 1.0)))], (2.0, 1.0, 0.5), 37.0)
    placed = scene.solids[0][0].corners.reshape(-1, 3)
    own = scene.placements[number].inverse(placed)
    np.testing.assert_allclose(own, box((0.1, 0.2, 0.3), (0.2, 0.4, 0.6)).corners.reshape(-1, 3), atol=1e-12)
    still = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    assert Placement().inverse(still).tobytes() == still.tobytes()
