"""Drawing layouts by lot: what stands on a desk or in a room, where, and from where it is seen.

A plan is kept only if, in the picture of every placement, anchors and target lie wholly inside and are mostly visible, and if the
placements differ visibly. These checks are made at one size (:data:`_LOOK` pixels), so that a scene doesn't depend on the size of
its pictures.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from deixis.benchmarks.render import desk, room_shell
from deixis.benchmarks.render.desk import DESK_DEPTH_M, DESK_WIDTH_M
from deixis.benchmarks.render.open_room import (
    BACKGROUND_ONLY,
    COLOURED,
    PIECE_COLOURS,
    PLAIN,
    ROOM_DEPTH_M,
    ROOM_HEIGHT_M,
    ROOM_WIDTH_M,
    usual_size,
)
from deixis.benchmarks.render.small_things import COLOURS, SMALL_THINGS
from deixis.benchmarks.spacenum.layout_picture import CLUTTER, ROLES, Eye, LayoutImage, Seen, Setting, Thing, seen_things
from deixis.benchmarks.spacenum.placing import (
    DESK,
    KINDS,
    ROOM,
    AnchorFrame,
    Layout,
    Spacing,
    StepBox,
    box_corners,
    draw_layout,
    footprint_of,
    footprints_overlap,
    steps_of,
)

LEAST_SHARE = 0.6
"""Of each anchor and target that must be visible, in every placement."""
LEAST_AREA = 0.004
"""Share of the picture that each must cover."""
LEAST_SHIFT = 0.04
"""Of the picture's width, between the target's middles at its two positions."""
LEAST_GROWTH = 1.35
"""Ratio of the areas that the target covers in its two sizes, at the same position."""
_LOOK = 128
_MARGIN = 0.04
_NEAREST_M = 0.1
_YAW_DEG, _ASIDE = (-18.0, 18.0), 0.06
_TRIES = 400
_SEED_WORD = 5_271_009


class LayoutError(RuntimeError):
    """No layout was found that keeps all the rules."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What holds for one scale."""

    spacing: Spacing
    kinds: tuple[str, ...]
    """Of anchors and targets."""
    background: tuple[str, ...]
    """Of clutter, beside those that are left of :attr:`kinds`."""
    colours: tuple[str, ...]
    usual: Callable[[str, str], tuple[float, float, float]]
    """Size of a kind in a colour, in metres."""
    factor: tuple[float, float]
    """By which a thing's size differs from the usual one."""
    tallest_m: float
    surfaces: int
    """How many woods or floors there are."""
    walls: int
    middle_m: tuple[tuple[float, float], tuple[float, float]]
    """Spans of x and y in which the layout's middle lies."""
    ground_m: tuple[tuple[float, float], tuple[float, float]]
    """Spans of x and y that things may stand on."""
    pitch_deg: tuple[float, float]
    focal_mm: tuple[float, float]
    away_m: tuple[float, float]
    """Nearest and farthest camera."""
    inside_m: tuple[tuple[float, float], tuple[float, float], tuple[float, float]]
    """Spans of x, y and z in which the camera is."""
    clutter: tuple[int, int]
    """Fewest and most pieces."""


def _small_size(kind: str, _colour: str) -> tuple[float, float, float]:
    return SMALL_THINGS[kind].size_m


_EDGE, _WALL = 0.03, 0.15
_HALF_WIDTH, _HALF_DEPTH = ROOM_WIDTH_M / 2, ROOM_DEPTH_M / 2
STAGES = {
    "desk": Stage(
        spacing=DESK,
        kinds=tuple(SMALL_THINGS),
        background=(),
        colours=tuple(COLOURS),
        usual=_small_size,
        factor=(0.9, 1.25),
        tallest_m=0.6,
        surfaces=len(desk.WOODS),
        walls=len(desk.WALLS),
        middle_m=((-0.2, 0.2), (0.5, 0.75)),
        ground_m=((_EDGE - DESK_WIDTH_M / 2, DESK_WIDTH_M / 2 - _EDGE), (_EDGE, DESK_DEPTH_M - _EDGE)),
        pitch_deg=(-52.0, -30.0),
        focal_mm=(30.0, 42.0),
        away_m=(0.36, 1.7),
        inside_m=((-2.4, 2.4), (-2.2, 2.1), (0.1, 1.7)),
        clutter=(2, 4),
    ),
    "room": Stage(
        spacing=ROOM,
        kinds=(*COLOURED, *PLAIN),
        background=BACKGROUND_ONLY,
        colours=PIECE_COLOURS,
        usual=usual_size,
        factor=(0.9, 1.1),
        tallest_m=2.2,
        surfaces=len(room_shell.FLOORS),
        walls=len(room_shell.WALLS),
        middle_m=((-0.7, 0.7), (0.3, 1.6)),
        ground_m=((_WALL - _HALF_WIDTH, _HALF_WIDTH - _WALL), (_WALL - _HALF_DEPTH, _HALF_DEPTH - _WALL)),
        pitch_deg=(-34.0, -16.0),
        focal_mm=(20.0, 27.0),
        away_m=(1.6, 6.0),
        inside_m=((0.2 - _HALF_WIDTH, _HALF_WIDTH - 0.2), (0.2 - _HALF_DEPTH, _HALF_DEPTH - 0.2), (1.0, ROOM_HEIGHT_M - 0.2)),
        clutter=(2, 4),
    ),
}


