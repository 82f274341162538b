"""A camera for a layout: all things inside the picture, wherever the target stands, and the picture well filled."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from deixis.benchmarks.spacenum.layout_picture import Eye, Thing
from deixis.benchmarks.spacenum.layout_stages import Stage

_MARGIN = 0.04
_NEAREST_M = 0.1
_YAW_DEG, _ASIDE = (-18.0, 18.0), 0.06


def framing(rng: np.random.Generator, stage: Stage, things: Sequence[Thing]) -> Eye | None:
    """A camera that has all things inside the picture, from as near as it can or up to a fifth farther."""
    corners = np.concatenate([thing.corners for thing in things])
    yaw, pitch = (round(float(rng.uniform(*span)), 2) for span in (_YAW_DEG, stage.pitch_deg))
    focal, farther = round(float(rng.uniform(*stage.focal_mm)), 2), float(rng.uniform(1.0, 1.2))
    aside = rng.uniform(-_ASIDE, _ASIDE, 2)
    for away in np.arange(*stage.away_m, stage.away_m[0] / 20):
        eye = _aimed(corners, yaw, pitch, focal, float(away))
        if eye is None or not inside(corners, eye):
            continue
        eye = _aimed(corners, yaw, pitch, focal, float(away) * farther) or eye
        turned = _shifted(eye, float(away), aside)
        eye = turned if inside(corners, turned) else eye
        within = all(low < value < high for value, (low, high) in zip(eye.position_m, stage.inside_m, strict=True))
        return eye if within else None
    return None


def _aimed(corners: Float[np.ndarray, "n xyz"], yaw: float, pitch: float, focal: float, away: float) -> Eye | None:
    """The camera at this distance from the middle of the corners that has their outline in the middle of the picture."""
    eye = Eye(position_m=(0.0, 0.0, 0.0), yaw_deg=yaw, pitch_deg=pitch, focal_mm=focal)
    middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
    eye = _at(eye, middle - eye.view(1).axes[2] * away)
    for _ in range(3):
        if not (eye.coordinates(corners)[:, 2] > _NEAREST_M).all():
            return None
        points = eye.view(1).project(corners)
        eye = _shifted(eye, away, (points.min(axis=0) + points.max(axis=0)) / 2 - 0.5)
    return eye


def _shifted(eye: Eye, away: float, by: Float[np.ndarray, "2"]) -> Eye:
    """The camera moved so that what it shows at this depth moves by minus ``by`` (in widths of the picture, right and down)."""
    view = eye.view(1)
    right, up, _ = view.axes
    scale = 2 * view.half_width * away
    return _at(eye, np.array(eye.position_m) + (right * by[0] - up * by[1]) * scale)


def _at(eye: Eye, position: Float[np.ndarray, "3"]) -> Eye:
    x, y, z = (round(float(value), 4) for value in position)
    return replace(eye, position_m=(x, y, z))


def inside(corners: Float[np.ndarray, "n xyz"], eye: Eye) -> bool:
    """Whether all points are before the camera and inside the picture, with a margin."""
    if not (eye.coordinates(corners)[:, 2] > _NEAREST_M).all():
        return False
    points = eye.view(1).project(corners)
    return bool((points > _MARGIN).all() and (points < 1 - _MARGIN).all())
