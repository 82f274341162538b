"""Bounced light against closed forms: a furnace, a small lamp, a shadow; and the same from every view."""

import math

import numpy as np
import pytest

from deixis.benchmarks.render import Quality, draw
from deixis.benchmarks.render.air import direct_light, sequence
from deixis.benchmarks.render.mesh import box
from deixis.benchmarks.render.scene import Air, Material, RectLight, Scene, View
from deixis.benchmarks.render.stage import Stage

AIR = Air((-1.8, -1.8, 0.2), (1.8, 1.8, 2.4), (4, 4, 4))


def closed_room(material: Material) -> Scene:
    """Four by four by 2.6 metres, all of one material."""
    scene = Scene(air=AIR)
    walls = ((-2.05, 0), (2.05, 0), (0, 2.05), (0, -2.05))
    sides = [((x, y, 1.3), (0.1 if x else 4.2, 0.1 if y else 4.2, 2.6)) for x, y in walls]
    flat = [((0, 0, z), (4.2, 4.2, 0.1)) for z in (-0.05, 2.65)]
    scene.add("room", [(box(centre, size), material) for centre, size in (*sides, *flat)])
    return scene


def test_in_a_furnace_light_adds_up_as_a_geometric_series():
    """Walls that glow evenly: each bounce multiplies by the albedo, whatever the place or direction (three bounces are kept)."""
    albedo, glow = (0.5, 0.4, 0.2), 0.6
    air = Stage(closed_room(Material(albedo, emission=glow))).air
    assert air is not None
    rng = np.random.default_rng(0)
    points = rng.uniform((-1.9, -1.9, 0), (1.9, 1.9, 2.5), (50, 3)).astype(np.float32)
    normals = rng.normal(size=(50, 3))
    normals = (normals / np.linalg.norm(normals, axis=1, keepdims=True)).astype(np.float32)
    # A lamp's glow counts by 0.8 for what lies around it.
    expected = [0.8 * glow * a * (1 + a + a * a) for a in albedo]
    np.testing.assert_allclose(air.at(points, normals), [expected] * 50, rtol=1e-4)


def test_a_picture_of_the_furnace_has_that_light_times_the_albedo_plus_the_glow():
    albedo, glow = 0.5, 0.6
    scene = closed_room(Material((albedo, albedo, albedo), emission=glow))
    pixels = draw(scene, View(position=(0.0, 0.0, 1.3), focal=60.0, width=16, height=16), Quality(edge=1)).pixels
    light = albedo * (0.8 * glow * albedo * (1 + albedo + albedo**2) + glow)
    srgb = 255 * (1.055 * light ** (1 / 2.4) - 0.055)
    assert np.abs(pixels.astype(float) - srgb).max() <= 1.0


def test_a_small_lamp_lights_by_the_inverse_square_law():
    """E / pi = L A cos(theta) cos(theta') / (pi d^2) for a lamp much smaller than its distance."""
    scene = closed_room(Material((0.5, 0.5, 0.5)))
    scene.lights.append(RectLight((0.0, 0.0, 2.0), (0.01, 0.0, 0.0), (0.0, -0.01, 0.0), 300.0))
    tracer = Stage(scene).tracer
    origin = np.array([[0.0, 0.0, 1.0], [0.8, 0.3, 1.0], [-1.5, 1.1, 0.5]], np.float32)
    hits = tracer.first(origin, np.array([[0.0, 0.0, -1.0]] * 3, np.float32))
    x, y = origin[:, 0], origin[:, 1]
    square = x**2 + y**2 + 4.0
    expected = 300.0 * 0.0004 / math.pi * (2.0 / np.sqrt(square)) ** 2 / square
    np.testing.assert_allclose(direct_light(scene, tracer, hits), expected, rtol=0.02)


def test_what_stands_before_a_lamp_takes_its_light():
    scene = closed_room(Material((0.5, 0.5, 0.5)))
    scene.lights.append(RectLight((0.0, 0.0, 2.0), (0.01, 0.0, 0.0), (0.0, -0.01, 0.0), 300.0))
    scene.add("plate", [(box((0, 0, 1.5), (0.5, 0.5, 0.02)), Material((0.5, 0.5, 0.5)))])
    tracer = Stage(scene).tracer
    origin = np.array([[0.1, 0.0, 1.0], [1.6, 0.0, 1.0]], np.float32)
    below, beside = direct_light(scene, tracer, tracer.first(origin, np.array([[0.0, 0.0, -1.0]] * 2, np.float32)))
    assert below == 0.0
    assert beside > 0.0


