"""Pictures: the same bytes everywhere, smooth edges, light that follows its laws."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from deixis.benchmarks.render import FAST, SHAPES, STANDARD, Camera, Figure, Quality, draw, footprint, memory_scene
from deixis.benchmarks.render.memory_scene import INKS

FIGURE = Figure(shape="star", colour="red", distance_m=1.5, x_m=0.05)
SHA = """
import hashlib
from deixis.benchmarks.render import Camera, Figure, draw, memory_scene
figure = Figure(shape="star", colour="red", distance_m=1.5, x_m=0.05)
print(hashlib.sha256(draw(memory_scene(figure), Camera().view(96)).pixels.tobytes()).hexdigest())
"""


def picture(figure=FIGURE, size=96, quality=STANDARD):
    return draw(memory_scene(figure), Camera().view(size), quality)


def test_the_same_arguments_give_the_same_bytes():
    assert picture().pixels.tobytes() == picture().pixels.tobytes()
    assert picture().pixels.tobytes() != picture(Figure(shape="star", colour="red", distance_m=1.5, x_m=0.06)).pixels.tobytes()


@pytest.mark.parametrize("kept", [0, 1])
def test_a_processor_without_wide_vectors_draws_the_same_bytes(kept):
    """numpy chooses its kernels by the processor; here it is told to leave out all but the ``kept`` narrowest sets."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    known = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)][kept:]
    if not known:
        pytest.skip("this processor has none of these instructions")
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(known)}
    done = subprocess.run([sys.executable, "-c", SHA], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(picture().pixels.tobytes()).hexdigest()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("colour", INKS)
def test_the_figures_pixels_have_its_colour(shape, colour):
    scene = memory_scene(Figure(shape=shape, colour=colour, distance_m=0.8))
    seen = draw(scene, Camera().view(64), FAST)
    inside = seen.objects == scene.names.index("figure")
    red, green, blue = np.median(seen.pixels[inside], axis=0)
    assert {
        "red": red > 1.5 * max(green, blue),
        "green": green > 1.3 * max(red, blue),
        "blue": blue > 1.5 * max(red, green),
        "black": max(red, green, blue) < 90,
    }[colour]


def test_edges_are_supersampled():
    """Along the disk's border most pixels lie between the disk's grey and the desk's; one sample gives one or the other."""
    figure = Figure(shape="circle", colour="black", distance_m=0.8)
    hard, smooth = (picture(figure, 128, Quality(edge=edge)).pixels.astype(int).sum(axis=2) for edge in (1, 4))
    names, objects = memory_scene(figure).names, picture(figure, 128).objects
    disk, desk = objects == names.index("disk"), objects == names.index("desk")
    neighbours = [np.roll(objects, step, axis) for axis in (0, 1) for step in (1, -1)]
    border = np.any([(disk & (n == names.index("desk"))) | (desk & (n == names.index("disk"))) for n in neighbours], axis=0)
    between = [((image > 100) & (image < 560) & border).sum() for image in (hard, smooth)]
    assert between[1] > 3 * between[0]
    assert between[1] > border.sum() / 3


def test_an_edge_pixel_holds_the_light_of_the_share_that_each_surface_covers():
    """Second route: a picture four times as large, its light averaged (light adds up, bytes do not)."""
    figure = Figure(shape="square", colour="blue", distance_m=1.2)
    large = light(picture(figure, 256, Quality(edge=1))).reshape(64, 4, 64, 4, 3).mean(axis=(1, 3))
    objects = picture(figure, 64).objects
    edge = np.any([objects != np.roll(objects, step, axis) for axis in (0, 1) for step in (1, -1)], axis=0)
    hard, smooth = (np.abs(light(picture(figure, 64, Quality(edge=n))) - large)[edge].mean() for n in (1, 4))
    assert smooth < 0.3 * hard
    assert smooth < 0.01


def light(seen) -> np.ndarray:
    """Linear light of a picture's bytes (sRGB curve)."""
    value = seen.pixels / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def test_depth_is_the_distance_along_the_view():
    seen = picture(Figure(shape="circle", colour="red", distance_m=1.5), 129)
    camera = Camera()
    down = np.radians(-camera.pitch_deg)
    # The middle ray leaves 1.6 m above the desk, 0.7 m before it, and meets height h after (1.6 - h) / sin(pitch).
    meets = -camera.setback_m + camera.height_m / np.tan(down)
    scene = memory_scene(Figure(shape="circle", colour="red", distance_m=1.5))
    row = 64
    top = {"desk": 0.0, "disk": 0.012, "figure": 0.0128}[scene.names[seen.objects[row, row]]]
    assert seen.depth[row, row] == pytest.approx((camera.height_m - top) / np.sin(down), rel=1e-4)
    assert 0 < meets < 3.6


def test_the_outline_is_where_the_renderer_sees_the_disk():
    """Second route: rays through points a little inside the outline meet the disk, a little outside they do not."""
    size, figure = 128, Figure(shape="cross", colour="green", distance_m=2.75, x_m=-0.1)
    scene = memory_scene(figure)
    seen = draw(scene, Camera().view(size), FAST).objects
    outline = footprint(figure, Camera(), size)
    middle = outline.mean(axis=0)
    own = {scene.names.index("disk"), scene.names.index("figure")}
    for scale, inside in ((0.85, True), (1.15, False)):
        for x, y in middle + scale * (outline - middle):
            assert (int(seen[int(y), int(x)]) in own) == inside


def test_brighter_lights_make_a_brighter_picture():
    dark, bright = (
        picture(Figure(shape="star", colour="red", distance_m=1.5, brightness=b), 64, FAST).pixels.mean() for b in (0.92, 1.06)
    )
    assert bright > dark + 2


def test_the_white_disk_stands_out_from_the_black_desk():
    scene = memory_scene(FIGURE)
    seen = picture(FIGURE)
    tone = seen.pixels.mean(axis=2)
    assert tone[seen.objects == scene.names.index("disk")].mean() > 3 * tone[seen.objects == scene.names.index("desk")].mean()


def test_an_unknown_shape_is_refused():
    with pytest.raises(ValueError, match="shape='heart' is not one of: 'circle', 'cross', 'square', 'star', 'triangle'"):
        memory_scene(Figure(shape="heart", colour="red", distance_m=1.0))
