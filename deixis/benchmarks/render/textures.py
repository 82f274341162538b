"""Colours that vary over a surface, as functions of the place in the object's own frame; no power or sine touches an array."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from deixis.benchmarks.render.scene import Material
from deixis.benchmarks.render.trace import F

Points = Float[np.ndarray, "n xyz"]
Colours = Float[np.ndarray, "n rgb"]


def textured(material: Material, point: Points) -> Colours:
    """Linear colours of a material at places in the object's own frame, in metres.

    Raises:
        ValueError: The material's texture is none of :data:`TEXTURES`.
    """
    if material.texture not in TEXTURES:
        listed = ", ".join(map(repr, TEXTURES))
        raise ValueError(f"texture={material.texture!r} is not one of: {listed}.")
    return TEXTURES[material.texture](point, material)


def _hash(value: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Integer hash of Wang (2007) of whole numbers, as a fraction."""
    i = value.astype(np.int64).astype(np.uint32)
    i = (i ^ np.uint32(61)) ^ (i >> np.uint32(16))
    i = i * np.uint32(9)
    i ^= i >> np.uint32(4)
    i = i * np.uint32(0x27D4EB2D)
    i ^= i >> np.uint32(15)
    return (i & np.uint32(0xFFFF)).astype(F) * F(1 / 65536)


def _two(material: Material) -> tuple[Float[np.ndarray, " rgb"], Float[np.ndarray, " rgb"]]:
    return np.array(material.colour, F), np.array(material.second or material.colour, F)


def _mixed(material: Material, share: Float[np.ndarray, " n"]) -> Colours:
    one, two = _two(material)
    return one + (two - one) * share[:, None]


def _planks(point: Points, material: Material) -> Colours:
    """Floor boards 14 cm wide along y, with grain and dark gaps."""
    x, y = point[:, 0] / F(0.14), point[:, 1]
    board = np.floor(x)
    along = (y + _hash(board) * F(1.4)) / F(1.4)
    row = np.floor(along)
    grain = _hash(np.floor(point[:, 0] * F(260)) + np.floor(y * F(5)) * 977 + row * 31) * F(0.25)
    mix = np.minimum(_hash(board * 131 + row * 7919) * F(0.75) + grain, F(1))
    gap = (x - board < F(0.025)) | (along - row < F(0.004))
    return _mixed(material, mix) * np.where(gap, F(0.45), F(1))[:, None]


def _tiles(point: Points, material: Material) -> Colours:
    """Square tiles of edge ``scale`` in slightly different tones; joints in the second colour."""
    x, y = point[:, 0] / F(material.scale), point[:, 1] / F(material.scale)
    column, row = np.floor(x), np.floor(y)
    joint = (x - column < F(0.02)) | (y - row < F(0.02))
    tone = _hash(column * 57 + row * 131) * F(0.1) + F(0.95)
    one, two = _two(material)
    return np.where(joint[:, None], two, one * tone[:, None])


