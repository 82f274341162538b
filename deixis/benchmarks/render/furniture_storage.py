"""Tables, shelves and cupboards; each stands on the floor's origin, its front towards +y, lengths in metres."""

import numpy as np

from deixis.benchmarks.render.finish import Finish, glow, paint
from deixis.benchmarks.render.furniture_seats import SIDES, legs
from deixis.benchmarks.render.mesh import box, turned
from deixis.benchmarks.render.scene import Parts
from deixis.benchmarks.render.solids import cylinder, moved, rotated, rounded_box, sphere

_BOOKS = ("#8c2f2f", "#2f4f8c", "#2f7a4a", "#b08a2e", "#5d3b73", "#d2cab9", "#45484c", "#b5562b", "#2b7a80")


def _framed_table(finish: Finish, width: float, depth: float, height: float) -> Parts:
    return [
        (rounded_box((0, 0, height - 0.02), (width, depth, 0.04), 0.01, 2), finish.lying),
        (box((0, 0, height - 0.08), (width - 0.14, depth - 0.14, 0.07)), finish.front),
        *legs(width / 2 - 0.06, depth / 2 - 0.06, height - 0.04, finish.upright, 0.06),
    ]


def vase(finish: Finish, height: float) -> Parts:
    """Turned vase standing on z = 0."""
    shape = [(0.0, 0.0), (0.28, 0.0), (0.42, 0.25), (0.40, 0.45), (0.18, 0.72), (0.16, 0.85), (0.22, 1.0), (0.0, 0.98)]
    return [(turned([(r * height, z * height) for r, z in shape], 32), finish.paint)]


def table(finish: Finish, rng: np.random.Generator) -> Parts:
    """Dining table, often with a bowl or a vase on it."""
    height = 0.74
    parts = _framed_table(finish, float(rng.uniform(1.15, 1.6)), 0.82, height)
    x = float(rng.uniform(-0.3, 0.3))
    if rng.random() < 0.6:
        return parts + [(moved(solid, (x, 0, height)), m) for solid, m in vase(finish, float(rng.uniform(0.22, 0.34)))]
    bowl = [(0.0, 0.01), (0.06, 0.0), (0.13, 0.06), (0.15, 0.10), (0.14, 0.10), (0.10, 0.05), (0.0, 0.02)]
    parts.append((moved(turned(bowl, 40), (x, 0, height)), finish.paint))
    fruit = [((0.05, 0.0), "#c23b2e"), ((-0.04, 0.05), "#d89a2b"), ((-0.03, -0.05), "#7da03a")]
    return parts + [(sphere((x + dx, dy, height + 0.085), 0.042, 20, 12), paint(tone)) for (dx, dy), tone in fruit]


def coffee_table(finish: Finish, rng: np.random.Generator) -> Parts:
    """Low table with a shelf under it and books on top."""
    width = float(rng.uniform(0.9, 1.15))
    parts = _framed_table(finish, width, 0.55, 0.42)
    parts.append((box((0, 0, 0.14), (width - 0.14, 0.42, 0.02)), finish.lying))
    turn, x = float(rng.uniform(-25, 25)), float(rng.uniform(-0.25, 0.25))
    for k, tone in enumerate(rng.permutation(len(_BOOKS))[:3]):
        book = rotated(box((0, 0, 0), (0.24 - 0.02 * k, 0.17 - 0.01 * k, 0.028)), "z", turn + 9.0 * k)
        parts.append((moved(book, (x, 0, 0.435 + 0.029 * k)), paint(_BOOKS[int(tone)])))
    return parts


def round_table(finish: Finish, rng: np.random.Generator) -> Parts:
    """Round top on one turned foot."""
    radius = float(rng.uniform(0.42, 0.55))
    top = [(0.0, 0.70), (radius - 0.02, 0.70), (radius, 0.716), (radius - 0.02, 0.735), (0.0, 0.735)]
    foot = [(0.0, 0.0), (0.28, 0.0), (0.26, 0.03), (0.07, 0.06), (0.045, 0.2), (0.06, 0.45), (0.045, 0.70)]
    vessel = [(moved(solid, (0, 0, 0.735)), m) for solid, m in vase(finish, 0.2)]
    return [(turned(top, 64), finish.lying), (turned(foot, 36), finish.upright), *vessel]


