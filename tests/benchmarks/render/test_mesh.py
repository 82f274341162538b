"""Solids are closed, and as large as geometry says."""

import math

import numpy as np
import pytest

from deixis.benchmarks.render.mesh import SHAPES, box, disk, figure_outline, prism
from deixis.benchmarks.render.scene import RectLight, View, linear_rgb


def volume(corners: np.ndarray) -> float:
    """Divergence theorem: signed tetrahedra from the origin; right only for closed, outward-facing surfaces."""
    return float(np.einsum("ni,ni->n", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6)


def polygon_area(outline: np.ndarray) -> float:
    x, y = outline.T
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


def test_a_box_holds_the_product_of_its_edges_wherever_it_stands():
    assert volume(box((3.0, -2.0, 1.0), (0.5, 2.0, 3.0)).corners) == pytest.approx(3.0)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_figure_is_a_closed_prism_over_its_outline(shape):
    outline = figure_outline(shape, 0.2)
    assert polygon_area(outline) > 0  # counter-clockwise
    assert volume(prism(outline, 0.1, 0.3).corners) == pytest.approx(0.2 * polygon_area(outline))


@pytest.mark.parametrize(
    ("shape", "area"),
    [
        ("circle", math.pi * 0.95**2),
        ("square", (2 * 0.8) ** 2),
        ("triangle", 3 * math.sqrt(3) / 4 * 1.05**2),
        ("cross", 4 * 0.98 * 2 * 0.28 - (2 * 0.28) ** 2),
        ("star", 10 * 0.5 * 1.05 * 0.42 * math.sin(math.pi / 5)),
    ],
)
def test_outlines_have_their_closed_form_areas(shape, area):
    assert polygon_area(figure_outline(shape, 1.0)) == pytest.approx(area, rel=1e-3)


def test_a_disk_is_a_cylinder_less_its_bevel():
    radius, thickness, bevel = 0.22, 0.012, 0.002
    # A frustum on a cylinder: pi h (R^2 + R r + r^2) / 3.
    small = radius - bevel
    expected = math.pi * (radius**2 * (thickness - bevel) + bevel * (radius**2 + radius * small + small**2) / 3)
    assert volume(disk(radius, thickness, bevel).corners) == pytest.approx(expected, rel=1e-3)


def test_normals_point_outwards_and_have_length_one():
    for solid in (disk(0.2, 0.02), box((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))):
        np.testing.assert_allclose(np.linalg.norm(solid.normals, axis=2), 1, atol=1e-9)
        middle = solid.corners.reshape(-1, 3).mean(axis=0)
        outward = ((solid.corners.mean(axis=1) - middle) * solid.normals.mean(axis=1)).sum(axis=1)
        assert (outward > -1e-9).all()


def test_rays_and_projection_undo_each_other():
    view = View(position=(0.3, -0.7, 1.6), yaw=12.0, pitch=-40.0, focal=35.0, width=200, height=100)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 200, 50), rng.uniform(0, 100, 50)
    points = np.array(view.position) + view.rays(x, y) * rng.uniform(0.5, 9, (50, 1))
    np.testing.assert_allclose(view.project(points), np.stack([x, y], axis=1), atol=1e-9)
    np.testing.assert_allclose(view.axes @ view.axes.T, np.eye(3), atol=1e-12)


def test_a_light_knows_its_area_and_its_lit_side():
    light = RectLight((0.0, 0.0, 2.0), (0.7, 0.0, 0.0), (0.0, -0.6, 0.0), 1.0)
    assert light.area == pytest.approx(1.4 * 1.2)
    np.testing.assert_allclose(light.normal, (0, 0, -1))


def test_colours_follow_the_srgb_curve():
    assert linear_rgb("#000000") == (0, 0, 0)
    assert linear_rgb("#ffffff") == pytest.approx((1, 1, 1))
    assert linear_rgb("#bc0000")[0] == pytest.approx(0.5028865, abs=1e-5)  # value of 188 in IEC 61966-2-1
