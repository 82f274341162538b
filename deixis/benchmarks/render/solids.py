"""More solids, and moving them: what furniture and small things are put together from.

Like :mod:`~deixis.benchmarks.render.mesh`: z points up, lengths in metres, angles one value at a time through :mod:`math`, so
that a solid is the same bytes on every processor.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from deixis.benchmarks.render.mesh import Solid, Triangles, Vector, turned

Grid = Float[np.ndarray, "row column xyz"]
_TINY_AREA = 1e-12


def rounded_box(centre: Vector, size: Vector, radius: float, steps: int = 3) -> Solid:
    """Box with edge lengths ``size`` whose edges and corners are rounded: a smaller box swept by a ball of ``radius``.

    Args:
        centre: Middle of the box.
        size: Edge lengths, roundings included; an edge below ``2 * radius`` makes the radius as small as fits.
        radius: Of every edge and corner.
        steps: Flat strips per quarter turn.
    """
    radius = min(radius, *(edge / 2 for edge in size))
    inner = np.array([edge / 2 - radius for edge in size])
    direction, octant = _ball_of_octants(steps)
    points = direction * radius + octant * inner + np.asarray(centre, float)
    return _grid_solid(points, direction, caps=True)


@lru_cache(maxsize=16)
def _ball_of_octants(steps: int) -> tuple[Grid, Grid]:
    """Directions over a ball, and the octant (signs) that each belongs to; seams between octants stand twice."""
    quarter = [math.pi / 2 * i / steps for i in range(steps + 1)]
    latitudes = [(-math.pi / 2 + a, -1) for a in quarter] + [(a, 1) for a in quarter]
    signs = ((1, 1), (-1, 1), (-1, -1), (1, -1))
    longitudes = [(k * math.pi / 2 + a, signs[k]) for k in range(4) for a in quarter] + [(0.0, signs[0])]
    direction = [
        [(math.cos(up) * math.cos(turn), math.cos(up) * math.sin(turn), math.sin(up)) for turn, _ in longitudes]
        for up, _ in latitudes
    ]
    octant = [[(x, y, z) for _, (x, y) in longitudes] for _, z in latitudes]
    return np.array(direction), np.array(octant, float)


def _grid_solid(points: Grid, normals: Grid, caps: bool = False) -> Solid:
    """Two triangles per cell of a grid that runs counter-clockwise from below; cells without area are left out."""
    corners, turns = (
        np.stack([a[:-1, :-1], a[:-1, 1:], a[1:, 1:], a[:-1, :-1], a[1:, 1:], a[1:, :-1]], axis=2).reshape(-1, 3, 3)
        for a in (points, normals)
    )
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    keep = cross[:, 0] ** 2 + cross[:, 1] ** 2 + cross[:, 2] ** 2 > _TINY_AREA**2
    corners, turns = corners[keep], turns[keep]
    if caps:
        flat = [_cap(points[0], -1.0), _cap(points[-1], 1.0)]
        corners = np.concatenate([corners, *(c for c, _ in flat)])
        turns = np.concatenate([turns, *(n for _, n in flat)])
    return Solid(corners, turns)


def _cap(ring: Float[np.ndarray, "point xyz"], side: float) -> tuple[Triangles, Triangles]:
    """The flat rectangle that closes a rounded box below (side -1) or above (side 1)."""
    (x0, y0, z), (x1, y1, _) = ring.min(axis=0), ring.max(axis=0)
    a, b, c, d = (x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)
    faces = [(a, b, c), (a, c, d)] if side > 0 else [(c, b, a), (d, c, a)]
    return np.array(faces), np.full((2, 3, 3), (0.0, 0.0, side))


def cylinder(base: Vector, radius: float, height: float, segments: int = 32, top_radius: float | None = None) -> Solid:
    """Upright cylinder, or a cone's frustum where ``top_radius`` is another; ``base`` is the middle of its foot."""
    top = radius if top_radius is None else top_radius
    return moved(turned([(0.0, 0.0), (radius, 0.0), (top, height), (0.0, height)], segments), base)