def desk(finish: Finish, rng: np.random.Generator) -> Parts:
    """Writing desk with a computer and a mug."""
    parts = _framed_table(finish, float(rng.uniform(1.2, 1.4)), 0.65, 0.74)
    dark, light = paint("#1d1e20"), paint("#cfcfcc")
    screen = ("#3b7bc4", "#5a9a6a", "#4a5a9c")[int(rng.integers(3))]
    mug = [(0.0, 0.0), (0.038, 0.0), (0.041, 0.095), (0.036, 0.095), (0.034, 0.01), (0.0, 0.01)]
    return [
        *parts,
        (rounded_box((0, -0.15, 1.07), (0.60, 0.03, 0.37), 0.01, 2), dark),
        (box((0, -0.134, 1.07), (0.56, 0.004, 0.33)), glow(screen, 0.5)),
        (box((0, -0.17, 0.84), (0.05, 0.03, 0.20)), dark),
        (cylinder((0, -0.17, 0.74), 0.11, 0.012, 28), dark),
        (rounded_box((0, 0.12, 0.75), (0.42, 0.14, 0.02), 0.006, 2), light),
        (rounded_box((0.30, 0.12, 0.755), (0.06, 0.10, 0.03), 0.014), light),
        (moved(turned(mug, 28), (-0.42, 0.1, 0.74)), finish.paint),
    ]


def bookshelf(finish: Finish, rng: np.random.Generator) -> Parts:
    """Five boards of books, a vase here and there."""
    width, height, depth, boards = float(rng.uniform(0.75, 1.05)), 1.9, 0.32, 5
    parts: Parts = [(box((x * (width / 2 - 0.012), 0, height / 2), (0.024, depth, height)), finish.upright) for x in SIDES]
    parts.append((box((0, -depth / 2 + 0.006, height / 2), (width - 0.04, 0.012, height)), finish.upright_front))
    step = (height - 0.08) / boards
    parts += [(box((0, 0, 0.06 + k * step), (width - 0.04, depth, 0.024)), finish.lying) for k in range(boards + 1)]
    for k in range(boards):
        at = 0.072 + k * step
        if rng.random() < 0.2:
            parts += [(moved(solid, (0.0, 0.02, at)), m) for solid, m in vase(finish, 0.26)]
        else:
            parts += _books(rng, width, depth, at)
    return parts


def _books(rng: np.random.Generator, width: float, depth: float, at: float) -> Parts:
    x, end = -width / 2 + 0.04, width / 2 - 0.05 - float(rng.uniform(0, 0.4)) * width
    parts: Parts = []
    while x < end:
        thick, high, deep = float(rng.uniform(0.024, 0.052)), float(rng.uniform(0.19, 0.29)), float(rng.uniform(0.17, 0.24))
        tone = _BOOKS[int(rng.integers(len(_BOOKS)))]
        parts.append((box((x + thick / 2, depth / 2 - 0.02 - deep / 2, at + high / 2), (thick - 0.003, deep, high)), paint(tone)))
        x += thick
    return parts


def wardrobe(finish: Finish, rng: np.random.Generator) -> Parts:
    """Two doors with long handles."""
    width = float(rng.uniform(1.0, 1.25))
    parts: Parts = [
        (box((0, 0, 1.0), (width, 0.58, 1.9)), finish.upright),
        (box((0, 0, 0.03), (width - 0.06, 0.54, 0.06)), finish.upright),
        (box((0, 0.005, 1.965), (width + 0.04, 0.61, 0.05)), finish.lying),
    ]
    for x in SIDES:
        parts.append((box((x * width / 4, 0.295, 1.0), (width / 2 - 0.02, 0.016, 1.84)), finish.upright_front))
        parts.append((box((x * 0.05, 0.32, 1.0), (0.015, 0.03, 0.26)), finish.steel))
    return parts


def chest(finish: Finish, rng: np.random.Generator) -> Parts:
    """Three or four drawers with knobs."""
    width, drawers = float(rng.uniform(0.8, 1.0)), int(rng.integers(3, 5))
    step = 0.24
    height = drawers * step + 0.10
    parts: Parts = [
        (box((0, 0, height / 2), (width, 0.46, height)), finish.lying),
        (box((0, 0, height + 0.012), (width + 0.04, 0.49, 0.026)), finish.lying),
    ]
    for k in range(drawers):
        z = 0.07 + step * (k + 0.5)
        parts.append((box((0, 0.235, z), (width - 0.05, 0.014, step - 0.03)), finish.front))
        parts += [(sphere((x * width / 4, 0.258, z), 0.018, 14, 8), finish.steel) for x in SIDES]
    return parts


