"""Seats and beds; each stands on the floor's origin, its front towards +y, lengths in metres."""

from itertools import product

import numpy as np

from deixis.benchmarks.render.finish import Finish, paint
from deixis.benchmarks.render.mesh import box, turned
from deixis.benchmarks.render.scene import Material, Parts
from deixis.benchmarks.render.solids import cylinder, moved, rotated, rounded_box, sphere, torus

SIDES = (-1, 1)


def feet(half_width: float, half_depth: float, height: float, material: Material, radius: float = 0.024) -> Parts:
    """Four round feet."""
    return [
        (cylinder((x * half_width, y * half_depth, 0), radius * 0.75, height, 12, top_radius=radius), material)
        for x, y in product(SIDES, SIDES)
    ]


def legs(half_width: float, half_depth: float, height: float, material: Material, edge: float = 0.05) -> Parts:
    """Four square legs."""
    return [(box((x * half_width, y * half_depth, height / 2), (edge, edge, height)), material) for x, y in product(SIDES, SIDES)]


def sofa(finish: Finish, rng: np.random.Generator) -> Parts:
    """Two or three seats, armrests, a loose cushion."""
    width, depth = float(rng.uniform(1.65, 2.1)), 0.88
    seats = 2 if width < 1.85 else 3
    parts: Parts = [
        (rounded_box((0, 0, 0.25), (width, depth, 0.26), 0.04), finish.cloth),
        (rounded_box((0, -depth / 2 + 0.11, 0.53), (width, 0.22, 0.58), 0.07), finish.cloth),
    ]
    parts += [(rounded_box((x * (width / 2 - 0.09), 0.02, 0.42), (0.18, depth - 0.04, 0.40), 0.07), finish.cloth) for x in SIDES]
    each = (width - 0.38) / seats
    for k in range(seats):
        x = -(width - 0.38) / 2 + each * (k + 0.5)
        parts.append((rounded_box((x, 0.10, 0.44), (each - 0.01, depth - 0.26, 0.15), 0.05), finish.woven(1.2)))
        back = rotated(rounded_box((0, 0, 0), (each - 0.03, 0.16, 0.38), 0.07), "x", -8.0)
        parts.append((moved(back, (x, -0.20, 0.66)), finish.woven(1.2)))
    cushion = rotated(rounded_box((0, 0, 0), (0.40, 0.13, 0.40), 0.06), "x", -22.0)
    side = SIDES[int(rng.integers(2))]
    parts.append((moved(cushion, (side * (width / 2 - 0.42), -0.04, 0.71)), finish.second_cloth))
    return parts + feet(width / 2 - 0.1, depth / 2 - 0.1, 0.13, finish.upright)


def armchair(finish: Finish, rng: np.random.Generator) -> Parts:
    """A deep seat between two armrests."""
    height = float(rng.uniform(0.58, 0.72))
    parts: Parts = [
        (rounded_box((0, 0, 0.26), (0.80, 0.80, 0.24), 0.05), finish.cloth),
        (rounded_box((0, -0.31, 0.28 + height / 2), (0.80, 0.20, height), 0.08), finish.cloth),
        (rounded_box((0, 0.06, 0.44), (0.50, 0.62, 0.17), 0.06), finish.woven(1.2)),
    ]
    parts += [(rounded_box((x * 0.32, 0.02, 0.42), (0.16, 0.76, 0.40), 0.07), finish.cloth) for x in SIDES]
    return parts + feet(0.32, 0.32, 0.15, finish.upright)


def chair(finish: Finish, rng: np.random.Generator) -> Parts:
    """Wooden chair with three slats or a solid back, its seat painted or not."""
    seat = finish.lying if rng.random() < 0.5 else finish.paint
    parts: Parts = [(rounded_box((0, 0, 0.45), (0.44, 0.44, 0.04), 0.012, 2), seat)]
    for x in SIDES:
        parts.append((box((x * 0.19, 0.19, 0.215), (0.04, 0.04, 0.43)), finish.upright))
        parts.append((box((x * 0.19, -0.2, 0.46), (0.04, 0.035, 0.92)), finish.upright))
    if rng.random() < 0.6:
        return parts + [(box((0, -0.2, 0.60 + 0.13 * k), (0.38, 0.018, 0.06)), finish.lying) for k in range(3)]
    return [*parts, (rounded_box((0, -0.2, 0.76), (0.38, 0.022, 0.30), 0.01, 2), seat)]


