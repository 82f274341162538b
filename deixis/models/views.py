"""Views of a picture, as families cut it up: what their layouts have in common."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from deixis.models.layout import Area, Grid, PictureLayout, clipped, grid_boxes, token_of_patch

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

Inputs = Mapping[str, Tensor]
Sizes = Sequence[tuple[int, int]]
"""Width and height in pixels of every picture of a batch, in order."""


def image_setting(vlm: "VLM", name: str) -> Any:
    """A setting of the image processor; what the processor presets for it comes first, as in transformers."""
    preset = getattr(vlm.processor, "images_kwargs", None) or {}
    return preset[name] if name in preset else getattr(vlm.processor.image_processor, name)


def whole(size: tuple[int, int]) -> Area:
    """All of a picture of this width and height."""
    return 0, 0, *size


def side_of(size: int | Sequence[int]) -> int:
    """One side of a square that a config gives as a number or as two."""
    return size if isinstance(size, int) else size[0]


def tower_grid(vlm: "VLM") -> Grid:
    """Rows and columns of patches of each view of a tower with views of one size."""
    config = vlm.model.config.vision_config
    side = side_of(config.image_size) // side_of(config.patch_size)
    return side, side


def covered(vlm: "VLM") -> float:
    """The share of a view's width and height that whole patches cover; the tower drops what is left at the right and bottom."""
    config = vlm.model.config.vision_config
    return tower_grid(vlm)[0] * side_of(config.patch_size) / side_of(config.image_size)


def tiled(
    size: tuple[int, int],
    areas: Sequence[Area],
    patches: Grid,
    merge: int = 1,
    *,
    first: int = 0,
    merged_before: bool = True,
    share: float = 1.0,
) -> PictureLayout:
    """A picture seen as equal views, each cut into patches that merge in squares.

    Args:
        size: Width and height of the picture.
        areas: The part of it that each view shows.
        patches: Rows and columns of patches of each view.
        merge: Patches along each side of a token.
        first: Rows before each view's patches in the vision tower that feed no token, such as a class token.
        merged_before: Whether squares are merged before the merger rather than in it.
        share: Of each view's width and height, from the left and the top, that patches cover.
    """
    boxes = np.concatenate([grid_boxes(patches, top_left(area, share), merge) for area in areas])
    tokens = np.arange(len(boxes))
    view = token_of_patch(patches, merge)
    starts = np.arange(len(areas))[:, None] * (len(boxes) // len(areas))
    fed = view + starts
    vision = np.concatenate([np.full((len(areas), first), -1), fed], axis=1)
    rows = {
        "vision": vision.reshape(-1),
        "merger_in": tokens if merged_before else fed.reshape(-1),
        "merger_out": tokens,
    }
    grid = (-(-patches[0] // merge), -(-patches[1] // merge))
    return PictureLayout(grids=(grid,) * len(areas), boxes=clipped(boxes, size), rows=rows)


def top_left(area: Area, share: float) -> Area:
    """The part of an area that has a share of its width and height, from the left and the top."""
    left, top, right, bottom = area
    return left, top, left + share * (right - left), top + share * (bottom - top)


def tiles(size: tuple[int, int], grid: Grid) -> list[Area]:
    """Equal tiles of a whole picture, row by row."""
    return [(a, b, c, d) for a, b, c, d in grid_boxes(grid, whole(size)).tolist()]
