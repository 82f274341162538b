"""A stage is a scene seen many times: the same pictures, its parts made once."""

import numpy as np

from deixis.benchmarks.render import FAST, Camera, Figure, draw, memory_scene
from deixis.benchmarks.render.scene import Air, Scene
from deixis.benchmarks.render.stage import Stage

SCENE = memory_scene(Figure(shape="star", colour="red", distance_m=1.0))


def test_a_stage_is_drawn_like_its_scene():
    view = Camera().view(48)
    one, two = draw(SCENE, view, FAST), draw(Stage(SCENE), view, FAST)
    assert one.pixels.tobytes() == two.pixels.tobytes()


def test_numbers_and_depth_without_light_are_those_of_the_picture():
    view, stage = Camera().view(48), Stage(SCENE)
    picture = draw(stage, view, FAST)
    numbers, depth = stage.seen(view)
    np.testing.assert_array_equal(numbers, picture.objects)
    np.testing.assert_array_equal(depth, picture.depth)
    np.testing.assert_array_equal(stage.objects(view), numbers)


def test_bounced_light_is_gathered_once_and_only_where_there_is_air():
    assert Stage(SCENE).air is None
    stage = Stage(Scene(air=Air((-1.0, -1.0, 0.1), (1.0, 1.0, 2.0), (2, 2, 2)), solids=SCENE.solids, names=SCENE.names))
    assert stage.air is stage.air is not None
