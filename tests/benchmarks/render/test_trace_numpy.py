"""Embree and numpy are two routes to the same hits."""

import numpy as np
import pytest

from deixis.benchmarks.render import SHAPES, STANDARD, Camera, Figure, draw, memory_scene, stage
from deixis.benchmarks.render.trace import Tracer
from deixis.benchmarks.render.trace_numpy import NumpyTracer


@pytest.mark.parametrize("shape", SHAPES)
def test_both_tracers_see_the_same_scene(shape: str) -> None:
    scene = memory_scene(Figure(shape=shape, colour="red", distance_m=0.6, x_m=0.05))
    view = Camera().view(96)
    rows, columns = np.mgrid[0:96, 0:96]
    direction = view.rays(columns.ravel() + 0.5, rows.ravel() + 0.5).astype(np.float32)
    origin = np.broadcast_to(np.array(view.position, np.float32), direction.shape)
    one, two = Tracer(scene).first(origin, direction), NumpyTracer(scene).first(origin, direction)
    assert (one.object == two.object).mean() > 0.999
    same = one.object == two.object
    np.testing.assert_allclose(one.depth[same], two.depth[same], rtol=1e-5)
    assert ((one.facing[same] * two.facing[same]).sum(axis=1) > 0.999).mean() > 0.999
    assert set(np.unique(one.object)) >= {2, 3}  # disk and figure are in sight


def test_both_tracers_cast_the_same_shadows() -> None:
    scene = memory_scene(Figure(shape="star", colour="red", distance_m=0.6))
    rng = np.random.default_rng(0)
    origin = rng.uniform((-1, 0, -0.7), (1, 3, 0.5), (4000, 3)).astype(np.float32)
    offset = (np.array([0.3, 1.0, 2.0]) - origin).astype(np.float32)
    one, two = Tracer(scene).blocked(origin, offset), NumpyTracer(scene).blocked(origin, offset)
    assert (one == two).mean() > 0.999
    assert 0.05 < one.mean() < 0.95


def test_an_addressee_seen_from_the_side_is_the_same_to_both() -> None:
    scene = memory_scene(Figure(shape="star", colour="red", distance_m=0.6, addressee_m=1.5))
    view = Camera(x_m=0.6, yaw_deg=15.0).view(64)
    rows, columns = np.mgrid[0:64, 0:64]
    direction = view.rays(columns.ravel() + 0.5, rows.ravel() + 0.5).astype(np.float32)
    origin = np.broadcast_to(np.array(view.position, np.float32), direction.shape)
    one, two = Tracer(scene).first(origin, direction), NumpyTracer(scene).first(origin, direction)
    assert (one.object == two.object).mean() > 0.999
    assert (one.object == scene.names.index("addressee")).mean() > 0.01
    same = one.object == two.object
    np.testing.assert_allclose(one.depth[same], two.depth[same], rtol=1e-5)


def test_pictures_without_embree_differ_by_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, view = memory_scene(Figure(shape="cross", colour="blue", distance_m=1.5)), Camera().view(64)
    with_embree = draw(scene, view, STANDARD)
    monkeypatch.setattr(stage, "find_spec", lambda _: None)
    without = draw(scene, view, STANDARD)
    assert (with_embree.objects == without.objects).mean() > 0.999
    assert np.abs(with_embree.pixels.astype(int) - without.pixels).mean() < 0.05
