"""Which scenes a set of the memory game holds: every random choice is made here."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from deixis.benchmarks.decouple import EvenSpread, decoupled_figure
from deixis.benchmarks.render import SHAPES, Camera, Figure
from deixis.benchmarks.render.memory_scene import INKS

COLOURS = tuple(INKS)
CAMERA_SIDES = {"centre": 0.0, "left": -0.6, "right": 0.6}
"""Metres to the right of the desk's middle line; a camera at the side turns towards the desk."""
ADDRESSEES = {"none": None, "near": 0.85, "middle": 1.5, "far": 2.3}
"""Where somebody sits beside the desk, in metres from its near edge."""
_ADDRESSEE_X_M = 0.72
_LOOKED_AT_M = 1.5
_SEED_STREAM = 874
_DECOUPLED_STREAM = (874, 3)
_SPREAD, _SCENE = 0, 1
_LATERAL_M = 0.12
_BRIGHTNESS = (0.92, 1.06)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What was asked for, checked."""

    shapes: tuple[str, ...]
    colours: tuple[str, ...]
    distances: tuple[float, ...]
    camera: Camera
    camera_sides: tuple[str, ...] = ("centre",)
    addressees: tuple[str, ...] = ("none",)
    decouple: bool = False
    n: int | None = None
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class PlannedScene:
    """One picture to be drawn."""

    name: str
    figure: Figure
    camera: Camera
    groups: dict[str, str]
    """Factors that the plan varies beside shape, colour and distance."""


def planned_scenes(plan: Plan) -> Iterator[PlannedScene]:
    """The plan's scenes, in order; camera sides and addressees multiply them."""
    for side, addressee in product(plan.camera_sides, plan.addressees):
        groups, marks, stream = {}, [], []
        if plan.camera_sides != ("centre",):
            groups["camera_side"] = side
        if plan.addressees != ("none",):
            groups["addressee"] = addressee
        # A factor at its standard value leaves names and draws as they are without it.
        if side != "centre":
            marks.append(side)
            stream += [1, list(CAMERA_SIDES).index(side)]
        if addressee != "none":
            marks.append(f"addressee-{addressee}")
            stream += [2, list(ADDRESSEES).index(addressee)]
        turned = _from_side(plan.camera, side)
        for name, figure, camera in _figures(plan, turned, tuple(stream)):
            full = "-".join((name, *marks, f"s{plan.seed}"))
            yield PlannedScene(name=full, figure=_beside(figure, addressee, side), camera=camera, groups=groups)


def _from_side(camera: Camera, side: str) -> Camera:
    x = CAMERA_SIDES[side]
    if not x:
        return camera
    turn = math.degrees(math.atan2(x, _LOOKED_AT_M + camera.setback_m))
    return replace(camera, x_m=camera.x_m + x, yaw_deg=round(camera.yaw_deg + turn, 4))


def _beside(figure: Figure, addressee: str, side: str) -> Figure:
    """The figure with somebody beside the desk, on the side where the camera is not."""
    place = ADDRESSEES[addressee]
    if place is None:
        return figure
    return replace(figure, addressee_m=place, addressee_x_m=_ADDRESSEE_X_M if side == "left" else -_ADDRESSEE_X_M)


def _figures(plan: Plan, camera: Camera, stream: tuple[int, ...]) -> Iterator[tuple[str, Figure, Camera]]:
    if plan.decouple:
        yield from _decoupled(plan, camera, stream)
    elif plan.n is None:
        yield from ((name, figure, camera) for name, figure in _crossed(plan, stream))
    else:
        yield from ((name, figure, camera) for name, figure in _random(plan, plan.n, stream))


def _crossed(plan: Plan, stream: tuple[int, ...]) -> Iterator[tuple[str, Figure]]:
    for shape, colour, distance in product(plan.shapes, plan.colours, plan.distances):
        # Each scene has a stream of its own: leaving out a shape must not redraw the other scenes.
        own = (SHAPES.index(shape), COLOURS.index(colour), round(distance * 1e6))
        rng = np.random.default_rng((_SEED_STREAM, plan.seed, *own, *stream))
        yield f"{shape}-{colour}-{distance:g}m", _figure(rng, shape, colour, distance)


def _random(plan: Plan, n: int, stream: tuple[int, ...]) -> Iterator[tuple[str, Figure]]:
    for number in range(n):
        rng = np.random.default_rng((_SEED_STREAM, plan.seed, number, *stream))
        shape, colour = _any_figure(rng, plan)
        distance = float(rng.uniform(min(plan.distances), max(plan.distances)))
        yield f"random-{number}", _figure(rng, shape, colour, distance)


def _decoupled(plan: Plan, camera: Camera, stream: tuple[int, ...]) -> Iterator[tuple[str, Figure, Camera]]:
    def rng(*key: int) -> np.random.Generator:
        return np.random.default_rng((*_DECOUPLED_STREAM, plan.seed, *key, *stream))

    if plan.n is not None:
        points, span = EvenSpread(rng(_SPREAD)), (min(plan.distances), max(plan.distances))
        for number in range(plan.n):
            own = rng(_SCENE, number)
            shape, colour = _any_figure(own, plan)
            yield f"decoupled-{number}", *decoupled_figure(own, points[number], shape, colour, span, camera)
        return
    # Rows and areas are spread over the figures of each distance, so that no distance gets other rows than another.
    spread = {distance: EvenSpread(rng(_SPREAD, round(distance * 1e6))) for distance in plan.distances}
    for shape, colour, distance in product(plan.shapes, plan.colours, plan.distances):
        number = SHAPES.index(shape) * len(COLOURS) + COLOURS.index(colour)
        own, at = rng(_SCENE, number, round(distance * 1e6)), spread[distance][number]
        yield f"decoupled-{shape}-{colour}-{distance:g}m", *decoupled_figure(own, at, shape, colour, distance, camera)


def _any_figure(rng: np.random.Generator, plan: Plan) -> tuple[str, str]:
    return plan.shapes[int(rng.integers(len(plan.shapes)))], plan.colours[int(rng.integers(len(plan.colours)))]


def _figure(rng: np.random.Generator, shape: str, colour: str, distance_m: float) -> Figure:
    return Figure(
        shape=shape,
        colour=colour,
        distance_m=distance_m,
        x_m=round(float(rng.uniform(-_LATERAL_M, _LATERAL_M)), 4),
        brightness=round(float(rng.uniform(*_BRIGHTNESS)), 4),
    )
