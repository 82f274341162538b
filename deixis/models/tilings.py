"""How each family cuts pictures into image tokens: functions that its record names as ``layout``."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from deixis.models.layout import PictureLayout, grid_boxes

if TYPE_CHECKING:
    from deixis.models.vlm import VLM


def qwen_layout(vlm: "VLM", inputs: Mapping[str, Tensor], sizes: Sequence[tuple[int, int]]) -> list[PictureLayout]:
    """``image_grid_thw`` patches, resized whole and merged in squares; the processor orders patches square by square."""
    merge = vlm.processor.image_processor.merge_size
    pictures = []
    for (frames, rows, columns), (width, height) in zip(inputs["image_grid_thw"].tolist(), sizes, strict=True):
        grid = (frames * rows // merge, columns // merge)
        tokens = np.arange(grid[0] * grid[1])
        patches = tokens.repeat(merge * merge)
        rows_of = {"vision": patches, "merger_in": patches, "merger_out": tokens}
        pictures.append(PictureLayout(grids=(grid,), boxes=grid_boxes(grid, (0, 0, width, height)), rows=rows_of))
    return pictures
