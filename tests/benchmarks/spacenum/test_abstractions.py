"""Points, rectangles and boxes in place of pictures: they show the same layout, and nothing else."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageColor
from scipy.spatial import procrustes

from deixis.benchmarks import spacenum
from deixis.benchmarks.images import hash_pixels
from deixis.benchmarks.spacenum.abstractions import FORMS, AbstractLayout, _Pen, _shared
from deixis.benchmarks.spacenum.layout import layout_items, seen_anew
from deixis.benchmarks.spacenum.layout_picture import ROLES, colour_code, layout_of
from deixis.benchmarks.spacenum.layout_plan import layout_plan

SIZE = 160


@pytest.fixture(scope="module", params=[("desk", 0), ("desk", 6), ("room", 2)], ids=str)
def plan(request):
    return layout_plan(request.param[0], 0, request.param[1])


def picture(plan, form, placement=0):
    return replace(plan.pictures[placement], pixels=SIZE).abstracted(form)


def coloured(image, colour, tolerance=2):
    red, green, blue = ImageColor.getrgb(colour)[:3]
    return np.abs(np.asarray(image).astype(int) - (red, green, blue)).max(axis=2) <= tolerance


@pytest.mark.parametrize("placement", range(4))
def test_rectangles_are_the_map_up_to_turn_and_scale(plan, placement):
    drawn = picture(plan, "boxes_2d", placement).outlines()
    boxes = plan.boxes(placement)
    in_picture, in_map = [], []
    for role in ROLES:
        (x0, y0, _), (x1, y1, _) = boxes[role]
        in_map += [(x0, y0), (x0, y1), (x1, y1), (x1, y0)]
        in_picture += [(x, -y) for x, y in drawn[role]]  # rows count downwards
    # Turn, scale and shift, but no mirror, take one into the other.
    a, b = (np.array(points) - np.mean(points, axis=0) for points in (in_map, in_picture))
    ratio = complex(*b[0]) / complex(*a[0])
    np.testing.assert_allclose([complex(*p) * ratio for p in a], [complex(*p) for p in b], atol=1e-5)  # centres are kept to 1 um
    assert procrustes(a, b)[2] < 1e-8


def test_points_are_two_corners_of_the_rectangles(plan):
    points, rectangles = (picture(plan, form).outlines() for form in ("points", "boxes_2d"))
    for role in ROLES:
        np.testing.assert_allclose(points[role], rectangles[role][[0, 2]])


def test_points_tell_a_wrong_size(plan):
    right, resized = (picture(plan, "points", placement) for placement in (0, 2))
    assert hash_pixels(right.draw()) != hash_pixels(resized.draw())
    np.testing.assert_allclose(*(each.outlines()["target"].mean(axis=0) for each in (right, resized)))


def test_boxes_stand_where_the_camera_sees_them(plan):
    drawn = picture(plan, "boxes_3d").outlines()
    view = plan.pictures[0].eye.view(SIZE)
    for role in ROLES:
        expected = view.project(plan.pictures[0].thing(role).corners) / SIZE
        assert {tuple(p.round(6)) for p in drawn[role]} == {tuple(p.round(6)) for p in expected}
        low, high = np.array(plan.boxes(0)[role])
        corners = plan.frame.to_scene(np.array([low, high]))
        np.testing.assert_allclose(drawn[role][[0, 7]], view.project(corners) / SIZE, atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_anchors_stay_in_all_options_and_the_target_does_not(plan, form):
    outlines = [picture(plan, form, placement).outlines() for placement in range(4)]
    for role in ROLES[:2]:
        assert all(np.array_equal(outlines[0][role], other[role]) for other in outlines)
    assert len({hash_pixels(picture(plan, form, placement).draw()) for placement in range(4)}) == 4


@pytest.mark.parametrize("form", FORMS)
def test_every_object_is_drawn_in_its_colour_inside_its_box(plan, form):
    what = picture(plan, form)
    image, boxes = what.draw(), what.boxes()
    assert image.size == (SIZE, SIZE)
    for role in ROLES:
        left, top, right, bottom = boxes[role]
        rows, columns = np.nonzero(coloured(image, colour_code(what.layout.thing(role))))
        assert len(rows) >= 4
        assert columns.min() >= left - 1
        assert columns.max() <= right
        assert rows.min() >= top - 1
        assert rows.max() <= bottom
        assert 0 <= left < right <= SIZE
        assert 0 <= top < bottom <= SIZE


def test_nothing_but_the_three_objects_is_drawn(plan):
    image = picture(plan, "boxes_2d")
    others = [thing for thing in plan.pictures[0].things if thing.role == "clutter"]
    assert others
    drawn = image.draw()
    for thing in others:
        assert not coloured(drawn, colour_code(thing), 0).any()


def test_the_nearest_box_hides_those_behind():
    plan = layout_plan("desk", 0, 6)
    for placement in range(4):
        what = picture(plan, "boxes_3d", placement)
        depth = {role: float(what.layout.eye.coordinates(np.array([what.layout.thing(role).centre_m]))[0, 2]) for role in ROLES}
        nearest = min(ROLES, key=lambda role: depth[role])
        x, y = what.layout.eye.view(SIZE).project(np.array([what.layout.thing(nearest).centre_m]))[0]
        tone = np.array(ImageColor.getrgb(colour_code(what.layout.thing(nearest)))[:3])
        seen = np.asarray(what.draw())[int(y), int(x)].astype(float)
        shade = (seen @ tone) / (tone @ tone)
        assert np.abs(seen - shade * tone).max() < 25
        assert 0.5 < shade < 1.05


def test_pictures_are_the_same_from_facts_alone_and_from_json():
    item = layout_items(n=1, seed=0, size=64, scales=("desk",), maps=("2D",), directions=("num2space",))[0]
    facts = json.loads(json.dumps(item.facts))
    for image, kind in zip(item.images, item.facts["shown"], strict=True):
        for form in FORMS:
            from_facts = layout_of(facts, kind, 64).abstracted(form)
            assert from_facts == image.abstracted(form)
            again = AbstractLayout.from_json(json.loads(json.dumps(from_facts.to_json())))
            assert again.key == from_facts.key
            assert hash_pixels(again.draw()) == hash_pixels(from_facts.draw())
    keys = Counter(image.abstracted(form).key for image in item.images for form in FORMS)
    assert max(keys.values()) == 1


def test_boxes_of_items_follow_the_abstraction():
    item = layout_items(n=1, seed=0, size=64, scales=("desk",), maps=("2D",), directions=("space2num",))[0]
    abstract = item.images[0].abstracted("boxes_2d")
    seen = seen_anew(replace(item, images=(abstract,)))
    assert {box.name: (box.left, box.top, box.right, box.bottom) for box in seen.objects} == abstract.boxes()
    assert seen.facts["clutter"] == []
    left, top, right, bottom = abstract.boxes()["target"]
    assert seen.nuisances["object_column"] == (left + right) / 2 / 64
    assert seen.nuisances["object_row"] == (top + bottom) / 2 / 64


def test_other_forms_and_placements_are_refused():
    image = layout_plan("desk", 0, 0).pictures[0]
    with pytest.raises(ValueError, match="form='lines' is not one of: 'points', 'boxes_2d', 'boxes_3d'"):
        image.abstracted("lines")
    item = layout_items(n=1, seed=0, size=64, scales=("desk",), maps=("1D",), directions=("num2space",))[0]
    with pytest.raises(ValueError, match="the item has no placement 'both'; it has: "):
        layout_of(item.facts, "both", 64)


@pytest.mark.parametrize("form", ["points", "boxes_2d", "boxes_3d"])
def test_names_hide_no_point_no_object_and_no_other_name(form):
    for item in spacenum("layout", n=10, seed=3, size=128, directions=("space2num",), maps=("2D",)):
        what = item.images[0].abstracted(form)
        pen = _Pen(Image.new("RGB", (512, 512)), what)
        pen.draw()
        assert len(pen.names) == 3
        for place, name in enumerate(pen.names):
            left, top, right, bottom = name
            drawn = [(points * 512).T for points in what.outlines().values()]
            assert not any(((left < x) & (x < right) & (top < y) & (y < bottom)).any() for x, y in drawn)
            assert all(_shared(name, other) == 0 for other in pen.names[:place])
