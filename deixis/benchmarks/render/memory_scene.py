"""The memory game's scene: a long black desk, a white disk on it, a figure on the disk.

The origin is the middle of the desk's near edge, on its top; +y runs along the desk away from the speaker, +x to the right.
"""

import math
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float

from deixis.benchmarks.render.mesh import Solid, box, disk, figure_outline, prism, turned
from deixis.benchmarks.render.scene import Material, RectLight, Scene, View, linear_rgb

INKS = {"black": "#101010", "blue": "#1f4fe0", "green": "#1f9a3c", "red": "#d81e1e"}
DESK_LENGTH_M = 3.6
DESK_WIDTH_M = 0.9
DISK_THICKNESS_M = 0.012
_FIGURE_THICKNESS_M = 0.0008
_PERSON_SIDES = 32


@dataclass(frozen=True, kw_only=True)
class Camera:
    """Where the speaker's eye is.

    The standard values keep all three distances in frame and the figure at 2.75 m legible at 256 pixels.

    Raises:
        ValueError: A value is not finite or outside what its name allows.
    """

    height_m: float = 1.6
    """Above the desk's top."""
    setback_m: float = 0.7
    """Behind the desk's near edge."""
    pitch_deg: float = -44.0
    focal_mm: float = 41.0
    """On a 36 mm sensor."""
    x_m: float = 0.0
    """To the right of the desk's middle line."""
    yaw_deg: float = 0.0
    """0 looks along the desk, more to the left."""

    def __post_init__(self) -> None:
        for name, value in self.as_dict().items():
            if not math.isfinite(value):
                raise ValueError(f"{name}={value} is not a finite number; give metres, degrees or millimetres.")
        for name, value in (("focal_mm", self.focal_mm), ("height_m", self.height_m)):
            if value <= 0:
                raise ValueError(f"{name}={value} is not above 0; the standard camera has {getattr(Camera, name)}.")
        if self.setback_m < 0:
            raise ValueError(f"setback_m={self.setback_m} is below 0; 0 is the desk's near edge, more lies behind it.")
        if not -90 <= self.pitch_deg <= 90:
            raise ValueError(f"pitch_deg={self.pitch_deg} is not between -90 (straight down) and 90 (straight up).")

    def view(self, size: int) -> View:
        """The pinhole camera of a square picture ``size`` pixels wide."""
        position = (self.x_m, -self.setback_m, self.height_m)
        return View(position=position, yaw=self.yaw_deg, pitch=self.pitch_deg, focal=self.focal_mm, width=size, height=size)

    def as_dict(self) -> dict[str, float]:
        """Field names and values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The disk and the figure on it."""

    shape: str
    colour: str
    distance_m: float
    """From the desk's near edge to the disk's centre."""
    x_m: float = 0.0
    """To the right of the desk's middle line."""
    brightness: float = 1.0
    """Of the lights, 1 being standard."""
    disk_radius_m: float = 0.22
    addressee_m: float | None = None
    """From the desk's near edge to where an addressee sits beside the desk; None for nobody."""
    addressee_x_m: float = -0.72
    """To the right of the desk's middle line; the desk ends at 0.45 m."""


def memory_scene(figure: Figure) -> Scene:
    """Room, desk, disk and figure; the objects named ``disk`` and ``figure`` are the item's object."""
    scene = Scene(ambient=0.32 * figure.brightness)
    _add_room(scene)
    _add_desk(scene)
    at = (figure.x_m, figure.distance_m, 0.0)
    scene.add("disk", [(disk(figure.disk_radius_m, DISK_THICKNESS_M), Material(linear_rgb("#e2e2e0")))], at)
    outline = figure_outline(figure.shape, figure.disk_radius_m * 0.84)
    top = DISK_THICKNESS_M + _FIGURE_THICKNESS_M
    ink = Material(linear_rgb(INKS[figure.colour]))
    scene.add("figure", [(prism(outline, DISK_THICKNESS_M, top), ink)], at)
    if figure.addressee_m is not None:
        scene.add("addressee", _person(), (figure.addressee_x_m, figure.addressee_m, 0.0))
    for y in (-0.6, 3.2):
        scene.lights.append(RectLight((0.0, y, 2.38), (0.7, 0.0, 0.0), (0.0, -0.6, 0.0), 9.5 * figure.brightness))
    return scene


def footprint(figure: Figure, camera: Camera, size: int) -> Float[np.ndarray, "point xy"]:
    """Outline of the disk in the picture, in pixels: the convex hull of its projected corners, counter-clockwise.

    Nothing hides the disk and it is convex, so this outline is exact (up to the 128 corners of its rim).
    """
    from scipy.spatial import ConvexHull

    solid = disk(figure.disk_radius_m, DISK_THICKNESS_M)
    corners = solid.corners.reshape(-1, 3) + np.array([figure.x_m, figure.distance_m, 0.0])
    points = camera.view(size).project(corners)
    return points[ConvexHull(points).vertices]


def _person() -> list[tuple[Solid, Material]]:
    """Somebody who sits: a gown down to the floor and a head, both convex, which is quick to trace without Embree."""
    gown = [(0.0, -0.74), (0.2, -0.74), (0.22, -0.3), (0.2, 0.2), (0.14, 0.33), (0.05, 0.37), (0.0, 0.37)]
    bends = [(0.1 * math.sin(math.pi * k / 10), 0.49 - 0.13 * math.cos(math.pi * k / 10)) for k in range(1, 10)]
    head = [(0.0, 0.36), *bends, (0.0, 0.62)]
    cloth, skin = Material(linear_rgb("#5f7fa8")), Material(linear_rgb("#c79f80"))
    return [(turned(gown, _PERSON_SIDES), cloth), (turned(head, _PERSON_SIDES), skin)]


def _add_room(scene: Scene) -> None:
    wall = Material(linear_rgb("#b9b6ae"))
    floor = Material(linear_rgb("#8d7a63"), linear_rgb("#7a684f"), "planks")
    ceiling = Material(linear_rgb("#e6e4df"))
    scene.add(
        "room",
        [
            (box((0.0, 2.0, -0.79), (8.0, 12.0, 0.1)), floor),
            (box((0.0, 5.9, 0.8), (8.0, 0.1, 3.4)), wall),
            (box((-3.2, 2.0, 0.8), (0.1, 12.0, 3.4)), wall),
            (box((3.2, 2.0, 0.8), (0.1, 12.0, 3.4)), wall),
            (box((0.0, -3.5, 0.8), (8.0, 0.1, 3.4)), wall),
            (box((0.0, 2.0, 2.45), (8.0, 12.0, 0.1)), ceiling),
            (box((0.0, 5.84, -0.68), (6.4, 0.03, 0.12)), ceiling),
        ],
    )


def _add_desk(scene: Scene) -> None:
    black = Material(linear_rgb("#171719"))
    half, middle = DESK_WIDTH_M / 2 - 0.05, DESK_LENGTH_M / 2
    top = box((0.0, middle, -0.02), (DESK_WIDTH_M, DESK_LENGTH_M, 0.04))
    legs = [box((x, y, -0.39), (0.05, 0.05, 0.7)) for x in (-half, half) for y in (0.06, DESK_LENGTH_M - 0.06)]
    scene.add("desk", [(solid, black) for solid in (top, *legs)])