def stool(finish: Finish, rng: np.random.Generator) -> Parts:
    """Round seat on four splayed legs with a ring."""
    height = float(rng.uniform(0.44, 0.66))
    top = [(0.0, -0.02), (0.165, -0.02), (0.18, 0.0), (0.165, 0.022), (0.0, 0.022)]
    parts: Parts = [(moved(turned(top, 40), (0, 0, height)), finish.paint)]
    leg = moved(rotated(cylinder((0, 0, 0), 0.016, height, 10), "y", -6.0), (0.17, 0, 0))
    parts += [(rotated(leg, "z", 45.0 + 90.0 * k), finish.upright) for k in range(4)]
    return [*parts, (torus((0, 0, height * 0.4), 0.135, 0.008, 32, 8), finish.steel)]


def bench(finish: Finish, rng: np.random.Generator) -> Parts:
    """Long seat with a mattress."""
    width = float(rng.uniform(1.0, 1.35))
    return [
        (rounded_box((0, 0, 0.40), (width, 0.38, 0.05), 0.012, 2), finish.lying),
        (rounded_box((0, 0, 0.455), (width - 0.03, 0.36, 0.07), 0.03), finish.cloth),
        *legs(width / 2 - 0.06, 0.14, 0.38, finish.upright),
    ]


def pouf(finish: Finish, rng: np.random.Generator) -> Parts:
    """Round cushion to sit on, with a seam."""
    radius, height = float(rng.uniform(0.24, 0.32)), float(rng.uniform(0.34, 0.42))
    bulge = [(0.0, 0.0), (0.86, 0.0), (0.95, 0.07), (1.0, 0.25), (1.0, 0.7), (0.94, 0.92), (0.8, 1.0), (0.0, 1.02)]
    body = turned([(r * radius, z * height) for r, z in bulge], 48)
    return [(body, finish.cloth), (torus((0, 0, height * 0.5), radius, 0.008, 48, 8), finish.second_cloth)]


def office_chair(finish: Finish, rng: np.random.Generator) -> Parts:
    """Cushioned chair on five castors."""
    high = float(rng.uniform(0.46, 0.60))
    parts: Parts = [
        (rounded_box((0, 0, 0.48), (0.48, 0.46, 0.08), 0.035), finish.cloth),
        (rounded_box((0, -0.23, 0.58 + high / 2), (0.44, 0.07, high), 0.033), finish.cloth),
        (cylinder((0, 0, 0.09), 0.028, 0.37, 14), finish.steel),
        (box((0, -0.23, 0.53), (0.06, 0.03, 0.22)), finish.steel),
    ]
    for k in range(5):
        parts.append((rotated(box((0.14, 0, 0.08), (0.28, 0.04, 0.03)), "z", 72.0 * k), finish.steel))
        parts.append((rotated(sphere((0.27, 0, 0.032), 0.032, 12, 8), "z", 72.0 * k), paint("#222325")))
    for x in SIDES:
        parts.append((rounded_box((x * 0.27, -0.02, 0.70), (0.05, 0.28, 0.03), 0.014, 2), finish.steel))
        parts.append((box((x * 0.27, -0.05, 0.59), (0.03, 0.04, 0.20)), finish.steel))
    return parts


def bed(finish: Finish, rng: np.random.Generator) -> Parts:
    """For one or two, made."""
    wide = bool(rng.random() < 0.5)
    width, length = (1.45, 2.02) if wide else (1.0, 2.02)
    linen, pillow = paint("#e3e0d8"), paint("#ece9e3")
    parts: Parts = [
        (box((0, 0, 0.20), (width, length, 0.16)), finish.lying),
        (rounded_box((0, -length / 2 + 0.03, 0.52), (width + 0.06, 0.06, 1.0), 0.02, 2), finish.lying),
        (rounded_box((0, 0.02, 0.40), (width - 0.04, length - 0.10, 0.24), 0.06), linen),
        (rounded_box((0, 0.32, 0.47), (width + 0.03, length - 0.72, 0.17), 0.06), finish.cloth),
        (rounded_box((0, -0.34, 0.545), (width + 0.03, 0.22, 0.06), 0.025), finish.second_cloth),
    ]
    for x in (-0.36, 0.36) if wide else (0.0,):
        parts.append((rounded_box((x, -length / 2 + 0.34, 0.58), (0.58, 0.38, 0.15), 0.07), pillow))
    return parts + legs(width / 2 - 0.05, length / 2 - 0.08, 0.12, finish.upright, 0.07)
