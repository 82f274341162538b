"""Small things and pieces of furniture: each fills its box, shows its colour, and differs from the others in outline."""

from itertools import combinations

import numpy as np
import pytest

from deixis.benchmarks.render.desk import DeskSetting, desk_stage
from deixis.benchmarks.render.finish import PAINTS
from deixis.benchmarks.render.open_room import (
    BACKGROUND_ONLY,
    COLOURED,
    PIECE_COLOURS,
    PLAIN,
    RoomSetting,
    piece,
    room_stage,
    usual_size,
)
from deixis.benchmarks.render.scene import Scene, View, linear_rgb
from deixis.benchmarks.render.shade import FAST, draw
from deixis.benchmarks.render.small_things import COLOURS, SMALL_THINGS, small_thing
from deixis.benchmarks.render.solids import bounds
from deixis.benchmarks.render.stage import Stage


def outline(parts, size=24):
    """The outline seen from the front and a little above, as a picture of ones and zeros that fills its frame."""
    scene = Scene()
    scene.add("thing", parts)
    numbers = Stage(scene).objects(View(position=(0.0, -6.0, 2.5), pitch=-20.0, focal=150.0, width=size, height=size))
    return numbers == 0


@pytest.mark.parametrize("kind", SMALL_THINGS)
def test_a_small_thing_fills_its_box_whatever_its_proportions(kind):
    for size in (SMALL_THINGS[kind].size_m, (0.2, 0.1, 0.3)):
        low, high = bounds([solid for solid, _ in small_thing(kind, "red", size)])
        np.testing.assert_allclose(low, [-size[0] / 2, -size[1] / 2, 0.0], atol=1e-12)
        np.testing.assert_allclose(high, [size[0] / 2, size[1] / 2, size[2]], atol=1e-12)


@pytest.mark.parametrize("kind", SMALL_THINGS)
def test_a_small_thing_shows_its_colour(kind):
    for colour in ("red", "blue"):
        stage = desk_stage(DeskSetting())
        stage.add("thing", small_thing(kind, colour, SMALL_THINGS[kind].size_m), (0.0, 0.5, 0.0))
        seen = draw(stage, View(position=(0.0, -0.1, 0.5), pitch=-35.0, focal=60.0, width=48, height=48), FAST)
        pixels = seen.pixels[seen.objects == stage.names.index("thing")].astype(int)
        red, green, blue = pixels.T
        mine = (red > 1.5 * np.maximum(green, blue)) if colour == "red" else (blue > 1.3 * np.maximum(red, green))
        assert mine.mean() > 0.12


def test_kinds_differ_in_outline():
    outlines = {kind: outline(small_thing(kind, "red", (1.0, 1.0, 1.0))) for kind in SMALL_THINGS}
    assert len(outlines) >= 10
    for one, other in combinations(SMALL_THINGS, 2):
        a, b = outlines[one], outlines[other]
        assert a.sum() > 60
        # Filled to the same cube, the outlines of boxes and of cylinders are alike; usual sizes and details tell those apart.
        same = (a & b).sum() / (a | b).sum()
        ratio = [SMALL_THINGS[k].size_m[2] / SMALL_THINGS[k].size_m[0] for k in (one, other)]
        assert same < 0.95 or max(ratio) / min(ratio) > 1.2 or {one, other} <= {"block", "gift box", "ball", "apple"}


def test_unknown_kinds_and_colours_are_refused():
    with pytest.raises(ValueError, match="kind='spoon' is not one of: 'mug', 'bowl'"):
        small_thing("spoon", "red", (1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="colour='grey' is not one of: 'red'"):
        small_thing("mug", "grey", (1.0, 1.0, 1.0))


@pytest.mark.parametrize("kind", [*COLOURED, *PLAIN, *BACKGROUND_ONLY])
def test_a_piece_of_furniture_fills_its_box(kind):
    for size in (usual_size(kind, "blue"), (1.0, 0.5, 0.8)):
        low, high = bounds([solid for solid, _ in piece(kind, "blue", size)])
        np.testing.assert_allclose(low, [-size[0] / 2, -size[1] / 2, 0.0], atol=1e-12)
        np.testing.assert_allclose(high, [size[0] / 2, size[1] / 2, size[2]], atol=1e-12)


@pytest.mark.parametrize("kind", COLOURED)
def test_furniture_that_is_called_by_a_colour_has_it(kind):
    for colour in PIECE_COLOURS:
        tone, shares = np.array(linear_rgb(PAINTS[colour])), {True: 0.0, False: 0.0}
        for solid, material in piece(kind, colour, usual_size(kind, colour)):
            edges = solid.corners[:, 1:] - solid.corners[:, :1]
            area = float(np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1).sum())
            shares[bool(np.abs(np.array(material.colour) - tone).max() < 0.12)] += area
        assert shares[True] / (shares[True] + shares[False]) > 0.15


def test_no_name_is_used_for_two_kinds():
    names = [*SMALL_THINGS, *COLOURED, *PLAIN, *BACKGROUND_ONLY]
    assert len(set(names)) == len(names)
    assert len(COLOURS) >= 7  # three objects and four pieces of clutter, all of different colours
    assert len(PIECE_COLOURS) >= 7


def test_brightness_scales_the_lights_alone():
    for stage, setting in ((desk_stage, DeskSetting), (room_stage, RoomSetting)):
        dim, bright = stage(setting(brightness=0.5)), stage(setting(brightness=1.0))
        assert [light.radiance * 2 for light in dim.lights] == [light.radiance for light in bright.lights]
        assert dim.names == bright.names
