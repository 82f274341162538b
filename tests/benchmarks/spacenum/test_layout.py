"""Layout items: counts, balance, truth in facts against the text and the pictures, the same from a seed."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import deixis as dx
from deixis.benchmarks.images import UniformImage
from deixis.benchmarks.spacenum import layout_plan as plans
from deixis.benchmarks.spacenum.layout import STANDARD_SCENES, _dealt, _Letters, layout_items, seen_anew
from deixis.benchmarks.spacenum.layout_picture import ROLES, layout_of
from deixis.benchmarks.spacenum.layout_plan import LayoutError, layout_plan
from deixis.benchmarks.spacenum.maps import MAPS, parse_box, parse_map

SIZE = 128


@pytest.fixture(scope="module")
def items():
    return layout_items(n=6, seed=0, size=SIZE)


def test_the_standard_set_has_the_papers_counts():
    dealt = _dealt(None, ("desk", "room"))
    assert Counter(scale for scale, _ in dealt) == STANDARD_SCENES == {"desk": 100, "room": 400}
    assert len(set(dealt)) == 500
    assert len(dealt) * len(MAPS) * 2 == 3_000


def test_any_first_scenes_are_dealt_one_to_four_and_are_those_of_a_scale_alone():
    dealt = _dealt(25, ("desk", "room"))
    assert [scale for scale, _ in dealt[:5]] == ["desk", "room", "room", "room", "room"]
    assert dealt[:10] == _dealt(10, ("desk", "room"))
    assert [entry for entry in dealt if entry[0] == "room"] == _dealt(20, ("room",))


def test_every_scene_is_asked_in_all_maps_and_directions(items):
    assert len(items) == 36
    scenes = list(dict.fromkeys(item.groups["scene"] for item in items))
    assert len(scenes) == 6
    for scene in scenes:
        asked = [(item.groups["direction"], item.groups["map"]) for item in items if item.groups["scene"] == scene]
        assert asked == [(d, m) for d in ("num2space", "space2num") for m in MAPS]
    assert len({item.id for item in items}) == 36
    assert items[0].id == "spacenum/layout-desk-s0-0000/layout-num2space/1D"
    assert Counter(item.groups["column"] for item in items) == {f"{m} {s}": n for m in MAPS for s, n in (("D", 4), ("R", 8))}


def test_letters_are_balanced_in_every_column_at_any_length():
    for n in (8, 23):
        letters = _Letters(4, [("room", k) for k in range(n)])
        for map_ in MAPS:
            for direction in ("num2space", "space2num"):
                k = 2 if map_ == "1D" else 4
                counts = Counter(letters.place("room", j, direction, map_, k) for j in range(n))
                assert max(counts.values()) - min(counts.get(p, 0) for p in range(k)) <= 1
                longer = _Letters(4, [("room", j) for j in range(40)])
                assert all(
                    longer.place("room", j, direction, map_, k) == letters.place("room", j, direction, map_, k) for j in range(n)
                )


def test_one_dimension_asks_each_kind_of_error_in_turn(items):
    kinds = [item.groups["varied"] for item in items if item.groups["map"] == "1D" and item.groups["direction"] == "num2space"]
    assert kinds == ["position", "position", "size", "both", "position", "size"]  # desk 0, rooms 0 to 3, desk 1
    for item in items:
        assert len(item.options) == (2 if item.groups["map"] == "1D" else 4)
        assert {option.kind for option in item.options} == {
            "correct",
            *((item.groups["varied"],) if item.groups["map"] == "1D" else ("position", "size", "both")),
        }


def placed(item, kind):
    placement = next(entry for entry in item.facts["placements"] if entry["kind"] == kind)
    return {thing["role"]: thing for thing in placement["objects"]}


def test_the_text_read_back_is_the_truth(items):
    for item in items:
        dimensions = MAPS[item.groups["map"]]
        line = next(line for line in item.prompt.splitlines() if line.startswith("Map: "))
        read = parse_map(line.removeprefix("Map: "))
        true = {thing["name"]: [corner[:dimensions] for corner in thing["box"]] for thing in placed(item, "correct").values()}
        assert list(read) == [placed(item, "correct")[role]["name"] for role in ROLES]
        for name, box in read.items():
            if box is None:
                assert item.groups["direction"] == "space2num"
                assert name == placed(item, "correct")["target"]["name"]
            else:
                assert [list(corner) for corner in box] == true[name]
        if item.groups["direction"] == "space2num":
            for option, placement in zip(item.options, item.facts["placements"], strict=True):
                box = next(thing["box"] for thing in placement["objects"] if thing["role"] == "target")
                assert [list(corner) for corner in parse_box(option.text or "")] == [corner[:dimensions] for corner in box]


def test_the_right_letter_is_the_correct_placement(items):
    for item in items:
        assert [placement["kind"] for placement in item.facts["placements"]] == [option.kind for option in item.options]
        right = next(option for option in item.options if option.kind == "correct")
        assert item.truth == right.label == item.groups["letter"]
        for image, kind in zip(item.images, item.facts["shown"], strict=True):
            assert layout_of(item.facts, kind, SIZE) == image
        shown = item.facts["shown"]
        if item.groups["direction"] == "space2num":
            assert shown == ["correct"]
        else:
            assert shown == [option.kind for option in item.options]
            assert [option.text for option in item.options] == [f"Image {k + 1}" for k in range(len(shown))]


def test_anchors_camera_and_clutter_are_the_same_in_all_options(items):
    for item in items:
        for role in ROLES[:2]:
            assert len({json.dumps([t for t in p["objects"] if t["role"] == role]) for p in item.facts["placements"]}) == 1
        assert len({(image.eye, image.setting) for image in item.images}) == 1
        assert len({tuple(t for t in image.things if t.role == "clutter") for image in item.images}) == 1
        assert 2 <= len(item.facts["clutter"]) <= 4
        things = [*placed(item, "correct").values(), *item.facts["clutter"]]
        assert len({thing["kind"] for thing in things}) == len({thing["colour"] for thing in things}) == len(things)


def test_targets_are_those_of_the_right_placement_by_another_route(items):
    for item in items:
        target = placed(item, "correct")["target"]
        low, high = np.array(target["box"])
        middle = (low + high) / 2
        np.testing.assert_allclose([item.targets[f"{axis}_m"] for axis in "xyz"], middle, atol=1e-9)
        assert item.targets["size_m"] == pytest.approx((high - low).max())
        frame, camera = item.facts["frame"], item.facts["camera"]
        axes = np.array([frame["x_axis"], frame["y_axis"], [0, 0, 1]])
        scene = np.array(frame["origin_m"]) + middle @ axes
        np.testing.assert_allclose(scene, target["centre_m"], atol=2e-6)
        turn = Rotation.from_euler("ZX", [camera["yaw_deg"], camera["pitch_deg"]], degrees=True)
        right, forward, up = turn.inv().apply(scene - np.array(camera["position_m"]))
        np.testing.assert_allclose([item.targets[f"camera_{axis}_m"] for axis in "xyz"], [right, up, forward], atol=1e-5)
        assert item.targets["distance_m"] == pytest.approx(np.linalg.norm(scene - np.array(camera["position_m"])), abs=1e-5)


def test_boxes_stand_about_the_projected_middles(items):
    for item in items:
        assert {(box.name, box.image) for box in item.objects} == {(role, k) for role in ROLES for k in range(len(item.images))}
        for box in item.objects:
            thing = item.images[box.image].thing(box.name)
            x, y = item.images[box.image].eye.view(SIZE).project(np.array([thing.centre_m]))[0]
            outline = item.images[box.image].eye.view(SIZE).project(thing.corners)
            assert box.left >= outline[:, 0].min() - 1
            assert box.right <= outline[:, 0].max() + 1
            assert box.top >= outline[:, 1].min() - 1
            assert box.bottom <= outline[:, 1].max() + 1
            assert abs((box.left + box.right) / 2 - x) < 0.5 * np.ptp(outline[:, 0])
            assert abs((box.top + box.bottom) / 2 - y) < 0.5 * np.ptp(outline[:, 1])


def test_everything_is_inside_and_mostly_visible_and_the_options_differ_to_the_eye(items):
    for item in items:
        for box in item.objects:
            assert min(box.left, box.top) > 0
            assert max(box.right, box.bottom) < SIZE
        for placement in item.facts["placements"]:
            assert min(placement["share"].values()) >= plans.LEAST_SHARE
        if item.groups["direction"] == "num2space":
            found = {item.facts["shown"][box.image]: box for box in item.objects if box.name == "target"}
            middles = {kind: np.array([(b.left + b.right) / 2, (b.top + b.bottom) / 2]) for kind, b in found.items()}
            if "position" in found:
                assert np.linalg.norm(middles["correct"] - middles["position"]) > 0.5 * plans.LEAST_SHIFT * SIZE
            if "size" in found:
                area = {kind: (b.right - b.left) * (b.bottom - b.top) for kind, b in found.items()}
                assert max(area["size"] / area["correct"], area["correct"] / area["size"]) > 1.2


def test_footprints_never_touch(items):
    from itertools import combinations

    from deixis.benchmarks.spacenum.placing import footprint_of, footprints_overlap

    for item in items:
        for placement in item.facts["placements"]:
            things = [*placement["objects"], *item.facts["clutter"]]
            prints = [footprint_of(tuple(t["centre_m"][:2]), tuple(t["size_m"][:2]), t["yaw_deg"], 0.01) for t in things]
            assert not any(footprints_overlap(one, other) for one, other in combinations(prints, 2))


def test_the_same_seed_gives_the_same_items_and_pictures(items):
    first = layout_items(n=2, seed=0, size=SIZE)
    layout_plan.cache_clear()
    again = layout_items(n=2, seed=0, size=SIZE)
    assert [item.seen() for item in first] == [item.seen() for item in again] == [item.seen() for item in items[:12]]
    assert [item.images for item in first] == [item.images for item in again]
    assert layout_items(n=1, seed=1, size=SIZE)[0].facts != items[0].facts


def test_a_scene_does_not_depend_on_the_size_of_its_pictures(items):
    small = layout_items(n=1, seed=0, size=64)
    for one, other in zip(small, items, strict=False):
        assert one.prompt == other.prompt
        assert one.targets == other.targets
        assert [replace(image, pixels=SIZE) for image in one.images] == list(other.images)
        assert one.nuisances["object_row"] == pytest.approx(other.nuisances["object_row"], abs=0.02)


def test_the_public_call_makes_these_items(items):
    public = dx.spacenum("layout", n=2, seed=0, size=SIZE, scales=("room",), maps=("2D",), directions=("space2num",))
    assert [item.id for item in public] == [f"spacenum/layout-room-s0-{k:04d}/layout-space2num/2D" for k in range(2)]
    assert public[0].facts["placements"] == next(item for item in items if item.id == public[0].id).facts["placements"]


def test_facts_are_plain_json(items):
    for item in items:
        assert json.loads(json.dumps(item.facts)) == item.facts


def test_the_frame_in_words_names_both_anchors_and_the_axes_of_the_map(items):
    for item in items:
        names = {role: thing["name"] for role, thing in placed(item, "correct").items()}
        assert f"from the middle of the {names['anchor_a']} to the middle of the {names['anchor_b']}" in item.prompt
        assert ("y axis" in item.prompt) == (item.groups["map"] != "1D")
        assert ("z axis" in item.prompt) == (item.groups["map"] == "3D")


def test_pictures_seen_anew_are_as_they_were_and_lose_their_clutter(items):
    item = items[1]
    assert seen_anew(item).objects == item.objects
    assert seen_anew(item).nuisances == item.nuisances
    assert seen_anew(item).facts == item.facts
    plain = seen_anew(replace(item, images=tuple(image.without_clutter() for image in item.images)))
    assert plain.facts["clutter"] == []
    shares = [placement["share"] for placement in item.facts["placements"]]
    for before, after in zip(shares, (placement["share"] for placement in plain.facts["placements"]), strict=True):
        assert all(after[role] >= before[role] for role in ROLES)


def test_only_layouts_can_be_seen_anew(items):
    with pytest.raises(ValueError, match=r"UniformImage shows no layout; make the items with deixis\.spacenum"):
        seen_anew(replace(items[3], images=(UniformImage(width=8, height=8),)))


def test_a_stage_that_is_too_narrow_is_given_up_in_a_sentence(monkeypatch):
    narrow = replace(plans.STAGES["desk"], ground_m=((-0.05, 0.05), (0.0, 0.1)))
    monkeypatch.setitem(plans.STAGES, "desk", narrow)
    with pytest.raises(
        LayoutError, match=r"400 tries gave no layout in which all is visible \(scale desk, scene 7\); use another"
    ):
        layout_plan("desk", 99, 7)