@dataclass(frozen=True, kw_only=True)
class LayoutPlan:
    """A scene: its frame, and the picture of each placement in the order of :data:`KINDS`, at some size."""

    scale: str
    frame: AnchorFrame
    layout: Layout
    pictures: tuple[LayoutImage, ...]
    seen: tuple[dict[str, Seen], ...] = ()
    """What is visible in each picture."""

    def at_size(self, pixels: int) -> "LayoutPlan":
        """The same scene in pictures of another size."""
        if pixels == self.pictures[0].pixels:
            return self
        pictures = tuple(replace(picture, pixels=pixels) for picture in self.pictures)
        return replace(self, pictures=pictures, seen=tuple(seen_things(picture) for picture in pictures))

    @property
    def step_m(self) -> float:
        """The grid of all coordinates."""
        return STAGES[self.scale].spacing.step_m

    def boxes(self, number: int) -> dict[str, list[list[float]]]:
        """Role and box, in the anchors' frame, of anchors and target in placement ``number``."""
        found = (self.layout.anchor_a, self.layout.anchor_b, self.layout.placements[number])
        return {role: box.metres(self.step_m) for role, box in zip(ROLES, found, strict=True)}


@lru_cache(maxsize=1024)
def layout_plan(scale: str, seed: int, number: int) -> LayoutPlan:
    """Scene ``number`` of a scale; whatever else is drawn, it is the same.

    Raises:
        LayoutError: None was found in a bounded number of tries.
    """
    rng = np.random.default_rng((_SEED_WORD, seed, sorted(STAGES).index(scale), number))
    for _ in range(_TRIES):
        plan = _drawn_plan(rng, scale)
        seen = () if plan is None else _seen_in_all(plan.pictures)
        if plan is not None and seen and _told_apart(seen):
            return replace(plan, seen=seen)
    raise LayoutError(f"{_TRIES} tries gave no layout in which all is visible (scale {scale}, scene {number}); use another seed.")


def _drawn_plan(rng: np.random.Generator, scale: str) -> LayoutPlan | None:
    stage = STAGES[scale]
    kinds = _shuffled(rng, stage.kinds)
    colours = _shuffled(rng, stage.colours)
    left = _shuffled(rng, (*kinds[3:], *stage.background)) if stage.background else kinds[3:]
    yaw = round(float(rng.uniform(0, 360)), 1)
    quarters = round(-yaw / 90)  # so that fronts look at the viewer, within half a right angle
    sizes = [_own_size(rng, stage, kind, colour) for kind, colour in zip(kinds[:3], colours, strict=False)]
    usual = [steps_of(_swapped(size, quarters), stage.spacing) for size in sizes]
    layout = draw_layout(rng, stage.spacing, (usual[0], usual[1], usual[2]))
    if layout is None or max(box.high[2] for box in layout.placements) * stage.spacing.step_m > stage.tallest_m:
        return None
    frame = _laid(rng, stage, layout, yaw)
    named = list(zip(ROLES, kinds, colours, strict=False))
    placements = [
        tuple(
            _thing(*who, box, frame, stage.spacing.step_m, quarters)
            for who, box in zip(named, (layout.anchor_a, layout.anchor_b, target), strict=True)
        )
        for target in layout.placements
    ]
    standing = [*placements[0][:2], *(things[2] for things in placements)]
    if not _on_ground(standing, stage):
        return None
    eye = _framing(rng, stage, standing)
    if eye is None:
        return None
    clutter = _clutter(rng, stage, eye, standing, list(zip(left, colours[3:], strict=False)))
    if clutter is None:
        return None
    setting = Setting(
        scale=scale,
        surface=int(rng.integers(stage.surfaces)),
        wall=int(rng.integers(stage.walls)),
        brightness=round(float(rng.uniform(0.85, 1.1)), 3),
    )
    first = LayoutImage(setting=setting, eye=eye, things=(), pixels=_LOOK)
    pictures = tuple(replace(first, things=(*things, *clutter)) for things in placements)
    return LayoutPlan(scale=scale, frame=frame, layout=layout, pictures=pictures)


