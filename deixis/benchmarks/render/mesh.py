"""Solids as triangle soups: z points up, lengths in metres.

Sines and cosines come from :mod:`math` one value at a time: numpy picks other kernels on other processors, and a scene must be
the same bytes everywhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

SHAPES = ("circle", "cross", "square", "star", "triangle")

Triangles = Float[np.ndarray, "triangle corner xyz"]
Vector = Sequence[float | int]
"""Three numbers, whole ones too."""


@dataclass(frozen=True)
class Solid:
    """Triangles with one normal per corner (smooth where neighbours share it)."""

    corners: Triangles
    normals: Triangles


def _unit_circle(angles: Sequence[float]) -> Float[np.ndarray, "point xy"]:
    return np.array([(math.cos(angle), math.sin(angle)) for angle in angles])


def _full_turn(n: int) -> list[float]:
    return [2 * math.pi * i / n for i in range(n)]


def _flat(corners: Triangles) -> Solid:
    """Give every corner the normal of its own triangle."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.sqrt(normal[:, 0] ** 2 + normal[:, 1] ** 2 + normal[:, 2] ** 2)
    normal = normal / np.maximum(length, 1e-12)[:, None]
    return Solid(corners, np.repeat(normal[:, None], 3, axis=1))


def box(centre: Vector, size: Vector) -> Solid:
    """Axis-aligned box with edge lengths ``size``."""
    x, y, z = (edge / 2 for edge in size)
    corner = np.array(
        [(-x, -y, -z), (x, -y, -z), (x, y, -z), (-x, y, -z), (-x, -y, z), (x, -y, z), (x, y, z), (-x, y, z)]
    ) + np.asarray(centre, float)
    faces = ((3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
    triangles = [tri for a, b, c, d in faces for tri in ((a, b, c), (a, c, d))]
    return _flat(corner[np.array(triangles)])


def turned(profile: Sequence[tuple[float, float]], segments: int = 128) -> Solid:
    """Solid of revolution about the z axis from ``(radius, z)`` pairs, bottom to top."""
    ring = _unit_circle(_full_turn(segments))
    here, there = ring, np.roll(ring, -1, axis=0)
    corners, normals = [], []
    for (r0, z0), (r1, z1) in pairwise(profile):
        slope = math.hypot(r1 - r0, z1 - z0)
        out, rise = (z1 - z0) / slope, -(r1 - r0) / slope
        low_a, low_b, top_a, top_b = (_lifted(r * side, z) for r, z in ((r0, z0), (r1, z1)) for side in (here, there))
        n_a, n_b = _lifted(out * here, rise), _lifted(out * there, rise)
        # A band that begins or ends on the axis is a fan of triangles, any other a ring of quadrilaterals.
        faces = [face for face, r in (((low_a, low_b, top_b), r0), ((low_a, top_b, top_a), r1)) if r > 0]
        turns = [turn for turn, r in (((n_a, n_b, n_b), r0), ((n_a, n_b, n_a), r1)) if r > 0]
        corners.append(np.stack([np.stack(face, axis=1) for face in faces], axis=1).reshape(-1, 3, 3))
        normals.append(np.stack([np.stack(turn, axis=1) for turn in turns], axis=1).reshape(-1, 3, 3))
    return Solid(np.concatenate(corners), np.concatenate(normals))


def _lifted(points: Float[np.ndarray, "point xy"], z: float) -> Float[np.ndarray, "point xyz"]:
    return np.column_stack([points, np.full(len(points), z)])


def disk(radius: float, thickness: float, bevel: float = 0.002) -> Solid:
    """Flat round disk that stands on z = 0."""
    return turned([(0.0, 0.0), (radius, 0.0), (radius, thickness - bevel), (radius - bevel, thickness), (0.0, thickness)])


def prism(outline: Float[np.ndarray, "point xy"], bottom: float, top: float) -> Solid:
    """Upright prism over an outline that is star-shaped about the origin, counter-clockwise."""
    triangles = []
    for a, b in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        triangles += [
            [(0, 0, top), (*a, top), (*b, top)],
            [(0, 0, bottom), (*b, bottom), (*a, bottom)],
            [(*a, bottom), (*b, bottom), (*b, top)],
            [(*a, bottom), (*b, top), (*a, top)],
        ]
    return _flat(np.array(triangles, float))


def figure_outline(shape: str, radius: float) -> Float[np.ndarray, "point xy"]:
    """Outline of one of the five figures, inscribed in about ``radius``, top towards +y.

    Raises:
        ValueError: ``shape`` is none of :data:`SHAPES`.
    """
    top = math.pi / 2
    if shape == "circle":
        return _unit_circle(_full_turn(96)) * (0.95 * radius)
    if shape == "square":
        half = 0.80 * radius
        return np.array([(-half, -half), (half, -half), (half, half), (-half, half)])
    if shape == "triangle":
        return _unit_circle([top + angle for angle in _full_turn(3)]) * (1.05 * radius)
    if shape == "star":
        reach = np.where(np.arange(10) % 2 == 0, 1.05, 0.42)[:, None] * radius
        return _unit_circle([top + angle for angle in _full_turn(10)]) * reach
    if shape == "cross":
        arm, tip = 0.28 * radius, 0.98 * radius
        quarter = [(arm, -tip), (arm, -arm), (tip, -arm)]
        return np.array([turn for k in range(4) for turn in (_quarter_turn(point, k) for point in quarter)])
    listed = ", ".join(map(repr, SHAPES))
    raise ValueError(f"shape={shape!r} is not one of: {listed}.")


def _quarter_turn(point: tuple[float, float], times: int) -> tuple[float, float]:
    x, y = point
    for _ in range(times):
        x, y = -y, x
    return x, y
