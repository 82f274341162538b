"""Transition items: balanced by construction, every view free and full enough, the truth in the item."""

import json
from collections import Counter
from functools import cache

import numpy as np
import pytest

from deixis.benchmarks.items import Items
from deixis.benchmarks.spacenum import transition
from deixis.benchmarks.spacenum.actions import ACTION, ACTIONS, COLUMNS
from deixis.benchmarks.spacenum.prompts import DIRECTIONS
from deixis.benchmarks.spacenum.rooms import BODY_RADIUS_M, MIN_SHARE, RoomImage, RoomKey, built
from deixis.benchmarks.spacenum.transition import (
    KINDS,
    TransitionScene,
    found_scene,
    plans,
    transition_items,
    transition_scenes,
)

SIZE = 64


@cache
def scenes() -> list[TransitionScene]:
    return list(transition_scenes(8, 1))


@cache
def items() -> Items:
    return Items(transition._item(scene, direction, SIZE) for scene in scenes() for direction in DIRECTIONS)


def test_scenes_are_dealt_in_turn_over_columns_and_ways():
    found = plans(400, 0, ACTIONS)
    assert Counter(plan.action.column for plan in found) == dict.fromkeys(COLUMNS, 100)
    assert Counter(plan.action.name for plan in found) == dict.fromkeys(ACTIONS, 50)
    assert [plan.action.column for plan in found[:4]] == list(COLUMNS)


@pytest.mark.parametrize("n", [40, 96, 400, 1000])
def test_every_beginning_of_the_set_is_balanced(n):
    """Within each action every magnitude, within each column and direction every letter, equally often up to one."""
    found = plans(n, 7, ACTIONS)
    for name in ACTIONS:
        counts = Counter(plan.magnitude for plan in found if plan.action.name == name)
        numbers = [counts[value] for value in ACTION[name].grid]
        assert max(numbers) - min(numbers) <= 1
    for column in COLUMNS:
        for way in ("num2space", "space2num"):
            letters = Counter(plan.letters[way] for plan in found if plan.action.column == column)
            assert max(letters.values()) - min(letters[k] for k in range(4)) <= 1


def test_the_first_scenes_do_not_depend_on_how_many_there_are():
    assert plans(10, 3, ACTIONS) == plans(50, 3, ACTIONS)[:10]
    assert plans(10, 3, ACTIONS) != plans(10, 4, ACTIONS)


def test_no_rank_among_the_options_is_the_right_ones():
    """Somebody who always takes the smallest, or the second, ... is right a quarter of the time (chi-square on three degrees)."""
    for column in COLUMNS:
        names = [name for name in ACTIONS if ACTION[name].column == column]
        ranks = Counter(sum(other < plan.magnitude for other in plan.others) for plan in plans(2000, 5, names))
        expected = 500
        assert sum((ranks[k] - expected) ** 2 / expected for k in range(4)) < 16.3  # p = 0.001


def test_distractors_are_other_values_of_the_grid_nearest_first():
    for plan in plans(200, 2, ACTIONS):
        assert len({plan.magnitude, *plan.others}) == 4
        assert {plan.magnitude, *plan.others} <= set(plan.action.grid)
        errors = [round(abs(value - plan.magnitude), 6) for value in plan.others]
        assert errors == sorted(errors)


def test_every_view_of_every_item_shows_three_things_in_the_picture_itself():
    """Second route: counted in pictures of another size."""
    seen = set()
    for item in items():
        for image in item.images:
            assert isinstance(image, RoomImage)
            if image.key in seen:
                continue
            seen.add(image.key)
            room, stage = built(image.room)
            objects = stage.objects(image.pose.view(160))
            shares = [(objects == number).mean() for number in room.counted]
            assert sum(share > 0.8 * MIN_SHARE for share in shares) >= 3


def test_every_pose_and_the_way_to_it_are_free_by_rays():
    """Second route: rays along the way and around each pose meet nothing of the room's triangles."""
    for scene in scenes():
        room, stage = built(scene.room)
        turns = np.linspace(0, 2 * np.pi, 48, endpoint=False)
        around = np.stack([np.cos(turns), np.sin(turns), 0 * turns], axis=1)
        start = np.array(scene.start.position_m)
        upwards = np.random.default_rng(0).normal(size=(400, 3))
        upwards[:, 2] = np.abs(upwards[:, 2])
        upwards = (upwards / np.linalg.norm(upwards, axis=1, keepdims=True)).astype(np.float32)
        for end in scene.ends:
            for share in (0.0, 0.25, 0.5, 0.75, 1.0):
                x, y, eye = start + (np.array(end.position_m) - start) * share
                origin = np.array([(x, y, z) for z in (0.1, 0.4, 0.7, 1.0, eye) for _ in turns], np.float32)
                numbers, depth = stage.tracer.seen(origin, np.tile(around, (5, 1)).astype(np.float32))
                assert depth.min() > BODY_RADIUS_M - 0.01, room.scene.names[numbers[depth.argmin()]]
                _, above = stage.tracer.seen(np.full((400, 3), (x, y, eye), np.float32), upwards)
                assert above.min() > BODY_RADIUS_M - 0.01  # lamps and plants that hang low