def _shuffled(rng: np.random.Generator, names: Sequence[str]) -> list[str]:
    return [str(name) for name in rng.permutation(list(names))]


def _own_size(rng: np.random.Generator, stage: Stage, kind: str, colour: str) -> tuple[float, float, float]:
    factor = float(rng.uniform(*stage.factor))
    x, y, z = stage.usual(kind, colour)
    return x * factor, y * factor, z * factor


def _swapped(size: tuple[float, float, float], quarters: int) -> tuple[float, float, float]:
    return (size[1], size[0], size[2]) if quarters % 2 else size


def _laid(rng: np.random.Generator, stage: Stage, layout: Layout, yaw: float) -> AnchorFrame:
    """The frame that puts the middle of all footprints where ``rng`` says."""
    middle = [float(rng.uniform(*span)) for span in stage.middle_m]
    boxes = [box.metres(stage.spacing.step_m) for box in (layout.anchor_a, layout.anchor_b, *layout.placements)]
    corners = AnchorFrame(origin_m=(0.0, 0.0, 0.0), yaw_deg=yaw).to_scene(np.concatenate([box_corners(box) for box in boxes]))
    centre = (corners.min(axis=0) + corners.max(axis=0)) / 2
    x, y = (round(middle[axis] - float(centre[axis]), 4) for axis in range(2))
    return AnchorFrame(origin_m=(x, y, 0.0), yaw_deg=yaw)


def _thing(role: str, kind: str, colour: str, box: StepBox, frame: AnchorFrame, step_m: float, quarters: int) -> Thing:
    low, high = box.metres(step_m)
    size = (round(high[0] - low[0], 6), round(high[1] - low[1], 6), round(high[2] - low[2], 6))
    middle = np.array([[(a + b) / 2 for a, b in zip(low, high, strict=True)]])
    x, y, z = (round(float(value), 6) for value in frame.to_scene(middle)[0])
    yaw = round(frame.yaw_deg + 90 * quarters, 1)
    return Thing(role=role, kind=kind, colour=colour, centre_m=(x, y, z), size_m=_swapped(size, quarters), yaw_deg=yaw)


def _on_ground(things: Sequence[Thing], stage: Stage) -> bool:
    corners = np.concatenate([thing.corners[:, :2] for thing in things])
    return all(low <= corners[:, k].min() and corners[:, k].max() <= high for k, (low, high) in enumerate(stage.ground_m))


def _framing(rng: np.random.Generator, stage: Stage, things: Sequence[Thing]) -> Eye | None:
    """A camera that has all things inside the picture, from as near as it can or up to a fifth farther."""
    corners = np.concatenate([thing.corners for thing in things])
    yaw, pitch = (round(float(rng.uniform(*span)), 2) for span in (_YAW_DEG, stage.pitch_deg))
    focal, farther = round(float(rng.uniform(*stage.focal_mm)), 2), float(rng.uniform(1.0, 1.2))
    aside = rng.uniform(-_ASIDE, _ASIDE, 2)
    for away in np.arange(*stage.away_m, stage.away_m[0] / 20):
        eye = _aimed(corners, yaw, pitch, focal, float(away))
        if eye is None or not _inside(corners, eye):
            continue
        eye = _aimed(corners, yaw, pitch, focal, float(away) * farther) or eye
        turned = _shifted(eye, float(away), aside)
        eye = turned if _inside(corners, turned) else eye
        within = all(low < value < high for value, (low, high) in zip(eye.position_m, stage.inside_m, strict=True))
        return eye if within else None
    return None


