"""Geometry of tokens by hand, and what a layout refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from deixis.benchmarks import Box
from deixis.models.layout import Layout, PictureLayout, clipped, edge_boxes, edges, grid_boxes, token_of_patch
from tests.models.pictures import noise, shown
from tests.models.tiny import tiny_vlm


def picture(n: int, **rows: list[int]) -> PictureLayout:
    boxes = grid_boxes((1, n), (0, 0, 10 * n, 10))
    return PictureLayout(grids=((1, n),), boxes=boxes, rows={site: np.array(values) for site, values in rows.items()})


def test_edges_count_patches_and_the_last_token_takes_what_is_left() -> None:
    assert edges(6, 2).tolist() == [0, 2, 4, 6]
    assert edges(5, 2).tolist() == [0, 2, 4, 5]
    assert edges(5, 2, before=1).tolist() == [0, 1, 3, 5]


def test_a_grid_divides_an_area_row_by_row() -> None:
    boxes = grid_boxes((2, 2), (10, 0, 30, 8))
    assert boxes.tolist() == [[10, 0, 20, 4], [20, 0, 30, 4], [10, 4, 20, 8], [20, 4, 30, 8]]


def test_tokens_of_an_odd_number_of_patches_are_smaller_at_the_end() -> None:
    assert grid_boxes((1, 3), (0, 0, 30, 10), merge=2)[:, [0, 2]].tolist() == [[0, 20], [20, 30]]
    assert token_of_patch((3, 3), 2).tolist() == [0, 0, 1, 0, 0, 1, 2, 2, 3]


def test_merged_tokens_cover_exactly_their_patches() -> None:
    """Second route: the hull of the patches that go into a token is the token's box."""
    patches, tokens = grid_boxes((5, 7), (0, 0, 70, 50)), grid_boxes((5, 7), (0, 0, 70, 50), merge=3)
    of_patch = token_of_patch((5, 7), 3)
    for token, box in enumerate(tokens):
        mine = patches[of_patch == token]
        np.testing.assert_allclose(box, [*mine[:, :2].min(axis=0), *mine[:, 2:].max(axis=0)])


def test_boxes_are_cut_at_the_picture_and_those_outside_show_nothing() -> None:
    boxes = edge_boxes(np.array([0.0, 1.0]), np.array([0.0, 0.5, 1.0]), (-20, -4, 20, 20))
    inside = clipped(boxes, (15, 9))
    assert np.isnan(inside[0]).all()
    assert inside[1].tolist() == [0, 0, 15, 9]


def test_rows_of_several_pictures_are_counted_on() -> None:
    layout = Layout(pictures=(picture(2, vision=[-1, 0, 1]), picture(3, vision=[2, -1, 0])), images_per_item=(0, 2))
    assert layout.token_of_row("vision").tolist() == [-1, 0, 1, 4, -1, 2]
    assert layout.picture.tolist() == [0, 0, 1, 1, 1]
    assert layout.number.tolist() == [0, 0, 1, 1, 1]
    assert layout.item.tolist() == [1] * 5
    assert layout.tokens_per_item == (0, 5)


def test_a_site_that_the_family_lacks_is_refused() -> None:
    layout = Layout(pictures=(picture(2, merger_in=[0, 1], merger_out=[0, 1]),), images_per_item=(1,))
    with pytest.raises(ValueError, match=r"site='vision' is not one of this family's: 'merger_in', 'merger_out'"):
        layout.token_of_row("vision")
    no_tower = tiny_vlm("Gemma4UnifiedForConditionalGeneration")
    with pytest.raises(ValueError, match="has no vision_blocks; its record says so"):
        _ = no_tower.vision_block_modules


def test_objects_belong_to_the_picture_in_which_they_were_marked() -> None:
    layout = Layout(pictures=(picture(3), picture(3), picture(3)), images_per_item=(2, 1))
    box = Box(name="a", left=12.0, top=0.0, right=18.0, bottom=5.0, image=1)
    marked = replace(shown([noise(30, 10), noise(30, 10)]), objects=(box,))
    roles = layout.token_roles([marked, shown([noise(30, 10)])])
    assert roles["object"].nonzero()[:, 0].tolist() == [4]
    assert roles["object:1"].nonzero()[:, 0].tolist() == [4]
    assert not roles["object:0"].any()
    assert torch.equal(roles["background"], ~roles["object"])


def test_an_empty_batch_of_pictures_has_no_tokens() -> None:
    layout = Layout(pictures=(), images_per_item=(0, 0))
    assert layout.boxes.shape == (0, 4)
    assert layout.tokens_per_item == (0, 0)
    assert layout.token_of_row("vision").shape == (0,)
    assert layout.token_roles([shown([]), shown([])])["image"].shape == (0,)
