"""What hangs on walls and ceilings or lies on the floor.

On a wall, the origin lies on the wall's surface at the thing's middle, x along the wall, z up, front towards +y; on a ceiling or
floor, it lies on that surface, z up.
"""

import math
from collections.abc import Callable

import numpy as np

from deixis.benchmarks.render.finish import PAINTS, Finish, glow, paint
from deixis.benchmarks.render.furniture_storage import vase
from deixis.benchmarks.render.mesh import Solid, box, turned
from deixis.benchmarks.render.scene import Material, Parts, linear_rgb
from deixis.benchmarks.render.solids import cylinder, moved, rotated, rounded_box, sheet, sphere, torus

Build = Callable[[Finish, np.random.Generator], Parts]
WINDOW_SIZE = (1.4, 1.25)
"""Width and height of the glass, metres."""


def window(finish: Finish, rng: np.random.Generator) -> Parts:
    """Glass in a white frame, a sill, curtains at its sides."""
    width, height = WINDOW_SIZE
    white = paint("#e9e7e1")
    view = Material(linear_rgb("#9cc4ec"), linear_rgb("#dbe8ef"), "outside", height, 0.9)
    parts: Parts = [(box((0, 0.012, 0), (width, 0.02, height)), view)]
    parts += [(box((x * width / 2, 0.03, 0), (0.06, 0.06, height + 0.12)), white) for x in (-1, 0, 1)]
    parts += [(box((0, 0.03, z * height / 2), (width + 0.06, 0.06, 0.06)), white) for z in (-1, 1)]
    parts.append((box((0, 0.08, -height / 2 - 0.04), (width + 0.2, 0.16, 0.03)), white))
    if rng.random() < 0.3:
        return parts
    rod = rotated(cylinder((0, 0, -width / 2 - 0.36), 0.014, width + 0.72, 12), "y", 90.0)
    parts.append((moved(rod, (0, 0.13, height / 2 + 0.13)), finish.steel))
    curtain = _curtain(0.34, height + 0.32)
    return parts + [(moved(curtain, (x * (width / 2 + 0.14), 0.13, -0.02)), finish.cloth) for x in (-1, 1)]


def _curtain(width: float, height: float) -> Solid:
    """Cloth in folds, hanging in the xz plane about the origin."""
    columns = 28
    xs = [width * (i / columns - 0.5) for i in range(columns + 1)]
    fold = [0.03 * math.sin(2 * math.pi * 4 * i / columns) for i in range(columns + 1)]
    return sheet(np.array([[(x, y, height * (0.5 - k)) for k in (0.0, 0.5, 1.0)] for x, y in zip(xs, fold, strict=True)]))


def door(finish: Finish, rng: np.random.Generator) -> Parts:
    """Panelled door in a frame; its origin is its middle, 1.03 m above the floor."""
    white = paint("#e9e7e1")
    leaf, panel = (finish.upright, finish.upright_front) if rng.random() < 0.7 else (finish.paint, paint(finish.colour, 0.85))
    parts: Parts = [(box((0, 0.02, -0.03), (0.86, 0.03, 2.0)), leaf)]
    parts += [(box((x * 0.47, 0.03, 0.0), (0.08, 0.06, 2.06)), white) for x in (-1, 1)]
    parts.append((box((0, 0.03, 1.03), (1.02, 0.06, 0.08)), white))
    parts += [(box((0, 0.037, z), (0.60, 0.010, 0.70)), panel) for z in (-0.53, 0.42)]
    handle = rotated(cylinder((0, 0, 0), 0.011, 0.12, 12), "y", -90.0)
    return [*parts, (moved(handle, (0.36, 0.085, 0.0)), finish.steel), (sphere((0.36, 0.06, 0), 0.022, 14, 8), finish.steel)]


def picture(finish: Finish, rng: np.random.Generator) -> Parts:
    """Framed landscape or abstract blocks, or a portrait-format print."""
    width, height = ((1.0, 0.68), (0.72, 0.54), (0.56, 0.76))[int(rng.integers(3))]
    tones = [linear_rgb(PAINTS[name]) for name in (finish.colour, finish.accent)]
    kind = "landscape" if rng.random() < 0.5 else "blocks"
    if kind == "landscape":
        tones = [linear_rgb(tone) for tone in (("#2f5a2c", "#6f8a3a"), ("#7a5a34", "#b08a4a"))[int(rng.integers(2))]]
    art = Material(tones[0], tones[1], kind, width / 2)
    return [
        (box((0, 0.012, 0), (width, 0.024, height)), finish.lying if finish.metal != "black" else paint("#1d1c1b")),
        (box((0, 0.025, 0), (width - 0.07, 0.006, height - 0.07)), paint("#e6e3da")),
        (box((0, 0.027, 0), (width - 0.16, 0.006, height - 0.16)), art),
    ]


