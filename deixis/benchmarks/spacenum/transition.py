"""Transition items: two views of a furnished room and the size of the action between them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from deixis.benchmarks.items import Item, Items
from deixis.benchmarks.render.room import Room
from deixis.benchmarks.spacenum.actions import ACTION, ACTIONS, COLUMNS, N_OPTIONS, Action, Pose, after, grids
from deixis.benchmarks.spacenum.options import Lettered, balanced_letters, lettered, lettered_pictures
from deixis.benchmarks.spacenum.prompts import DIRECTIONS, magnitude_text, transition_prompt
from deixis.benchmarks.spacenum.rooms import MIN_VISIBLE, Glimpse, RoomImage, RoomKey, built, glimpse, is_way_free

STANDARD_SCENES = 400
KINDS = ("correct", "less_correct", "less_wrong", "wrong")
"""Of options, by the rank of their error."""
_SEED_WORD = 0x7A45
_ROOMS, _POSES = 12, 60
_STEEPEST_DEG, _PITCH_SPREAD_DEG = 85.0, 10.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One scene as it is dealt, before a room is found for it."""

    seed: int
    number: int
    action: Action
    magnitude: float
    others: tuple[float, ...]
    """The distractors' magnitudes, the nearest to the right one first."""
    largest: float
    """Of the action's grid."""
    letters: Mapping[str, int]
    """Place of the right option in each direction."""

    @property
    def name(self) -> str:
        """Of the scene, in ids and groups."""
        return f"transition-s{self.seed}-{self.number:04d}"


@dataclass(frozen=True, kw_only=True)
class TransitionScene:
    """A plan with its room: a start, and an end for each magnitude, the right one first."""

    plan: Plan
    room: RoomKey
    start: Pose
    ends: tuple[Pose, ...]
    seen: tuple[Glimpse, ...]
    """From the start, then from each end."""
    refused: Mapping[str, int]
    """Poses that were tried before, by what was wrong with them: ``way`` (not free), ``few`` (too few objects in view)."""


def transition_items(
    n: int | None = None,
    seed: int = 0,
    size: int = 512,
    directions: Sequence[str] = DIRECTIONS,
    actions: Sequence[str] = ACTIONS,
    magnitudes: Mapping[str, Sequence[float | int]] | None = None,
) -> Items:
    """The items of ``n`` scenes, direction by direction within each; see :func:`deixis.spacenum` for the arguments.

    Raises:
        ValueError: A magnitude is out of range, or no room was found for a scene.
    """
    scenes = transition_scenes(n, seed, actions, magnitudes)
    return Items(_item(scene, direction, size) for scene in scenes for direction in directions)


def transition_scenes(
    n: int | None = None,
    seed: int = 0,
    actions: Sequence[str] = ACTIONS,
    magnitudes: Mapping[str, Sequence[float | int]] | None = None,
) -> Iterator[TransitionScene]:
    """Scenes one by one, each with a start and four possible ends that are free and show three objects or more.

    Raises:
        ValueError: A magnitude is out of range, or no room was found for a scene.
    """
    for plan in plans(STANDARD_SCENES if n is None else n, seed, actions, magnitudes):
        yield found_scene(plan)


def plans(n: int, seed: int, actions: Sequence[str], magnitudes: Mapping[str, Sequence[float | int]] | None = None) -> list[Plan]:
    """Which action, magnitudes and letters each of ``n`` scenes has.

    The columns take turns, within a column an action and its opposite. Magnitudes and letters come in blocks that hold each
    once, in random order, so that every beginning of the set is as balanced as its length allows.

    Raises:
        ValueError: A list of magnitudes is not allowed.
    """
    grid, chosen = grids(magnitudes), [ACTION[name] for name in ACTIONS if name in actions]
    columns = [[action for action in chosen if action.column == column] for column in COLUMNS]
    columns = [column for column in columns if column]
    values = {action.name: _blocks(grid[action.name], _rng(seed, 1, action.number)) for action in chosen}
    letters = {action.column: _letters(seed, action.column, n) for action in chosen}
    found = []
    for number in range(n):
        column, turn = columns[number % len(columns)], number // len(columns)
        action = column[turn % len(column)]
        right = next(values[action.name])
        found.append(
            Plan(
                seed=seed,
                number=number,
                action=action,
                magnitude=right,
                others=_others(right, grid[action.name], _rng(seed, 3, number)),
                largest=max(grid[action.name]),
                letters={way: next(places) for way, places in letters[action.column].items()},
            )
        )
    return found


