"""The same questions as :class:`~deixis.benchmarks.render.trace.Tracer`, answered by numpy alone.

For machines without embreex (Linux on aarch64), some ten times slower. A second route to every hit, too: a test holds the two
against each other. Convex solids are met plane by plane (Kay and Kajiya 1986), others triangle by triangle (Moeller and
Trumbore 1997).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from deixis.benchmarks.render.mesh import Solid
from deixis.benchmarks.render.scene import Scene
from deixis.benchmarks.render.trace import FAR, F, Hits, dot, unit

_STEP = 1e-6
Found = tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n xyz"]]
"""Distance along each ray (infinite where it misses) and the normal met there."""


class NumpyTracer:
    """Hits and shadows of one scene, without an index: each solid is asked about the rays that cross its box."""

    def __init__(self, scene: Scene) -> None:
        self.materials = list(dict.fromkeys(material for _, material, _ in scene.solids))
        self._solids = [_Shape.of(solid) for solid, _, _ in scene.solids]
        self._material = np.array([self.materials.index(material) for _, material, _ in scene.solids])
        self._object = np.array([number for _, _, number in scene.solids])

    def first(self, origin: Float[np.ndarray, "n xyz"], direction: Float[np.ndarray, "n xyz"]) -> Hits:
        """First hit of each ray; depth is counted in lengths of ``direction``."""
        depth, normal = np.full(len(origin), np.inf), np.zeros((len(origin), 3))
        solid = np.zeros(len(origin), int)
        for number, shape in enumerate(self._solids):
            rows = shape.crossing(origin, direction, depth)
            reach, facing = shape.meet(origin[rows].astype(float), direction[rows].astype(float))
            nearer = rows[reach < depth[rows]]
            closer = reach < depth[rows]
            depth[nearer], normal[nearer], solid[nearer] = reach[closer], facing[closer], number
        found = np.isfinite(depth)
        depth = np.where(found, depth, FAR).astype(F)
        normal = np.where((dot(normal, direction) > 0)[:, None], -normal, normal).astype(F)
        return Hits(
            found=found,
            point=(origin + direction * depth[:, None]).astype(F),
            normal=normal,
            facing=normal,
            depth=depth,
            material=self._material[solid],
            object=np.where(found, self._object[solid], -1),
        )

    def seen(
        self, origin: Float[np.ndarray, "n xyz"], direction: Float[np.ndarray, "n xyz"]
    ) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Object number (-1 for none) and depth of each ray's first hit."""
        hits = self.first(origin, direction)
        return hits.object, hits.depth

    def blocked(self, origin: Float[np.ndarray, "n xyz"], offset: Float[np.ndarray, "n xyz"]) -> Bool[np.ndarray, " n"]:
        """Whether something stands between ``origin`` and ``origin + offset``."""
        shadow = np.zeros(len(origin), bool)
        limit = np.full(len(origin), 0.998)
        for shape in self._solids:
            rows = shape.crossing(origin, offset, np.where(shadow, -1.0, limit))
            reach, _ = shape.meet(origin[rows].astype(float), offset[rows].astype(float))
            shadow[rows[reach < limit[rows]]] = True
        return shadow


@dataclass(frozen=True)
class _Shape:
    low: Float[np.ndarray, "3"]
    high: Float[np.ndarray, "3"]
    corners: Float[np.ndarray, "triangle corner xyz"]
    planes: Float[np.ndarray, "plane 4"]
    """Outward normal and offset of each distinct face."""
    convex: bool

    @classmethod
    def of(cls, solid: Solid) -> "_Shape":
        corners = solid.corners
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        whole = dot(cross, cross) > 1e-20
        corners, normal = corners[whole], unit(cross[whole])
        planes = np.concatenate([normal, dot(normal, corners[:, 0])[:, None]], axis=1)
        planes = planes[np.unique(planes.round(6), axis=0, return_index=True)[1]]
        points = corners.reshape(-1, 3)
        above = np.max([dot(points, plane[None, :3]) - plane[3] for plane in planes])
        return cls(points.min(axis=0), points.max(axis=0), corners, planes, bool(above < _STEP))

    def crossing(
        self, origin: Float[np.ndarray, "n xyz"], direction: Float[np.ndarray, "n xyz"], limit: Float[np.ndarray, " n"]
    ) -> Int[np.ndarray, " k"]:
        """Rays that cross the solid's box before ``limit``."""
        near, far = np.full(len(origin), 0.0), limit
        for axis in range(3):
            slope = direction[:, axis].astype(float)
            slope = np.where(np.abs(slope) < 1e-12, 1e-12, slope)
            one = (self.low[axis] - _STEP - origin[:, axis]) / slope
            two = (self.high[axis] + _STEP - origin[:, axis]) / slope
            near, far = np.maximum(near, np.minimum(one, two)), np.minimum(far, np.maximum(one, two))
        return np.flatnonzero(near <= far)

    def meet(self, origin: Float[np.ndarray, "n xyz"], direction: Float[np.ndarray, "n xyz"]) -> Found:
        """Where rays first meet the surface, from outside or inside."""
        return self._meet_planes(origin, direction) if self.convex else self._meet_triangles(origin, direction)

    def _meet_planes(self, origin: Float[np.ndarray, "n xyz"], direction: Float[np.ndarray, "n xyz"]) -> Found:
        enter, leave = np.full(len(origin), -np.inf), np.full(len(origin), np.inf)
        first, last = np.zeros(len(origin), int), np.zeros(len(origin), int)
        for number, plane in enumerate(self.planes):
            slope = dot(direction, plane[None, :3])
            gap = plane[3] - dot(origin, plane[None, :3])
            reach = gap / np.where(np.abs(slope) < 1e-12, np.where(slope < 0, -1e-12, 1e-12), slope)
            into, out = (slope < 0) & (reach > enter), (slope >= 0) & (reach < leave)
            enter, first = np.where(into, reach, enter), np.where(into, number, first)
            leave, last = np.where(out, reach, leave), np.where(out, number, last)
        inside = enter <= _STEP
        reach = np.where(inside, leave, enter)
        reach = np.where((enter <= leave) & (reach > _STEP), reach, np.inf)
        return reach, self.planes[np.where(inside, last, first), :3]

    def _meet_triangles(self, origin: Float[np.ndarray, "n xyz"], direction: Float[np.ndarray, "n xyz"]) -> Found:
        best, normal = np.full(len(origin), np.inf), np.zeros((len(origin), 3))
        for a, b, c in self.corners:
            one, two = (b - a)[None], (c - a)[None]
            across = np.cross(direction, two)
            scale = dot(one, across)
            scale = np.where(np.abs(scale) < 1e-15, 1e-15, scale)
            away = origin - a
            u = dot(away, across) / scale
            turned = np.cross(away, one)
            v = dot(direction, turned) / scale
            reach = dot(two, turned) / scale
            hit = (u >= -1e-9) & (v >= -1e-9) & (u + v <= 1 + 1e-9) & (reach > _STEP) & (reach < best)
            best = np.where(hit, reach, best)
            normal[hit] = unit(np.cross(one, two))[0]
        return best, normal
