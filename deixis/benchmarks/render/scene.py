"""What a scene is made of: materials, solids, lights, a pinhole camera."""

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float, Int, UInt8

from deixis.benchmarks.render.mesh import Solid
from deixis.benchmarks.render.solids import moved, rotated

Rgb = tuple[float, float, float]


def linear_rgb(colour: str) -> Rgb:
    """Linear light of ``"#rrggbb"`` (sRGB transfer curve, IEC 61966-2-1)."""
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return red, green, blue


@dataclass(frozen=True)
class Material:
    """A matt colour, or a texture of two."""

    colour: Rgb
    second: Rgb | None = None
    texture: str | None = None
    """A name in :data:`~deixis.benchmarks.render.textures.TEXTURES`, laid out in the object's own frame."""
    scale: float = 1.0
    """Of the texture; each says what it measures."""
    emission: float = 0.0
    """Light that the surface gives off by itself, in units of its colour; it lights nothing else."""


@dataclass(frozen=True)
class Placement:
    """Where an object stands: turned about the z axis, counter-clockwise seen from above, then moved."""

    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn_deg: float = 0.0

    def inverse(self, point: Float[np.ndarray, "n xyz"]) -> Float[np.ndarray, "n xyz"]:
        """Points of the scene in the object's own frame, in the dtype of ``point``."""
        x, y, z = (point[:, i] - point.dtype.type(self.at[i]) for i in range(3))
        if self.turn_deg == 0.0:
            return np.stack([x, y, z], axis=1)
        cos, sin = (point.dtype.type(f(math.radians(self.turn_deg))) for f in (math.cos, math.sin))
        return np.stack([x * cos + y * sin, y * cos - x * sin, z], axis=1)


Parts = list[tuple[Solid, Material]]
"""Solids of one object, each with what it is made of."""


@dataclass(frozen=True)
class RectLight:
    """One-sided rectangle centred at ``centre`` with half edges ``u`` and ``v``; ``u x v`` points to the lit side."""

    centre: tuple[float, float, float]
    u: tuple[float, float, float]
    v: tuple[float, float, float]
    radiance: float

    @cached_property
    def normal(self) -> Float[np.ndarray, "3"]:
        """Unit normal on the lit side."""
        cross = np.cross(np.array(self.u), np.array(self.v))
        return cross / math.sqrt(sum(float(c) * float(c) for c in cross))

    @cached_property
    def area(self) -> float:
        """Area in square metres."""
        cross = np.cross(np.array(self.u), np.array(self.v))
        return 4 * math.sqrt(sum(float(c) * float(c) for c in cross))


@dataclass(frozen=True)
class Air:
    """A box of air, and at how many points along x, y and z its bounced light is gathered (at least 2)."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]
    counts: tuple[int, int, int]


@dataclass
class Scene:
    """Solids with their materials and the number of the object that each belongs to."""

    ambient: float = 0.32
    """Light from where nothing is; in a scene without :attr:`air` it stands for all light that bounced twice."""
    air: Air | None = None
    """Where bounced light is gathered once for all views; without it, every picture gathers its own single bounce."""
    lights: list[RectLight] = field(default_factory=list)
    solids: list[tuple[Solid, Material, int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    """Of each object, by its number."""

    def add(self, name: str, parts: Parts, at: tuple[float, float, float] = (0.0, 0.0, 0.0), turn_deg: float = 0.0) -> int:
        """Add an object made of ``parts``, turned about the z axis, then moved to ``at``; returns its number in :attr:`names`."""
        number = len(self.names)
        self.names.append(name)
        self.placements.append(Placement(at, turn_deg))
        for solid, material in parts:
            turned = rotated(solid, "z", turn_deg) if turn_deg else solid
            self.solids.append((moved(turned, at), material, number))
        return number


@lru_cache(maxsize=64)
def _camera_axes(yaw_deg: float, pitch_deg: float) -> Float[np.ndarray, "axis xyz"]:
    yaw, pitch = math.radians(yaw_deg), math.radians(pitch_deg)
    forward = (-math.sin(yaw) * math.cos(pitch), math.cos(yaw) * math.cos(pitch), math.sin(pitch))
    right = (math.cos(yaw), math.sin(yaw), 0.0)
    axes = np.array([right, np.cross(right, forward), forward])
    axes.flags.writeable = False
    return axes


@dataclass(frozen=True, kw_only=True)
class View:
    """Pinhole camera: position in metres, yaw and pitch in degrees, focal length in mm on a 36 mm sensor."""

    position: tuple[float, float, float]
    yaw: float = 0.0
    pitch: float = 0.0
    focal: float = 24.0
    width: int = 512
    height: int = 512

    @property
    def axes(self) -> Float[np.ndarray, "axis xyz"]:
        """Right, up and forward as unit vectors; yaw 0 looks along +y and turns left when positive."""
        return _camera_axes(self.yaw, self.pitch)

    @property
    def half_width(self) -> float:
        """Half the image's width at unit depth."""
        return 36.0 / self.focal / 2

    def rays(self, x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n xyz"]:
        """Directions of unit depth through pixel coordinates (pixel centres lie at .5)."""
        right, up, forward = self.axes
        across = (2 * x / self.width - 1) * self.half_width
        along = (1 - 2 * y / self.height) * self.half_width * self.height / self.width
        return forward + across[:, None] * right + along[:, None] * up

    def project(self, points: Float[np.ndarray, "n xyz"]) -> Float[np.ndarray, "n xy"]:
        """Pixel coordinates of points in front of the camera.

        Raises:
            ValueError: A point lies beside or behind the camera.
        """
        offset = points - np.array(self.position, float)
        right, up, depth = (offset[:, 0] * a[0] + offset[:, 1] * a[1] + offset[:, 2] * a[2] for a in self.axes)
        if not (depth > 0).all():
            raise ValueError("a point to be shown lies behind the camera; turn the camera towards it or move it back.")
        x = (right / depth / self.half_width + 1) * self.width / 2
        y = (1 - up / depth / self.half_width * self.width / self.height) * self.height / 2
        return np.stack([x, y], axis=1)


@dataclass(frozen=True)
class Picture:
    """A drawn scene: sRGB bytes, the number of the object seen at each pixel centre (-1 for none), depth in metres."""

    pixels: UInt8[np.ndarray, "row column rgb"]
    objects: Int[np.ndarray, "row column"]
    depth: Float[np.ndarray, "row column"]