def test_items_hold_the_truth():
    for item in items():
        facts, right = item.facts, next(o for o in item.options if o.label == item.truth)
        action = ACTION[facts["action"]]
        assert right.value == facts["magnitude"] == item.targets["magnitude"]
        assert right.kind == "correct"
        assert [o.value for o in item.options] == facts["magnitudes"]
        assert item.targets["signed_magnitude"] == action.sign * facts["magnitude"]
        assert item.targets["action_type"] == ACTIONS.index(facts["action"])
        assert item.groups["column"] == action.column
        assert len(facts["poses"]) == len(facts["visible"]) == len(item.images)
        assert [image.pose.as_facts() for image in item.images if isinstance(image, RoomImage)] == facts["poses"]
        assert {box.image for box in item.objects} == set(range(len(item.images)))
        json.dumps([item.seen(), dict(facts)])


@pytest.mark.parametrize("direction", ["num2space", "space2num"])
def test_the_right_picture_is_where_the_action_leads(direction):
    """From the poses alone: how far each picture lies from the first, measured, is what its option says."""
    for item in items().filter(lambda item: item.groups["direction"] == direction):
        poses = item.facts["poses"]
        measured = [_size_of_step(poses[0], pose) for pose in poses[1:]]
        if direction == "num2space":
            assert measured == pytest.approx([option.value for option in item.options])
            assert [option.text for option in item.options] == ["Image 2", "Image 3", "Image 4", "Image 5"]
        else:
            assert measured == pytest.approx([item.facts["magnitude"]])


def _size_of_step(one, two) -> float:
    moved = float(np.linalg.norm(np.subtract(two["position_m"], one["position_m"])))
    return moved + abs(two["yaw_deg"] - one["yaw_deg"]) + abs(two["pitch_deg"] - one["pitch_deg"])


def test_the_kinds_of_options_follow_the_size_of_their_error():
    for item in items():
        right = item.facts["magnitude"]
        by_kind = {option.kind: abs(value - right) for option, value in zip(item.options, item.facts["magnitudes"], strict=True)}
        assert set(by_kind) == set(KINDS)
        assert by_kind["correct"] == 0
        assert by_kind["less_correct"] <= by_kind["less_wrong"] + 1e-9 <= by_kind["wrong"] + 2e-9


def test_ids_and_sizes_are_as_asked_and_pictures_are_lazy():
    assert [item.id for item in items()][:2] == [
        "spacenum/transition-s1-0000/transition-num2space",
        "spacenum/transition-s1-0000/transition-space2num",
    ]
    assert [len(item.images) for item in items()][:2] == [5, 2]
    assert {image.size for item in items() for image in item.images} == {(SIZE, SIZE)}


def test_the_same_seed_makes_the_same_items_and_another_makes_others():
    facts = [json.dumps([item.seen(), dict(item.facts)]) for item in items()]
    again = [json.dumps([item.seen(), dict(item.facts)]) for item in transition_items(3, 1, SIZE)]
    assert facts[:6] == again
    assert transition_items(1, 2, SIZE)[0].facts["poses"] != items()[0].facts["poses"]


def test_a_start_tells_nothing_of_the_magnitudes_that_are_asked():
    """Turning up begins where the grid's largest would still fit, whatever is asked: the same chance gives the same pitch."""
    room = built(RoomKey(1, 0, 0))[0]
    turned = plans(80, 1, ("rotate up",))
    starts = {transition._drawn_start(room, plan, np.random.default_rng(0)) for plan in turned}
    assert len({plan.magnitude for plan in turned}) == 7
    assert len(starts) == 1
    pitches = [transition._drawn_start(room, turned[0], np.random.default_rng(k)).pitch_deg for k in range(200)]
    assert -45 <= min(pitches) < -43
    assert -27 < max(pitches) <= -25


def test_a_list_of_ones_own_is_asked_and_shown():
    own = (5, 25, 65, 125)
    found = transition_items(2, 1, SIZE, actions=("rotate up",), magnitudes={"rotate up": own})
    for item in found:
        assert sorted(option.value for option in item.options if option.value is not None) == list(own)
        assert all(abs(pose["pitch_deg"]) <= 85 for pose in item.facts["poses"])


def test_a_scene_for_which_no_room_is_found_says_what_to_change(monkeypatch):
    monkeypatch.setattr(transition, "_ROOMS", 1)
    monkeypatch.setattr(transition, "_POSES", 3)
    plan = plans(1, 0, ("move forward",), {"move forward": (4.7, 4.8, 4.9, 5.0)})[0]
    message = "scene 0 of seed 0: none of 1 rooms, up to 6.6 by 7.6 m, lets one move forward by up to 5 m with 3 objects in every"
    with pytest.raises(ValueError, match=message):
        found_scene(plan)


def test_refused_poses_are_counted():
    counts = Counter()
    for scene in scenes():
        counts.update(scene.refused)
    assert set(counts) <= {"way", "few"}
    assert sum(counts.values()) > 0