def wall_clock(finish: Finish, rng: np.random.Generator) -> Parts:
    """Round clock with twelve marks; what it shows is chance."""
    radius = float(rng.uniform(0.16, 0.22))
    ring = rotated(torus((0, 0, 0), radius, 0.018, 48, 10), "x", 90.0)
    face = rotated(cylinder((0, 0, 0), radius, 0.014, 48), "x", -90.0)
    parts: Parts = [(moved(ring, (0, 0.016, 0)), finish.paint), (face, paint("#ebe8df"))]
    dark = paint("#1c1c1c")
    mark = box((0, 0.016, radius * 0.84), (0.010, 0.006, radius * 0.13))
    parts += [(rotated(mark, "y", 30.0 * k), dark) for k in range(12)]
    for length, thick, turn in ((0.52, 0.014, float(rng.uniform(0, 360))), (0.76, 0.009, float(rng.uniform(0, 360)))):
        hand = box((0, 0.019, radius * length / 2), (thick, 0.006, radius * length))
        parts.append((rotated(hand, "y", turn), dark))
    return parts


def wall_shelf(finish: Finish, rng: np.random.Generator) -> Parts:
    """One board with a few things on it."""
    width = float(rng.uniform(0.7, 1.0))
    parts: Parts = [(box((0, 0.11, -0.12), (width, 0.22, 0.03)), finish.lying)]
    parts += [(box((x * width * 0.36, 0.08, -0.165), (0.02, 0.16, 0.06)), finish.steel) for x in (-1, 1)]
    for k, tone in enumerate(rng.permutation(len(PAINTS))[:5]):
        high = 0.18 + 0.02 * (k % 3)
        colour = list(PAINTS.values())[int(tone)]
        parts.append((box((-width / 2 + 0.08 + 0.045 * k, 0.10, -0.105 + high / 2), (0.04, 0.15, high)), paint(colour)))
    return parts + [(moved(solid, (width * 0.28, 0.11, -0.105)), m) for solid, m in vase(finish, 0.2)]


def radiator(finish: Finish, rng: np.random.Generator) -> Parts:
    """Ribbed heater."""
    ribs = int(rng.integers(9, 15))
    white = paint("#e4e2dc") if finish.metal != "black" else finish.steel
    parts: Parts = [
        (rounded_box(((k - (ribs - 1) / 2) * 0.07, 0.07, 0), (0.056, 0.09, 0.52), 0.024, 2), white) for k in range(ribs)
    ]
    pipe = rotated(cylinder((0, 0, -ribs * 0.035), 0.014, ribs * 0.07, 10), "y", 90.0)
    return parts + [(moved(pipe, (0, 0.06, z)), white) for z in (-0.22, 0.22)]


def wall_lamp(finish: Finish, rng: np.random.Generator) -> Parts:
    """Shade on a bracket."""
    shade = [(0.11, -0.07), (0.07, 0.10)] if rng.random() < 0.5 else [(0.07, -0.09), (0.10, 0.09)]
    return [
        (rounded_box((0, 0.012, -0.05), (0.09, 0.024, 0.16), 0.01, 2), finish.steel),
        (box((0, 0.07, -0.05), (0.02, 0.12, 0.02)), finish.steel),
        (moved(turned(shade, 32), (0, 0.14, 0.0)), glow("#f3e0b6", 0.6)),
    ]


def ceiling_panel(finish: Finish, rng: np.random.Generator) -> Parts:
    """Flat bright panel in a metal rim."""
    return [
        (box((0, 0, -0.025), (0.96, 0.44, 0.05)), finish.steel),
        (box((0, 0, -0.052), (0.88, 0.36, 0.006)), glow("#ffffff", float(rng.uniform(1.2, 1.5)))),
    ]


def pendant_lamp(finish: Finish, rng: np.random.Generator) -> Parts:
    """Coloured shade on a cable, a bright bulb inside."""
    drop = float(rng.uniform(0.40, 0.60))
    dome = [(0.24, 0.0), (0.21, 0.09), (0.13, 0.17), (0.05, 0.21), (0.0, 0.215)]
    return [
        (cylinder((0, 0, -drop), 0.006, drop, 8), paint("#222222")),
        (cylinder((0, 0, -0.03), 0.05, 0.03, 24), finish.steel),
        (moved(turned(dome, 48), (0, 0, -drop - 0.12)), finish.paint),
        (sphere((0, 0, -drop - 0.05), 0.065, 24, 14), glow("#fff0cf", 1.5)),
    ]


