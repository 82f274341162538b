"""Camera sides and addressees: what they add to a set, and what of them is to be seen."""

import numpy as np
import pytest

from deixis.benchmarks import Camera, memory_game
from deixis.benchmarks.memory_scenes import ADDRESSEES, CAMERA_SIDES
from deixis.benchmarks.render import FAST, draw, memory_scene

SMALL = {"languages": ("en",), "shapes": ("star",), "colours": ("red",)}
EVERY = memory_game(**SMALL, camera_sides=tuple(CAMERA_SIDES), addressees=tuple(ADDRESSEES), size=64)


def objects(item):
    """Name of the object at each pixel centre of the item's picture."""
    image = item.images[0]
    scene = memory_scene(image.figure)
    return np.array([*scene.names, ""])[draw(scene, image.camera.view(image.pixels), FAST).objects]


def test_sides_and_addressees_multiply_the_scenes_and_are_groups():
    assert len(EVERY) == 3 * 3 * 4
    assert len({item.groups["scene"] for item in EVERY}) == len(EVERY)
    frame = EVERY.to_frame()
    assert (frame.groupby(["camera_side", "addressee", "distance_m"]).size() == 1).all()


def test_without_them_nothing_is_added_and_the_standard_part_is_the_standard_set():
    standard = memory_game(**SMALL, size=64)
    assert not {"camera_side", "addressee"} & set(standard[0].groups)
    part = EVERY.filter(lambda item: (item.groups["camera_side"], item.groups["addressee"]) == ("centre", "none"))
    assert [item.images[0].key for item in part] == [item.images[0].key for item in standard]
    assert [item.id for item in part] == [item.id for item in standard]


def test_the_addressee_is_seen_and_never_hides_the_disk():
    for item in EVERY:
        seen = objects(item)
        assert ((seen == "addressee").mean() > 0.01) == (item.groups["addressee"] != "none")
        disk = ((seen == "disk") | (seen == "figure")).mean()
        assert disk == pytest.approx(item.nuisances["object_area"], rel=0.08)


def test_targets_say_where_the_addressee_is():
    for item in EVERY:
        place = ADDRESSEES[item.groups["addressee"]]
        if place is None:
            assert "addressee_m" not in item.targets
        else:
            assert item.targets["addressee_m"] == place
            assert item.targets["to_addressee_m"] == pytest.approx(abs(place - item.targets["distance_m"]))


def test_a_camera_at_the_left_sees_the_desk_run_to_the_left():
    """From the left the far end of the desk appears to the left of its near end, from the right to the right."""
    for side, sign in (("left", -1), ("centre", 0), ("right", 1)):
        camera = next(item.images[0].camera for item in EVERY if item.groups["camera_side"] == side)
        near, far = camera.view(1).project(np.array([[0.0, 0.25, 0.0], [0.0, 2.75, 0.0]]))[:, 0]
        assert np.sign(np.round(far - near, 9)) == sign
    assert {item.images[0].figure.addressee_x_m for item in EVERY if item.groups["camera_side"] == "left"} >= {0.72}


def test_a_side_is_counted_from_the_users_own_camera():
    own = Camera(x_m=0.1, yaw_deg=3.0, height_m=1.7)
    (item,) = memory_game(**SMALL, distances=(1.5,), camera=own, camera_sides=("left",))
    camera = item.images[0].camera
    assert camera.x_m == pytest.approx(-0.5)
    assert camera.yaw_deg == pytest.approx(3.0 - np.degrees(np.arctan2(0.6, 2.2)), abs=1e-4)
    assert camera.height_m == 1.7


def test_random_and_decoupled_scenes_have_sides_too():
    for arguments in ({"n": 3}, {"n": 3, "decouple": True}):
        items = memory_game(languages=("en",), camera_sides=("left", "right"), **arguments)
        assert [item.groups["camera_side"] for item in items] == ["left"] * 3 + ["right"] * 3
        assert len({item.images[0].figure.x_m for item in items}) == 6


def test_a_sweep_has_every_distance_with_every_figure():
    items = memory_game(languages=("en",), distances=np.linspace(0.25, 2.75, 11).tolist(), shapes=("star", "cross"), size=64)
    frame = items.to_frame()
    assert len(frame) == 11 * 2 * 4
    assert (frame.groupby(["distance_m", "figure"]).size() == 1).all()
    assert set(frame["region"]) == {1.0, 2.0, 3.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"camera_sides": ("top",)}, "camera_sides holds 'top', which is not one of: 'centre', 'left', 'right'"),
        ({"addressees": "near"}, "addressees='near' must be a non-empty list of: 'none', 'near', 'middle', 'far'"),
        ({"distances": (0.5, 0.5)}, "distances holds 0.5 m twice"),
        ({"distances": (1.5, 1.5000001)}, "distances holds 1.5 m twice"),
    ],
)
def test_a_bad_factor_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        memory_game(**arguments)
