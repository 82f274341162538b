"""Roles are checked against token ids and pixels, not against themselves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from deixis.benchmarks import Box, Item
from deixis.benchmarks.images import FileImage, UniformImage
from deixis.hooks import Watch
from deixis.models import VLM, load
from deixis.models.layout import Layout, PictureLayout, grid_boxes
from deixis.models.roles import token_roles
from tests.models.pictures import inverted, noise, shown
from tests.models.tiny import tiny_vlm
from tests.toys import SIDE, toy_item, toy_items, toy_vlm


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


def test_every_position_is_padding_text_or_image(vlm: VLM) -> None:
    items = list(toy_items(5))
    inputs = vlm.prepare(items)
    roles = vlm.token_roles(inputs, items)
    total = roles["text"].int() + roles["image"].int() + (~inputs["attention_mask"].bool()).int()
    assert (total == 1).all()
    assert torch.equal(roles["image"], inputs["input_ids"] == vlm.image_token_id)
    assert torch.equal(roles["object"] | roles["background"], roles["image"])
    assert not (roles["object"] & roles["background"]).any()


def test_answer_is_the_last_column_and_bos_the_first_real_one(vlm: VLM) -> None:
    items = list(toy_items(5))
    inputs = vlm.prepare(items)
    roles = vlm.token_roles(inputs, items)
    assert roles["answer"][:, -1].all()
    assert roles["answer"].sum() == 5
    for row, mask in zip(roles["bos"], inputs["attention_mask"], strict=True):
        assert row.nonzero().item() == mask.tolist().index(1)


def test_object_tokens_are_those_whose_pixels_lie_in_the_box(vlm: VLM, tmp_path: Any) -> None:
    """Second route: paint the box into a picture and see which rows of the processor's patches change."""
    box = Box(name="disk", left=34.0, top=3.0, right=60.0, bottom=20.0)
    plain = np.full((SIDE, SIDE, 3), 128, np.uint8)
    painted = plain.copy()
    painted[3:20, 34:60] = 255
    images = []
    for name, pixels in (("plain", plain), ("painted", painted)):
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
        images.append(FileImage(path=tmp_path / f"{name}.png"))
    items = [replace(toy_item(0), images=(image,), objects=(box,)) for image in images]
    before, after = (vlm.prepare([item])["pixel_values"] for item in items)
    changed = (before != after).any(dim=1).reshape(-1, 4).any(dim=1)  # four patches merge into one token
    inputs = vlm.prepare(items[:1])
    roles = vlm.token_roles(inputs, items[:1])
    assert torch.equal(roles["object"][0][roles["image"][0]], changed)
    assert 0 < changed.sum() < len(changed)


def layout_of(grid: tuple[int, int], width: float = SIDE, height: float = SIDE) -> Layout:
    picture = PictureLayout(grids=(grid,), boxes=grid_boxes(grid, (0, 0, width, height)), rows={})
    return Layout(pictures=(picture,), images_per_item=(1,))


def test_a_box_that_only_touches_a_patch_does_not_overlap_it() -> None:
    item = replace(toy_item(0), objects=(Box(name="a", left=32.0, top=32.0, right=64.0, bottom=64.0),))
    assert layout_of((2, 2)).token_roles([item])["object"].tolist() == [False, False, False, True]


def test_two_pictures_have_roles_of_their_own(vlm: VLM) -> None:
    boxes = (
        Box(name="a", left=0.0, top=0.0, right=10.0, bottom=10.0),
        Box(name="b", left=40.0, top=40.0, right=60.0, bottom=60.0, image=1),
    )
    wide = UniformImage(width=2 * SIDE, height=SIDE)
    item = replace(toy_item(0), images=(toy_item(0).images[0], wide), objects=boxes)
    single = toy_item(1)
    inputs = vlm.prepare([item, single])
    roles = vlm.token_roles(inputs, [item, single])
    assert roles["image:0"].sum(dim=1).tolist() == [4, 4]
    assert roles["image:1"].sum(dim=1).tolist() == [8, 0]
    assert torch.equal(roles["object:0"] | roles["object:1"], roles["object"])
    first, second = (roles[f"image:{i}"][0].nonzero()[:, 0] for i in (0, 1))
    assert first.max() < second.min()
    assert roles["object:0"][0][first].tolist() == [True, False, False, False]


def test_right_padding_is_refused() -> None:
    inputs = {"input_ids": torch.tensor([[1, 2, 0]]), "attention_mask": torch.tensor([[1, 1, 0]])}
    with pytest.raises(ValueError, match="padded on the right"):
        token_roles(inputs, [replace(toy_item(0), images=())], 9, Layout(pictures=(), images_per_item=(0,)))