def _aimed(corners: Float[np.ndarray, "n xyz"], yaw: float, pitch: float, focal: float, away: float) -> Eye | None:
    """The camera at this distance from the middle of the corners that has their outline in the middle of the picture."""
    eye = Eye(position_m=(0.0, 0.0, 0.0), yaw_deg=yaw, pitch_deg=pitch, focal_mm=focal)
    middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
    eye = _at(eye, middle - eye.view(1).axes[2] * away)
    for _ in range(3):
        if not (eye.coordinates(corners)[:, 2] > _NEAREST_M).all():
            return None
        points = eye.view(1).project(corners)
        eye = _shifted(eye, away, (points.min(axis=0) + points.max(axis=0)) / 2 - 0.5)
    return eye


def _shifted(eye: Eye, away: float, by: Float[np.ndarray, "2"]) -> Eye:
    """The camera moved so that what it shows at this depth moves by minus ``by`` (in widths of the picture, right and down)."""
    view = eye.view(1)
    right, up, _ = view.axes
    scale = 2 * view.half_width * away
    return _at(eye, np.array(eye.position_m) + (right * by[0] - up * by[1]) * scale)


def _at(eye: Eye, position: Float[np.ndarray, "3"]) -> Eye:
    x, y, z = (round(float(value), 4) for value in position)
    return replace(eye, position_m=(x, y, z))


def _inside(corners: Float[np.ndarray, "n xyz"], eye: Eye) -> bool:
    if not (eye.coordinates(corners)[:, 2] > _NEAREST_M).all():
        return False
    points = eye.view(1).project(corners)
    return bool((points > _MARGIN).all() and (points < 1 - _MARGIN).all())


def _clutter(
    rng: np.random.Generator, stage: Stage, eye: Eye, standing: Sequence[Thing], left: Sequence[tuple[str, str]]
) -> tuple[Thing, ...] | None:
    """Some more things, at any angle, clear of every placement and inside the picture."""
    taken = [_footprint(thing, stage.spacing.gap * stage.spacing.step_m) for thing in standing]
    n = int(rng.integers(stage.clutter[0], stage.clutter[1] + 1))
    found: list[Thing] = []
    for _ in range(_TRIES // 4):
        kind, colour = left[len(found)]
        size = _own_size(rng, stage, kind, colour)
        x, y = (round(float(rng.uniform(*span)), 4) for span in stage.ground_m)
        thing = Thing(
            role=CLUTTER,
            kind=kind,
            colour=colour,
            centre_m=(x, y, round(size[2] / 2, 6)),
            size_m=(round(size[0], 6), round(size[1], 6), round(size[2], 6)),
            yaw_deg=round(float(rng.uniform(-180, 180)), 1),
        )
        outline = _footprint(thing)
        clear = not any(footprints_overlap(outline, other) for other in taken)
        if clear and _on_ground([thing], stage) and _inside(thing.corners, eye):
            found.append(thing)
            taken.append(_footprint(thing, stage.spacing.gap * stage.spacing.step_m))
            if len(found) == n:
                return tuple(found)
    return tuple(found) if len(found) >= stage.clutter[0] else None


def _footprint(thing: Thing, margin: float = 0.0) -> np.ndarray:
    return footprint_of(thing.centre_m[:2], thing.size_m[:2], thing.yaw_deg, margin)


def _seen_in_all(pictures: Sequence[LayoutImage]) -> tuple[dict[str, Seen], ...]:
    """What is visible in each picture, or nothing once something is not visible enough in one."""
    found = []
    for picture in pictures:
        seen = seen_things(picture)
        if len(seen) < len(ROLES) or any(s.share < LEAST_SHARE or s.area < LEAST_AREA for s in seen.values()):
            return ()
        found.append(seen)
    return tuple(found)


def _told_apart(seen: Sequence[dict[str, Seen]]) -> bool:
    """Whether the placements differ enough to be seen."""
    right, moved, resized, both = (things["target"] for things in seen)
    for one, other in ((right, moved), (resized, both)):
        if (one.column - other.column) ** 2 + (one.row - other.row) ** 2 < LEAST_SHIFT**2:
            return False
    return all(max(a.area / b.area, b.area / a.area) >= LEAST_GROWTH for a, b in ((right, resized), (moved, both)))


__all__ = [
    "KINDS",
    "LEAST_AREA",
    "LEAST_GROWTH",
    "LEAST_SHARE",
    "LEAST_SHIFT",
    "STAGES",
    "LayoutError",
    "LayoutPlan",
    "layout_plan",
]
