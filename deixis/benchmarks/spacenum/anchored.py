"""A picture with visual anchors over it: cross-hair lines through the centre and two rings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from PIL import Image

from deixis.benchmarks.images import ImageHandle

COLOUR = (255, 64, 32)
RINGS = (1 / 6, 1 / 3)
"""Radii as shares of the shorter side."""
_WIDTH = 1 / 160
"""Of the lines, as a share of the shorter side; two pixels at least."""


@dataclass(frozen=True, kw_only=True)
class AnchoredImage(ImageHandle):
    """Another picture, any picture, with the same lines at the same places in each."""

    source: ImageHandle

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.source.size

    def load(self) -> Image.Image:
        """The picture, RGB."""
        pixels = np.asarray(self.source.load(), dtype=np.float64)
        ink = line_cover(*self.size)[..., None]
        return Image.fromarray(np.rint(pixels * (1 - ink) + np.array(COLOUR) * ink).astype(np.uint8))

    def to_json(self) -> dict[str, Any]:
        """The picture below the lines."""
        from deixis.benchmarks.handles import described

        return described(self.source)

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "AnchoredImage":
        """The picture that :meth:`to_json` described."""
        from deixis.benchmarks.handles import rebuilt

        return cls(source=rebuilt(entry))


def line_cover(width: int, height: int) -> Float[np.ndarray, "row column"]:
    """How much of each pixel the lines cover, 0 to 1: by the distance of its middle from the nearest line's middle."""
    x, y = np.arange(width) + 0.5 - width / 2, np.arange(height)[:, None] + 0.5 - height / 2
    shorter = min(width, height)
    away = np.minimum(np.abs(x), np.abs(y))
    radius = np.hypot(x, y)
    for ring in RINGS:
        away = np.minimum(away, np.abs(radius - ring * shorter))
    half = max(2.0, shorter * _WIDTH) / 2
    return np.clip(half + 0.5 - away, 0, 1)
