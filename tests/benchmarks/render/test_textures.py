"""Textures give light between 0 and 1, lie where they should, and move with their object."""

import numpy as np
import pytest

from deixis.benchmarks.render import Quality, draw
from deixis.benchmarks.render.mesh import box
from deixis.benchmarks.render.scene import Material, Scene, View
from deixis.benchmarks.render.textures import TEXTURES, textured

ONE, TWO = (0.8, 0.1, 0.1), (0.1, 0.1, 0.8)


def colours(texture: str, points: list[tuple[float, float, float]], scale: float = 1.0) -> np.ndarray:
    return textured(Material(ONE, TWO, texture, scale), np.array(points, np.float32))


@pytest.mark.parametrize("texture", TEXTURES)
def test_a_texture_stays_between_its_colours_or_is_a_picture(texture):
    points = np.random.default_rng(0).uniform(-2, 2, (500, 3)).astype(np.float32)
    found = textured(Material(ONE, TWO, texture, 0.5), points)
    assert found.dtype == np.float32
    assert found.shape == (500, 3)
    assert (found >= 0).all()
    assert (found <= 1).all()
    assert len(np.unique(found, axis=0)) >= 2


def test_joints_lie_along_the_tiles_edges():
    joint, tile = colours("tiles", [(1.002, 0.3, 0.0), (1.25, 0.3, 0.0)], scale=0.5)
    np.testing.assert_allclose(joint, TWO, rtol=1e-6)
    assert tile[0] == pytest.approx(ONE[0], rel=0.06)


def test_stripes_and_rings_have_the_widths_they_say():
    red, blue, red_again = colours("stripes", [(0.1, 5, 0), (0.3, -5, 0), (0.5, 0, 0)], scale=0.2)
    assert (red == red_again).all()
    assert (red != blue).any()
    inner, outer = colours("rings", [(0.05, 0.05, 0), (0.15, 0.15, 0)], scale=1.0)
    assert (inner != outer).any()


def test_a_rug_has_a_stripe_near_its_edge():
    edge, outside = colours("rug", [(0.9, 0.0, 0.0), (0.97, 0.0, 0.0)])
    np.testing.assert_allclose(edge, TWO, rtol=1e-6)
    np.testing.assert_allclose(outside, ONE, rtol=1e-6)


def test_grain_is_finer_across_than_along():
    steps = [(0.02 * k, 0.0, 0.0) for k in range(40)]
    along = np.abs(np.diff(colours("wood", steps)[:, 0])).mean()
    across = np.abs(np.diff(colours("wood", [(z, x, y) for x, y, z in steps])[:, 0])).mean()
    upright = np.abs(np.diff(colours("upright wood", [(y, z, x) for x, y, z in steps])[:, 0])).mean()
    assert across > 3 * along
    assert across > 3 * upright


def test_a_texture_turns_with_its_object():
    """Seen from above, a striped plate turned by a quarter is the turned picture of the plate."""
    pictures = []
    for turn in (0.0, 90.0):
        scene = Scene(ambient=1.0)
        scene.add("plate", [(box((0, 0, 0), (2, 2, 0.1)), Material(ONE, TWO, "stripes", 0.37))], (0.3, 0.2, 0.0), turn)
        view = View(position=(0.3, 0.2, 3.0), pitch=-90.0, focal=60.0, width=32, height=32)
        pictures.append(draw(scene, view, Quality(edge=1)).pixels.astype(int))
    assert pictures[0].std() > 20
    assert (np.abs(np.rot90(pictures[0]) - pictures[1]).max(axis=2) <= 1).mean() > 0.9


def test_an_unknown_texture_is_refused():
    with pytest.raises(ValueError, match="texture='marble' is not one of: 'planks', 'tiles'"):
        colours("marble", [(0.0, 0.0, 0.0)])
