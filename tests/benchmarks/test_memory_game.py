"""The memory game's items: counts, targets, and geometry against what the renderer really drew."""

import hashlib
import inspect
import json
import math
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest

from deixis.benchmarks import Camera, memory_game
from deixis.benchmarks.images import DrawnImage
from deixis.benchmarks.languages import language, languages
from deixis.benchmarks.memory_game import COLOURS, PROMPTS, SHAPES
from deixis.benchmarks.render import FAST, draw, memory_scene
from deixis.benchmarks.speaker import region_of

STANDARD = memory_game()


def one(items):
    return items[0], items[0].images[0]


def test_the_standard_set_is_sixty_scenes_in_four_languages():
    assert len(STANDARD) == 240
    scenes = {item.groups["scene"] for item in STANDARD}
    assert len(scenes) == 60
    assert {(i.groups["shape"], i.groups["colour"], i.targets["distance_m"]) for i in STANDARD} == set(
        product(SHAPES, COLOURS, (0.25, 1.50, 2.75))
    )
    assert len({i.groups["figure"] for i in STANDARD}) == 20
    assert all(i.truth is None for i in STANDARD)


def test_the_standard_set_is_the_one_that_was_first_published():
    """All that decides what a model sees, and the pixels of small pictures; a change makes earlier runs incomparable."""
    what = [item.seen() | {"images": [image.key for image in item.images]} for item in STANDARD]
    told = hashlib.sha256(json.dumps(what, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    assert told == "5f927b9d61800da1c4cb6d489160d849a40f42e028704fd8a4b262cfb9bd4a7b"
    if find_spec("embreex") is not None:  # without Embree pictures differ by next to nothing, but they do
        assert memory_game(size=64).fingerprint == "7a03f2bb733ad523eaefd3cb96b697b437233e825d740e3813857cfbbf3f03ee"


@pytest.mark.slow
def test_the_standard_pictures_are_those_that_were_first_published():
    assert STANDARD.fingerprint == "5d53f82ee13fe136cf5bdb234f389aa97698e19ad1720115e5623f708e5284"


def test_languages_of_a_scene_share_one_picture():
    by_scene = {}
    for item in STANDARD:
        by_scene.setdefault(item.groups["scene"], set()).add(item.images[0].key)
    assert all(len(keys) == 1 for keys in by_scene.values())
    assert len(set.union(*by_scene.values())) == 60


def test_the_distance_task_has_the_regions_word_as_truth():
    for item in memory_game(tasks=("distance",), shapes=("star",), colours=("red",)):
        chosen = next(option for option in item.options if option.label == item.truth)
        assert chosen.value == item.targets["region"] == region_of(item.targets["distance_m"])


def test_a_seed_decides_the_scenes_and_a_left_out_shape_redraws_none():
    again, other = memory_game(), memory_game(seed=1)
    keys = [item.images[0].key for item in STANDARD]
    assert [item.images[0].key for item in again] == keys
    assert not set(keys) & {item.images[0].key for item in other}
    stars = memory_game(shapes=("star",))
    assert [i.images[0].key for i in stars] == [i.images[0].key for i in STANDARD if i.groups["shape"] == "star"]


def test_every_disk_of_many_seeds_lies_in_the_frame():
    for seed in range(40):
        for item in memory_game(languages=("en",), shapes=("star",), seed=seed, size=128):
            box = item.objects[0]
            assert 0 <= box.left < box.right <= 128
            assert 0 <= box.top < box.bottom <= 128
            assert abs(item.targets["x_m"]) <= 0.12
    for item in memory_game(languages=("en",), n=60, seed=3):
        assert 0.25 <= item.targets["distance_m"] <= 2.75


@pytest.mark.parametrize(("distance", "x_side"), [(0.25, 1), (1.5, -1), (2.75, 1)])
def test_box_area_and_row_are_those_of_the_object_buffer(distance, x_side):
    """Second route: count the pixels whose centre the ray caster found on the disk or the figure."""
    size = 256
    seeds = (s for s in range(50) if x_side * memory_game(distances=(distance,), seed=s)[0].targets["x_m"] > 0.05)
    item, image = one(memory_game(distances=(distance,), seed=next(seeds), size=size))
    scene = memory_scene(image.figure)
    seen = draw(scene, image.camera.view(size), FAST).objects
    mask = (seen == scene.names.index("disk")) | (seen == scene.names.index("figure"))
    rows, columns = np.nonzero(mask)
    box = item.objects[0]
    assert (box.left, box.top) == pytest.approx((columns.min(), rows.min()), abs=1)
    assert (box.right, box.bottom) == pytest.approx((columns.max() + 1, rows.max() + 1), abs=1)
    assert item.nuisances["object_area"] == pytest.approx(mask.mean(), rel=0.02)
    assert item.nuisances["object_row"] == pytest.approx((rows + 0.5).mean() / size, abs=0.001)


def test_geometry_in_shares_does_not_depend_on_the_pictures_size():
    small, large = memory_game(size=64)[0], memory_game(size=512)[0]
    for name in ("object_row", "object_area", "brightness"):
        assert small.nuisances[name] == pytest.approx(large.nuisances[name])
    assert large.objects[0].right == pytest.approx(8 * small.objects[0].right)


def test_image_height_and_size_travel_with_distance_as_in_the_study():
    frame = memory_game(languages=("en",)).to_frame()
    means = frame.groupby("region")[["object_row", "object_area"]].mean()
    assert means["object_row"].is_monotonic_decreasing
    assert means["object_area"].is_monotonic_decreasing


def test_random_scenes_are_drawn_between_the_extremes():
    items = memory_game(n=150, languages=("en",), shapes=("star", "cross"), seed=2)
    distances = np.array([item.targets["distance_m"] for item in items])
    assert np.quantile(distances, [0.25, 0.5, 0.75]) == pytest.approx([0.875, 1.5, 2.125], abs=0.3)
    assert {item.groups["shape"] for item in items} == {"star", "cross"}
    assert isinstance(items[0].images[0], DrawnImage)


@pytest.mark.parametrize(("decouple", "off"), [(False, 0.06), (True, 0.005)])
def test_regions_are_equal_in_the_standard_set_and_follow_the_distances_in_drawn_ones(decouple, off):
    """Uniform from 0.25 to 2.75 m: 0.75, 1.25 and 0.5 of 2.5 m lie in the regions."""

    def shares(**given):
        regions = [item.targets["region"] for item in memory_game(languages=("en",), decouple=decouple, size=256, **given)]
        return [regions.count(region) / len(regions) for region in (1, 2, 3)]

    assert shares() == [1 / 3] * 3
    assert shares(n=400) == pytest.approx([0.3, 0.5, 0.2], abs=off)


def test_every_prompt_is_asked_once_in_each_language_and_is_a_group():
    items = memory_game(
        tasks=("demonstrative", "distance"),
        languages=tuple(languages()),
        prompts=PROMPTS,
        shapes=("star",),
        colours=("red",),
        size=32,
    )
    counts = items.filter(lambda item: item.targets["region"] == 1).to_frame().groupby(["task", "language"]).size()
    for (task, code), n in counts.items():
        assert n == 3 * math.factorial(len(language(code).question(task).options))
    assert (items.to_frame().groupby("scene")["prompt"].nunique() == len(PROMPTS)).all()
    assert len({(item.groups["scene"], item.task, item.language, item.prompt) for item in items}) == len(items)
    for item in items:
        assert item.prompt == language(item.language).question(item.task).prompt_of(item.groups["prompt"])


def test_prompts_change_neither_scenes_nor_options_nor_truth():
    arguments = {"tasks": ("demonstrative", "distance"), "languages": ("ja", "es"), "shapes": ("star",), "size": 32}
    standard = memory_game(**arguments)
    several = memory_game(**arguments, prompts=("paraphrase-2", "standard", "standard:dmp"))
    for name in ("paraphrase-2", "standard:dmp"):
        for before, after in zip(standard, several.filter(lambda i, n=name: i.groups["prompt"] == n), strict=True):
            assert after.id == f"{before.id}/{name}"
            assert (after.images, after.options, after.truth) == (before.images, before.options, before.truth)
            assert after.prompt != before.prompt
    kept = several.filter(lambda item: item.groups["prompt"] == "standard")
    assert [(item.id, item.prompt) for item in kept] == [(item.id, item.prompt) for item in standard]


def test_a_language_of_two_terms_has_two_orders_and_asks_neither_twice():
    items = memory_game(languages=("en",), prompts=("standard:pdm", "standard:mpd", "standard:dmp"), shapes=("star",), size=32)
    assert {item.groups["prompt"] for item in items} == {"standard:pdm", "standard:dmp"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prompts": ("polite",)}, "prompts holds 'polite', which is not one of: 'standard', 'standard:pdm', 'standard:mpd'"),
        ({"tasks": ("guess",)}, "tasks holds 'guess', which is not one of: 'demonstrative', 'distance'"),
        ({"tasks": "distance"}, "tasks='distance' must be a non-empty list"),
        ({"shapes": ()}, "shapes=.* must be a non-empty list of: 'circle', 'cross', 'square', 'star', 'triangle'"),
        ({"colours": ("pink",)}, "colours holds 'pink', which is not one of: 'black', 'blue', 'green', 'red'"),
        ({"languages": ("xx",)}, "language='xx' is not one of"),
        ({"distances": (9.0,)}, "distances holds 9.0; a disk must lie between 0 and 3.6 m"),
        ({"distances": (float("nan"),)}, "distances holds nan"),
        ({"size": 8}, "size=8 is not a whole number between 16 and 4096 pixels"),
        ({"n": 0}, "n=0 is not a whole number of 1 or more"),
        ({"n": -1}, "n=-1 is not a whole number of 1 or more"),
        ({"seed": -1}, "seed=-1 is not a whole number of 0 or more"),
        ({"distances": ()}, r"distances=\(\) is not a list with something in it; give a list such as \(0.25, 1.5\)"),
        ({"distances": (), "n": 3}, r"distances=\(\) is not a list with something in it"),
        ({"languages": ()}, r"languages=\(\) is not a list with something in it; give a list such as \(\"en\",\)"),
        ({"languages": "en"}, r"languages='en' is not a list with something in it; give a list such as \(\"en\",\)"),
        (
            {"languages": ("../en",)},
            "language='../en' is not one of: 'de', 'en', 'es', 'fi', 'it', 'ja', 'ko', 'zh'; use one of these",
        ),
        ({"camera": Camera(pitch_deg=90.0, height_m=5.0, focal_mm=20.0)}, "lies behind the camera; turn the camera towards it"),
        ({"camera": Camera(pitch_deg=10.0)}, "lies partly outside the picture"),
    ],
)
def test_a_bad_argument_is_refused_with_what_is_allowed(arguments, message):
    with pytest.raises(ValueError, match=message):
        memory_game(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 100.5}, "size=100.5 is not a whole number between 16 and 4096 pixels"),
        ({"n": 2.5}, "n=2.5 is not a whole number of 1 or more"),
        ({"n": True}, "n=True is not a whole number"),
        ({"seed": 1.5}, "seed=1.5 is not a whole number of 0 or more"),
        ({"distances": 0.5}, "distances=0.5 is not a list"),
        ({"distances": ("near",)}, "distances holds near; a disk must lie between 0 and 3.6 m"),
    ],
)
def test_an_argument_of_the_wrong_type_is_refused_without_the_type_checker(arguments, message):
    with pytest.raises(ValueError, match=message):
        inspect.unwrap(memory_game)(**arguments)  # past the import hook of the tests, as users call it


def test_whole_numbers_of_numpy_are_whole_numbers():
    kept = inspect.unwrap(memory_game)(n=np.int64(2), seed=np.int64(4), size=np.int64(32), languages=("en",))
    assert [i.id for i in kept] == [i.id for i in memory_game(n=2, seed=4, size=32, languages=("en",))]
