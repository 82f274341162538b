"""Cameras that take apart what travels together: distance, image height and apparent size of the disk.

Each scene is given its distance, row and area first, spread evenly over a box, so that the three are independent by
construction; then the camera and the disk are solved for that show them. In any one camera a farther disk is higher in the
picture and smaller, so that something else must carry the link: here the camera's pitch (with the horizon), its focal length and
the disk's size share it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deixis.benchmarks.items import Items
from deixis.benchmarks.render import Camera, Figure
from deixis.benchmarks.render.memory_scene import DESK_LENGTH_M, DESK_WIDTH_M, DISK_THICKNESS_M
from deixis.benchmarks.speaker import region_of

ROWS = (0.25, 0.75)
"""Image height of the disk's middle, 0 at the top."""
AREAS = (0.0075, 0.0145)
"""Share of the picture; the standard set spans 0.006 to 0.05."""
_HEIGHTS_M, _SETBACKS_M = (1.5, 1.9), (0.7, 1.1)
_LATERAL_M = 0.05
_BRIGHTNESS = (0.92, 1.06)
# Focal length grows with the disk's distance from the eye to this power: half-way between a camera that never zooms (the disk
# would have to be wider than the desk) and a disk that never grows.
_FOCAL_MM, _AT_M, _POWER, _FOCAL_SPREAD = 38.0, 2.9, 0.6, (0.9, 1.1)
_STEPS = 12


class EvenSpread:
    """Points in the unit cube of which every stretch fills the cube evenly: a Halton sequence with random digits.

    In axis i a point's place is its number written backwards behind the point, in the i-th prime's base, after a random
    permutation of the digits at each place (Owen 2017, "A randomized Halton algorithm in R"). Correlations between axes fall
    about as 1/n, where those of independent draws fall as 1/sqrt(n). A longer sequence begins with the shorter one.
    """

    _BASES = (2, 3, 5)
    _PLACES = 24

    def __init__(self, rng: np.random.Generator) -> None:
        self._digits = [rng.permuted(np.tile(np.arange(base), (self._PLACES, 1)), axis=1).tolist() for base in self._BASES]

    def __getitem__(self, number: int) -> tuple[float, ...]:
        """Point ``number``, from 0."""
        return tuple(self._place(number, *axis) for axis in zip(self._BASES, self._digits, strict=True))

    def _place(self, number: int, base: int, digits: list[list[int]]) -> float:
        place = 0.0
        for power, permuted in enumerate(digits, 1):
            number, digit = divmod(number, base)
            place += permuted[digit] / base**power
        return place


def decoupled_figure(
    rng: np.random.Generator,
    at: Sequence[float],
    shape: str,
    colour: str,
    distance_m: float | tuple[float, float],
    side: Camera,
) -> tuple[Figure, Camera]:
    """A figure and the camera that shows it in the row and with the area that ``at`` chooses.

    Args:
        rng: Decides height, setback, zoom, lateral place and light.
        at: A point of the unit cube: place in the span of rows, areas (logarithmic) and distances.
        shape: Of the figure.
        colour: Of the figure.
        distance_m: Metres, or the span from which ``at`` chooses.
        side: Lateral place of the camera, and whether it turns towards the disk.

    Raises:
        ValueError: The disk that is needed doesn't lie on the desk.
    """
    distance = round(_within(distance_m, at[2]), 4) if isinstance(distance_m, tuple) else distance_m
    row, area = _within(ROWS, at[0]), math.exp(_within((math.log(AREAS[0]), math.log(AREAS[1])), at[1]))
    height, setback = round(float(rng.uniform(*_HEIGHTS_M)), 4), round(float(rng.uniform(*_SETBACKS_M)), 4)
    away = math.hypot(distance + setback, height)
    focal = round(_FOCAL_MM * (away / _AT_M) ** _POWER * float(rng.uniform(*_FOCAL_SPREAD)), 3)
    figure = Figure(
        shape=shape,
        colour=colour,
        distance_m=distance,
        x_m=round(float(rng.uniform(-_LATERAL_M, _LATERAL_M)), 4),
        brightness=round(float(rng.uniform(*_BRIGHTNESS)), 4),
    )
    yaw = round(math.degrees(math.atan2(side.x_m, distance + setback)), 4)
    camera = replace(side, height_m=height, setback_m=setback, focal_mm=focal, yaw_deg=yaw)
    return _solved(figure, camera, row, area)