def bowl_lamp(finish: Finish, rng: np.random.Generator) -> Parts:
    """Frosted bowl close to the ceiling."""
    radius = float(rng.uniform(0.20, 0.27))
    bowl = [(0.0, -0.14), (0.5, -0.132), (0.8, -0.10), (0.95, -0.06), (1.0, -0.02)]
    return [
        (cylinder((0, 0, -0.025), radius + 0.02, 0.025, 48), finish.steel),
        (turned([(r * radius, z) for r, z in bowl], 48), glow("#fff3dc", 1.2)),
    ]


def ceiling_fan(finish: Finish, rng: np.random.Generator) -> Parts:
    """Four or five blades about a hub."""
    blades, reach = int(rng.integers(4, 6)), float(rng.uniform(0.50, 0.62))
    start = float(rng.uniform(0, 90))
    hub = [(0.0, -0.36), (0.06, -0.35), (0.10, -0.30), (0.10, -0.22), (0.04, -0.19), (0.0, -0.19)]
    parts: Parts = [
        (cylinder((0, 0, -0.2), 0.016, 0.2, 12), finish.steel),
        (cylinder((0, 0, -0.04), 0.07, 0.04, 24), finish.steel),
        (turned(hub, 32), finish.steel),
    ]
    blade = rotated(rounded_box((0, 0, 0), (reach, 0.13, 0.012), 0.006, 2), "x", 9.0)
    for k in range(blades):
        parts.append((rotated(moved(blade, (reach / 2 + 0.09, 0, -0.25)), "z", start + 360.0 * k / blades), finish.upright))
    return parts


def spot_bar(finish: Finish, rng: np.random.Generator) -> Parts:
    """Bar with three spotlights."""
    parts: Parts = [(box((0, 0, -0.03), (0.90, 0.06, 0.04)), finish.steel)]
    for k in range(3):
        x, tilt = (k - 1) * 0.34, float(rng.uniform(-35, 35))
        can = rotated(cylinder((0, 0, -0.16), 0.05, 0.14, 24, top_radius=0.035), "x", tilt)
        bulb = rotated(cylinder((0, 0, -0.163), 0.042, 0.004, 24), "x", tilt)
        parts += [(moved(can, (x, 0, -0.04)), finish.paint), (moved(bulb, (x, 0, -0.04)), glow("#fff3d8", 1.5))]
    return parts


def hanging_plant(finish: Finish, rng: np.random.Generator) -> Parts:
    """Pot on three cords, tendrils over its rim."""
    pot = [(0.0, -0.62), (0.10, -0.62), (0.15, -0.52), (0.15, -0.44), (0.13, -0.44), (0.0, -0.46)]
    parts: Parts = [(turned(pot, 32), finish.paint), (cylinder((0, 0, -0.02), 0.03, 0.02, 16), finish.steel)]
    greens = [paint(tone) for tone in ("#3f7f39", "#559a48")]
    for k in range(3):
        cord = rotated(cylinder((0, 0, -0.48), 0.005, 0.48, 6), "y", -16.0)
        parts.append((rotated(cord, "z", 120.0 * k), paint("#cdbb96")))
    for k in range(14):
        turn, long = 137.508 * k, float(rng.uniform(0.10, 0.34))
        for step in range(1 + int(long / 0.09)):
            leaf = sphere((0.15 + 0.01 * step, 0.0, -0.46 - 0.085 * step), 0.05, 10, 6)
            parts.append((rotated(leaf, "z", turn + 14.0 * step), greens[(k + step) % 2]))
    return parts


def smoke_alarm(finish: Finish, rng: np.random.Generator) -> Parts:
    """Small white disk with a slit and a lamp."""
    turn = float(rng.uniform(0, 360))
    return [
        (cylinder((0, 0, -0.045), 0.06, 0.045, 32, top_radius=0.075), paint("#e8e6e0")),
        (rotated(box((0.03, 0, -0.046), (0.012, 0.012, 0.006)), "z", turn), finish.paint),
    ]


def rug(finish: Finish, rng: np.random.Generator) -> Parts:
    """Rectangular rug with a border and diamonds, or stripes."""
    half = float(rng.uniform(0.85, 1.15))
    tones = linear_rgb(PAINTS[finish.colour]), linear_rgb("#d3c5a8" if rng.random() < 0.7 else "#3b3a44")
    if rng.random() < 0.3:
        woven = Material(tones[0], tones[1], "stripes", half / 6.5)
    else:
        woven = Material(tones[0], tones[1], "rug", half)
    return [(box((0, 0, 0.006), (2 * half, half * 4 / 3, 0.012)), woven)]


def round_rug(finish: Finish, rng: np.random.Generator) -> Parts:
    """Round rug of rings."""
    radius = float(rng.uniform(0.7, 1.0))
    woven = Material(linear_rgb(PAINTS[finish.colour]), linear_rgb("#d8cfbd"), "rings", radius)
    return [(cylinder((0, 0, 0), radius, 0.012, 64), woven)]
