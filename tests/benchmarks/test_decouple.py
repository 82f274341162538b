"""Decoupled scenes: independence of distance, image height and size, by several measures that can fail."""

import inspect
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, qmc
from sklearn.feature_selection import mutual_info_regression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from deixis.benchmarks import Camera, Items, memory_game
from deixis.benchmarks.decouple import AREAS, ROWS, EvenSpread, counter_heuristic, decoupled_figure, height_cue, projected_rim
from deixis.benchmarks.memory_scenes import CAMERA_SIDES
from deixis.benchmarks.render import FAST, Figure, draw, memory_scene
from deixis.benchmarks.render.memory_scene import DESK_LENGTH_M, DESK_WIDTH_M

TRIO = ["distance_m", "object_row", "object_area"]
LATENTS = ["camera_pitch", "camera_height", "camera_setback", "camera_focal", "horizon_row", "size_m"]


@pytest.fixture(scope="module")
def many() -> Items:
    return memory_game(decouple=True, n=600, languages=("en",), size=256)


@pytest.fixture(scope="module")
def frame(many: Items) -> pd.DataFrame:
    return many.to_frame()


@pytest.fixture(scope="module")
def one_camera() -> pd.DataFrame:
    return memory_game(n=600, languages=("en",), size=256).to_frame()


@pytest.mark.parametrize("method", ["pearson", "spearman", "kendall"])
def test_distance_row_and_area_are_uncorrelated(frame, one_camera, method):
    assert np.abs(np.triu(frame[TRIO].corr(method), 1)).max() < 0.1
    assert np.abs(one_camera[TRIO].corr(method).to_numpy()).min() > 0.85  # the measure sees a link where there is one


def test_no_curve_or_joint_pattern_is_left_either(frame, one_camera):
    """Mutual information (nearest neighbours), and distance predicted from row and area together."""
    for data, linked in ((frame, False), (one_camera, True)):
        seen = StandardScaler().fit_transform(data[["object_row", "object_area"]])
        bits = mutual_info_regression(seen, data["distance_m"], random_state=0) / np.log(2)
        r2 = cross_val_score(KNeighborsRegressor(10), seen, data["distance_m"], cv=10, scoring="r2").mean()
        assert (bits > 2).all() and r2 > 0.95 if linked else (bits < 0.1).all() and r2 < 0.05
    assert mutual_info_regression(frame[["object_row"]], frame["object_area"], random_state=0)[0] / np.log(2) < 0.1


def test_every_cell_of_the_three_together_is_filled_alike(frame):
    thirds = [pd.qcut(frame[name], 3, labels=False) for name in TRIO]
    counts = pd.crosstab([thirds[0], thirds[1]], thirds[2]).to_numpy()
    assert counts.shape == (9, 3)
    assert counts.min() >= 600 / 27 - 10
    assert counts.max() <= 600 / 27 + 10


def test_each_spans_its_range_evenly(frame):
    for name, (low, high) in {"distance_m": (0.25, 2.75), "object_row": ROWS}.items():
        assert kstest(frame[name], "uniform", args=(low, high - low)).statistic < 0.02
    # The disk's thickness adds a little to the area of its upper rim, for which the camera is solved.
    assert frame["object_area"].min() > AREAS[0]
    assert frame["object_area"].max() < AREAS[1] * 1.12


def test_the_link_is_carried_by_pitch_zoom_and_size_and_by_nothing_else(frame):
    """The table of the docs, with some room: who uses decoupled scenes must know what travels with distance now."""
    carried = frame[[*LATENTS, "x_m", "brightness"]].corrwith(frame["distance_m"])
    assert carried["camera_focal"] == pytest.approx(0.87, abs=0.04)
    assert carried["size_m"] == pytest.approx(0.80, abs=0.04)
    assert carried["camera_pitch"] == pytest.approx(0.74, abs=0.04)
    assert carried["horizon_row"] == pytest.approx(0.56, abs=0.05)
    assert np.abs(carried[["camera_height", "camera_setback", "x_m", "brightness"]]).max() < 0.12


def test_any_seed_is_balanced_not_only_the_published_one():
    """The points are spread before any camera is solved, so this is quick; 100 scenes are enough for |r| < 0.1."""
    for seed in range(50):
        spread = EvenSpread(np.random.default_rng(seed))
        points = np.array([spread[number] for number in range(100)])
        assert np.abs(np.triu(np.corrcoef(points.T), 1)).max() < 0.1
        assert all(kstest(axis, "uniform").statistic < 0.06 for axis in points.T)


def test_without_its_permutations_the_spread_is_the_halton_sequence():
    class Orderly:
        def permuted(self, digits, **_):
            return digits

    spread = EvenSpread.__new__(EvenSpread)
    inspect.unwrap(EvenSpread.__init__)(spread, Orderly())
    expected = qmc.Halton(3, scramble=False).random(50)
    np.testing.assert_allclose([spread[number] for number in range(50)], expected, atol=1e-7)