def test_a_layout_that_does_not_fit_the_tokens_is_refused() -> None:
    inputs = {"input_ids": torch.tensor([[9, 9, 1]]), "attention_mask": torch.tensor([[1, 1, 1]])}
    with pytest.raises(ValueError, match="has 2 image tokens, but its pictures' layout holds 4"):
        token_roles(inputs, [toy_item(0)], 9, layout_of((2, 2)))


def test_an_image_token_in_the_prompt_is_refused(vlm: VLM) -> None:
    item: Item = replace(toy_item(0), prompt="look at <|image_pad|> this")
    with pytest.raises(ValueError, match=r"image token"):
        vlm.prepare([item])


def test_a_pictures_own_role_does_not_depend_on_the_rest_of_the_batch(vlm: VLM) -> None:
    single = [toy_item(1)]
    roles = vlm.token_roles(vlm.prepare(single), single)
    assert torch.equal(roles["image:0"], roles["image"])
    assert torch.equal(roles["object:0"], roles["object"])


ANCHORED = (
    Box(name="anchor_a", left=3.0, top=4.0, right=20.0, bottom=20.0),
    Box(name="anchor_b", left=40.0, top=40.0, right=60.0, bottom=60.0, image=1),
    Box(name="target", left=36.0, top=3.0, right=60.0, bottom=20.0, image=1),
)


@pytest.mark.parametrize("name", ["pico", "Gemma3ForConditionalGeneration"])
def test_anchors_are_roles_of_their_own_and_no_object(name: str) -> None:
    """Second route: invert one box's pixels at a time and see which image tokens' pixels change."""
    vlm = load("pico", check=False) if name == "pico" else tiny_vlm(name)
    pictures = [noise(SIDE, SIDE), noise(SIDE, SIDE, 1)]
    item = replace(shown(pictures), objects=ANCHORED)
    inputs = vlm.prepare([item])
    roles, layout = vlm.token_roles(inputs, [item]), vlm.layout(inputs, [item])
    under = {}
    for box in ANCHORED:
        painted = [inverted(p, box.left, box.top, box.right, box.bottom) if k == box.image else p for k, p in enumerate(pictures)]
        different = [(a.pixels != b.pixels).any(axis=2) for a, b in zip(pictures, painted, strict=True)]
        shows = [
            not np.isnan(edges).any() and different[k][_pixels(edges)].any()
            for edges, k in zip(layout.boxes.numpy(), layout.number.tolist(), strict=True)
        ]
        under[box.name] = torch.tensor(shows)
    of_tokens = {role: mask[0][roles["image"][0]] for role, mask in roles.items()}
    assert torch.equal(of_tokens["object"], under["target"])
    assert torch.equal(of_tokens["anchor_a"], under["anchor_a"])
    assert torch.equal(of_tokens["anchor_b"], under["anchor_b"])
    assert torch.equal(of_tokens["background"], ~(under["target"] | under["anchor_a"] | under["anchor_b"]))
    assert torch.equal(of_tokens["anchor_a:0"], under["anchor_a"])
    assert torch.equal(of_tokens["anchor_b:1"], under["anchor_b"])
    assert not of_tokens["anchor_a:1"].any()
    assert not of_tokens["anchor_b:0"].any()
    assert of_tokens["anchor_a"].any()
    assert of_tokens["anchor_b"].any()


def _pixels(edges: np.ndarray) -> tuple[slice, slice]:
    left, top, right, bottom = edges
    return slice(int(np.floor(top)), int(np.ceil(bottom))), slice(int(np.floor(left)), int(np.ceil(right)))


def test_an_anchor_holds_what_an_object_in_its_place_would_hold_in_the_decoder_and_the_tower(vlm: VLM) -> None:
    anchor = replace(toy_item(0), objects=(ANCHORED[0],))
    thing = replace(anchor, objects=(replace(ANCHORED[0], name="sofa"),))
    seen = {}
    for name, item in (("anchor", anchor), ("thing", thing)):
        with Watch(vlm, sites=("resid", "merger_out"), layers="all", roles=("anchor_a:0", "object", "anchor_b")) as watch:
            inputs = vlm.prepare([item])
            watch.expect(inputs, [item])
            vlm.model(**inputs)
            seen[name] = watch.read()
    for site in ("resid", "merger_out"):
        as_anchor, as_thing = (seen[name][site, 0, role].values for name, role in (("anchor", "anchor_a:0"), ("thing", "object")))
        assert torch.equal(as_anchor, as_thing)
        assert not as_anchor.isnan().any()
        assert seen["anchor"][site, 0, "object"].values.isnan().all()
        assert seen["thing"][site, 0, "anchor_a:0"].values.isnan().all()
        assert seen["thing"][site, 0, "anchor_b"].values.isnan().all()
