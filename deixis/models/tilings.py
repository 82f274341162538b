"""How each family cuts pictures into image tokens: functions that its record names as ``layout``.

Each follows what the family's processor and model do with a picture of a given size. Where transformers has a function for the
sizes, that function is used. All are checked against the real processors, pixel by pixel, in the tests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from deixis.models.layout import Area, Grid, PictureLayout, clipped, edge_boxes, edges, grid_boxes
from deixis.models.views import Inputs, Sizes, covered, image_setting, side_of, tiled, tiles, top_left, tower_grid, whole

if TYPE_CHECKING:
    from deixis.models.vlm import VLM


def qwen_layout(vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """Qwen2-VL, Qwen3-VL, Qwen3.5: resized whole, patches ordered square by square, merged in the merger."""
    return _squares(vlm, inputs, sizes, merged_before=False)


def glm_layout(vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """GLM-4V: like Qwen2-VL, but a convolution merges the squares before the merger."""
    return _squares(vlm, inputs, sizes, merged_before=True)


def _squares(vlm: "VLM", inputs: Inputs, sizes: Sizes, *, merged_before: bool) -> list[PictureLayout]:
    merge = vlm.processor.image_processor.merge_size
    pictures = []
    for (frames, rows, columns), size in zip(inputs["image_grid_thw"].tolist(), sizes, strict=True):
        grid = (frames * rows // merge, columns // merge)
        tokens = np.arange(grid[0] * grid[1])
        patches = tokens.repeat(merge * merge)
        rows_of = {"vision": patches, "merger_in": tokens if merged_before else patches, "merger_out": tokens}
        pictures.append(PictureLayout(grids=(grid,), boxes=grid_boxes(grid, whole(size)), rows=rows_of))
    return pictures


def windowed_qwen_layout(vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """Qwen2.5-VL: the tower sorts the squares by attention window, and the model sorts them back behind the merger."""
    config = vlm.model.config.vision_config
    merge = config.spatial_merge_size
    window = config.window_size // merge // config.patch_size
    pictures = []
    for picture in qwen_layout(vlm, inputs, sizes):
        row, column = np.mgrid[: picture.grids[0][0], : picture.grids[0][1]].reshape(2, -1)
        order = np.lexsort((column, row, column // window, row // window))
        patches = order.repeat(merge * merge)
        pictures.append(replace(picture, rows={"vision": patches, "merger_in": patches, "merger_out": order}))
    return pictures


def internvl_layout(vlm: "VLM", _inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """InternVL: tiles in the grid whose shape fits best, then the whole picture once more."""
    from transformers.models.got_ocr2.image_processing_got_ocr2 import get_optimal_tiled_canvas

    tile = image_setting(vlm, "size")
    fewest, most = image_setting(vlm, "min_patches"), image_setting(vlm, "max_patches")
    merge = round(1 / vlm.model.config.downsample_ratio)
    pictures = []
    for width, height in sizes:
        areas = [whole((width, height))]
        if image_setting(vlm, "crop_to_patches"):
            columns, rows = get_optimal_tiled_canvas((height, width), (tile["height"], tile["width"]), fewest, most)
            areas = [*tiles((width, height), (rows, columns)), *areas] if rows * columns > 1 else areas
        pictures.append(tiled((width, height), areas, tower_grid(vlm), merge, first=1, share=covered(vlm)))
    return pictures


def ovis_layout(vlm: "VLM", _inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """Ovis2: the whole picture, then the tiles of the smallest grid that covers it well."""
    from transformers.models.ovis2.image_processing_ovis2 import get_min_tile_covering_grid, get_optimal_tiled_canvas

    tile, most = image_setting(vlm, "size"), image_setting(vlm, "max_patches")
    pictures = []
    for width, height in sizes:
        columns = rows = 1
        if image_setting(vlm, "crop_to_patches") and most > 1:
            if image_setting(vlm, "use_covering_area_grid"):
                columns, rows = get_min_tile_covering_grid((height, width), tile["height"], most, 0.9)
            else:
                fewest = image_setting(vlm, "min_patches")
                columns, rows = get_optimal_tiled_canvas((height, width), (tile["height"], tile["width"]), fewest, most)
        areas = [whole((width, height)), *(tiles((width, height), (rows, columns)) if rows * columns > 1 else [])]
        stride = vlm.model.config.vision_config.hidden_stride
        pictures.append(tiled((width, height), areas, tower_grid(vlm), stride, share=covered(vlm)))
    return pictures


def gemma3_layout(vlm: "VLM", _inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """Gemma 3: the whole picture, then with pan and scan its crops along the longer side; patches are averaged in squares."""
    patches = tower_grid(vlm)
    merge = patches[0] // round(vlm.model.config.mm_tokens_per_image**0.5)
    pictures = []
    for size in sizes:
        crops = _pan_and_scan(vlm, size) if image_setting(vlm, "do_pan_and_scan") else []
        pictures.append(tiled(size, [whole(size), *crops], patches, merge, merged_before=False, share=covered(vlm)))
    return pictures


def _pan_and_scan(vlm: "VLM", size: tuple[int, int]) -> list[Area]:
    ratio, smallest, most = (
        image_setting(vlm, f"pan_and_scan_{name}") for name in ("min_ratio_to_activate", "min_crop_size", "max_num_crops")
    )
    (width, height), (long, short) = size, (max(size), min(size))
    if long / short < ratio:
        return []
    n = min(most, max(2, min(long // smallest, int(long / short + 0.5))))
    step = -(-long // n)
    if min(step, short) < smallest:
        return []
    cuts = [(step * i, min(step * (i + 1), long)) for i in range(n)]
    return [(a, 0, b, height) if width >= height else (0, a, width, b) for a, b in cuts]


def single_layout(vlm: "VLM", _inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """PaliGemma: resized whole, a token for each patch."""
    return [tiled(size, [whole(size)], tower_grid(vlm), share=covered(vlm)) for size in sizes]


def llava_layout(vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """LLaVA 1.5 with a CLIP or SigLIP tower: resized, then cropped or padded to a square. With a Pixtral tower: see there."""
    if vlm.model.config.vision_config.model_type == "pixtral":
        return pixtral_layout(vlm, inputs, sizes)
    leading = getattr(vlm.processor, "num_additional_image_tokens", 0)
    dropped = min(leading, int(vlm.model.config.vision_feature_select_strategy == "default"))
    pictures = []
    for size in sizes:
        plain = tiled(size, [_cropped_area(vlm, size)], tower_grid(vlm), first=leading, share=covered(vlm))
        pictures.append(_with_leading(plain, leading - dropped))
    return pictures


def _with_leading(picture: PictureLayout, n: int) -> PictureLayout:
    """The same picture where ``n`` of the tower's first rows are tokens too; they show no pixels."""
    if not n:
        return picture
    vision, tokens = picture.rows["vision"].copy(), np.arange(len(picture.boxes) + n)
    first = len(vision) - len(picture.boxes)
    vision[first:] += n
    vision[first - n : first] = np.arange(n)
    boxes = np.concatenate([np.full((n, 4), np.nan), picture.boxes])
    rows = {"vision": vision, "merger_in": tokens, "merger_out": tokens}
    return PictureLayout(grids=((1, n), *picture.grids), boxes=boxes, rows=rows)


