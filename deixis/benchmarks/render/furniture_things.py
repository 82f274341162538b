"""Lamps, plants and smaller things on the floor; each stands on the floor's origin, its front towards +y, lengths in metres."""

import math

import numpy as np

from deixis.benchmarks.render.finish import Finish, glow, paint
from deixis.benchmarks.render.mesh import Solid, box, turned
from deixis.benchmarks.render.scene import Parts
from deixis.benchmarks.render.solids import cylinder, moved, rotated, rounded_box, sheet, sphere, torus

_GOLDEN_ANGLE = 137.508
_LEAF_GREENS = ("#3c7a36", "#4d8f45", "#336b33")


def floor_lamp(finish: Finish, rng: np.random.Generator) -> Parts:
    """Shade on a thin stem."""
    high = float(rng.uniform(1.35, 1.6))
    stem = [(0.0, 0.0), (0.15, 0.0), (0.15, 0.02), (0.02, 0.03), (0.013, high)]
    shade = [(0.22, high - 0.06), (0.15, high + 0.24)]
    return [(turned(stem, 28), finish.steel), (turned(shade, 40), glow("#f3e0b6", 0.6))]


def plant(finish: Finish, rng: np.random.Generator) -> Parts:
    """Pot with long leaves."""
    pot = [(0.0, 0.0), (0.13, 0.0), (0.18, 0.32), (0.16, 0.32), (0.15, 0.28), (0.0, 0.28)]
    parts: Parts = [(turned(pot, 32), finish.paint)]
    greens, leaves = [paint(tone) for tone in _LEAF_GREENS], 24
    for k in range(leaves):
        length, lean = float(rng.uniform(0.5, 0.95)), float(rng.uniform(0.12, 0.95))
        turn = _GOLDEN_ANGLE * k + float(rng.uniform(-12, 12))
        parts.append((moved(rotated(_leaf(length, lean), "z", turn), (0, 0, 0.28)), greens[k % 3]))
    return parts


def _leaf(length: float, lean: float) -> Solid:
    """A blade that leaves the origin upwards and bends over along +x."""
    points = []
    for j in range(7):
        t = j / 6
        out, up = length * math.sin(lean) * t + 0.14 * t * t, length * math.cos(lean) * t * (1 - 0.28 * t * t * lean)
        half = 0.05 * math.sin(math.pi * min(0.985, 0.1 + t * 0.9)) + 0.003
        points.append([(out, -half, up), (out, 0.0, up - 0.35 * half), (out, half, up)])
    return sheet(np.array(points))


def tree(finish: Finish, rng: np.random.Generator) -> Parts:
    """A small tree in a basket: a stem and round leaves."""
    basket = [(0.0, 0.0), (0.17, 0.0), (0.20, 0.14), (0.18, 0.30), (0.16, 0.30), (0.15, 0.25), (0.0, 0.25)]
    high = float(rng.uniform(1.2, 1.6))
    parts: Parts = [(turned(basket, 32), finish.lying), (cylinder((0, 0, 0.2), 0.018, high - 0.35, 12), paint("#6a4d35"))]
    greens = [paint(tone) for tone in _LEAF_GREENS]
    for k in range(16):
        z = high - 0.55 + 0.55 * k / 15
        reach = 0.14 + 0.22 * math.sin(math.pi * (0.15 + 0.8 * k / 15)) * float(rng.uniform(0.6, 1.0))
        turn = math.radians(_GOLDEN_ANGLE * k)
        parts.append((sphere((reach * math.cos(turn), reach * math.sin(turn), z), 0.11, 12, 8), greens[k % 3]))
    return parts


def basket(finish: Finish, rng: np.random.Generator) -> Parts:
    """Open round basket with a blanket in it."""
    radius, height = float(rng.uniform(0.19, 0.25)), float(rng.uniform(0.32, 0.42))
    wall = [(0.0, 0.0), (radius * 0.85, 0.0), (radius, height), (radius - 0.02, height), (radius * 0.8, 0.03), (0.0, 0.03)]
    rings = [(torus((0, 0, height * z), radius * (0.85 + 0.15 * z), 0.012, 40, 8), finish.front) for z in (0.33, 0.66, 1.0)]
    blanket = [(0.0, height - 0.05), (radius * 0.9, height - 0.06), (radius * 0.7, height + 0.02), (0.0, height + 0.06)]
    return [(turned(wall, 40), finish.lying), *rings, (turned(blanket, 32), finish.cloth)]


