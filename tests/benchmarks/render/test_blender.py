"""Cycles draws what our own renderer draws: same places, colours and light; what needs Blender runs only where it is."""

import math
import os
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from deixis.benchmarks.render import blender, blender_worker, draw
from deixis.benchmarks.render.blender import BLENDER_PYTHON, blender_python, draw_with_blender, seen_colours
from deixis.benchmarks.render.mesh import box
from deixis.benchmarks.render.scene import Material, RectLight, Scene, View
from deixis.benchmarks.render.stage import Stage

BLACK, WHITE = Material((0.0, 0.0, 0.0)), Material((0.9, 0.9, 0.9), emission=1.0)
FRONT = View(position=(0.1, -2.6, 0.9), yaw=3.0, pitch=-8.0, focal=35.0, width=96, height=96)
ASIDE = View(position=(1.9, -1.6, 1.7), yaw=48.0, pitch=-31.0, focal=28.0, width=96, height=64)
needs_blender = pytest.mark.skipif(
    BLENDER_PYTHON not in os.environ and find_spec("bpy") is None, reason=f"no bpy here, and no {BLENDER_PYTHON}"
)


def letter_f() -> Scene:
    """A shining F with a foot towards the camera: no mirror image or turn of it looks the same."""
    scene = Scene(ambient=0.0)
    bars = [((0.0, 0.0, 0.6), (0.2, 0.2, 1.2)), ((0.35, 0.0, 1.1), (0.5, 0.2, 0.2)), ((0.25, 0.0, 0.7), (0.3, 0.2, 0.2))]
    foot = ((0.0, -0.3, 0.05), (0.2, 0.4, 0.1))
    scene.add("f", [(box(centre, size), WHITE) for centre, size in (*bars, foot)])
    scene.add("floor", [(box((0, 0, -0.05), (9, 9, 0.1)), BLACK)])
    scene.add("wall", [(box((0, 3, 1), (9, 0.1, 4)), BLACK)])
    return scene


def linear(values: np.ndarray) -> np.ndarray:
    """Light of sRGB bytes (IEC 61966-2-1)."""
    share = values / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def overlap(one: np.ndarray, two: np.ndarray) -> float:
    """Intersection over union."""
    return float((one & two).sum() / (one | two).sum())


def test_without_blender_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.delenv(BLENDER_PYTHON, raising=False)
    monkeypatch.setattr(blender, "find_spec", lambda _name: None)
    with pytest.raises(
        ImportError, match=r"needs the package bpy; .* numpy below 2.* 'bpy==4\.5\.\*', and set DEIXIS_BLENDER_PYTHON"
    ):
        blender_python()


def test_a_python_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setenv(BLENDER_PYTHON, "no/such/python")
    with pytest.raises(ImportError, match="DEIXIS_BLENDER_PYTHON='no/such/python' is no program; make an environment"):
        blender_python()


def test_the_named_python_is_taken_before_this_one(monkeypatch):
    monkeypatch.setenv(BLENDER_PYTHON, "sh")
    assert blender_python().endswith("/sh")
    monkeypatch.delenv(BLENDER_PYTHON)
    monkeypatch.setattr(blender, "find_spec", lambda _name: object())
    assert blender_python() == sys.executable


@pytest.mark.skipif(find_spec("bpy") is not None, reason="this Python has bpy")
def test_what_went_wrong_in_the_other_process_is_told(monkeypatch):
    monkeypatch.setenv(BLENDER_PYTHON, sys.executable)
    with pytest.raises(RuntimeError, match=r"could not draw the scene \(.*No module named 'bpy'\); check the Python"):
        draw_with_blender(letter_f(), FRONT, 1)


def test_another_release_of_blender_is_refused(monkeypatch, tmp_path):
    other = SimpleNamespace(app=SimpleNamespace(version_string="5.0.1"))
    monkeypatch.setattr(blender_worker, "import_module", lambda _name: other)
    with pytest.raises(SystemExit, match=r"this is Blender 5\.0\.1, and 4\.5 is needed: pip install 'bpy==4\.5\.\*'"):
        blender_worker.main(tmp_path)


@pytest.mark.parametrize("samples", [0, 4097, 2.5, True, "16"])
def test_samples_out_of_range_are_refused(samples):
    with pytest.raises(ValueError, match=r"is no whole number from 1 to 4096; 16 to 64 are usual"):
        blender.check_samples(samples)


