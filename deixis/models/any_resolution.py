"""LLaVA-NeXT and OneVision: a picture whole, then finer out of tiles, with padding cut off and a token at each line's end."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int

from deixis.models.layout import Area, Grid, PictureLayout, clipped
from deixis.models.views import Inputs, Sizes, covered, side_of, tiled, tower_grid, whole

if TYPE_CHECKING:
    from deixis.models.vlm import VLM


def anyres_layout(vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """The whole picture, then a finer grid from tiles, padding cut off, a token at each line's end.

    OneVision shows one of several pictures of an item whole only, padded to a square, with one such token behind it, and shrinks
    a fine grid that is too large: a patch there is counted to the token in whose cell its centre lies.
    """
    per_item = inputs["batch_num_images"].tolist() if "batch_num_images" in inputs else [1] * len(sizes)
    alone = [n == 1 for n in per_item for _ in range(n)]
    return [_fine(vlm, size) if single else _padded(vlm, size) for size, single in zip(sizes, alone, strict=True)]


def _leading(vlm: "VLM") -> int:
    """Class tokens of the tower, which these families drop."""
    return int(vlm.model.config.vision_feature_select_strategy == "default")


def _base(vlm: "VLM", size: tuple[int, int], area: Area) -> PictureLayout:
    return tiled(size, [area], tower_grid(vlm), first=_leading(vlm), share=covered(vlm))


def _padded(vlm: "VLM", size: tuple[int, int]) -> PictureLayout:
    longest = max(size)
    left, top = -((longest - size[0]) // 2), -((longest - size[1]) // 2)
    square = _base(vlm, size, (left, top, left + longest, top + longest))
    boxes = np.concatenate([square.boxes, np.full((1, 4), np.nan)])
    return PictureLayout(grids=(*square.grids, (1, 1)), boxes=boxes, rows=square.rows)


def _fine(vlm: "VLM", size: tuple[int, int]) -> PictureLayout:
    from transformers.image_processing_utils import select_best_resolution

    config, view, (width, height) = vlm.model.config, tower_grid(vlm), size
    tile = side_of(config.vision_config.image_size)
    best = select_best_resolution((height, width), config.image_grid_pinpoints)
    canvas = (best[0] // tile * view[0], best[1] // tile * view[1])
    cut = _unpadded(canvas, size)
    kept = (canvas[0] - 2 * cut[0], canvas[1] - 2 * cut[1])
    fine = _shrunk(vlm, kept)
    base = _base(vlm, size, whole(size))
    n = len(base.boxes)
    fed = _fed_by_canvas(canvas, cut, fine, view)
    fed = np.concatenate([np.arange(n), np.where(fed >= 0, fed + n, -1)])
    views = fed.reshape(-1, view[0] * view[1])
    vision = np.concatenate([np.full((len(views), _leading(vlm)), -1), views], axis=1)
    boxes = np.concatenate([base.boxes, clipped(_fine_boxes(vlm, size, best, cut, kept, fine), size)])
    return PictureLayout(
        grids=(*base.grids, (fine[0], fine[1] + 1)),
        boxes=boxes,
        rows={"vision": vision.reshape(-1), "merger_in": fed, "merger_out": fed},
        blended=np.arange(len(boxes)) >= (n if fine != kept else len(boxes)),
    )


def _unpadded(canvas: Grid, size: tuple[int, int]) -> Grid:
    """Rows and columns of patches that are cut off on each side because they show padding only."""
    (rows, columns), (width, height) = canvas, size
    if width / height > columns / rows:
        return (rows - int(round(height * (columns / width), 7))) // 2, 0
    return 0, (columns - int(round(width * (rows / height), 7))) // 2


def _shrunk(vlm: "VLM", kept: Grid) -> Grid:
    """The fine grid after OneVision has shrunk it to its limit (``anyres_max_9``: nine views)."""
    limit = getattr(vlm.model.config, "vision_aspect_ratio", None)
    if limit is None:
        return kept
    ratio = (kept[0] * kept[1] / (int(limit.removeprefix("anyres_max_")) * tower_grid(vlm)[0] ** 2)) ** 0.5
    return (int(kept[0] // ratio), int(kept[1] // ratio)) if ratio > 1.1 else kept


def _fine_boxes(
    vlm: "VLM", size: tuple[int, int], best: tuple[int, int], cut: Grid, kept: Grid, fine: Grid
) -> Float[np.ndarray, "token 4"]:
    """Boxes of the fine grid, a token without pixels at the end of each line, in the picture's pixels."""
    from transformers.image_processing_utils import get_patch_output_size
    from transformers.image_utils import ChannelDimension

    width, height = size
    new = get_patch_output_size(torch.empty(3, height, width, device="meta"), best, ChannelDimension.FIRST)
    ends = []
    for axis, length in enumerate((height, width)):
        edges = cut[axis] + np.arange(fine[axis] + 1) * (kept[axis] / max(fine[axis], 1))
        pasted = (best[axis] - new[axis]) // 2
        scale = length / new[axis]
        ends.append([(_pixel(vlm, at, last) - pasted) * scale for at, last in ((edges[:-1], False), (edges[1:], True))])
    (top, bottom), (left, right) = ends
    lines = np.full((fine[0], fine[1] + 1, 4), np.nan)
    for column, values in enumerate((left, top[:, None], right, bottom[:, None])):
        lines[:, :-1, column] = values
    return lines.reshape(-1, 4)


def _pixel(vlm: "VLM", patch: Float[np.ndarray, " edge"], last: bool) -> Float[np.ndarray, " edge"]:
    """The pixel of the canvas at which a patch begins, or ends if this is its last edge; tiles may have pixels behind patches."""
    vision, view = vlm.model.config.vision_config, tower_grid(vlm)[0]
    full = np.ceil(patch) - 1 if last else np.floor(patch)
    within = (full % view) * side_of(vision.patch_size) + (patch - full) * side_of(vision.patch_size)
    return full // view * side_of(vision.image_size) + within


def _fed_by_canvas(canvas: Grid, cut: Grid, fine: Grid, view: Grid) -> Int[np.ndarray, " patch"]:
    """For each patch of each tile, tile by tile, the token of the fine grid that it feeds; -1 where it is cut off."""
    places = []
    for axis in (0, 1):
        kept = canvas[axis] - 2 * cut[axis]
        at = np.arange(canvas[axis]) - cut[axis]
        # Of a picture that is thinner than a patch nothing is kept.
        places.append(np.where((at >= 0) & (at < kept), ((at + 0.5) * fine[axis] // max(kept, 1)).astype(int), -1))
    down, across = places[0][:, None], places[1][None, :]
    fed = np.where((down >= 0) & (across >= 0), down * (fine[1] + 1) + across, -1)
    tiles = fed.reshape(canvas[0] // view[0], view[0], canvas[1] // view[1], view[1]).transpose(0, 2, 1, 3)
    return tiles.reshape(-1)