def test_every_disk_lies_whole_in_the_frame_and_on_the_desk(many):
    for item in many:
        box, figure = item.objects[0], item.images[0].figure
        assert 0 <= box.left < box.right <= 256
        assert 0 <= box.top < box.bottom <= 256
        assert abs(figure.x_m) + figure.disk_radius_m <= DESK_WIDTH_M / 2
        assert figure.disk_radius_m <= figure.distance_m <= DESK_LENGTH_M - figure.disk_radius_m


def test_the_figure_is_at_least_as_large_as_the_smallest_of_the_standard_set(many):
    smallest = min(memory_game(languages=("en",), size=256), key=lambda item: item.nuisances["object_area"])
    box = smallest.objects[0]
    for item in many:
        assert item.nuisances["object_area"] > smallest.nuisances["object_area"]
        assert item.objects[0].bottom - item.objects[0].top > 0.99 * (box.bottom - box.top)


def test_an_end_of_the_desk_is_always_in_the_picture(many):
    """Without one nothing would show where along the desk the disk lies."""
    for item in many:
        image = item.images[0]
        near, far = (image.camera.view(1).project(np.array([[0.0, y, 0.0]]))[0, 1] for y in (0.0, DESK_LENGTH_M))
        assert near < 1 or far > 0


def test_the_hardest_corners_can_be_shown_at_every_side():
    """The extremes of all that is drawn together; a figure that fits there fits everywhere between."""

    class Extreme:
        def __init__(self, ends):
            self.ends = iter(ends)

        def uniform(self, low, high):
            return (low, high)[next(self.ends)]

    for ends, corner, x in product(product((0, 1), repeat=5), product((0.0, 1.0), repeat=3), CAMERA_SIDES.values()):
        figure, camera = inspect.unwrap(decoupled_figure)(Extreme(ends), corner, "star", "red", (0.25, 2.75), Camera(x_m=x))
        seen = projected_rim(figure, camera)
        assert seen.row == pytest.approx(ROWS[int(corner[0])], abs=1e-5)
        assert seen.area == pytest.approx(AREAS[int(corner[1])], rel=1e-3)


@pytest.mark.parametrize("side", CAMERA_SIDES)
def test_row_and_area_are_those_of_the_object_buffer(side):
    """Second route: pixels whose centre the ray caster found on the disk."""
    for item in memory_game(decouple=True, n=3, languages=("en",), size=192, camera_sides=(side,), seed=4):
        image = item.images[0]
        scene = memory_scene(image.figure)
        seen = draw(scene, image.camera.view(192), FAST).objects
        mask = (seen == scene.names.index("disk")) | (seen == scene.names.index("figure"))
        assert item.nuisances["object_area"] == pytest.approx(mask.mean(), rel=0.03)
        assert item.nuisances["object_row"] == pytest.approx((np.nonzero(mask)[0] + 0.5).mean() / 192, abs=0.002)


def test_the_horizon_row_is_where_a_point_far_away_at_eye_level_appears(many):
    for item in list(many)[:20]:
        camera = item.images[0].camera
        point = np.array([[0.0, 1e7, camera.height_m]])
        assert item.nuisances["horizon_row"] == pytest.approx(camera.view(1).project(point)[0, 1], abs=1e-5)


def test_the_closed_form_of_the_rim_is_that_of_its_projected_points():
    figure, camera = Figure(shape="star", colour="red", distance_m=1.2, x_m=0.1), Camera(x_m=-0.5, yaw_deg=-12.0)
    turn = np.linspace(0, 2 * np.pi, 20_000)
    rim = np.stack([0.1 + 0.22 * np.cos(turn), 1.2 + 0.22 * np.sin(turn), np.full_like(turn, 0.012)], axis=1)
    x, y = camera.view(1).project(rim).T
    area = abs(sum(a * d - c * b for (a, b), (c, d) in pairwise(zip(x, y, strict=True)))) / 2
    seen = projected_rim(figure, camera)
    assert seen.area == pytest.approx(area, rel=1e-5)
    assert (seen.column, seen.row) == pytest.approx(((x.min() + x.max()) / 2, (y.min() + y.max()) / 2), abs=1e-6)


def test_the_height_cue_is_that_of_the_rule_higher_is_farther(frame):
    rules = {
        (0.3, 0.7): "agrees",
        (2.7, 0.3): "agrees",
        (0.3, 0.3): "contradicts",
        (2.7, 0.7): "contradicts",
        (1.5, 0.3): "neutral",
    }
    assert {given: height_cue(*given) for given in rules} == rules
    counts = frame["height_cue"].value_counts()
    assert abs(counts["agrees"] - counts["contradicts"]) < 30
    against = frame[frame["height_cue"] == "contradicts"]
    assert against["distance_m"].corr(against["object_row"]) > 0.8  # in the standard set below -0.9


