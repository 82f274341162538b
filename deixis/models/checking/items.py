"""What a model is shown to check it: short prompts with small pictures of noise, and pictures that differ in one place."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from deixis.benchmarks import Item
from deixis.benchmarks.images import ImageHandle

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

SIDE = 64
"""Width and height of the smallest picture shown, in pixels."""
_TOKEN_SIDE = 18
"""Pixels that a token's box must have each way: a third of it can then change without touching the next one, however resized."""
Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""


@dataclass(frozen=True)
class NoiseImage(ImageHandle):
    """Noise in blocks of four pixels, which survives resizing; within ``inverted`` the colours are turned round."""

    seed: int
    width: int = SIDE
    height: int = SIDE
    inverted: Rectangle | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.width, self.height

    def load(self) -> Image.Image:
        """The picture."""
        blocks = np.random.default_rng(self.seed).integers(0, 256, (-(-self.height // 4), -(-self.width // 4), 3), dtype=np.uint8)
        pixels = blocks.repeat(4, axis=0).repeat(4, axis=1)[: self.height, : self.width].copy()
        if self.inverted is not None:
            left, top, right, bottom = (round(edge) for edge in self.inverted)
            inside = pixels[top:bottom, left:right]
            pixels[top:bottom, left:right] = np.where(inside < 128, 255, 0)
        return Image.fromarray(pixels)


def check_item(name: str, prompt: str, *images: NoiseImage) -> Item:
    """An item without options."""
    return Item(id=f"check/{name}", benchmark="check", task="check", language="en", images=images, prompt=prompt, options=())


def small_item() -> Item:
    """The smallest item with a picture."""
    return check_item("small", "Hi", NoiseImage(0))


def enough_pixels(vlm: "VLM", width: int = SIDE, height: int = SIDE) -> tuple[int, int]:
    """The size of that shape, or larger, at which every image token shows eighteen pixels each way.

    A larger picture may be cut into more tiles, so that it is asked again, three times at most.
    """
    for _ in range(3):
        item = check_item("size", "Hi", NoiseImage(0, width, height))
        left, top, right, bottom = vlm.layout(vlm.prepare([item]), [item]).boxes.unbind(dim=1)
        sides = np.minimum((right - left).numpy(), (bottom - top).numpy())
        smallest = float(np.nanmin(sides)) if np.isfinite(sides).any() else _TOKEN_SIDE
        if smallest >= _TOKEN_SIDE:
            break
        grow = _TOKEN_SIDE / smallest
        width, height = int(np.ceil(width * grow)), int(np.ceil(height * grow))
    return width, height


def inner_third(box: Rectangle) -> Rectangle:
    """The middle ninth of a token's pixels, on whole pixels and never empty."""
    left, top, right, bottom = box
    across, down = (right - left) / 3, (bottom - top) / 3
    x, y = np.ceil(left + across), np.ceil(top + down)
    return float(x), float(y), float(max(x + 1, np.floor(right - across))), float(max(y + 1, np.floor(bottom - down)))