def test_a_red_wall_reddens_the_light_before_it():
    scene = closed_room(Material((0.6, 0.6, 0.6)))
    scene.add("red", [(box((-1.95, 0, 1.3), (0.02, 3.9, 2.5)), Material((0.7, 0.05, 0.05)))])
    scene.lights.append(RectLight((0.0, 0.0, 2.5), (0.4, 0.0, 0.0), (0.0, -0.4, 0.0), 10.0))
    air = Stage(scene).air
    assert air is not None
    near, far = air.at(np.array([[-1.5, 0, 1.0], [1.5, 0, 1.0]], np.float32), np.array([[-1.0, 0, 0], [1.0, 0, 0]], np.float32))
    assert near[0] > 1.5 * near[1]
    assert far[0] < 1.3 * far[1]


def test_points_inside_furniture_take_the_light_of_their_neighbours():
    scene = closed_room(Material((0.5, 0.5, 0.5)))
    scene.lights.append(RectLight((0.0, 0.0, 2.5), (0.4, 0.0, 0.0), (0.0, -0.4, 0.0), 10.0))
    # Holds the grid's point (0.6, 0.6, 0.2) so tightly that most rays from there end at once.
    scene.add("block", [(box((0.6, 0.6, 0.2), (0.1, 0.1, 0.1)), Material((0.5, 0.5, 0.5)))])
    air = Stage(scene).air
    assert air is not None
    up = np.array([[0.0, 0.0, 1.0]], np.float32)
    inside, opposite = (air.at(np.array([[x, 0.6, 0.06]], np.float32), up)[0, 0] for x in (0.6, -0.6))
    assert inside == pytest.approx(opposite, rel=0.35)


def test_an_open_place_loses_no_light_and_one_near_a_wall_as_much_as_the_rays_that_meet_it():
    """Second route: the share of cosine-weighted rays, of the six lengths up to 0.7 m, that reach a wall, by random draws."""
    scene = closed_room(Material((0.5, 0.5, 0.5), emission=0.5))
    tones = []
    for away in (1.0, 0.125, 0.3):
        view = View(position=(2.0 - away, 0.0, 2.4), pitch=-90.0, focal=2000.0, width=16, height=16)  # four centimetres wide
        tones.append(draw(scene, view, Quality(edge=1)).pixels.mean())
        rng = np.random.default_rng(0)
        across = np.sqrt(rng.random(200_000)) * np.cos(2 * np.pi * rng.random(200_000))
        met = np.mean([(across * 0.7 * (k + 0.5) / 6 > away).mean() for k in range(6)])
        light = 0.5 * 0.5 + 0.5 * 0.8 * 0.25 * 1.75 * (1 - 0.8 * met)
        assert tones[-1] == pytest.approx(255 * (1.055 * light ** (1 / 2.4) - 0.055), abs=0.7)
    assert tones[0] > tones[2] + 1 > tones[1] + 3


def test_a_place_has_the_same_light_in_every_view():
    scene = closed_room(Material((0.5, 0.5, 0.5)))
    scene.lights.append(RectLight((0.5, 0.3, 2.5), (0.4, 0.0, 0.0), (0.0, -0.4, 0.0), 6.0))
    stage = Stage(scene)
    spot = np.array([[0.5, 1.999, 1.2]])
    tones = []
    for x, yaw in ((-1.0, -20.0), (1.0, 15.0)):
        view = View(position=(x, -1.0, 1.4), yaw=yaw, focal=24.0, width=128, height=128)
        column, row = view.project(spot)[0]
        tones.append(draw(stage, view).pixels[int(row), int(column)].astype(int))
    assert np.abs(tones[0] - tones[1]).max() <= 3


def test_the_sequence_fills_the_square_evenly():
    points = sequence(1000, 0.5)
    assert ((points >= 0) & (points < 1)).all()
    counts, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=5, range=[[0, 1], [0, 1]])
    assert np.abs(counts - 40).max() <= 3