def _rng(seed: int, *stream: int) -> np.random.Generator:
    return np.random.default_rng((_SEED_WORD, seed, *stream))


def _blocks(values: Sequence[float], rng: np.random.Generator) -> Iterator[float]:
    """All the values in random order, then all again in another."""
    while True:
        for k in rng.permutation(len(values)):
            yield values[int(k)]


def _letters(seed: int, column: str, n: int) -> dict[str, Iterator[int]]:
    """Places of the right option in a column, for each direction."""
    return {
        way: iter(balanced_letters(n, N_OPTIONS, _rng(seed, 2, COLUMNS.index(column), number)))
        for number, way in enumerate(DIRECTIONS)
    }


def _others(right: float, grid: Sequence[float], rng: np.random.Generator) -> tuple[float, ...]:
    """Three other magnitudes of the grid: each three are equally likely, so that no rank among the options is the right one's."""
    rest = [value for value in grid if value != right]
    drawn = [rest[int(k)] for k in rng.choice(len(rest), N_OPTIONS - 1, replace=False)]
    return tuple(sorted(drawn, key=lambda value: (round(abs(value - right), 9), value)))


def found_scene(plan: Plan) -> TransitionScene:
    """A room and a start for a plan.

    Raises:
        ValueError: None of the rooms tried has room for the action with three objects in every view.
    """
    refused: Counter[str] = Counter()
    sizes = (plan.magnitude, *plan.others)
    for attempt in range(_ROOMS):
        key = RoomKey(plan.seed, plan.number, attempt)
        room, rng = built(key)[0], key.rng(1)
        for _ in range(_POSES):
            start = _drawn_start(room, plan, rng)
            ends = tuple(after(start, plan.action, size) for size in sizes)
            if not is_way_free(room, (start, *ends)):
                refused["way"] += 1
                continue
            seen = _all_seen(key, (start, *ends))
            if seen is not None:
                return TransitionScene(plan=plan, room=key, start=start, ends=ends, seen=seen, refused=dict(refused))
            refused["few"] += 1
    unit, most = plan.action.unit, max(sizes)
    raise ValueError(
        f"scene {plan.number} of seed {plan.seed}: none of {_ROOMS} rooms, up to 6.6 by 7.6 m, lets one {plan.action.name} by "
        f"up to {most:g} {unit} with {MIN_VISIBLE} objects in every view; ask for smaller magnitudes of {plan.action.name!r}, or "
        "use another seed."
    )


def _all_seen(key: RoomKey, poses: Sequence[Pose]) -> tuple[Glimpse, ...] | None:
    """What is seen from each pose, or None where one of them shows too little."""
    seen = []
    for pose in poses:
        seen.append(glimpse(key, pose))
        if len(seen[-1].shares) < MIN_VISIBLE:
            return None
    return tuple(seen)


