"""Rooms: nothing stands in another thing or through a wall, nothing hides what hangs on a wall, free ways are free."""

from functools import cache

import numpy as np
import pytest

from deixis.benchmarks.render.floor_plan import Footprint
from deixis.benchmarks.render.furniture import FURNITURE
from deixis.benchmarks.render.room import THEMES, Room, furnished_room
from deixis.benchmarks.render.room_shell import BACKGROUND, drawn_shell
from deixis.benchmarks.render.stage import Stage

SEEDS = range(4)


@cache
def room_and_stage(seed: int) -> tuple[Room, Stage]:
    room = furnished_room(np.random.default_rng(seed))
    return room, Stage(room.scene)


def corners_of(room: Room, number: int) -> np.ndarray:
    return np.concatenate([solid.corners.reshape(-1, 3) for solid, _, owner in room.scene.solids if owner == number])


def kind(name: str) -> str:
    """``chair 2`` is a chair."""
    head, _, last = name.rpartition(" ")
    return head if last.isdigit() else name


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_lies_within_the_walls(seed):
    room, _ = room_and_stage(seed)
    shell = room.shell
    for number in room.counted:
        corners = corners_of(room, number)
        assert np.abs(corners[:, 0]).max() <= shell.width / 2 + 0.003, room.scene.names[number]
        assert np.abs(corners[:, 1]).max() <= shell.depth / 2 + 0.003, room.scene.names[number]
        assert corners[:, 2].min() >= -0.004
        assert corners[:, 2].max() <= shell.height + 0.003


@pytest.mark.parametrize("seed", SEEDS)
def test_no_two_pieces_of_furniture_share_floor(seed):
    """Second route: the triangles' own corners; in one of ninety directions there is a gap between each two pieces."""
    room, _ = room_and_stage(seed)
    pieces = [n for n in room.counted if kind(room.scene.names[n]) in FURNITURE]
    assert len(room.obstacles) >= len(pieces) >= 5
    directions = np.array([(np.cos(t), np.sin(t)) for t in np.linspace(0, np.pi, 90, endpoint=False)])
    spans = {n: corners_of(room, n)[:, :2] @ directions.T for n in pieces}
    ends = {n: (span.min(axis=0), span.max(axis=0)) for n, span in spans.items()}
    for i, one in enumerate(pieces):
        for two in pieces[i + 1 :]:
            (low, high), (other_low, other_high) = ends[one], ends[two]
            assert np.maximum(low - other_high, other_low - high).max() > 0.01, (room.scene.names[one], room.scene.names[two])


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_stands_before_what_hangs_on_a_wall(seed):
    """Rays from 0.5 m before each picture, clock and window, straight at nine of its places, meet it first."""
    room, stage = room_and_stage(seed)
    for number in room.counted:
        if kind(room.scene.names[number]) not in ("picture", "wall clock", "window", "door"):
            continue
        corners = corners_of(room, number)
        turn = np.radians(room.scene.placements[number].turn_deg)
        inward, along = np.array([-np.sin(turn), np.cos(turn), 0]), np.array([np.cos(turn), np.sin(turn), 0])
        at = np.array(room.scene.placements[number].at)
        spread = (corners - at) @ along
        grid = [(spread.min() * (1 - u) + spread.max() * u, v) for u in (0.3, 0.5, 0.7) for v in (0.3, 0.5, 0.7)]
        low, high = corners[:, 2].min(), corners[:, 2].max()
        origin = np.array([at * (1, 1, 0) + along * u + inward * 0.5 + (0, 0, low + (high - low) * v) for u, v in grid])
        seen, _ = stage.tracer.seen(origin.astype(np.float32), np.tile(-inward, (9, 1)).astype(np.float32))
        assert (seen == number).mean() >= 8 / 9, room.scene.names[number]


def test_a_free_place_has_nothing_near_it():
    """Second route: rays along the floor and up to the head, in all directions, meet nothing nearer than the radius."""
    radius, found = 0.28, 0
    for seed in SEEDS:
        room, stage = room_and_stage(seed)
        rng = np.random.default_rng(seed)
        for _ in range(40):
            x, y = (float(rng.uniform(-0.5, 0.5)) * length for length in (room.shell.width, room.shell.depth))
            turns = np.linspace(0, 2 * np.pi, 64, endpoint=False)
            flat = np.stack([np.cos(turns), np.sin(turns), 0 * turns], axis=1)
            heights = np.arange(0.05, 1.7, 0.15)
            origin = np.array([(x, y, z) for z in heights for _ in turns], np.float32)
            numbers, depth = stage.tracer.seen(origin, np.tile(flat, (len(heights), 1)).astype(np.float32))
            if room.is_free((x, y), (x, y), radius):
                found += 1
                near = depth.min()
                assert near > radius - 0.01, room.scene.names[numbers[depth.argmin()]]
    assert found > 25


def test_a_way_through_furniture_or_a_wall_is_not_free():
    room, _ = room_and_stage(0)
    shell, item = room.shell, room.obstacles[0]
    middle = item.corners.mean(axis=0)
    beside = (float(middle[0]) + 1.5, float(middle[1]))
    assert not room.is_free(beside, (float(middle[0]), float(middle[1])), 0.1)
    empty = Room(room.scene, shell, room.theme, (Footprint((-0.2, -0.2), (0.2, 0.2)),), room.counted)
    assert empty.is_free((-1.0, 0.6), (1.0, 0.6), 0.3)
    assert not empty.is_free((-1.0, 0.45), (1.0, 0.45), 0.3)
    assert not empty.is_free((-1.0, 0.6), (shell.width / 2 - 0.2, 0.6), 0.3)


def test_rooms_have_many_kinds_of_things_under_names_of_their_own():
    kinds: set[str] = set()
    for seed in range(12):
        room = furnished_room(np.random.default_rng((1, seed)))
        names = room.scene.names
        assert len(set(names)) == len(names)
        assert {names[n] for n in range(len(names)) if n not in room.counted} == set(BACKGROUND)
        assert {"door", "window"} <= set(names)
        assert len(room.counted) >= 14
        kinds |= {kind(names[n]) for n in room.counted}
    assert len(kinds & set(FURNITURE)) >= 20
    assert len(kinds) >= 30


def test_every_theme_begins_with_its_own_furniture():
    for seed in range(5):
        room = furnished_room(np.random.default_rng((2, seed)))
        assert set(room.scene.names) & set(THEMES[room.theme].first)
    assert all({*theme.first, *theme.along_walls, *theme.standing_free} <= set(FURNITURE) for theme in THEMES.values())


def test_a_room_is_the_same_from_the_same_chance():
    one, two, other = (furnished_room(np.random.default_rng(seed)) for seed in (5, 5, 6))
    for (a, m, n), (b, k, o) in zip(one.scene.solids, two.scene.solids, strict=True):
        assert a.corners.tobytes() == b.corners.tobytes()
        assert (m, n) == (k, o)
    assert one.scene.lights == two.scene.lights
    assert one.scene.names != other.scene.names


def test_a_point_before_a_wall_is_where_it_says():
    shell = drawn_shell(np.random.default_rng(0))
    for wall in shell.walls:
        x, y = wall.point(0.4, 0.3)
        turn = np.radians(wall.turn_deg)
        inward = np.array([-np.sin(turn), np.cos(turn)])
        on_wall = np.array([x, y]) - 0.3 * inward
        assert max(abs(on_wall[0]) / shell.width, abs(on_wall[1]) / shell.depth) == pytest.approx(0.5)