def test_colours_are_looked_up_at_nine_places_in_each_pixel():
    """From above, at 2 m and with 18 mm, a picture of 16 pixels is 4 m wide: stripes of 1/12 m are one fine column each."""
    scene, size = Scene(), 16
    stripes = Material((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), "stripes", 1 / 12)
    scene.add("floor", [(box((0, 0, -0.05), (9, 9, 0.1)), stripes)])
    view = View(position=(0.0, 0.0, 2.0), pitch=-90.0, focal=18.0, width=size, height=size)
    found = seen_colours(Stage(scene), view)
    assert found.shape == (3 * size, 3 * size, 3)
    is_blue = np.arange(3 * size) % 2 == 1  # 24 stripes lie left of the middle, so that the first one has an even number
    np.testing.assert_array_equal(found[..., 2], np.tile(is_blue, (3 * size, 1)))
    np.testing.assert_array_equal(found[..., 0], np.tile(~is_blue, (3 * size, 1)))


@needs_blender
@pytest.mark.parametrize("view", [FRONT, ASIDE], ids=["front", "aside"])
def test_silhouettes_agree_and_the_truth_is_ours(view):
    scene = letter_f()
    found, ours = draw_with_blender(scene, view, 16), draw(scene, view)
    np.testing.assert_array_equal(found.objects, ours.objects)
    np.testing.assert_array_equal(found.depth, ours.depth)
    shown, there = linear(found.pixels).mean(axis=2) > 0.45, ours.objects == 0
    assert there.mean() > 0.03
    assert overlap(shown, there) > 0.95
    assert overlap(shown[:, ::-1], there) < 0.8
    assert overlap(shown[::-1], there) < 0.8
    assert overlap(np.roll(shown, 1, axis=1), there) < overlap(shown, there)


@needs_blender
def test_the_same_call_gives_the_same_bytes_and_another_number_of_samples_does_not():
    scene, view = letter_f(), View(position=(0.1, -2.6, 0.9), focal=35.0, width=64, height=64)
    scene.add("ball", [(box((0.5, -0.4, 0.2), (0.3, 0.3, 0.4)), Material((0.4, 0.3, 0.2)))])
    one, two, other = (draw_with_blender(scene, view, samples).pixels for samples in (8, 8, 4))
    assert one.tobytes() == two.tobytes()
    assert one.tobytes() != other.tobytes()


@needs_blender
def test_textures_are_those_of_our_own_renderer():
    """A shining picture in the dark: light plays no part, so that all pixels agree but for noise and the filter along edges."""
    scene = Scene(ambient=0.0)
    painted = Material((0.05, 0.3, 0.05), (0.3, 0.42, 0.15), "landscape", 0.8, 1.0)
    scene.add("picture", [(box((0, 0, 0), (1.6, 0.02, 1.2)), painted)], (0.2, 0.4, 0.8), 20.0)
    found, ours = (d(scene, FRONT).pixels.astype(int) for d in (draw_with_blender, draw))
    off = np.abs(found - ours)
    assert ours.max() > 200
    assert off.mean() < 2.5
    assert np.median(off) <= 2
    assert np.abs(found[:, ::-1] - ours).mean() > 10


@needs_blender
def test_light_of_a_lamp_is_radiance_times_area_over_distance_squared():
    """Outgoing light of a matt floor below a small lamp is albedo * L * A / (pi * h**2) (inverse-square law; Lambert)."""
    albedo, radiance, height = 0.5, 40.0, 1.6
    light = RectLight((0.0, 0.0, height), (0.1, 0.0, 0.0), (0.0, -0.1, 0.0), radiance)
    scene = Scene(ambient=0.0, lights=[light])
    scene.add("floor", [(box((0, 0, -0.05), (6, 6, 0.1)), Material((albedo, albedo, albedo)))])
    view = View(position=(0.0, -1.5, 1.5), pitch=-45.0, focal=85.0, width=25, height=25)
    middle = linear(draw_with_blender(scene, view, 128).pixels[11:14, 11:14]).mean()
    assert middle == pytest.approx(albedo * radiance * light.area / (math.pi * height**2), rel=0.05)