def sideboard(finish: Finish, rng: np.random.Generator) -> Parts:
    """Long low cupboard on thin legs with coloured doors, a vase on top."""
    width, doors = float(rng.uniform(1.3, 1.6)), 3
    each = (width - 0.04) / doors
    parts: Parts = [(box((0, 0, 0.47), (width, 0.42, 0.58)), finish.lying)]
    for k in range(doors):
        x = -width / 2 + 0.02 + each * (k + 0.5)
        parts.append((box((x, 0.215, 0.47), (each - 0.02, 0.014, 0.52)), finish.paint if k != 1 else finish.front))
        parts.append((box((x + each / 2 - 0.06, 0.235, 0.55), (0.012, 0.025, 0.14)), finish.steel))
    x = float(rng.uniform(-0.4, 0.4))
    parts += [(moved(solid, (x, 0, 0.76)), m) for solid, m in vase(finish, 0.32)]
    return parts + legs(width / 2 - 0.1, 0.15, 0.18, finish.upright, 0.035)


def nightstand(finish: Finish, rng: np.random.Generator) -> Parts:
    """Two drawers and a lamp."""
    width = float(rng.uniform(0.42, 0.52))
    parts: Parts = [(box((0, 0, 0.26), (width, 0.40, 0.52)), finish.lying)]
    for z in (0.16, 0.38):
        parts.append((box((0, 0.205, z), (width - 0.05, 0.014, 0.19)), finish.front))
        parts.append((sphere((0, 0.226, z), 0.016, 14, 8), finish.steel))
    foot = [(0.0, 0.52), (0.07, 0.52), (0.07, 0.53), (0.02, 0.55), (0.05, 0.63), (0.015, 0.70)]
    shade = [(0.15, 0.70), (0.09, 0.92)]
    return [*parts, (turned(foot, 28), finish.paint), (turned(shade, 36), glow("#f0ddb4", 0.55))]


def tv_stand(finish: Finish, rng: np.random.Generator) -> Parts:
    """Low cupboard with a television."""
    width, screen = 1.5, float(rng.uniform(1.05, 1.3))
    parts: Parts = [(box((0, 0, 0.25), (width, 0.40, 0.42)), finish.lying), (box((0, 0, 0.02), (1.4, 0.36, 0.04)), finish.steel)]
    for k in range(3):
        x = (k - 1) * width / 3
        parts.append((box((x, 0.205, 0.25), (width / 3 - 0.03, 0.014, 0.36)), finish.front))
        parts.append((box((x, 0.222, 0.37), (0.12, 0.015, 0.015)), finish.steel))
    dark, high = paint("#1b1c1e"), screen * 0.58
    return [
        *parts,
        (rounded_box((0, -0.02, 0.55 + high / 2), (screen, 0.05, high), 0.012, 2), dark),
        (box((0, 0.0065, 0.55 + high / 2), (screen - 0.04, 0.004, high - 0.04)), paint("#0d1622")),
        (box((0, -0.03, 0.50), (0.10, 0.06, 0.12)), dark),
        (box((0, -0.02, 0.467), (0.50, 0.20, 0.014)), dark),
    ]


def fridge(finish: Finish, rng: np.random.Generator) -> Parts:
    """Two doors, painted or white."""
    body = (paint("#dcdfe1"), paint("#e6e0cf"), finish.paint)[int(rng.integers(3))]
    handle, high = paint("#8b8d90"), float(rng.uniform(1.62, 1.85))
    gap = high - 0.52
    return [
        (rounded_box((0, 0, (high + 0.02) / 2), (0.65, 0.62, high - 0.02), 0.03), body),
        (box((0, 0.309, gap), (0.63, 0.006, 0.014)), paint("#303234")),
        (rounded_box((-0.26, 0.335, gap + 0.18), (0.025, 0.035, 0.26), 0.01, 2), handle),
        (rounded_box((-0.26, 0.335, gap - 0.33), (0.025, 0.035, 0.42), 0.01, 2), handle),
        (box((0, 0, 0.012), (0.58, 0.52, 0.024)), paint("#26282a")),
    ]