def test_the_counter_heuristic_items_are_a_quarter_and_a_single_camera_has_none(many):
    against = counter_heuristic(many)
    assert 140 < len(against) < 160
    for item in against:
        far, low = item.targets["distance_m"] >= 2.25, item.nuisances["object_row"] >= 0.5
        assert far == low
        assert far or item.targets["distance_m"] < 1.0
        assert item.groups["height_cue"] == "contradicts"
    agree = many.filter(lambda item: item.groups["height_cue"] != "contradicts")
    bare = Items([replace(against[0], groups={"scene": "a"})])
    for none in (memory_game(languages=("en",), size=64), agree, bare):
        with pytest.raises(ValueError, match=r"in no item does .* mislead; draw some with memory_game\(decouple=True, n=200\)"):
            counter_heuristic(none)


def test_one_camera_contradicts_nothing_wherever_its_disks_stand_in_the_picture():
    """There a farther disk is always higher, also where the nearest of the near region lie just above the middle."""
    items = memory_game(n=200, size=32, languages=("en",))
    near_and_high = [i for i in items if i.targets["region"] == 1 and i.nuisances["object_row"] < 0.5]
    assert near_and_high  # a fixed row would take these for contradictions
    order = sorted(items, key=lambda item: item.targets["distance_m"])
    rows = [item.nuisances["object_row"] for item in order]
    assert np.corrcoef(rows, np.arange(len(rows)))[0, 1] < -0.97
    with pytest.raises(ValueError, match="in no item does"):
        counter_heuristic(items)


def test_a_set_of_both_kinds_gives_the_decoupled_ones():
    one_camera = memory_game(n=200, size=256, languages=("en",))
    decoupled = memory_game(n=40, size=256, languages=("en",), decouple=True)
    assert list(counter_heuristic(one_camera + decoupled)) == list(counter_heuristic(decoupled))


def test_the_standard_sixty_can_be_decoupled_too():
    items = memory_game(decouple=True, languages=("en",))
    frame = items.to_frame()
    assert len(set(frame["scene"])) == 60
    assert set(frame["distance_m"]) == {0.25, 1.5, 2.75}
    assert np.abs(np.triu(frame[TRIO].corr(), 1)).max() < 0.15
    stars = memory_game(decouple=True, languages=("en",), shapes=("star",))
    assert [i.images[0].key for i in stars] == [i.images[0].key for i in items if i.groups["shape"] == "star"]


def test_more_scenes_begin_with_the_same_scenes_and_another_seed_has_none_of_them():
    keys = {seed: [i.images[0].key for i in memory_game(decouple=True, n=8, languages=("en",), seed=seed)] for seed in (0, 1)}
    assert [i.images[0].key for i in memory_game(decouple=True, n=5, languages=("en",))] == keys[0][:5]
    assert not set(keys[0]) & set(keys[1])


@pytest.mark.skipif(find_spec("embreex") is None, reason="without Embree pictures differ by next to nothing, but they do")
def test_the_same_arguments_draw_the_same_bytes_as_when_it_was_published():
    """Distance, camera and disk are rounded before anything is drawn, so that no processor's last digit can show."""
    items = memory_game(decouple=True, n=6, languages=("en",), size=64, camera_sides=("centre", "left"))
    for item in items:
        figure, camera = item.images[0].figure, item.images[0].camera
        for value in (figure.distance_m, figure.x_m, camera.height_m, camera.setback_m, camera.pitch_deg, camera.yaw_deg):
            assert value == round(value, 4)
        assert figure.disk_radius_m == round(figure.disk_radius_m, 5)
        assert camera.focal_mm == round(camera.focal_mm, 3)
    assert [item.images[0].sha256[:12] for item in items[::4]] == ["3f254c8b9071", "883b7cd2e016", "a09311e07fd2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"camera": Camera()}, "gives each scene a camera of its own; leave out camera, or decouple"),
        ({"addressees": ("near",)}, "an addressee would often be out of frame; leave out addressees, or decouple"),
        ({"distances": (0.05,)}, "a decoupled scene at 0.05 m needs a disk of .* which does not lie on the desk; use distances"),
    ],
)
def test_what_cannot_be_decoupled_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        memory_game(decouple=True, **arguments)


def test_the_disks_size_is_a_target_where_it_varies(many: Items):
    assert {item.targets["size_m"] == item.nuisances["size_m"] for item in many} == {True}
    assert len({item.targets["size_m"] for item in many}) > 500
    assert "size_m" not in memory_game(n=3, languages=("en",), size=32)[0].targets
