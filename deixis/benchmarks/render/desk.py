"""A wooden desk in a plain room: the stage of desk-scale layouts.

The origin is the middle of the desk's near edge, on its top; +y runs away from the viewer, +x to the right.
"""

from dataclasses import dataclass

from deixis.benchmarks.render.mesh import box
from deixis.benchmarks.render.scene import Material, RectLight, Scene, linear_rgb
from deixis.benchmarks.render.solids import moved, rounded_box

DESK_WIDTH_M, DESK_DEPTH_M = 1.7, 1.2
WOODS = (("#c79a63", "#a97c48"), ("#a8743f", "#8a5a2e"), ("#d8b98a", "#c0a072"), ("#8a5f3c", "#6f4a2d"))
WALLS = ("#cfcabd", "#bfcbd0", "#d3c6b4", "#c4cdbd")


@dataclass(frozen=True, kw_only=True)
class DeskSetting:
    """What the stage looks like."""

    wood: int = 0
    """Place in :data:`WOODS`."""
    wall: int = 0
    """Place in :data:`WALLS`."""
    brightness: float = 1.0
    """Of the lights, 1 being standard."""


def desk_stage(setting: DeskSetting) -> Scene:
    """Desk, room and lights, with nothing on the desk."""
    scene = Scene(ambient=0.38 * setting.brightness)
    wall = Material(linear_rgb(WALLS[setting.wall]))
    floor = Material(linear_rgb("#9a8468"), linear_rgb("#84705a"), "planks")
    ceiling = Material(linear_rgb("#efeeea"))
    walls = [
        box((0.0, 2.3, 0.4), (6.0, 0.1, 2.6)),
        box((0.0, -2.4, 0.4), (6.0, 0.1, 2.6)),
        box((-2.6, 0.0, 0.4), (0.1, 6.0, 2.6)),
        box((2.6, 0.0, 0.4), (0.1, 6.0, 2.6)),
    ]
    scene.add(
        "room",
        [
            (box((0.0, 0.0, -0.80), (6.0, 6.0, 0.1)), floor),
            *((solid, wall) for solid in walls),
            (box((0.0, 0.0, 1.85), (6.0, 6.0, 0.1)), ceiling),
            (box((0.0, 2.24, -0.69), (5.2, 0.03, 0.12)), ceiling),
        ],
    )
    first, second = WOODS[setting.wood]
    wood = Material(linear_rgb(first), linear_rgb(second), "wood")
    top = rounded_box((0.0, DESK_DEPTH_M / 2, -0.02), (DESK_WIDTH_M, DESK_DEPTH_M, 0.04), 0.008, 2)
    legs = [
        box((x, y, -0.395), (0.06, 0.06, 0.71))
        for x in (0.06 - DESK_WIDTH_M / 2, DESK_WIDTH_M / 2 - 0.06)
        for y in (0.06, DESK_DEPTH_M - 0.06)
    ]
    # The grain is laid out from the object's own origin, where it has a seam: that lies outside the wood.
    aside = (-2.0, -2.0, -2.0)
    scene.add("desk", [(moved(solid, (2.0, 2.0, 2.0)), wood) for solid in (top, *legs)], aside)
    for centre, power in (((-0.75, -0.1, 1.77), 11.0), ((0.95, 1.2, 1.77), 8.0)):
        scene.lights.append(RectLight(centre, (0.5, 0.0, 0.0), (0.0, -0.4, 0.0), power * setting.brightness))
    return scene
