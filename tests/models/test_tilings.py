"""Layouts against the real processors: pixels are changed or coloured, and the model must hold what the layout says."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from deixis.models import FAMILIES, VLM
from deixis.models.layout import VISION_SITES, Layout, PictureLayout
from deixis.models.tilings import qwen_layout, unplaced_layout
from tests.models.pictures import ArrayImage, inverted, noise, passed_by, places_seen, reading_colours, shades, shown
from tests.models.tiny import TINY, pixtral, tiny_vlm

UNSCALED = {
    "Qwen3VLForConditionalGeneration": (64, 64),
    "Gemma3ForConditionalGeneration": (32, 32),
    "Gemma4ForConditionalGeneration": (64, 64),
    "Gemma4UnifiedForConditionalGeneration": (64, 64),
    "PaliGemmaForConditionalGeneration": (32, 32),
    "LlavaForConditionalGeneration": (48, 32),  # the centre is cut out
    "Molmo2ForConditionalGeneration": (80, 48),
    "InternVLForConditionalGeneration": (64, 96),
    "Ovis2ForConditionalGeneration": (64, 64),
    "LlavaNextForConditionalGeneration": (64, 32),
    "LlavaOnevisionForConditionalGeneration": (72, 36),
    "Qwen2_5_VLForConditionalGeneration": (80, 48),  # windows at the edges are not full
}
"""Sizes that the tiny processors leave as they are, for at least one view."""
ODD = ((70, 45), (40, 90), (33, 47), (150, 50))
MAKERS = {**TINY, "pixtral": pixtral}
Box = Any


@pytest.fixture(scope="module", params=[*FAMILIES, "pixtral"])
def vlm(request: pytest.FixtureRequest) -> VLM:
    return pixtral() if request.param == "pixtral" else tiny_vlm(request.param)


def layout_of(vlm: VLM, image: ArrayImage) -> Layout:
    item = shown([image])
    return vlm.layout(vlm.prepare([item]), [item])


def changed(vlm: VLM, image: ArrayImage, others: list[ArrayImage]) -> Iterator[dict[str, np.ndarray]]:
    """Which rows of each site are others when other pictures of the same size are shown instead; rounding does not count."""
    seen = passed_by(vlm, [shown([picture]) for picture in (image, *others)])
    split = {site: rows.reshape(len(others) + 1, -1, rows.shape[-1]) for site, rows in seen.items()}
    for number in range(1, len(others) + 1):
        moves = {site: (rows[number] - rows[0]).abs().amax(dim=-1) for site, rows in split.items()}
        yield {site: (move > 1e-4 * split[site][0].std()).numpy() for site, move in moves.items()}


def overlaps(boxes: np.ndarray, box: Box) -> np.ndarray:
    """Which boxes share area with one; never those without pixels."""
    return (boxes[:, 0] < box[2]) & (boxes[:, 2] > box[0]) & (boxes[:, 1] < box[3]) & (boxes[:, 3] > box[1])


def grown(boxes: np.ndarray, share: float) -> np.ndarray:
    """Boxes with a share of their width and height more on every side."""
    margin = np.concatenate([boxes[:, :2] - boxes[:, 2:], boxes[:, 2:] - boxes[:, :2]], axis=1)
    return boxes + share * margin


def changed_tokens(layout: Layout, rows: dict[str, np.ndarray]) -> np.ndarray:
    """Image tokens that changed, in the sequence if they are there, else where they leave the merger."""
    if "resid" in rows:
        return rows["resid"]
    found = np.zeros(len(layout.boxes), dtype=bool)
    found[layout.token_of_row("merger_out").numpy()[rows["merger_out"]]] = True
    return found


def check_rows(layout: Layout, rows: dict[str, np.ndarray], found: np.ndarray) -> None:
    """Changed rows of every vision site feed the changed tokens, and none but those."""
    for site in rows.keys() & set(VISION_SITES):
        feeding = layout.token_of_row(site).numpy()
        assert len(rows[site]) == len(feeding), site
        fed, changed_ones, blended = (
            set(feeding[rows[site]]) - {-1},
            set(np.flatnonzero(found)),
            set(np.flatnonzero(layout.blended.numpy())),
        )
        assert fed - blended == changed_ones - blended, site
        assert fed <= changed_ones, site


def test_a_change_of_one_tokens_pixels_changes_that_token_and_the_rows_that_feed_it(vlm: VLM) -> None:
    check_unscaled(vlm)


def check_unscaled(vlm: VLM) -> None:
    image = noise(*UNSCALED.get(vlm.family.architecture, (64, 32)))
    layout = layout_of(vlm, image)
    boxes = layout.boxes.numpy()
    sizes = boxes[:, 2:] - boxes[:, :2]
    unscaled = np.isclose(sizes, np.nanmin(sizes[np.nanargmin(sizes.prod(axis=1))])).all(axis=1)
    tokens = np.flatnonzero(unscaled)
    assert len(tokens) >= 4
    for token, rows in zip(tokens, changed(vlm, image, [inverted(image, *boxes[t]) for t in tokens]), strict=True):
        found, reached = changed_tokens(layout, rows), overlaps(boxes, boxes[token])
        assert (found[unscaled] == reached[unscaled]).all()
        assert found[token]
        check_rows(layout, rows, found)
        for site in rows.keys() & set(VISION_SITES):
            assert rows[site][layout.token_of_row(site).numpy() == token].all(), site


@pytest.mark.parametrize("size", ODD, ids=lambda size: "x".join(map(str, size)))
def test_in_pictures_of_odd_sizes_a_change_reaches_the_tokens_under_it_and_no_others(vlm: VLM, size: tuple[int, int]) -> None:
    check_odd(vlm, size)


def check_odd(vlm: VLM, size: tuple[int, int]) -> None:
    image = noise(*size)
    layout = layout_of(vlm, image)
    boxes = layout.boxes.numpy()
    assert sum(rows * columns for rows, columns in layout.grids[0]) == len(boxes)
    tokens = np.flatnonzero(~np.isnan(boxes[:, 0]))[::5]
    painted = [np.round(boxes[token]) + np.array([0, 0, 1, 1]) for token in tokens]
    for box, rows in zip(painted, changed(vlm, image, [inverted(image, *box) for box in painted]), strict=True):
        found = changed_tokens(layout, rows)
        shrunk = layout.blended.numpy()
        under, near = overlaps(grown(boxes, -0.25), box), overlaps(grown(boxes, 0.5), box)
        assert (found >= under)[~shrunk].all()
        assert (found <= np.where(shrunk, overlaps(grown(boxes, 1.0), box), near)).all()
        check_rows(layout, rows, found)


@pytest.mark.parametrize("name", [*(name for name, family in FAMILIES.items() if family.vision_blocks is not None), "pixtral"])
def test_the_colours_of_every_patch_say_where_its_token_lies(name: str) -> None:
    vlm = reading_colours(MAKERS[name]())
    for size in (*ODD, (91, 61)):
        image = shades(*size)
        layout = layout_of(vlm, image)
        boxes, fed = layout.boxes.numpy(), layout.token_of_row("vision").numpy()
        at = np.full((len(fed), 2), np.nan)
        looking = (fed >= 0) & ~np.isnan(boxes[fed, 0])
        at[looking] = places_seen(vlm, passed_by(vlm, [shown([image])])["vision"][looking], size)
        sizes = boxes[:, 2:] - boxes[:, :2]
        whole = np.zeros(len(boxes), dtype=bool)  # tokens of which no part is padding
        start = 0
        for rows, columns in layout.grids[0]:
            view = np.s_[start : start + rows * columns]
            if not np.isnan(sizes[view]).all():
                largest = sizes if vlm.family.image_tokens == "cross" else sizes[view]  # there, whole views may be cut off
                whole[view] = (sizes[view] > np.nanmax(largest, axis=0) - 1e-6).all(axis=1)
            start += rows * columns
        assert whole.sum() >= 4
        shrunk = layout.blended.numpy()
        for token in np.flatnonzero(whole & ~shrunk):
            centre = (boxes[token, :2] + boxes[token, 2:]) / 2
            assert np.abs(at[fed == token].mean(axis=0) - centre).max() < 1, (size, token)
        for token in np.flatnonzero(whole & shrunk):
            within = (at[fed == token] > boxes[token, :2] - 1) & (at[fed == token] < boxes[token, 2:] + 1)
            assert within.all(), (size, token)


def test_pictures_of_any_shape_have_as_many_boxes_as_tokens_and_all_within(vlm: VLM) -> None:
    """``prepare`` refuses a layout that makes another number of tokens than the processor."""
    rng = np.random.default_rng(0)
    for width, height in [*rng.integers(8, 300, (12, 2)).tolist(), [9, 9], [300, 12], [12, 300]]:
        boxes = layout_of(vlm, noise(width, height)).boxes.numpy()
        shown_ones = boxes[~np.isnan(boxes[:, 0])]
        assert len(shown_ones)
        assert (shown_ones[:, :2] >= 0).all()
        assert (shown_ones[:, 2:] <= (width + 1e-9, height + 1e-9)).all()
        assert (shown_ones[:, 2:] > shown_ones[:, :2]).all()


def internvl_whole() -> VLM:
    vlm = TINY["InternVLForConditionalGeneration"]()
    vlm.processor.images_kwargs = {"crop_to_patches": False}
    return vlm


def gemma3_scanning() -> VLM:
    vlm = TINY["Gemma3ForConditionalGeneration"]()
    scan = {"do_pan_and_scan": True, "pan_and_scan_min_crop_size": 16}
    vlm.processor.images_kwargs = {**vlm.processor.images_kwargs, **scan}
    return vlm


def ovis_closest() -> VLM:
    vlm = TINY["Ovis2ForConditionalGeneration"]()
    vlm.processor.image_processor.use_covering_area_grid = False
    return vlm


def smolvlm_whole() -> VLM:
    vlm = TINY["SmolVLMForConditionalGeneration"]()
    vlm.processor.image_processor.do_image_splitting = False
    return vlm


def llava_padded() -> VLM:
    """A tower without a class token, and pictures padded to a square rather than cropped."""
    vlm = TINY["LlavaForConditionalGeneration"]()
    vlm.processor.image_processor = hf.LlavaImageProcessor(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}, do_pad=True
    )
    return vlm


def llava_full() -> VLM:
    """The class token is an image token too."""
    vlm = TINY["LlavaForConditionalGeneration"]()
    vlm.processor.vision_feature_select_strategy = "full"
    vlm.model.config.vision_feature_select_strategy = "full"
    return vlm


def llava_small() -> VLM:
    """Pictures that are not resized, and are smaller than what is cut out of them."""
    vlm = TINY["LlavaForConditionalGeneration"]()
    vlm.processor.image_processor.do_resize = False
    return vlm


VARIANTS = (internvl_whole, gemma3_scanning, ovis_closest, smolvlm_whole, llava_padded, llava_full, llava_small)


@pytest.mark.parametrize("make", VARIANTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("size", [(70, 45), (33, 80), (21, 27)], ids=lambda size: "x".join(map(str, size)))
def test_other_settings_of_the_processor_are_followed(make: Callable[[], VLM], size: tuple[int, int]) -> None:
    check_odd(make(), size)


def test_pan_and_scan_adds_crops_and_the_layout_knows_them() -> None:
    image = noise(90, 30)
    plain, scanned = (layout_of(vlm, image) for vlm in (TINY["Gemma3ForConditionalGeneration"](), gemma3_scanning()))
    assert len(plain.grids[0]) == 1
    assert len(scanned.grids[0]) == 4
    assert scanned.boxes[4:8].tolist() == [[0, 0, 15, 15], [15, 0, 30, 15], [0, 15, 15, 30], [15, 15, 30, 30]]


def test_in_a_batch_rows_and_tokens_belong_to_the_picture_that_they_show(vlm: VLM) -> None:
    """Another second picture changes its own tokens and rows, and those of no other picture."""
    pictures = [noise(70, 45, 0), noise(40, 90, 1), noise(64, 33, 2)]
    if vlm.family.mixes_counts:
        items = [shown(pictures[:1], "a longer prompt than the others have"), shown(pictures[1:])]
        others = [items[0], shown([inverted(pictures[1], 0, 0, 40, 90), pictures[2]])]
        assert vlm.layout(vlm.prepare(items), items).number.unique().tolist() == [0, 1]
    else:
        items = [shown([picture]) for picture in pictures]
        others = [items[0], shown([inverted(pictures[1], 0, 0, 40, 90)]), items[2]]
    layout = vlm.layout(vlm.prepare(items), items)
    mine = layout.picture.numpy() == 1
    before, after = passed_by(vlm, items), passed_by(vlm, others)
    rows = {site: ((after[site] - before[site]).abs().amax(dim=-1) > 1e-4).numpy() for site in before}
    found = changed_tokens(layout, rows)
    visible = ~np.isnan(layout.boxes[:, 0].numpy())
    assert not found[~mine].any()
    assert found[mine & visible].all()
    check_rows(layout, rows, found)


def rolled(vlm: VLM, inputs: Any, sizes: Any) -> list[PictureLayout]:
    """Boxes one token too far."""
    right = FAMILIES[vlm.family.architecture].layout(vlm, inputs, sizes)
    return [replace(picture, boxes=np.roll(picture.boxes, 1, axis=0)) for picture in right]


def rows_rolled(vlm: VLM, inputs: Any, sizes: Any) -> list[PictureLayout]:
    """Rows of the tower one token too far."""
    right = FAMILIES[vlm.family.architecture].layout(vlm, inputs, sizes)
    return [replace(picture, rows={site: np.roll(rows, 1) for site, rows in picture.rows.items()}) for picture in right]


@pytest.mark.parametrize("wrong", [rolled, rows_rolled])
def test_a_layout_that_is_one_token_off_is_caught(vlm: VLM, wrong: Any) -> None:
    with pytest.raises(AssertionError):
        check_unscaled(replace(vlm, family=replace(vlm.family, layout=wrong)))


def test_windows_that_are_not_undone_are_caught() -> None:
    vlm = tiny_vlm("Qwen2_5_VLForConditionalGeneration")
    with pytest.raises(AssertionError):
        check_unscaled(replace(vlm, family=replace(vlm.family, layout=qwen_layout)))


@pytest.mark.parametrize("architecture", ["LlavaForConditionalGeneration", "Qwen2VLForConditionalGeneration"])
def test_runs_of_image_tokens_are_pictures_where_no_more_is_known(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    unknown = replace(vlm, family=replace(vlm.family, layout=unplaced_layout))
    # Between two pictures that touch there is no telling where one ends, unless the template puts tokens around them.
    items = [shown([noise(70, 45)], "a longer prompt"), shown([]), shown([noise(40, 90), noise(33, 47)], "<image> This <image>")]
    inputs = vlm.prepare(items)
    known, guessed = (v.layout(inputs, items) for v in (vlm, unknown))
    assert torch.equal(known.picture, guessed.picture)
    assert torch.equal(known.item, guessed.item)
    assert bool(guessed.boxes.isnan().all())
    assert not guessed.token_roles(items)["object"].any()
    with pytest.raises(ValueError, match=r"is not one of this family's"):
        guessed.token_of_row("vision")


def test_pictures_that_can_not_be_told_apart_are_refused() -> None:
    vlm = tiny_vlm("LlavaForConditionalGeneration")
    unknown = replace(vlm, family=replace(vlm.family, layout=unplaced_layout))
    items = [shown([noise(40, 40), noise(40, 40)])]
    with pytest.raises(ValueError, match=r"has 1 runs of image tokens for 2 pictures.*write a record with a layout"):
        unknown.prepare(items)
