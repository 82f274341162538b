"""Layouts on the grid: rules, exchangeable placements, the anchors' frame, overlap."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from deixis.benchmarks.spacenum.placing import (
    DESK,
    ROOM,
    AnchorFrame,
    box_corners,
    draw_layout,
    footprint_of,
    footprints_overlap,
    steps_of,
)

USUAL = {
    id(DESK): ((0.12, 0.09, 0.1), (0.17, 0.17, 0.08), (0.08, 0.08, 0.24)),
    id(ROOM): ((1.9, 0.9, 0.9), (0.4, 0.45, 0.9), (0.8, 0.5, 1.1)),
}


def layouts(spacing, n=300):
    rng = np.random.default_rng(11)
    usual = tuple(steps_of(size, spacing) for size in USUAL[id(spacing)])
    found = [draw_layout(rng, spacing, usual) for _ in range(n)]
    return [layout for layout in found if layout is not None]


@pytest.mark.parametrize("spacing", [DESK, ROOM], ids=["desk", "room"])
def test_every_layout_keeps_its_rules(spacing):
    found = layouts(spacing)
    assert len(found) > 250
    for layout in found:
        a, b = layout.anchor_a, layout.anchor_b
        assert a.low == (0, 0, 0)
        assert a.low[1] + a.high[1] == b.low[1] + b.high[1]  # the middles lie on one line along x
        assert spacing.anchors_apart[0] <= b.low[0] - a.high[0] <= spacing.anchors_apart[1]
        right, moved, resized, both = layout.placements
        for box in layout.placements:
            assert box.low[2] == 0
            assert all(low < high for low, high in zip(box.low, box.high, strict=True))
            for anchor in (a, b):
                free = [max(box.low[k] - anchor.high[k], anchor.low[k] - box.high[k]) for k in range(2)]
                assert max(free) >= spacing.gap
        assert middle(right) == middle(resized)
        assert middle(moved) == middle(both)
        assert size(right) == size(moved)
        assert size(resized) == size(both)
        assert abs(middle(right)[0] - middle(moved)[0]) / 2 >= spacing.shift
        small, large = sorted((size(right), size(resized)))
        assert all(high - low >= 2 and high >= 1.25 * low for low, high in zip(small, large, strict=True))


def middle(box):
    return box.low[0] + box.high[0], box.low[1] + box.high[1]


def size(box):
    return tuple(high - low for low, high in zip(box.low, box.high, strict=True))


@pytest.mark.parametrize("spacing", [DESK, ROOM], ids=["desk", "room"])
def test_nothing_about_the_options_tells_which_is_right(spacing):
    found = layouts(spacing)
    rules = {
        "larger": lambda right, other: size(right) > size(other),
        "to the right": lambda right, other: middle(right)[0] > middle(other)[0],
        "farther out": lambda right, other: abs(middle(right)[0]) > abs(middle(other)[0]),
        "beside": lambda right, other: middle(right)[1] > middle(other)[1],
    }
    for name, rule in rules.items():
        other = 2 if name == "larger" else 1
        hits = sum(rule(layout.placements[0], layout.placements[other]) for layout in found)
        assert binomtest(hits, len(found)).pvalue > 0.001, name


def test_the_same_seed_gives_the_same_layout():
    usual = tuple(steps_of(each, DESK) for each in USUAL[id(DESK)])
    assert draw_layout(np.random.default_rng(5), DESK, usual) == draw_layout(np.random.default_rng(5), DESK, usual)
    assert draw_layout(np.random.default_rng(5), DESK, usual) != draw_layout(np.random.default_rng(6), DESK, usual)


def test_boxes_in_metres_are_free_of_binary_noise():
    rng = np.random.default_rng(0)
    usual = tuple(steps_of(each, ROOM) for each in USUAL[id(ROOM)])
    layout = draw_layout(rng, ROOM, usual)
    assert layout is not None
    for box in layout.placements:
        assert all(value == round(value, 2) for corner in box.metres(0.05) for value in corner)


def test_the_frame_turns_counter_clockwise_seen_from_above():
    frame = AnchorFrame(origin_m=(1.0, 2.0, 0.0), yaw_deg=90.0)
    scene = frame.to_scene(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    np.testing.assert_allclose(scene, [[1.0, 3.0, 0.0], [0.0, 2.0, 0.0], [1.0, 2.0, 1.0]], atol=1e-12)


def test_the_way_into_the_frame_undoes_the_way_out():
    frame = AnchorFrame(origin_m=(0.3, -1.2, 0.0), yaw_deg=213.7)
    points = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(frame.from_scene(frame.to_scene(points)), points, atol=1e-12)


def test_a_box_has_eight_corners_the_least_first_and_the_greatest_last():
    corners = box_corners([[0.0, 1.0, 2.0], [3.0, 5.0, 7.0]])
    assert corners[0].tolist() == [0.0, 1.0, 2.0]
    assert corners[7].tolist() == [3.0, 5.0, 7.0]
    assert len(np.unique(corners, axis=0)) == 8


def test_overlap_agrees_with_points_inside_both():
    rng = np.random.default_rng(4)
    both = 0
    for _ in range(80):
        one, other = (
            footprint_of(
                tuple(rng.uniform(-1, 1, 2).tolist()), tuple(rng.uniform(0.2, 1.5, 2).tolist()), float(rng.uniform(0, 360))
            )
            for _ in range(2)
        )
        cloud = rng.uniform(-2.2, 2.2, (4000, 2))
        shared = bool((inside(one, cloud) & inside(other, cloud)).any())
        both += shared
        assert footprints_overlap(one, other) or not shared
        if not shared and footprints_overlap(one, other):
            assert overlap_area(one, other) < 0.05  # too small for the cloud
    assert 12 < both < 68


def inside(polygon, points):
    edge = np.roll(polygon, -1, axis=0) - polygon
    away = points[:, None] - polygon
    return (edge[:, 0] * away[..., 1] - edge[:, 1] * away[..., 0] >= 0).all(axis=1)


def overlap_area(one, other):
    step = 0.005
    grid = np.stack(np.meshgrid(np.arange(-2.2, 2.2, step), np.arange(-2.2, 2.2, step)), axis=-1).reshape(-1, 2)
    return float((inside(one, grid) & inside(other, grid)).sum()) * step**2


def test_a_footprint_has_its_size_and_margin():
    outline = footprint_of((1.0, 2.0), (0.6, 0.4), 30.0, margin=0.1)
    sides = [math.dist(outline[k], outline[(k + 1) % 4]) for k in range(4)]
    np.testing.assert_allclose(sides, [0.8, 0.6, 0.8, 0.6])
    np.testing.assert_allclose(outline.mean(axis=0), [1.0, 2.0])
