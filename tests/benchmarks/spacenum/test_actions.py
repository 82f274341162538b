"""Actions do to a camera what their names say, by closed forms."""

import math
import subprocess
import sys

import numpy as np
import pytest

from deixis.benchmarks.spacenum.actions import ACTION, ACTIONS, COLUMNS, Pose, after, grids

POSE = Pose(position_m=(0.5, -1.0, 1.5), yaw_deg=30.0, pitch_deg=-8.0)


def test_the_grids_are_the_papers():
    metres = [round(0.2 * k, 1) for k in range(1, 13)]
    assert list(ACTION["move forward"].grid) == list(ACTION["move backward"].grid) == metres
    assert list(ACTION["move left"].grid) == list(ACTION["move right"].grid) == metres[:6]
    for name in ("rotate up", "rotate down", "rotate left", "rotate right"):
        assert ACTION[name].grid == (10, 20, 30, 40, 50, 60, 70)
    assert [ACTION[name].number for name in ACTIONS] == list(range(8))
    assert COLUMNS == ("move F/B", "move L/R", "rotate U/D", "rotate L/R")


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_and_its_opposite_of_the_same_size_lead_back(name):
    opposite = next(a for a in ACTION.values() if a.column == ACTION[name].column and a.name != name)
    back = after(after(POSE, ACTION[name], 1.2), opposite, 1.2)
    np.testing.assert_allclose(back.position_m, POSE.position_m, atol=1e-12)
    assert (back.yaw_deg, back.pitch_deg) == pytest.approx((POSE.yaw_deg, POSE.pitch_deg))


def test_a_move_is_as_long_as_it_says_and_level():
    for name in ACTIONS[:4]:
        moved = np.array(after(POSE, ACTION[name], 0.6).position_m) - POSE.position_m
        assert np.linalg.norm(moved) == pytest.approx(0.6)
        assert moved[2] == 0.0


@pytest.mark.parametrize("pitch", [0.0, -12.0])
def test_moving_forward_brings_a_point_nearer_by_the_moves_share_along_the_view(pitch):
    """Depth is counted along the line of sight, which dips by the pitch: it falls by m cos(pitch)."""
    start = Pose(position_m=(0.0, 0.0, 1.5), yaw_deg=-40.0, pitch_deg=pitch)
    end = after(start, ACTION["move forward"], 1.4)
    point = np.array([2.0, 3.0, 0.7])
    depth = [float((point - pose.position_m) @ pose.view(64).axes[2]) for pose in (start, end)]
    assert depth[0] - depth[1] == pytest.approx(1.4 * math.cos(math.radians(pitch)))


def test_moving_right_shifts_a_point_to_the_left_by_parallax():
    """A point at depth d moves by m f / d: here 20 mm on 36 mm, at depth 4 m, in a picture of 100 pixels."""
    start = Pose(position_m=(0.0, 0.0, 1.5), yaw_deg=0.0, pitch_deg=0.0)
    point = np.array([[0.0, 4.0, 1.5]])
    column = after(start, ACTION["move right"], 0.8).view(100).project(point)[0, 0]
    assert 50 - column == pytest.approx(0.8 * 20 / 4 / 36 * 100)
    assert after(start, ACTION["move left"], 0.8).view(100).project(point)[0, 0] == pytest.approx(100 - column)


@pytest.mark.parametrize("degrees", [10.0, 30.0, 40.0])
def test_a_turn_moves_a_far_point_by_the_tangent_of_its_angle(degrees):
    start = Pose(position_m=(0.0, 0.0, 1.5), yaw_deg=0.0, pitch_deg=0.0)
    far = np.array([[0.0, 1e6, 1.5]])
    shift = 50 * math.tan(math.radians(degrees)) / (18 / 20)
    for name, (x, y) in {
        "rotate left": (shift, 0.0),
        "rotate right": (-shift, 0.0),
        "rotate up": (0.0, shift),
        "rotate down": (0.0, -shift),
    }.items():
        found = after(start, ACTION[name], degrees).view(100).project(far)[0]
        np.testing.assert_allclose(found, (50 + x, 50 + y), atol=1e-3)


@pytest.mark.parametrize(
    ("magnitudes", "message"),
    [
        ({"jump": (1.0, 2.0, 3.0, 4.0)}, "magnitudes has 'jump', which is not one of: 'move forward', 'move backward'"),
        ({"move forward": (0.2, 0.4, 0.6, 5.2)}, r"has 5.2, which is not in \(0, 5 m\]; the paper's grid is 0.2"),
        ({"move left": (0.0, 0.4, 0.6, 0.8)}, r"has 0, which is not in \(0, 5 m\]"),
        ({"rotate left": (10.0, 20.0, 30.0, 180.0)}, r"has 180, which is not in \(0, 180 deg\)"),
        ({"rotate up": (10.0, 20.0, 30.0, 170.0)}, r"has 170, which is not in \(0, 160 deg\]"),
        ({"rotate up": (10.0, 20.0, 30.0)}, "has 3 values, 3 of them different; give at least 4, none twice"),
        ({"rotate up": (10.0, 20.0, 30.0, 30.0)}, "has 4 values, 3 of them different; give at least 4, none twice"),
        ({"rotate up": (10.0, 20.0, 30.0, math.nan)}, "has nan, which is not in"),
        ({"rotate up": (5.0, 5.0000001, 15.0, 25.0)}, "has 5.0000001, .* not write exactly; give at most 2 decimals"),
        ({"rotate up": (1e-12, 5.0, 15.0, 25.0)}, "has 1e-12, which prompts could not write exactly"),
    ],
)  # fmt: skip
def test_magnitudes_that_cannot_be_are_refused(magnitudes, message):
    with pytest.raises(ValueError, match=message):
        grids(magnitudes)


UNHOOKED = """
import numpy as np
from deixis.benchmarks.spacenum.actions import grids
for magnitudes in (
    [5, 15, 25, 35], {"rotate up": 5}, {"rotate up": "5,15,25,35"}, {"rotate up": ["5", "15", "25", "35"]},
    {"rotate up": [True, 15, 25, 35]}, {"rotate up": None}, {"move left": np.arange(0.1, 0.45, 0.1)},
):
    try:
        print(grids(magnitudes)["move left"])
    except ValueError as error:
        print(error)
"""


def test_without_the_type_hook_of_the_tests_what_is_no_list_of_numbers_is_refused_in_a_sentence():
    run = subprocess.run([sys.executable, "-c", UNHOOKED], capture_output=True, text=True, check=True)
    *refused, noisy = run.stdout.splitlines()
    assert refused[0] == "magnitudes=[5, 15, 25, 35] is no mapping; give one like {'rotate up': [5, 15, 25, 35]}."
    given = ["5", "'5,15,25,35'", "['5', '15', '25', '35']", "[True, 15, 25, 35]", "None"]
    told = [f"magnitudes['rotate up']={value} is not a list of numbers; give at least 4, none twice." for value in given]
    assert refused[1:] == told
    assert noisy == "(0.1, 0.2, 0.3, 0.4)"  # 0.1 + 0.2 is no 0.3 in binary


def test_a_list_of_ones_own_replaces_only_its_actions_grid():
    found = grids({"rotate up": (5, 15, 25, 35)})
    assert found["rotate up"] == (5.0, 15.0, 25.0, 35.0)
    assert found["rotate down"] == ACTION["rotate down"].grid
