"""What furniture is covered with: a few woods, cloths and metals that go together."""

from dataclasses import dataclass

import numpy as np

from deixis.benchmarks.render.scene import Material, Rgb, linear_rgb

WOODS = {
    "oak": ("#bf9463", "#a57b4c"),
    "walnut": ("#7a5033", "#5d3a24"),
    "beech": ("#d3b285", "#bd9a6c"),
    "wenge": ("#54392b", "#3d281d"),
    "cherry": ("#a5653f", "#8a4f2f"),
}
"""Two tones each."""
PAINTS = {
    "red": "#b8352c",
    "blue": "#2f5fb0",
    "green": "#3d8346",
    "yellow": "#dcae33",
    "orange": "#d7772c",
    "purple": "#75509a",
    "teal": "#2a8080",
    "white": "#e8e5de",
    "grey": "#7f8184",
    "brown": "#7c5637",
}
METALS = {"black": "#2b2c2e", "steel": "#b4b6b8", "brass": "#b99b5a"}


def paint(colour: str, shade: float = 1.0) -> Material:
    """Matt paint of a colour ``"#rrggbb"`` or a name in :data:`PAINTS`, lightened or darkened by ``shade``."""
    return Material(_shaded(linear_rgb(PAINTS.get(colour, colour)), shade))


def glow(colour: str, strength: float) -> Material:
    """A lamp's shade or a screen: it shines by itself."""
    return Material(linear_rgb(colour), emission=strength)


def _shaded(colour: Rgb, shade: float) -> Rgb:
    red, green, blue = (min(value * shade, 0.95) for value in colour)
    return red, green, blue


@dataclass(frozen=True, kw_only=True)
class Finish:
    """Of one piece of furniture; every kind uses the parts that it has."""

    wood: str = "oak"
    """A name in :data:`WOODS`."""
    colour: str = "teal"
    """Cloth or paint, a name in :data:`PAINTS`: the colour by which the piece is called."""
    accent: str = "orange"
    """Cushions and small parts, a name in :data:`PAINTS`."""
    metal: str = "black"
    """A name in :data:`METALS`."""

    @property
    def lying(self) -> Material:
        """Wood with its grain along x."""
        return self._grained("wood", 1.0)

    @property
    def upright(self) -> Material:
        """Wood with its grain along z."""
        return self._grained("upright wood", 1.0)

    @property
    def front(self) -> Material:
        """Lighter wood of doors and drawers, its grain along x."""
        return self._grained("wood", 1.18)

    @property
    def upright_front(self) -> Material:
        """Lighter wood of doors, its grain along z."""
        return self._grained("upright wood", 1.18)

    @property
    def cloth(self) -> Material:
        """Woven cloth in the piece's colour."""
        return self.woven(1.0)

    @property
    def second_cloth(self) -> Material:
        """Woven cloth in the second colour."""
        colour = linear_rgb(PAINTS[self.accent])
        return Material(colour, _shaded(colour, 0.85), "weave")

    @property
    def paint(self) -> Material:
        """Paint in the piece's colour."""
        return paint(self.colour)

    @property
    def steel(self) -> Material:
        """Metal parts."""
        return Material(linear_rgb(METALS[self.metal]))

    def woven(self, shade: float) -> Material:
        """Woven cloth in the piece's colour, lightened or darkened."""
        colour = _shaded(linear_rgb(PAINTS[self.colour]), shade)
        return Material(colour, _shaded(colour, 0.85), "weave")

    def _grained(self, texture: str, shade: float) -> Material:
        light, dark = (_shaded(linear_rgb(tone), shade) for tone in WOODS[self.wood])
        return Material(light, dark, texture)


def drawn_finish(rng: np.random.Generator, colour: str | None = None) -> Finish:
    """A finish by chance, its colour given or drawn too."""
    names = list(PAINTS)
    wood, metal = list(WOODS)[int(rng.integers(len(WOODS)))], list(METALS)[int(rng.integers(len(METALS)))]
    first, second = rng.permutation(len(names))[:2]
    return Finish(wood=wood, colour=colour or names[int(first)], accent=names[int(second)], metal=metal)
