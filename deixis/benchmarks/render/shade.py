"""Light and colour: area lights with soft shadows, one bounce, edges smoothed; the same bytes on every processor.

Irradiance varies slowly and is gathered on a coarse lattice, smoothed along surfaces (a joint bilateral filter: Eisemann and
Durand 2004) and read back at every pixel. Sample points follow the R2 sequence (Roberts 2018). No power, sine, cosine or BLAS
call touches an array, because their last bits depend on the processor.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from deixis.benchmarks.render.air import sequence
from deixis.benchmarks.render.scene import Picture, Scene, View
from deixis.benchmarks.render.stage import Stage
from deixis.benchmarks.render.trace import F, Hits, dot

_TILE = 4
# Neighbours on the lattice take far-apart members of the sample sequence (an ordered 4 x 4 Bayer tile).
_BAYER = np.array([0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5])
_NEAR_M, _SHADE_OF_NEAR = 0.7, 0.8
_SRGB_STEPS = np.array([v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (k / 255 for k in range(256))])

Light = Float[np.ndarray, "n band"]
"""Irradiance over pi: one band for white light, three for coloured."""


@dataclass(frozen=True)
class Quality:
    """How many samples a picture gets; ``lattice`` is the spacing in pixels at which light is gathered.

    ``bounce`` counts the rays from each of its points to what lies around; in a scene with air, to what is near.
    """

    light: int = 4
    bounce: int = 6
    edge: int = 4
    lattice: int = 2


STANDARD = Quality()
FAST = Quality(light=2, bounce=3, edge=3, lattice=4)


def draw(scene: Scene | Stage, view: View, quality: Quality = STANDARD) -> Picture:
    """Draw a scene, or a stage that was made of one to be seen many times; the same arguments give the same bytes.

    Where embreex is missing, numpy casts the rays; pictures then differ from Embree's in a few pixels along edges.
    """
    shader = _Shader(scene if isinstance(scene, Stage) else Stage(scene), view, quality)
    rows, columns = np.mgrid[0 : view.height, 0 : view.width]
    x, y = columns.ravel() + 0.5, rows.ravel() + 0.5
    colour, hits = shader.radiance(x, y)
    colour = np.minimum(colour, F(1))
    edge = np.flatnonzero(_edges(colour, hits, view))
    if len(edge) and quality.edge > 1:
        colour[edge] = shader.supersampled(x[edge], y[edge])
    shape = (view.height, view.width)
    pixels = _to_bytes(colour, rows.ravel(), columns.ravel()).reshape(*shape, 3)
    return Picture(pixels, hits.object.reshape(shape), hits.depth.reshape(shape))


class _Shader:
    def __init__(self, stage: Stage, view: View, quality: Quality) -> None:
        self.stage, self.scene, self.tracer, self.air = stage, stage.scene, stage.tracer, stage.air
        self.view, self.quality = view, quality
        self.colours = np.array([m.colour for m in self.tracer.materials], F)
        self.emission = np.array([m.emission for m in self.tracer.materials], F)
        self.position = np.array(view.position, F)
        self.lattice, self.light = self._lattice()

    def supersampled(self, x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n rgb"]:
        """Mean over a regular grid inside each pixel, clipped first so that bright spots keep smooth edges."""
        n = self.quality.edge
        offsets = (np.arange(n) + 0.5) / n - 0.5
        total = np.zeros((len(x), 3), F)
        for dy in offsets:
            for dx in offsets:
                total += np.minimum(self.radiance(x + dx, y + dy)[0], F(1))
        return total * F(1 / n**2)

    def radiance(self, x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> tuple[Float[np.ndarray, "n rgb"], Hits]:
        """Linear light towards the camera through pixel coordinates, and what was seen there."""
        direction = self.view.rays(x, y).astype(F)
        hits = self.tracer.first(np.broadcast_to(self.position, direction.shape), direction)
        albedo = self.stage.albedo(hits)
        colour = albedo * self._light_at(hits, x, y)
        if self.emission.any():
            colour += albedo * self.emission[hits.material][:, None]
        colour[~hits.found] = F(self.scene.ambient)
        return colour, hits

    def _lattice(self) -> tuple[Hits, Light]:
        step = self.quality.lattice
        rows, columns = np.mgrid[0 : self.view.height // step, 0 : self.view.width // step]
        direction = self.view.rays((columns.ravel() + 0.5) * step, (rows.ravel() + 0.5) * step).astype(F)
        hits = self.tracer.first(np.broadcast_to(self.position, direction.shape), direction)
        member = _BAYER[((rows % _TILE) * _TILE + columns % _TILE).ravel()]
        return hits, _smoothed(self._gathered(hits, member), hits, rows.shape)

    def _gathered(self, hits: Hits, member: Int[np.ndarray, " n"]) -> Light:
        origin = hits.point + hits.facing * F(1e-3)
        direct = self._direct(origin, hits.normal, member)
        if self.air is None:
            return (direct + self._bounced(origin, hits.normal, member))[:, None]
        open_share = self._openness(origin, hits.normal, member)
        return direct[:, None] + self.air.at(hits.point, hits.normal) * open_share[:, None]

    def _openness(
        self, origin: Float[np.ndarray, "n xyz"], normal: Float[np.ndarray, "n xyz"], member: Int[np.ndarray, " n"]
    ) -> Float[np.ndarray, " n"]:
        """Share of bounced light that near surfaces leave: rays of different lengths, so that it fades with distance.

        What stands in the way is lit itself, so a part of the light that it takes is left (constant here; Jimenez et al. 2016
        let it depend on the albedo).
        """
        n, shut = self.quality.bounce, np.zeros(len(origin), F)
        local = _cosine_directions(_TILE**2 * n)
        tangent, bitangent = _frame(normal)
        for sample in range(n):
            q = local[member + _TILE**2 * sample]
            direction = q[:, :1] * tangent + q[:, 1:2] * bitangent + q[:, 2:] * normal
            reach = F(_NEAR_M * (sample + 0.5) / n)
            shut += self.tracer.blocked(origin, direction * reach)
        return 1 - shut * F(_SHADE_OF_NEAR / n)

    def _direct(
        self, origin: Float[np.ndarray, "n xyz"], normal: Float[np.ndarray, "n xyz"], member: Int[np.ndarray, " n"]
    ) -> Float[np.ndarray, " n"]:
        """Irradiance over pi from the area lights, shadows by rays to points on each."""
        n, total = self.quality.light, np.zeros(len(origin), F)
        points = sequence(_TILE**2 * n, 0.5) * 2 - 1
        for light in self.scene.lights:
            centre, u, v = (np.array(a, F) for a in (light.centre, light.u, light.v))
            facing = light.normal.astype(F)
            for sample in range(n):
                q = points[member + _TILE**2 * sample]
                offset = centre + q[:, :1] * u + q[:, 1:] * v - origin
                square = dot(offset, offset)
                weight = np.maximum(dot(normal, offset), 0) * np.maximum(-dot(offset, facing), 0) / (square * square)
                lit = np.flatnonzero(weight > 0)
                free = ~self.tracer.blocked(origin[lit], offset[lit])
                total[lit] += weight[lit] * free * F(light.radiance * light.area / math.pi / n)
        return total

    def _bounced(
        self, origin: Float[np.ndarray, "n xyz"], normal: Float[np.ndarray, "n xyz"], member: Int[np.ndarray, " n"]
    ) -> Float[np.ndarray, " n"]:
        """Light after one bounce: cosine-weighted rays, each lit point seen without shadow."""
        n, total = self.quality.bounce, np.zeros(len(origin), F)
        local = _cosine_directions(_TILE**2 * n)
        tangent, bitangent = _frame(normal)
        grey = self.colours.mean(axis=1)
        for sample in range(n):
            q = local[member + _TILE**2 * sample]
            direction = q[:, :1] * tangent + q[:, 1:2] * bitangent + q[:, 2:] * normal
            hits = self.tracer.first(origin, direction)
            lit = grey[hits.material] * (self._unshadowed(hits) + F(self.scene.ambient))
            total += np.where(hits.found, lit, F(self.scene.ambient))
        return total * F(1 / n)

    def _unshadowed(self, hits: Hits) -> Float[np.ndarray, " n"]:
        total = np.zeros(len(hits), F)
        for light in self.scene.lights:
            offset = np.array(light.centre, F) - hits.point
            square = np.maximum(dot(offset, offset), F(0.15))
            facing = np.maximum(-dot(offset, light.normal.astype(F)), 0)
            weight = facing * np.maximum(dot(offset, hits.normal), 0) / (square * square)
            total += weight * F(light.radiance * light.area / math.pi)
        return np.minimum(total, F(1.5))

    def _light_at(self, hits: Hits, x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> Light:
        """Read the lattice at pixel coordinates, from neighbours on the same surface only."""
        step = self.quality.lattice
        height, width = self.view.height // step, self.view.width // step
        left, top = np.floor(x / step - 0.5).astype(int), np.floor(y / step - 0.5).astype(int)
        across, down = (x / step - 0.5 - left).astype(F), (y / step - 0.5 - top).astype(F)
        total, weights = np.zeros((len(x), self.light.shape[1]), F), np.zeros(len(x), F)
        for dy in (0, 1):
            for dx in (0, 1):
                at = np.clip(top + dy, 0, height - 1) * width + np.clip(left + dx, 0, width - 1)
                weight = (across if dx else 1 - across) * (down if dy else 1 - down) + F(1e-3)
                weight = weight * self._same_surface(hits, at)
                total += weight[:, None] * self.light[at]
                weights += weight
        light = total / np.maximum(weights, F(1e-9))[:, None]
        lost = np.flatnonzero((weights <= 0) & hits.found)
        if len(lost):
            light[lost] = self._alone(hits, lost)
        return light

    def _same_surface(self, hits: Hits, at: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        coarse = self.lattice
        near = np.abs(dot(hits.normal, coarse.point[at] - hits.point)) < F(0.01) * hits.depth + F(0.004)
        return (coarse.object[at] == hits.object) & (dot(hits.normal, coarse.normal[at]) > F(0.9)) & near

    def _alone(self, hits: Hits, rows: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k band"]:
        part = Hits(**{name: getattr(hits, name)[rows] for name in Hits.__dataclass_fields__})
        return self._gathered(part, np.arange(len(rows)) % _TILE**2)


def _cosine_directions(n: int) -> Float[np.ndarray, "n xyz"]:
    """Directions about +z with density proportional to the cosine (Malley's method)."""
    sample = sequence(n, 0.31).astype(float)
    turn, radius = 2 * math.pi * sample[:, 1], np.sqrt(sample[:, 0])
    x = radius * np.array([math.cos(angle) for angle in turn])
    y = radius * np.array([math.sin(angle) for angle in turn])
    return np.stack([x, y, np.sqrt(1 - sample[:, 0])], axis=1).astype(F)


def _frame(normal: Float[np.ndarray, "n xyz"]) -> tuple[Float[np.ndarray, "n xyz"], Float[np.ndarray, "n xyz"]]:
    """Two directions at right angles to ``normal`` (Duff et al. 2017)."""
    x, y, z = normal[:, 0], normal[:, 1], normal[:, 2]
    sign = np.where(z >= 0, F(1), F(-1))
    a = -1 / (sign + z)
    b = x * y * a
    tangent = np.stack([1 + sign * x * x * a, sign * b, -sign * x], axis=1)
    return tangent, np.stack([b, sign + y * y * a, -y], axis=1)


def _smoothed(light: Light, hits: Hits, shape: tuple[int, ...]) -> Light:
    """Average over one tile of the sample pattern, along the same surface only."""
    height, width = shape
    point, normal = hits.point.reshape(*shape, 3), hits.normal.reshape(*shape, 3)
    number, depth, values = hits.object.reshape(shape), hits.depth.reshape(shape), light.reshape(*shape, -1)
    total, weights, reach = np.zeros_like(values), np.zeros(shape, F), _TILE // 2
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            there = (slice(max(0, dy), height + min(0, dy)), slice(max(0, dx), width + min(0, dx)))
            here = (slice(max(0, -dy), height + min(0, -dy)), slice(max(0, -dx), width + min(0, -dx)))
            # Half weight at the ends makes the window cover each member of the tile exactly once.
            share = (0.5 if abs(dy) == reach else 1.0) * (0.5 if abs(dx) == reach else 1.0)
            off_plane = np.abs(dot(normal[here], point[there] - point[here]))
            same = (number[there] == number[here]) & (dot(normal[there], normal[here]) > F(0.9))
            weight = (same & (off_plane < F(0.01) * depth[here] + F(0.004))).astype(F) * F(share)
            total[here] += weight[..., None] * values[there]
            weights[here] += weight
    return (total / weights[..., None]).reshape(light.shape)


def _edges(colour: Float[np.ndarray, "n rgb"], hits: Hits, view: View) -> Bool[np.ndarray, " n"]:
    """Pixels that differ visibly from a neighbour, or lie on an object's border."""
    tone = np.sqrt(colour).reshape(view.height, view.width, 3)
    part = (hits.object * 64 + hits.material).reshape(view.height, view.width)
    mark = np.zeros(part.shape, bool)
    for here, there in (
        ((slice(1, None), slice(None)), (slice(None, -1), slice(None))),
        ((slice(None), slice(1, None)), (slice(None), slice(None, -1))),
    ):
        step = np.abs(tone[here] - tone[there]).max(axis=-1)
        edge = (step > F(0.035)) | ((part[here] != part[there]) & (step > F(0.008)))
        mark[here] |= edge
        mark[there] |= edge
    return mark.ravel()


def _to_bytes(
    colour: Float[np.ndarray, "n rgb"], rows: Int[np.ndarray, " n"], columns: Int[np.ndarray, " n"]
) -> UInt8[np.ndarray, "n rgb"]:
    """Bytes in sRGB; a fixed pattern of under half a step hides bands on the dark desk."""
    value = np.clip(colour, 0, 1).astype(float)
    low = np.clip(np.searchsorted(_SRGB_STEPS, value, side="right") - 1, 0, 254)
    part = (value - _SRGB_STEPS[low]) / (_SRGB_STEPS[low + 1] - _SRGB_STEPS[low])
    threshold = (_BAYER[(rows % _TILE) * _TILE + columns % _TILE] + 0.5) / _TILE**2
    return (low + (part > threshold[:, None])).astype(np.uint8)
