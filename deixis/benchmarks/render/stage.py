"""A scene made ready to be looked at: its index of solids and its bounced light, made once for all views of it."""

from functools import cached_property
from importlib.util import find_spec

import numpy as np
from jaxtyping import Bool, Float, Int

from deixis.benchmarks.render.air import AirLight
from deixis.benchmarks.render.scene import Scene, View
from deixis.benchmarks.render.textures import textured
from deixis.benchmarks.render.trace import F, Hits, Tracer
from deixis.benchmarks.render.trace_numpy import NumpyTracer


class Stage:
    """One scene for many views; where embreex is missing, numpy casts the rays."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.tracer = (Tracer if find_spec("embreex") else NumpyTracer)(scene)

    @cached_property
    def air(self) -> AirLight | None:
        """Bounced light, where the scene says which part of it is air."""
        return AirLight(self.scene, self.scene.air, self.tracer) if self.scene.air else None

    def objects(self, view: View) -> Int[np.ndarray, "row column"]:
        """Number of the object seen at each pixel's centre, -1 for none; no light is worked out."""
        return self.seen(view)[0]

    def seen(self, view: View) -> tuple[Int[np.ndarray, "row column"], Float[np.ndarray, "row column"]]:
        """Number of the object (-1 for none) and depth along the view in metres at each pixel's centre."""
        rows, columns = np.mgrid[0 : view.height, 0 : view.width]
        direction = view.rays(columns.ravel() + 0.5, rows.ravel() + 0.5).astype(F)
        numbers, depth = self.tracer.seen(np.broadcast_to(np.array(view.position, F), direction.shape), direction)
        return numbers.reshape(rows.shape), depth.reshape(rows.shape)

    def albedo(self, hits: Hits) -> Float[np.ndarray, "n rgb"]:
        """Linear colour of what was hit, texture included; rays that missed get some colour too."""
        albedo = self._colours[hits.material]
        for rows in self._textured_parts(hits):
            material, number = self.tracer.materials[hits.material[rows[0]]], hits.object[rows[0]]
            albedo[rows] = textured(material, self.scene.placements[number].inverse(hits.point[rows]))
        return albedo

    @cached_property
    def _colours(self) -> Float[np.ndarray, "material rgb"]:
        return np.array([m.colour for m in self.tracer.materials], F)

    @cached_property
    def _is_textured(self) -> Bool[np.ndarray, " material"]:
        return np.array([m.texture is not None for m in self.tracer.materials])

    def _textured_parts(self, hits: Hits) -> list[Int[np.ndarray, " k"]]:
        """Hits on textured surfaces, apart by material and object."""
        rows = np.flatnonzero(self._is_textured[hits.material] & hits.found)
        if len(rows) == 0:
            return []
        part = hits.material[rows] * len(self.scene.names) + hits.object[rows]
        order = np.argsort(part, kind="stable")
        return np.split(rows[order], np.flatnonzero(np.diff(part[order])) + 1)
