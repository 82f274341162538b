"""Every kind of furniture stands on the floor, is as large as furniture is, and comes out the same from the same chance."""

import numpy as np
import pytest

from deixis.benchmarks.render.finish import PAINTS, WOODS, Finish, drawn_finish
from deixis.benchmarks.render.furniture import FURNITURE, PLACES
from deixis.benchmarks.render.scene import linear_rgb
from deixis.benchmarks.render.solids import bounds


def built(kind, seed: int = 3):
    rng = np.random.default_rng(seed)
    return kind.build(drawn_finish(rng), rng)


@pytest.mark.parametrize("kind", FURNITURE.values(), ids=lambda kind: kind.name)
def test_a_piece_stands_on_the_floor_about_the_origin(kind):
    low, high = bounds([solid for solid, _ in built(kind)])
    size = high - low
    assert low[2] == pytest.approx(0.0, abs=0.003)
    assert 0.2 < size.max() < 2.2
    assert size[:2].min() > 0.2
    # A turned leaf or a handle may stick out on one side, the piece itself may not.
    np.testing.assert_allclose((low + high)[:2] / 2, 0.0, atol=0.2)
    assert kind.place in PLACES


@pytest.mark.parametrize("kind", FURNITURE.values(), ids=lambda kind: kind.name)
def test_a_piece_is_the_same_bytes_from_the_same_seed_and_another_from_another(kind):
    one, again, other = (b"".join(s.corners.tobytes() for s, _ in built(kind, seed)) for seed in (3, 3, 4))
    assert one == again
    assert one != other


@pytest.mark.parametrize("kind", FURNITURE.values(), ids=lambda kind: kind.name)
def test_normals_have_length_one(kind):
    for solid, _ in built(kind):
        np.testing.assert_allclose(np.linalg.norm(solid.normals, axis=2), 1, atol=1e-6)


def test_there_are_at_least_fifteen_kinds_each_under_its_own_name():
    assert len(FURNITURE) >= 15
    assert all(name == kind.name for name, kind in FURNITURE.items())


def test_a_pieces_colour_is_the_one_that_was_asked_for():
    rng = np.random.default_rng(0)
    finish = drawn_finish(rng, colour="red")
    cloths = {m.colour for _, m in FURNITURE["armchair"].build(finish, rng)}
    assert linear_rgb(PAINTS["red"]) in cloths
    assert {drawn_finish(np.random.default_rng(k)).wood for k in range(60)} == set(WOODS)
    assert Finish(colour="blue").paint.colour == linear_rgb(PAINTS["blue"])