def sphere(centre: Vector, radius: float, segments: int = 24, rings: int = 12) -> Solid:
    """Ball with smooth normals."""
    latitudes = [math.pi * (i / rings - 0.5) for i in range(rings + 1)]
    direction = _directions(latitudes, [2 * math.pi * (i % segments) / segments for i in range(segments + 1)])
    return _grid_solid(direction * radius + np.asarray(centre, float), direction)


def _directions(latitudes: Sequence[float], longitudes: Sequence[float]) -> Grid:
    return np.array(
        [[(math.cos(up) * math.cos(a), math.cos(up) * math.sin(a), math.sin(up)) for a in longitudes] for up in latitudes]
    )


def torus(centre: Vector, radius: float, thickness: float, segments: int = 32, sides: int = 12) -> Solid:
    """Lying ring: ``radius`` to the middle of the tube, which has the radius ``thickness``."""
    around = [2 * math.pi * (i % segments) / segments for i in range(segments + 1)]
    across = [2 * math.pi * (i % sides) / sides for i in range(sides + 1)]
    normals = _directions(across, around)
    middle = np.array([(math.cos(a), math.sin(a), 0.0) for a in around]) * radius
    return _grid_solid(middle[None] + normals * thickness + np.asarray(centre, float), normals)


def sheet(points: Grid) -> Solid:
    """Thin curved surface through a grid of points, such as a leaf or a curtain; it has two sides and no thickness."""
    along, across = np.gradient(points, axis=0), np.gradient(points, axis=1)
    return _grid_solid(points, _unit(np.cross(across, along)))


def joined(solids: Sequence[Solid]) -> Solid:
    """Several solids as one."""
    return Solid(np.concatenate([s.corners for s in solids]), np.concatenate([s.normals for s in solids]))


def moved(solid: Solid, by: Vector) -> Solid:
    """The solid, moved by ``by``."""
    return Solid(solid.corners + np.asarray(by, float), solid.normals)


def rotated(solid: Solid, axis: str, degrees: float) -> Solid:
    """The solid, turned about the axis ``"x"``, ``"y"`` or ``"z"`` through the origin, counter-clockwise seen from its tip.

    Raises:
        ValueError: ``axis`` is none of the three.
    """
    if axis not in ("x", "y", "z"):
        raise ValueError(f"axis={axis!r} is not one of: 'x', 'y', 'z'.")
    first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    corners, normals = solid.corners.copy(), solid.normals.copy()
    for now, before in ((corners, solid.corners), (normals, solid.normals)):
        now[..., first] = before[..., first] * cos - before[..., second] * sin
        now[..., second] = before[..., first] * sin + before[..., second] * cos
    return Solid(corners, normals)


def scaled(solid: Solid, by: float | Vector) -> Solid:
    """The solid, scaled about the origin by one factor or one for each axis, all above 0.

    Raises:
        ValueError: A factor is not above 0.
    """
    factor = np.broadcast_to(np.asarray(by, float), (3,))
    if not (factor > 0).all():
        raise ValueError(f"by={by} is not above 0 on every axis; give factors such as 1.2 or (1.0, 1.0, 0.5).")
    # Normals turn against an uneven scaling: they scale with the inverse.
    return Solid(solid.corners * factor, _unit(solid.normals / factor))


def bounds(solids: Sequence[Solid]) -> tuple[Float[np.ndarray, " xyz"], Float[np.ndarray, " xyz"]]:
    """Lowest and highest x, y and z of some solids together."""
    return (
        np.min([solid.corners.min(axis=(0, 1)) for solid in solids], axis=0),
        np.max([solid.corners.max(axis=(0, 1)) for solid in solids], axis=0),
    )


def _unit(a: Float[np.ndarray, "*n xyz"]) -> Float[np.ndarray, "*n xyz"]:
    length = np.sqrt(a[..., 0] ** 2 + a[..., 1] ** 2 + a[..., 2] ** 2)
    return a / np.maximum(length, _TINY_AREA)[..., None]