def _smooth_noise(x: Float[np.ndarray, " n"], line: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Noise that goes smoothly along ``x`` and jumps between lines."""
    cell = np.floor(x)
    t = x - cell
    low, high = _hash(cell * 613 + line * 7919), _hash((cell + 1) * 613 + line * 7919)
    return low + (high - low) * (t * t * (3 - 2 * t))


def _grain(along: Float[np.ndarray, " n"], across: Float[np.ndarray, " n"], material: Material) -> Colours:
    """Fine fibres 3 mm wide on bands 2 cm wide."""
    fibre = _smooth_noise(along * F(2.5), np.floor(across * F(330 / material.scale)))
    band = _smooth_noise(across * F(45 / material.scale), np.floor(along * F(0.01)))
    return _mixed(material, fibre * F(0.45) + band * F(0.55))


def _wood(point: Points, material: Material) -> Colours:
    """Wood whose grain runs along x."""
    return _grain(point[:, 0], point[:, 1] + point[:, 2], material)


def _upright_wood(point: Points, material: Material) -> Colours:
    """Wood whose grain runs along z."""
    return _grain(point[:, 2], point[:, 0] + point[:, 1], material)


def _weave(point: Points, material: Material) -> Colours:
    """Cloth: two threads crossed, 4 mm wide times ``scale``."""
    x, y, z = (np.floor(point[:, axis] * F(240 / material.scale)) for axis in range(3))
    one, two = _hash(x * 31 + z), _hash(y * 17 + z * 5)
    return _mixed(material, one * F(0.5) + two * F(0.5))


def _rug(point: Points, material: Material) -> Colours:
    """A border and a lattice of diamonds; ``scale`` is half the rug's length along x, its width is two thirds of that."""
    x, y = np.abs(point[:, 0]) / F(material.scale), np.abs(point[:, 1]) / F(material.scale * 2 / 3)
    edge = np.maximum(x, y)
    diamond = x * F(4) + y * F(4)
    stripe = (edge > F(0.86)) & (edge < F(0.93))
    lattice = (diamond - np.floor(diamond) < F(0.22)) & (edge < F(0.72))
    frame = (edge > F(0.72)) & (edge < F(0.75))
    one, two = _two(material)
    return np.where((stripe | lattice | frame)[:, None], two, one)


def _rings(point: Points, material: Material) -> Colours:
    """Concentric rings for a round rug of radius ``scale``."""
    square = point[:, 0] * point[:, 0] + point[:, 1] * point[:, 1]
    ring = np.sqrt(square) * F(6 / material.scale)
    one, two = _two(material)
    return np.where((np.floor(ring) % 2 > 0)[:, None], two, one)


def _stripes(point: Points, material: Material) -> Colours:
    """Stripes across x, each ``scale`` wide."""
    one, two = _two(material)
    return np.where((np.floor(point[:, 0] / F(material.scale)) % 2 > 0)[:, None], two, one)


def _landscape(point: Points, material: Material) -> Colours:
    """Sky, a sun and two hills on the xz plane; ``scale`` is half the picture's width."""
    u, v = point[:, 0] / F(material.scale), point[:, 2] / F(material.scale)
    sky, haze = np.array([0.16, 0.34, 0.66], F), np.array([0.70, 0.72, 0.66], F)
    share = np.clip(v * F(0.8) + F(0.45), 0, 1)[:, None]
    colour = haze + (sky - haze) * share
    _paint(colour, (u - F(0.42)) * (u - F(0.42)) + (v - F(0.30)) * (v - F(0.30)) < F(0.02), (0.95, 0.70, 0.20))
    _paint(colour, v < F(0.14) - F(0.45) * np.abs(u + F(0.30)), material.second or (0.30, 0.42, 0.15))
    _paint(colour, v < F(-0.06) - F(0.40) * np.abs(u - F(0.35)), material.colour)
    return colour


def _blocks(point: Points, material: Material) -> Colours:
    """An abstract picture on the xz plane: blocks of two colours between white lines; ``scale`` is half its width."""
    u, v = point[:, 0] / F(material.scale) + F(1), point[:, 2] / F(material.scale) + F(1)
    column, row = np.floor(u * F(2.2)), np.floor(v * F(3.1) + _hash(np.floor(u * F(2.2))) * F(0.8))
    tone = _hash(column * 71 + row * 233)
    colour = _mixed(material, np.floor(tone * F(3)) * F(0.5))
    line = (u * F(2.2) - column < F(0.05)) | (v * F(3.1) + _hash(column) * F(0.8) - row < F(0.07))
    _paint(colour, line, (0.75, 0.73, 0.68))
    return colour


def _paint(colour: Colours, where: Bool[np.ndarray, " n"], with_: tuple[float, float, float]) -> None:
    colour[where] = np.array(with_, F)


def _outside(point: Points, material: Material) -> Colours:
    """What is seen through a window: from the second colour below to the first above, ``scale`` metres high about the origin."""
    share = np.clip(point[:, 2] / F(material.scale) + F(0.5), 0, 1)
    return _mixed(material, F(1) - share)


TEXTURES: dict[str, Callable[[Points, Material], Colours]] = {
    "planks": _planks,
    "tiles": _tiles,
    "wood": _wood,
    "upright wood": _upright_wood,
    "weave": _weave,
    "rug": _rug,
    "rings": _rings,
    "stripes": _stripes,
    "landscape": _landscape,
    "blocks": _blocks,
    "outside": _outside,
}
