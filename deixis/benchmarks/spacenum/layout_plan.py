"""Drawing layouts by lot: what stands on a desk or in a room, where, and from where it is seen.

A plan is kept only if, in the picture of every placement, anchors and target lie wholly inside and are mostly visible, and if the
placements differ visibly. These checks are made at one size (:data:`_LOOK` pixels), so that a scene doesn't depend on the size of
its pictures.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from deixis.benchmarks.spacenum.layout_camera import framing, inside
from deixis.benchmarks.spacenum.layout_picture import CLUTTER, ROLES, Eye, LayoutImage, Seen, Setting, Thing, seen_things
from deixis.benchmarks.spacenum.layout_stages import STAGES, Stage
from deixis.benchmarks.spacenum.placing import (
    AnchorFrame,
    Layout,
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
_TRIES = 400
_SEED_WORD = 5_271_009


class LayoutError(RuntimeError):
    """No layout was found that keeps all the rules."""


@dataclass(frozen=True, kw_only=True)
class LayoutPlan:
    """A scene at some size: its frame and the picture of each placement.

    Pictures stand in the order of :data:`~deixis.benchmarks.spacenum.placing.KINDS`.
    """

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
    placements = _placements(list(zip(ROLES, kinds, colours, strict=False)), layout, frame, stage, quarters)
    standing = [*placements[0][:2], *(things[2] for things in placements)]
    if not _on_ground(standing, stage):
        return None
    eye = framing(rng, stage, standing)
    if eye is None:
        return None
    clutter = _clutter(rng, stage, eye, standing, list(zip(left, colours[3:], strict=False)))
    if clutter is None:
        return None
    first = LayoutImage(setting=_setting(rng, scale), eye=eye, things=(), pixels=_LOOK)
    pictures = tuple(replace(first, things=(*things, *clutter)) for things in placements)
    return LayoutPlan(scale=scale, frame=frame, layout=layout, pictures=pictures)


def _placements(
    named: Sequence[tuple[str, str, str]], layout: Layout, frame: AnchorFrame, stage: Stage, quarters: int
) -> list[tuple[Thing, ...]]:
    """Anchors and target of each placement; ``named`` has the role, kind and colour of each."""
    return [
        tuple(
            _thing(*who, box, frame, stage.spacing.step_m, quarters)
            for who, box in zip(named, (layout.anchor_a, layout.anchor_b, target), strict=True)
        )
        for target in layout.placements
    ]


def _setting(rng: np.random.Generator, scale: str) -> Setting:
    return Setting(
        scale=scale,
        surface=int(rng.integers(STAGES[scale].surfaces)),
        wall=int(rng.integers(STAGES[scale].walls)),
        brightness=round(float(rng.uniform(0.85, 1.1)), 3),
    )


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
        if clear and _on_ground([thing], stage) and inside(thing.corners, eye):
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