def trunk(finish: Finish, rng: np.random.Generator) -> Parts:
    """Wooden trunk with a lid and metal bands."""
    width = float(rng.uniform(0.7, 0.95))
    parts: Parts = [
        (box((0, 0, 0.20), (width, 0.45, 0.40)), finish.lying),
        (rounded_box((0, 0, 0.43), (width + 0.02, 0.47, 0.08), 0.03), finish.front),
        (box((0, 0.235, 0.38), (0.07, 0.014, 0.10)), finish.steel),
    ]
    return parts + [(box((x * width, 0, 0.205), (0.045, 0.462, 0.41)), finish.steel) for x in (-0.3, 0.3)]


def bin_(finish: Finish, rng: np.random.Generator) -> Parts:
    """Pedal bin with a lid."""
    height = float(rng.uniform(0.36, 0.55))
    lid = [(0.0, 0.0), (0.145, 0.0), (0.145, 0.02), (0.11, 0.05), (0.0, 0.06)]
    return [
        (cylinder((0, 0, 0), 0.135, height, 36, top_radius=0.145), finish.paint),
        (moved(turned(lid, 36), (0, 0, height)), finish.steel),
        (box((0, 0.15, 0.025), (0.08, 0.05, 0.015)), finish.steel),
    ]


def coat_stand(finish: Finish, rng: np.random.Generator) -> Parts:
    """Pole with hooks, a hat and a scarf."""
    foot = float(rng.uniform(0.17, 0.22))
    parts: Parts = [
        (turned([(0.0, 0.0), (foot, 0.0), (foot - 0.01, 0.025), (0.025, 0.05), (0.022, 1.72)], 28), finish.upright),
        (sphere((0, 0, 1.74), 0.035, 18, 10), finish.upright),
    ]
    for k in range(4):
        hook = rotated(cylinder((0, 0, 0), 0.011, 0.16, 8), "y", 55.0)
        parts.append((rotated(moved(hook, (0.0, 0.0, 1.56)), "z", 90.0 * k + 45.0), finish.upright))
    hat = [(0.0, 0.0), (0.16, 0.0), (0.16, 0.012), (0.09, 0.02), (0.085, 0.11), (0.06, 0.125), (0.0, 0.12)]
    parts.append((moved(turned(hat, 32), (0.10, 0.09, 1.63)), finish.paint))
    return [*parts, (rounded_box((-0.09, 0.09, 1.28), (0.10, 0.035, 0.66), 0.017), finish.second_cloth)]


def piano(finish: Finish, rng: np.random.Generator) -> Parts:
    """Upright piano."""
    ivory, ebony, high = paint("#e9e6dc"), paint("#18181a"), float(rng.uniform(1.1, 1.25))
    parts: Parts = [
        (rounded_box((0, -0.10, high / 2), (1.42, 0.34, high), 0.015, 2), finish.lying),
        (rounded_box((0, 0.14, 0.66), (1.42, 0.36, 0.09), 0.012, 2), finish.lying),
        (box((0, 0.20, 0.712), (1.26, 0.16, 0.02)), ivory),
        (box((0, 0.085, 0.93), (1.30, 0.03, 0.36)), finish.front),
    ]
    parts += [(box((-0.60 + 0.06 * k, 0.165, 0.727), (0.026, 0.09, 0.016)), ebony) for k in range(21) if k % 7 not in (2, 6)]
    return parts + [(box((x * 0.66, 0.26, 0.31), (0.07, 0.07, 0.62)), finish.upright) for x in (-1, 1)]


def fireplace(finish: Finish, rng: np.random.Generator) -> Parts:
    """Mantel with a dark opening, embers and a clock on top."""
    stone = paint(("#cfc9bd", "#a9a49a", "#e3dfd6")[int(rng.integers(3))])
    half = float(rng.uniform(0.34, 0.42))
    parts: Parts = [(box((x * (half + 0.12), 0, 0.50), (0.26, 0.32, 1.0)), stone) for x in (-1, 1)]
    return [
        *parts,
        (box((0, 0, 0.90), (2 * half, 0.32, 0.20)), stone),
        (rounded_box((0, 0.01, 1.04), (2 * half + 0.62, 0.38, 0.08), 0.015, 2), finish.lying),
        (box((0, -0.11, 0.40), (2 * half, 0.08, 0.80)), paint("#211e1c")),
        (box((0, 0, 0.02), (2 * half, 0.30, 0.04)), paint("#2c2825")),
        (box((0, 0.0, 0.075), (0.5, 0.1, 0.08)), paint("#4a3526")),
        (box((0, 0.02, 0.13), (0.36, 0.06, 0.04)), glow("#e8742a", 0.9)),
        (rounded_box((half - 0.05, 0.0, 1.18), (0.24, 0.10, 0.20), 0.02), finish.paint),
        (moved(rotated(cylinder((0, 0, 0), 0.07, 0.01, 32), "x", -90.0), (half - 0.05, 0.048, 1.18)), paint("#efece4")),
    ]
