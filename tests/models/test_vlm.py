"""Preparing inputs, first tokens and the lens."""

from dataclasses import replace

import pytest
import torch

from deixis.benchmarks import Option
from deixis.models import VLM
from tests.toys import N_LAYERS, toy_item, toy_items, toy_vlm


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


def test_prepare_gives_only_what_the_model_takes(vlm: VLM) -> None:
    inputs = vlm.prepare(list(toy_items(3)))
    assert "inputs_embeds" not in inputs
    assert {"input_ids", "attention_mask", "mm_token_type_ids", "pixel_values", "image_grid_thw"} == set(inputs)


def test_a_batch_equals_singles_in_float64() -> None:
    vlm = toy_vlm(torch.float64)
    items = list(toy_items(5))
    vlm.reset()
    with torch.inference_mode():
        together = vlm.model(**vlm.prepare(items)).logits[:, -1]
        for row, item in enumerate(items):
            vlm.reset()
            alone = vlm.model(**vlm.prepare([item])).logits[0, -1]
            torch.testing.assert_close(together[row], alone, rtol=0, atol=1e-10)


def test_positions_of_an_earlier_pass_are_forgotten(vlm: VLM) -> None:
    with torch.inference_mode():
        vlm.model(**vlm.prepare([toy_item(0)]))
    assert vlm.model.model.rope_deltas is not None
    vlm.reset()
    assert vlm.model.model.rope_deltas is None


def test_an_item_without_a_picture_can_be_asked(vlm: VLM) -> None:
    item = replace(toy_item(0), images=(), objects=())
    inputs = vlm.prepare([item])
    assert "pixel_values" not in inputs
    assert not vlm.token_roles(inputs, [item])["image"].any()


def test_no_item_and_too_long_a_prompt_are_refused(vlm: VLM) -> None:
    with pytest.raises(ValueError, match="got no item"):
        vlm.prepare([])
    context = vlm.text_config.max_position_embeddings
    with pytest.raises(ValueError, match="does not fit the model's context"):
        vlm.prepare([replace(toy_item(0), prompt="this " * (context + 1))])


def test_first_tokens_are_distinct_and_never_bare_space(vlm: VLM) -> None:
    option = Option(label="this", forms=("This", " This", "This one", "   this"))
    first = vlm.first_tokens(option)
    assert len(set(first)) == len(first)
    assert [vlm.tokenizer.decode([token]) for token in first] == ["This", " This"]


def test_chosen_tokens_of_the_lens_equal_the_whole_vocabulary(vlm: VLM) -> None:
    resid = torch.randn(4, vlm.d_model, generator=torch.Generator().manual_seed(1))
    whole = vlm.logits(resid)
    torch.testing.assert_close(vlm.logits_of(resid, [3, 7]), whole[:, [3, 7]])
    by_hand = torch.nn.functional.linear(vlm.final_norm(resid), vlm.head.weight)
    torch.testing.assert_close(whole, by_hand)


def test_a_soft_cap_in_the_config_is_respected() -> None:
    vlm = toy_vlm()
    resid = 10 * torch.randn(2, vlm.d_model, generator=torch.Generator().manual_seed(1))
    plain = vlm.logits(resid)
    vlm.text_config.final_logit_softcapping = 2.0
    torch.testing.assert_close(vlm.logits(resid), 2 * torch.tanh(plain / 2))


def test_the_view_shows_the_models_own_parts(vlm: VLM) -> None:
    assert vlm.n_layers == N_LAYERS
    assert vlm.blocks[0] is vlm.model.model.language_model.layers[0]
    assert "3 layers of width 32" in repr(vlm)