def _drawn_start(room: Room, plan: Plan, rng: np.random.Generator) -> Pose:
    """A place by chance; for turns up and down, a pitch from which the grid's largest ends about as far on the other side."""
    x, y = (round(float(rng.uniform(-0.5, 0.5)) * (length - 0.6), 3) for length in (room.shell.width, room.shell.depth))
    height, yaw = round(float(rng.uniform(1.3, 1.65)), 3), round(float(rng.uniform(-180, 180)), 1)
    pitch = float(rng.uniform(-12, 0))
    if plan.action.column == "rotate U/D":
        # Chance and the grid decide, not the magnitudes that are asked: the start must not tell them.
        low = max(-_STEEPEST_DEG, -plan.largest / 2 - _PITCH_SPREAD_DEG)
        high = min(_STEEPEST_DEG - plan.largest, -plan.largest / 2 + _PITCH_SPREAD_DEG)
        pitch = plan.action.sign * float(rng.uniform(low, high))
    return Pose(position_m=(x, y, height), yaw_deg=yaw, pitch_deg=round(pitch, 1))


def _item(scene: TransitionScene, direction: str, size: int) -> Item:
    plan, room = scene.plan, built(scene.room)[0]
    options, shown = _options(plan, direction)
    poses, seen = (scene.start, *(scene.ends[k] for k in shown)), (scene.seen[0], *(scene.seen[1 + k] for k in shown))
    words = magnitude_text(plan.magnitude, plan.action.unit) if direction == "num2space" else None
    return Item(
        id=f"spacenum/{plan.name}/transition-{direction}",
        benchmark="spacenum",
        task=f"transition-{direction}",
        language="en",
        images=tuple(RoomImage(room=scene.room, pose=pose, pixels=size) for pose in poses),
        prompt=transition_prompt(direction, plan.action.name, words, options.options, len(poses)),
        options=options.options,
        truth=options.truth,
        targets=_targets(plan),
        groups=_groups(plan, direction, options.truth),
        nuisances=_nuisances(scene),
        objects=tuple(box for k, glance in enumerate(seen) for box in glance.boxes(room, size, k)),
        facts={
            "room": {"size_m": [room.shell.width, room.shell.depth, room.shell.height], **asdict(scene.room)},
            "poses": [pose.as_facts() for pose in poses],
            "visible": [dict(glance.shares) for glance in seen],
            "action": plan.action.name,
            "magnitude": plan.magnitude,
            "unit": plan.action.unit,
            "magnitudes": [option.value for option in options.options],
        },
    )


def _options(plan: Plan, direction: str) -> tuple[Lettered, tuple[int, ...]]:
    """Options, and which of the ends, the right one first, are shown behind the start."""
    values, right_at = (plan.magnitude, *plan.others), plan.letters[direction]
    rng = _rng(plan.seed, 4, plan.number, DIRECTIONS.index(direction))
    if direction == "num2space":
        found = lettered_pictures(N_OPTIONS, first=2, values=values, kinds=KINDS, right_at=right_at, rng=rng)
        return found, found.order
    texts = [magnitude_text(value, plan.action.unit) for value in values]
    return lettered(texts, values=values, kinds=KINDS, right_at=right_at, rng=rng), (0,)


def _targets(plan: Plan) -> dict[str, float]:
    return {
        "magnitude": plan.magnitude,
        "signed_magnitude": plan.action.sign * plan.magnitude,
        "action_type": float(plan.action.number),
        f"magnitude_{plan.action.unit}": plan.magnitude,
    }


def _groups(plan: Plan, direction: str, letter: str) -> dict[str, str]:
    return {
        "scene": plan.name,
        "kind": "transition",
        "direction": direction,
        "column": plan.action.column,
        "action": plan.action.name,
        "letter": letter,
        "permutation": "0",
    }


def _nuisances(scene: TransitionScene) -> dict[str, float]:
    """What can be read off the pictures before and after without comparing them."""
    before, end = scene.seen[0], scene.seen[1]
    return {
        "start_pitch_deg": scene.start.pitch_deg,
        "camera_height_m": scene.start.position_m[2],
        "start_depth_m": before.mean_depth_m,
        "end_depth_m": end.mean_depth_m,
        "start_objects": float(len(before.shares)),
        "end_objects": float(len(end.shares)),
        "object_area": round(sum(end.shares.values()), 5),
    }
