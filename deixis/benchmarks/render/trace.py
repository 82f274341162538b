"""Rays against a scene, by Embree; everything that shading needs to know of what they hit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from deixis.benchmarks.render.scene import Scene

F = np.float32
FAR = F(50)
"""Depth given to rays that miss."""
_device: Any = None


def dot(a: Float[np.ndarray, "*n xyz"], b: Float[np.ndarray, "*m xyz"]) -> Float[np.ndarray, "*k"]:
    """Scalar product over the last axis, in an order that no BLAS can change."""
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]


def unit(a: Float[np.ndarray, "n xyz"]) -> Float[np.ndarray, "n xyz"]:
    """Vectors of length one."""
    return a / np.sqrt(np.maximum(dot(a, a), F(1e-20)))[:, None]


@dataclass(frozen=True)
class Hits:
    """First surface along each ray; rays that miss carry ``found`` False, object -1 and a far point."""

    found: Bool[np.ndarray, " n"]
    point: Float[np.ndarray, "n xyz"]
    normal: Float[np.ndarray, "n xyz"]
    """Shading normal (smooth on rounded solids), facing the ray."""
    facing: Float[np.ndarray, "n xyz"]
    """Normal of the triangle itself, facing the ray."""
    depth: Float[np.ndarray, " n"]
    material: Int[np.ndarray, " n"]
    object: Int[np.ndarray, " n"]

    def __len__(self) -> int:
        """Number of rays."""
        return len(self.found)


class Tracer:
    """Embree's index of one scene.

    Raises:
        ImportError: embreex is not installed.
    """

    def __init__(self, scene: Scene) -> None:
        global _device
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore import EmbreeDevice
        from embreex.rtcore_scene import EmbreeScene

        if _device is None:
            _device = EmbreeDevice()
        self.materials = list(dict.fromkeys(material for _, material, _ in scene.solids))
        corners = np.concatenate([solid.corners for solid, _, _ in scene.solids]).astype(F)
        self._normals = np.concatenate([solid.normals for solid, _, _ in scene.solids]).astype(F)
        sizes = [len(solid.corners) for solid, _, _ in scene.solids]
        index = {material: i for i, material in enumerate(self.materials)}
        self._material = np.repeat([index[material] for _, material, _ in scene.solids], sizes)
        self._object = np.repeat([number for _, _, number in scene.solids], sizes)
        same = (self._normals[:, :1] == self._normals).all(axis=(1, 2))
        self._smooth = ~same
        self._scene = EmbreeScene(_device)
        self._mesh = TriangleMesh(self._scene, np.ascontiguousarray(corners))

    def first(self, origin: Float[np.ndarray, "n xyz"], direction: Float[np.ndarray, "n xyz"]) -> Hits:
        """First hit of each ray; depth is counted in lengths of ``direction``."""
        raw = self._run(origin, direction)
        triangle, found = raw["primID"].copy(), raw["primID"] >= 0
        triangle[~found] = 0
        depth = np.where(found, raw["tfar"], FAR)
        facing = unit(raw["Ng"])
        facing = np.where((dot(facing, direction) > 0)[:, None], -facing, facing)
        normal = self._interpolated(triangle, raw["u"][:, None], raw["v"][:, None])
        normal = np.where((dot(normal, facing) < 0)[:, None], -normal, normal)
        return Hits(
            found=found,
            point=origin + direction * depth[:, None],
            normal=normal,
            facing=facing,
            depth=depth,
            material=self._material[triangle],
            object=np.where(found, self._object[triangle], -1),
        )

    def seen(
        self, origin: Float[np.ndarray, "n xyz"], direction: Float[np.ndarray, "n xyz"]
    ) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Object number (-1 for none) and depth of each ray's first hit, without the rest."""
        raw = self._run(origin, direction)
        triangle, found = raw["primID"], raw["primID"] >= 0
        return np.where(found, self._object[np.where(found, triangle, 0)], -1), np.where(found, raw["tfar"], FAR)

    def blocked(self, origin: Float[np.ndarray, "n xyz"], offset: Float[np.ndarray, "n xyz"]) -> Bool[np.ndarray, " n"]:
        """Whether something stands between ``origin`` and ``origin + offset``."""
        reach = np.full(len(origin), 0.998, F)
        return self._scene.run(np.ascontiguousarray(origin), np.ascontiguousarray(offset), reach, query="OCCLUDED") >= 0

    def _run(self, origin: Float[np.ndarray, "n xyz"], direction: Float[np.ndarray, "n xyz"]) -> dict[str, Any]:
        return self._scene.run(np.ascontiguousarray(origin, F), np.ascontiguousarray(direction, F), output=True)

    def _interpolated(
        self, triangle: Int[np.ndarray, " n"], u: Float[np.ndarray, "n 1"], v: Float[np.ndarray, "n 1"]
    ) -> Float[np.ndarray, "n xyz"]:
        normal = self._normals[triangle, 0]
        rows = np.flatnonzero(self._smooth[triangle])
        if len(rows):
            corner, us, vs = self._normals[triangle[rows]], u[rows], v[rows]
            normal[rows] = unit(corner[:, 0] * (1 - us - vs) + corner[:, 1] * us + corner[:, 2] * vs)
        return normal
