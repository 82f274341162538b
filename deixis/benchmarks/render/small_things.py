"""Small things for a desk: seventeen kinds that differ in outline, each in any colour, each stretched to the box it must fill.

Their fronts look along -y. A kind gives its shape in some natural size; :func:`fitted` makes it fill a box exactly, which is what
makes boxes in maps the truth about the pictures.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deixis.benchmarks.render.mesh import Solid, box, turned
from deixis.benchmarks.render.scene import Material, Parts, linear_rgb
from deixis.benchmarks.render.solids import bounds, cylinder, moved, rotated, rounded_box, scaled, sphere, torus

COLOURS = {
    "red": "#c9302a",
    "blue": "#2d5fc8",
    "green": "#35913d",
    "yellow": "#e6bd2c",
    "purple": "#7c48a6",
    "orange": "#e2761f",
    "white": "#eceae4",
    "pink": "#e58aac",
}
_SEGMENTS = 36


@dataclass(frozen=True)
class SmallThing:
    """A kind: its usual size in metres and how it is built in a colour."""

    size_m: tuple[float, float, float]
    build: Callable[[Material], Parts]


def fitted(parts: Parts, size: Sequence[float]) -> Parts:
    """``parts`` stretched and moved to fill the box of edge lengths ``size`` that stands on z = 0, its middle on the z axis."""
    low, high = bounds([solid for solid, _ in parts])
    middle = (float(low[0] + high[0]) / 2, float(low[1] + high[1]) / 2, float(low[2]))
    factors = [edge / float(high[axis] - low[axis]) for axis, edge in enumerate(size)]
    return [(scaled(moved(solid, [-value for value in middle]), factors), material) for solid, material in parts]


@lru_cache(maxsize=256)
def _built(kind: str, colour: str) -> Parts:
    return SMALL_THINGS[kind].build(Material(linear_rgb(COLOURS[colour])))


def small_thing(kind: str, colour: str, size: Sequence[float]) -> Parts:
    """A small thing that fills the box of edge lengths ``size`` (x, y, z in metres).

    Raises:
        ValueError: The kind or the colour is not known.
    """
    for name, value, known in (("kind", kind, SMALL_THINGS), ("colour", colour, COLOURS)):
        if value not in known:
            raise ValueError(f"{name}={value!r} is not one of: {', '.join(map(repr, known))}.")
    return fitted(_built(kind, colour), size)


def _matt(colour: str) -> Material:
    return Material(linear_rgb(colour))


def _mug(paint: Material) -> Parts:
    wall = [(0.0, 0.0), (0.038, 0.0), (0.041, 0.095), (0.036, 0.095), (0.034, 0.008), (0.0, 0.008)]
    ring = moved(rotated(torus((0, 0, 0), 0.027, 0.007, 24, 10), "x", 90.0), (0.042, 0, 0.048))
    return [(turned(wall, _SEGMENTS), paint), (_outside(ring, 0.038), paint)]


def _outside(solid: Solid, radius: float) -> Solid:
    """The triangles that reach out of an upright cylinder about the z axis."""
    away = np.sqrt(solid.corners[..., 0] ** 2 + solid.corners[..., 1] ** 2).max(axis=1)
    return Solid(solid.corners[away > radius], solid.normals[away > radius])


def _bowl(paint: Material) -> Parts:
    outside = [(0.0, 0.0), (0.035, 0.0), (0.045, 0.004), (0.075, 0.045), (0.085, 0.078)]
    inside = [(0.080, 0.078), (0.068, 0.045), (0.04, 0.014), (0.0, 0.010)]
    return [(turned(_curved(outside) + inside, 44), paint)]


def _bottle(paint: Material) -> Parts:
    glass = [(0.0, 0.0), (0.036, 0.0), (0.039, 0.01), (0.039, 0.14), (0.030, 0.175), (0.014, 0.205), (0.014, 0.24), (0.0, 0.24)]
    label = [(0.0395, 0.04), (0.0395, 0.11)]
    return [
        (turned(glass, _SEGMENTS), paint),
        (turned(label, _SEGMENTS), _matt("#efe9d8")),
        (cylinder((0, 0, 0.232), 0.017, 0.028, 20), _matt("#33302c")),
    ]


def _curved(outline: Sequence[tuple[float, float]], cuts: int = 5) -> list[tuple[float, float]]:
    """A smooth profile through the points of a coarse one (Catmull and Rom 1974), for surfaces that should show no creases."""
    points = [outline[0], *outline, outline[-1]]
    found = [outline[0]]
    for a, b, c, d in zip(points, points[1:], points[2:], points[3:], strict=False):
        for t in (k / cuts for k in range(1, cuts + 1)):
            radius, z = (
                0.5 * (2 * q + (r - p) * t + (2 * p - 5 * q + 4 * r - s) * t * t + (3 * q - p - 3 * r + s) * t * t * t)
                for p, q, r, s in zip(a, b, c, d, strict=True)
            )
            found.append((max(radius, 0.0), z))
    return found


def _apple(paint: Material) -> Parts:
    flesh = [
        (0.0, 0.006), (0.02, 0.0), (0.036, 0.018), (0.042, 0.042), (0.037, 0.064), (0.02, 0.074), (0.008, 0.071), (0.0, 0.064),
    ]  # fmt: skip
    leaf = moved(rotated(scaled(sphere((0, 0, 0), 0.012, 12, 8), (1.5, 0.6, 0.25)), "y", -20.0), (0.018, 0, 0.086))
    stalk = cylinder((0, 0, 0.064), 0.0035, 0.026, 8)
    return [(turned(_curved(flesh), _SEGMENTS), paint), (stalk, _matt("#4a3018")), (leaf, _matt("#3f8a2e"))]


def _can(paint: Material) -> Parts:
    tin = [(0.0, 0.0), (0.029, 0.0), (0.033, 0.008), (0.033, 0.112), (0.029, 0.12), (0.027, 0.12), (0.027, 0.117), (0.0, 0.117)]
    band = [(0.0335, 0.045), (0.0335, 0.075)]
    return [(turned(tin, _SEGMENTS), paint), (turned(band, _SEGMENTS), _matt("#d9d9d6"))]


def _ball(paint: Material) -> Parts:
    return [
        (sphere((0, 0, 0.05), 0.05, _SEGMENTS, 18), paint),
        (torus((0, 0, 0.05), 0.0485, 0.0035, _SEGMENTS, 8), _matt("#f2efe6")),
    ]


def _block(paint: Material) -> Parts:
    return [(rounded_box((0, 0, 0.04), (0.08, 0.08, 0.08), 0.006, 2), paint)]


def _book(paint: Material) -> Parts:
    covers = [box((0, 0, z), (0.22, 0.15, 0.005)) for z in (0.0025, 0.0375)]
    spine = rounded_box((0, -0.073, 0.02), (0.22, 0.008, 0.04), 0.003, 2)
    title = box((0, -0.0773, 0.02), (0.12, 0.0012, 0.016))
    pages = box((0, 0.001, 0.02), (0.21, 0.14, 0.032))
    return [*((cover, paint) for cover in (*covers, spine)), (title, _matt("#f1ead2")), (pages, _matt("#f4efe2"))]


def _lamp(paint: Material) -> Parts:
    foot = [(0.0, 0.0), (0.065, 0.0), (0.065, 0.012), (0.012, 0.022), (0.010, 0.17), (0.0, 0.17)]
    shade = [(0.085, 0.15), (0.055, 0.26), (0.0, 0.26)]
    warm = Material(linear_rgb("#f6e8c4"), emission=0.55)
    return [(turned(foot, 28), paint), (turned(shade, _SEGMENTS), warm)]


def _clock(paint: Material) -> Parts:
    case = moved(rotated(cylinder((0, 0, 0), 0.06, 0.04, 40), "x", 90.0), (0, 0.02, 0.066))
    face = moved(rotated(cylinder((0, 0, 0), 0.05, 0.003, 40), "x", 90.0), (0, -0.02, 0.066))
    dark = _matt("#22201e")
    hands = [box((0, -0.0235, 0.082), (0.006, 0.002, 0.034)), box((0.013, -0.0235, 0.066), (0.028, 0.002, 0.006))]
    feet = [box((x, 0, 0.006), (0.02, 0.04, 0.012)) for x in (-0.04, 0.04)]
    bell = sphere((0, 0, 0.128), 0.012, 16, 8)
    return [*((s, paint) for s in (case, *feet, bell)), (face, _matt("#f7f4ea")), *((hand, dark) for hand in hands)]


def _vase(paint: Material) -> Parts:
    outside = [
        (0.0, 0.0), (0.030, 0.0), (0.045, 0.03), (0.054, 0.07), (0.050, 0.11), (0.030, 0.15), (0.022, 0.175), (0.034, 0.2),
    ]  # fmt: skip
    inside = [(0.030, 0.2), (0.018, 0.175), (0.0, 0.16)]
    return [(turned(_curved(outside) + inside, _SEGMENTS), paint)]


def _candle(paint: Material) -> Parts:
    wax = [(0.0, 0.01), (0.024, 0.01), (0.024, 0.122), (0.020, 0.124), (0.0, 0.118)]
    dish = [(0.0, 0.0), (0.036, 0.0), (0.038, 0.012), (0.024, 0.012)]
    flame = moved(scaled(sphere((0, 0, 0), 0.007, 14, 10), (1.0, 1.0, 2.0)), (0, 0, 0.142))
    light = Material(linear_rgb("#ffcf5a"), emission=1.4)
    wick = cylinder((0, 0, 0.118), 0.0018, 0.014, 6)
    return [
        (turned(wax, 28), paint),
        (turned(dish, 28), _matt("#b9b4a8")),
        (wick, _matt("#1e1a16")),
        (flame, light),
    ]


def _teapot(paint: Material) -> Parts:
    body = [
        (0.0, 0.0), (0.035, 0.0), (0.058, 0.02), (0.066, 0.05), (0.058, 0.08), (0.035, 0.1), (0.03, 0.104), (0.008, 0.112),
        (0.0, 0.112),
    ]  # fmt: skip
    spout = moved(rotated(cylinder((0, 0, 0), 0.018, 0.075, 20, 0.009), "y", -52.0), (-0.05, 0, 0.045))
    handle = moved(rotated(torus((0, 0, 0), 0.032, 0.0075, 24, 10), "x", 90.0), (0.068, 0, 0.055))
    knob = sphere((0, 0, 0.122), 0.012, 16, 10)
    return [(s, paint) for s in (turned(_curved(body), _SEGMENTS), spout, _outside(handle, 0.058), knob)]


def _gift_box(paint: Material) -> Parts:
    ribbon = _matt("#f3ecd6")
    case = [box((0, 0, 0.045), (0.116, 0.116, 0.09)), box((0, 0, 0.095), (0.13, 0.13, 0.03))]
    bands = [box((0, 0, 0.0555), (0.022, 0.1315, 0.111)), box((0, 0, 0.0555), (0.1315, 0.022, 0.111))]
    loops = [
        moved(rotated(rotated(scaled(torus((0, 0, 0), 0.018, 0.005, 20, 8), (1.2, 0.8, 1.0)), "x", 90.0), "z", turn), at)
        for turn, at in ((25.0, (0.02, 0.008, 0.122)), (-25.0, (-0.02, 0.008, 0.122)))
    ]
    return [*((s, paint) for s in case), *((s, ribbon) for s in (*bands, *loops))]


def _cone(paint: Material) -> Parts:
    foot = box((0, 0, 0.005), (0.11, 0.11, 0.01))
    mantle = [(0.042, 0.01), (0.008, 0.145), (0.0, 0.147)]
    stripe = [(0.0335, 0.047), (0.0244, 0.083)]
    return [(foot, paint), (turned(mantle, _SEGMENTS), paint), (turned(stripe, _SEGMENTS), _matt("#f6f4ee"))]


def _potted_plant(paint: Material) -> Parts:
    pot = [(0.0, 0.0), (0.038, 0.0), (0.052, 0.075), (0.056, 0.075), (0.056, 0.09), (0.047, 0.09), (0.045, 0.082)]
    soil = [(0.045, 0.082), (0.0, 0.084)]
    leaf = scaled(sphere((0, 0, 0.045), 0.045, 14, 10), (0.34, 0.12, 1.0))
    leaves = []
    for number in range(9):
        lean, turn = (18.0, 46.0)[number % 2], 360 * number / 9
        leaves.append(moved(rotated(rotated(leaf, "y", lean), "z", turn), _ahead(turn, 0.008, 0.08)))
    upright = moved(scaled(leaf, (1.0, 1.0, 1.25)), (0, 0, 0.08))
    greens = [_matt(colour) for colour in ("#3d7d33", "#4d9440", "#356f2e")]
    pairs = [(solid, greens[k % 3]) for k, solid in enumerate((*leaves, upright))]
    return [(turned(pot, 32), paint), (turned(soil, 32), _matt("#3b2a1d")), *pairs]


def _ahead(turn_deg: float, away: float, z: float) -> tuple[float, float, float]:
    turn = math.radians(turn_deg)
    return away * math.cos(turn), away * math.sin(turn), z


def _toy_car(paint: Material) -> Parts:
    tyre, hub, glass = _matt("#1f1f20"), _matt("#c9c9c6"), _matt("#a9c4d6")
    body = [
        rounded_box((0, 0, 0.032), (0.18, 0.074, 0.036), 0.012, 3),
        rounded_box((0.008, 0, 0.058), (0.1, 0.066, 0.036), 0.012, 3),
    ]
    panes = [box((0.008, 0, 0.057), (0.07, 0.0672, 0.018)), box((0.008, 0, 0.057), (0.1012, 0.05, 0.018))]
    wheels, hubs = [], []
    for x in (-0.052, 0.052):
        for y in (-0.03, 0.044):
            wheels.append(moved(rotated(cylinder((0, 0, 0), 0.019, 0.014, 24), "x", 90.0), (x, y, 0.019)))
            hubs.append(moved(rotated(cylinder((0, 0, 0), 0.009, 0.016, 16), "x", 90.0), (x, y + 0.001, 0.019)))
    return [
        *((s, paint) for s in body),
        *((s, glass) for s in panes),
        *((s, tyre) for s in wheels),
        *((s, hub) for s in hubs),
    ]


SMALL_THINGS = {
    "mug": SmallThing((0.12, 0.09, 0.1), _mug),
    "bowl": SmallThing((0.17, 0.17, 0.08), _bowl),
    "bottle": SmallThing((0.08, 0.08, 0.24), _bottle),
    "apple": SmallThing((0.09, 0.09, 0.09), _apple),
    "can": SmallThing((0.07, 0.07, 0.12), _can),
    "ball": SmallThing((0.1, 0.1, 0.1), _ball),
    "block": SmallThing((0.08, 0.08, 0.08), _block),
    "book": SmallThing((0.21, 0.15, 0.04), _book),
    "lamp": SmallThing((0.17, 0.17, 0.26), _lamp),
    "clock": SmallThing((0.13, 0.05, 0.15), _clock),
    "vase": SmallThing((0.11, 0.11, 0.2), _vase),
    "candle": SmallThing((0.08, 0.08, 0.16), _candle),
    "teapot": SmallThing((0.2, 0.13, 0.13), _teapot),
    "gift box": SmallThing((0.13, 0.13, 0.14), _gift_box),
    "cone": SmallThing((0.11, 0.11, 0.15), _cone),
    "potted plant": SmallThing((0.15, 0.15, 0.18), _potted_plant),
    "toy car": SmallThing((0.18, 0.09, 0.08), _toy_car),
}
"""Kinds by name."""