def latents(figure: Figure, camera: Camera) -> dict[str, float]:
    """What a decoupled scene varies so that row and area are free, and where that puts the horizon.

    ``horizon_row`` is the image height at infinity straight ahead: 0 at the top, below 0 above the picture.
    """
    half = camera.view(2).half_width
    return {
        "camera_pitch": camera.pitch_deg,
        "camera_height": camera.height_m,
        "camera_setback": camera.setback_m,
        "camera_focal": camera.focal_mm,
        "horizon_row": (1 + math.tan(math.radians(camera.pitch_deg)) / half) / 2,
        "size_m": 2 * figure.disk_radius_m,
    }


def height_cue(distance_m: float, object_row: float) -> str:
    """What the rule "higher in the image is farther" says of a decoupled scene, whose row is spread evenly about the middle.

    ``agrees``: near and in the lower half, or far and in the upper. ``contradicts``: the other way round. ``neutral``: at a
    middle distance.
    """
    region = region_of(distance_m)
    if region == 2:
        return "neutral"
    return "agrees" if (region == 3) == (object_row < 0.5) else "contradicts"


def counter_heuristic(items: Items) -> Items:
    """The items in which "higher in the image is farther" is wrong: far and in the lower half, near and in the upper half.

    These are the items of the group ``height_cue="contradicts"``, which decoupled scenes alone have: with one camera the rule
    never fails, at whatever row its nearest and farthest disks stand. Like every group it is that of the item's own scene in all
    conditions, also where ``shuffled`` shows another one's picture.

    Raises:
        ValueError: There is none, as in any set with one camera.
    """
    found = items.filter(lambda item: item.groups.get("height_cue") == "contradicts")
    if not len(found):
        raise ValueError('in no item does "higher is farther" mislead; draw some with memory_game(decouple=True, n=200).')
    return found


def _within(span: tuple[float, float], share: float) -> float:
    return span[0] + float(share) * (span[1] - span[0])


def _solved(figure: Figure, camera: Camera, row: float, area: float) -> tuple[Figure, Camera]:
    """Pitch and disk by fixed-point steps, rounded so that every processor draws the same bytes."""
    pitch = -math.degrees(math.atan2(camera.height_m, figure.distance_m + camera.setback_m))
    radius, half = figure.disk_radius_m, camera.view(2).half_width
    for _ in range(_STEPS):
        figure, camera = replace(figure, disk_radius_m=radius), replace(camera, pitch_deg=pitch)
        seen = projected_rim(figure, camera)
        turned = math.atan((2 * seen.row - 1) * half)
        pitch += math.degrees((row - seen.row) * 2 * half * math.cos(turned) ** 2)
        radius *= math.sqrt(area / seen.area)
    radius, pitch = round(radius, 5), round(pitch, 4)
    _check_on_desk(figure, radius)
    return replace(figure, disk_radius_m=radius), replace(camera, pitch_deg=pitch)


def _check_on_desk(figure: Figure, radius: float) -> None:
    aside, near, far = abs(figure.x_m) + radius, figure.distance_m - radius, figure.distance_m + radius
    if aside > DESK_WIDTH_M / 2 or near < 0 or far > DESK_LENGTH_M:
        raise ValueError(
            f"a decoupled scene at {figure.distance_m:g} m needs a disk of {2 * radius:.2f} m, which does not lie on the desk; "
            "use distances between 0.25 and 2.75 m."
        )


@dataclass(frozen=True)
class Rim:
    """The disk's upper rim in the picture: an ellipse's centre and area, in shares of the picture."""

    column: float
    row: float
    area: float


def projected_rim(figure: Figure, camera: Camera) -> Rim:
    """Image of the disk's upper rim in closed form.

    The circle's conic C on the desk's plane goes to H^-T C H^-1 under the plane's homography H; centre and area are those of the
    ellipse (Hartley and Zisserman 2004, sections 2.2.3 and 2.3).
    """
    view = camera.view(2)
    right, up, forward = view.axes
    rows = np.stack([right / view.half_width, -up / view.half_width, forward])
    lift = np.array([0.0, 0.0, DISK_THICKNESS_M]) - np.array(view.position)
    back = np.linalg.inv(np.stack([rows[:, 0], rows[:, 1], rows @ lift], axis=1))
    x, y, radius = figure.x_m, figure.distance_m, figure.disk_radius_m
    conic = back.T @ np.array([[1.0, 0.0, -x], [0.0, 1.0, -y], [-x, -y, x * x + y * y - radius * radius]]) @ back
    centre = -np.linalg.solve(conic[:2, :2], conic[:2, 2])
    area = math.pi * abs(np.linalg.det(conic)) / np.linalg.det(conic[:2, :2]) ** 1.5
    return Rim(column=float(centre[0] + 1) / 2, row=float(centre[1] + 1) / 2, area=float(area) / 4)
