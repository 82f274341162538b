"""Light that has bounced: gathered once per scene at points in the air, read back smoothly anywhere.

At each point of a coarse grid, rays in all directions give the light that arrives; it is kept as an ambient cube, one colour for
each of the six directions along the axes (McTaggart 2004, "Half-Life 2 / Valve Source Shading"). Between the points it is
interpolated, so that walls show no blotches, and every view of a scene sees the same light.
"""

import math
from itertools import product

import numpy as np
from jaxtyping import Bool, Float, Int

from deixis.benchmarks.render.scene import Air, Scene
from deixis.benchmarks.render.trace import F, Hits, Tracer, dot
from deixis.benchmarks.render.trace_numpy import NumpyTracer

_RAYS = 192
_BOUNCES = 3
_INSIDE_M, _INSIDE_SHARE = 0.08, 0.35
_OFF_SURFACE_M = 0.15
# Share of a lamp's own glow that reaches what lies around it.
_GLOW = 0.8

Colours = Float[np.ndarray, "n rgb"]


def sequence(n: int, start: float) -> Float[np.ndarray, "n 2"]:
    """First ``n`` points of the R2 sequence (Roberts 2018) in the unit square."""
    golden = 1.32471795724474602596
    step = np.arange(1, n + 1)
    return np.stack([(start + step / golden) % 1, (start + step / golden**2) % 1], axis=1).astype(F)


class AirLight:
    """Bounced light of one scene, over pi: a surface of albedo ``a`` sends back ``a`` times it."""

    def __init__(self, scene: Scene, air: Air, tracer: Tracer | NumpyTracer) -> None:
        self._low = np.array(air.low, F)
        self._step = np.array([(b - a) / (n - 1) for a, b, n in zip(air.low, air.high, air.counts, strict=True)], F)
        self._counts = np.array(air.counts)
        points = _grid_points(air)
        directions = _sphere(_RAYS)
        hits = tracer.first(np.repeat(points, _RAYS, axis=0), np.tile(directions, (len(points), 1)))
        self._inside = _inside(hits, len(points))
        sent = _SurfaceLight(scene, tracer, hits)
        self.cube = np.zeros((len(points), 6, 3), F)
        for _ in range(_BOUNCES):
            arriving = sent.fixed + sent.albedo * self._near(hits)
            arriving[~hits.found] = F(scene.ambient)
            self.cube = self._filled(_cubes(arriving.reshape(len(points), _RAYS, 3), directions))

    def at(self, point: Float[np.ndarray, "n xyz"], normal: Float[np.ndarray, "n xyz"]) -> Colours:
        """Light that arrives at surfaces with these normals, over pi; interpolated between the grid's points."""
        place = self._place(point, normal)
        cell = np.floor(place).astype(int)
        share, total = place - cell, np.zeros((len(point), 3), F)
        for step in product((0, 1), repeat=3):
            weight = np.ones(len(point), F)
            for axis in range(3):
                weight = weight * (share[:, axis] if step[axis] else 1 - share[:, axis])
            self._add(total, self._row(cell + np.array(step)), normal, weight)
        return total

    def _near(self, hits: Hits) -> Colours:
        """The same from the nearest point alone, for light that is averaged over many rays anyway."""
        place, total = self._place(hits.point, hits.normal), np.zeros((len(hits), 3), F)
        self._add(total, self._row(np.floor(place + F(0.5)).astype(int)), hits.normal, np.ones(len(hits), F))
        return total

    def _place(self, point: Float[np.ndarray, "n xyz"], normal: Float[np.ndarray, "n xyz"]) -> Float[np.ndarray, "n xyz"]:
        """In steps of the grid, a little off the surface."""
        place = (point + normal * F(_OFF_SURFACE_M) - self._low) / self._step
        return np.clip(place, 0, (self._counts - 1 - 1e-3).astype(F))

    def _add(
        self, total: Colours, row: Int[np.ndarray, " n"], normal: Float[np.ndarray, "n xyz"], weight: Float[np.ndarray, " n"]
    ) -> None:
        """Add one grid point's light to each surface: its three faces towards the normal, by the square of the cosine."""
        for axis in range(3):
            cosine = normal[:, axis]
            total += self.cube[row, 2 * axis + (cosine < 0)] * (weight * cosine * cosine)[:, None]

    def _row(self, cell: Int[np.ndarray, "n xyz"]) -> Int[np.ndarray, " n"]:
        return (cell[:, 0] * self._counts[1] + cell[:, 1]) * self._counts[2] + cell[:, 2]

    def _filled(self, cube: Float[np.ndarray, "point face rgb"]) -> Float[np.ndarray, "point face rgb"]:
        """Points inside a piece of furniture take the mean of their neighbours outside, step by step."""
        shape = (*self._counts, 6, 3)
        values, known = cube.reshape(shape).copy(), ~self._inside.reshape(shape[:3])
        for _ in range(int(self._counts.max())):
            if known.all():
                break
            total, count = np.zeros_like(values), np.zeros(known.shape, F)
            for axis, way in product(range(3), (1, -1)):
                here, there = _neighbours(axis, way)
                total[here] += values[there] * known[there][..., None, None]
                count[here] += known[there]
            new = ~known & (count > 0)
            values[new] = total[new] / count[new][:, None, None]
            known = known | new
        return values.reshape(cube.shape)