def _cropped_area(vlm: "VLM", size: tuple[int, int]) -> Area:
    """The part of a picture that is left after padding to a square, resizing and cropping in the centre; it may reach beyond."""
    width, height = size
    left = top = 0.0
    if image_setting(vlm, "do_pad"):
        longest = max(size)
        left, top = -float((longest - width) // 2), -float((longest - height) // 2)
        width = height = longest
    wanted = image_setting(vlm, "size")
    if not image_setting(vlm, "do_resize"):
        new = width, height
    elif wanted.get("shortest_edge"):
        short, long = wanted["shortest_edge"], int(wanted["shortest_edge"] * max(width, height) / min(width, height))
        new = (short, long) if width <= height else (long, short)
    else:
        new = wanted["width"], wanted["height"]
    seen = new
    if image_setting(vlm, "do_center_crop"):
        crop = image_setting(vlm, "crop_size")
        seen = crop["width"], crop["height"]
    scale = width / new[0], height / new[1]
    # A picture smaller than the crop is padded on both sides, the odd pixel after it.
    skipped = [(n - s) // 2 if n >= s else -((s - n) // 2) for n, s in zip(new, seen, strict=True)]
    x, y = left + skipped[0] * scale[0], top + skipped[1] * scale[1]
    return x, y, x + seen[0] * scale[0], y + seen[1] * scale[1]


def pixtral_layout(vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """Pixtral and Mistral 3: resized whole to any grid; ends of lines are text. Mistral 3 merges squares in its merger."""
    patch = side_of(vlm.model.config.vision_config.patch_size)
    merge = getattr(vlm.model.config, "spatial_merge_size", 1)
    pictures = []
    for (height, width), size in zip(inputs["image_sizes"].tolist(), sizes, strict=True):
        grid = (height // patch, width // patch)
        pictures.append(tiled(size, [whole(size)], grid, merge, merged_before=False))
    return pictures


def idefics_layout(vlm: "VLM", _inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """Idefics3 and SmolVLM: stretched to whole tiles, row by row, then the whole picture once more; shuffled in the merger."""
    from transformers.models.smolvlm.image_processing_smolvlm import get_resize_output_image_size

    tile = image_setting(vlm, "max_image_size")["longest_edge"]
    pictures = []
    for width, height in sizes:
        areas = [whole((width, height))]
        if image_setting(vlm, "do_image_splitting"):
            longest = image_setting(vlm, "size")["longest_edge"]
            empty = torch.empty(3, height, width, device="meta")
            high, wide = get_resize_output_image_size(empty, longest)
            if wide >= high:
                columns = -(-wide // tile)
                rows = -(-int(columns * tile / (wide / high)) // tile)
            else:
                rows = -(-high // tile)
                columns = -(-int(rows * tile * (wide / high)) // tile)
            areas = [*tiles((width, height), (rows, columns)), *areas] if rows * columns > 1 else areas
        patch = side_of(vlm.model.config.vision_config.patch_size)
        side, merge = tile // patch, vlm.model.config.scale_factor
        share = side * patch / tile
        pictures.append(tiled((width, height), areas, (side, side), merge, merged_before=False, share=share))
    return pictures


def gemma4_layout(vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """Gemma 4: resized whole to any grid, patches padded to the most there may be, averaged in squares before the merger."""
    merge = vlm.processor.image_processor.pooling_kernel_size
    pictures = []
    for places, size in zip(inputs["image_position_ids"].cpu().numpy(), sizes, strict=True):
        real = places[:, 0] >= 0
        columns, rows = places[real].max(axis=0) + 1
        picture = tiled(size, [whole(size)], (int(rows), int(columns)), merge)
        vision = np.full(len(places), -1)
        vision[real] = picture.rows["vision"]
        pictures.append(replace(picture, rows=dict(picture.rows) | {"vision": vision}))
    return pictures


def gemma4_unified_layout(_vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """Gemma 4 without a tower: resized whole to any grid, squares of pixels put straight into the merger, padded to the most."""
    pictures = []
    for places, size in zip(inputs["image_position_ids"].cpu().numpy(), sizes, strict=True):
        real = places[:, 0] >= 0
        columns, rows = places[real].max(axis=0) + 1
        picture = tiled(size, [whole(size)], (int(rows), int(columns)))
        padded = np.full(len(places), -1)
        padded[real] = picture.rows["merger_in"]
        pictures.append(replace(picture, rows={"merger_in": padded, "merger_out": padded}))
    return pictures


def molmo_layout(vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """Molmo2: the whole picture, then a fine grid out of overlapping crops; each token pools the patches its processor lists."""
    processor = vlm.processor.image_processor
    side = side_of(image_setting(vlm, "size")["height"]) // processor.patch_size
    pools, pooled = processor.pooling_size, inputs["image_token_pooling"].cpu().numpy()
    pictures, first_token, first_row = [], 0, 0
    for size, grids, crops in zip(sizes, inputs["image_grids"].tolist(), inputs["image_num_crops"].tolist(), strict=True):
        low, high = (grids[0], grids[1]), (grids[2], grids[3])
        tokens = low[0] * low[1] + high[0] * high[1]
        mine = pooled[first_token : first_token + tokens] - first_row
        fed = np.full(crops * side * side, -1)
        for column in mine.T:
            fed[column[column >= 0]] = np.flatnonzero(column >= 0)
        canvas = _molmo_canvas(vlm, size, side)
        boxes = np.concatenate([_pooled_boxes(patches, pools, size) for patches in ((side, side), canvas)])
        rows = {"vision": fed, "merger_in": fed, "merger_out": np.arange(tokens)}
        pictures.append(PictureLayout(grids=(low, high), boxes=boxes, rows=rows))
        first_token, first_row = first_token + tokens, first_row + len(fed)
    return pictures


def _molmo_canvas(vlm: "VLM", size: tuple[int, int], side: int) -> Grid:
    from transformers.models.molmo2.image_processing_molmo2 import compute_crop_geometry

    patch = vlm.processor.image_processor.patch_size
    crops, margins = image_setting(vlm, "max_crops"), image_setting(vlm, "overlap_margins")
    *_, height, width = compute_crop_geometry(size[1], size[0], crops, margins, side * patch, patch)
    return height // patch, width // patch


def _pooled_boxes(patches: Grid, pools: Sequence[int], size: tuple[int, int]) -> np.ndarray:
    # Patches that fill a pool up lie on both sides.
    down, across = (edges(n, pool, (-n % pool) // 2) / n for n, pool in zip(patches, pools, strict=True))
    return edge_boxes(down, across, whole(size))


def mllama_layout(vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """Mllama: tiles of a canvas on which the picture lies at the top left. Its tokens are the cross-attention's keys.

    Every tile has a class token before its patches, which shows no pixels. Rows of the tower also fill up eights, tiles and
    pictures that an item does not have.
    """
    config = vlm.model.config.vision_config
    patches = tower_grid(vlm)
    n = patches[0] * patches[1] + 1
    slots = inputs["aspect_ratio_ids"].cpu().numpy()
    most, filled = inputs["pixel_values"].shape[2], -(-n // 8) * 8
    remaining = iter(sizes)
    pictures: list[PictureLayout] = []
    skipped = 0
    for item in slots:
        for known in item:
            if not known:
                skipped += 1
                continue
            size = next(remaining)
            areas = _canvas_tiles(vlm, size, config.image_size)
            views = [grid_boxes(patches, top_left(area, covered(vlm))) for area in areas]
            boxes = np.concatenate([np.concatenate([np.full((1, 4), np.nan), view]) for view in views])
            tiles = np.full((skipped + 1, most, filled), -1)
            tiles[-1, : len(areas), :n] = np.arange(len(boxes)).reshape(-1, n)
            plain = tiles[:, :, :n].reshape(-1)
            rows = {"vision": tiles.reshape(-1), "merger_in": plain, "merger_out": plain}
            grids = ((1, 1), patches) * len(areas)
            pictures.append(PictureLayout(grids=grids, boxes=clipped(boxes, size), rows=rows))
            skipped = 0
    return _with_trailing(pictures, skipped, most, {"vision": filled, "merger_in": n, "merger_out": n})


def _with_trailing(pictures: list[PictureLayout], slots: int, tiles: int, rows: Mapping[str, int]) -> list[PictureLayout]:
    """The last picture with the rows of empty slots behind it."""
    *others, last = pictures
    longer = {site: np.concatenate([last.rows[site], np.full(slots * tiles * n, -1)]) for site, n in rows.items()}
    return [*others, replace(last, rows=longer)]


def _canvas_tiles(vlm: "VLM", size: tuple[int, int], tile: int) -> list[Area]:
    from transformers.models.mllama.image_processing_mllama import get_image_size_fit_to_canvas, get_optimal_tiled_canvas

    width, height = size
    high, wide = get_optimal_tiled_canvas(height, width, image_setting(vlm, "max_image_tiles"), tile)
    new_height, new_width = get_image_size_fit_to_canvas(height, width, high, wide, tile)
    x, y = width / new_width, height / new_height
    starts = [(top, left) for top in range(0, high, tile) for left in range(0, wide, tile)]
    return [(left * x, top * y, (left + tile) * x, (top + tile) * y) for top, left in starts]


def unplaced_layout(vlm: "VLM", inputs: Inputs, sizes: Sizes) -> list[PictureLayout]:
    """For a model in no record: an unbroken run of image tokens is a picture, and where its tokens look is not known.

    Boxes are NaN, so that no token counts as an object's, and rows of the tower are not related to tokens.

    Raises:
        ValueError: There are more or fewer runs than pictures.
    """
    image = torch.nn.functional.pad((inputs["input_ids"] == vlm.image_token_id).int(), (1, 1))
    edges_of_runs = image.diff(dim=1)
    starts, ends = ((edges_of_runs == sign).nonzero()[:, 1].tolist() for sign in (1, -1))
    if len(starts) != len(sizes):
        raise ValueError(
            f"the batch has {len(starts)} runs of image tokens for {len(sizes)} pictures: nothing says how {vlm.name} cuts them, "
            "because it is in no family record; write a record with a layout for it."
        )
    runs = [end - start for start, end in zip(starts, ends, strict=True)]
    return [PictureLayout(grids=((1, n),), boxes=np.full((n, 4), np.nan), rows={}) for n in runs]