def _neighbours(axis: int, way: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    here, there = [slice(None)] * 3, [slice(None)] * 3
    here[axis], there[axis] = (slice(1, None), slice(None, -1)) if way > 0 else (slice(None, -1), slice(1, None))
    return tuple(here), tuple(there)


def _grid_points(air: Air) -> Float[np.ndarray, "point xyz"]:
    axes = [[a + (b - a) * i / (n - 1) for i in range(n)] for a, b, n in zip(air.low, air.high, air.counts, strict=True)]
    return np.array(list(product(*axes)), F)


def _sphere(n: int) -> Float[np.ndarray, "n xyz"]:
    """Directions spread evenly over the sphere (Archimedes: height is uniform)."""
    sample = sequence(n, 0.5).astype(float)
    height, turn = 1 - 2 * sample[:, 0], 2 * math.pi * sample[:, 1]
    radius = np.sqrt(np.maximum(1 - height * height, 0))
    x, y = radius * np.array([math.cos(a) for a in turn]), radius * np.array([math.sin(a) for a in turn])
    return np.stack([x, y, height], axis=1).astype(F)


def _inside(hits: Hits, n_points: int) -> Bool[np.ndarray, " point"]:
    close = (hits.depth < F(_INSIDE_M)).reshape(n_points, -1)
    return close.sum(axis=1) > _INSIDE_SHARE * close.shape[1]


def _cubes(
    arriving: Float[np.ndarray, "point ray rgb"], directions: Float[np.ndarray, "ray xyz"]
) -> Float[np.ndarray, "point face rgb"]:
    """Cosine-weighted mean of the light for each of the six directions, summed ray by ray in a fixed order."""
    cube, weights = np.zeros((len(arriving), 6, 3), F), [0.0] * 6
    for ray, direction in enumerate(directions):
        for axis in range(3):
            face, cosine = 2 * axis + int(direction[axis] < 0), abs(float(direction[axis]))
            cube[:, face] += arriving[:, ray] * F(cosine)
            weights[face] += cosine
    return cube / np.array(weights, F)[:, None]


class _SurfaceLight:
    """What the hit surfaces send back of direct light, and their albedo for the rest."""

    def __init__(self, scene: Scene, tracer: Tracer | NumpyTracer, hits: Hits) -> None:
        colours = np.array([mean_colour(m.colour, m.second) for m in tracer.materials], F)
        emission = np.array([m.emission for m in tracer.materials], F) * F(_GLOW)
        self.albedo = colours[hits.material]
        direct = direct_light(scene, tracer, hits)
        self.fixed = self.albedo * (direct + emission[hits.material])[:, None]


def mean_colour(one: tuple[float, float, float], two: tuple[float, float, float] | None) -> list[float]:
    """Of a material, for light that comes from all over its surface."""
    return [(a + b) / 2 for a, b in zip(one, two or one, strict=True)]


def direct_light(scene: Scene, tracer: Tracer | NumpyTracer, hits: Hits) -> Float[np.ndarray, " n"]:
    """Irradiance over pi from the area lights, one shadow ray to a point of each that changes from hit to hit."""
    origin, total = hits.point + hits.facing * F(1e-3), np.zeros(len(hits), F)
    spots = sequence(64, 0.5) * 2 - 1
    for light in scene.lights:
        centre, u, v, facing = (np.array(a, F) for a in (light.centre, light.u, light.v, light.normal))
        spot = spots[np.arange(len(hits)) % 64]
        offset = centre + spot[:, :1] * u + spot[:, 1:] * v - origin
        square = np.maximum(dot(offset, offset), F(0.02))
        weight = np.maximum(dot(hits.normal, offset), 0) * np.maximum(-dot(offset, facing), 0) / (square * square)
        lit = np.flatnonzero((weight > 0) & hits.found)
        free = ~tracer.blocked(origin[lit], offset[lit])
        total[lit] += weight[lit] * free * F(light.radiance * light.area / math.pi)
    return total
