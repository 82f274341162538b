"""A watched model is left as it was found, and what cannot be watched is refused by name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AttentionInterface

from deixis.benchmarks import Option
from deixis.hooks.attention import AttentionWatch
from deixis.hooks.attention_calls import AttentionCall
from deixis.hooks.attention_keys import AttentionError
from deixis.hooks.attention_plan import AttentionPlan
from deixis.hooks.attention_stats import STATISTICS
from deixis.hooks.attention_sums import MaskPlans, row_sums
from deixis.hooks.prompt_roles import with_prompt_roles
from deixis.models import VLM
from tests.hooks.attention_passes import bare, watched
from tests.toys import toy_item, toy_vlm


@contextmanager
def implementation(vlm: VLM, name: str) -> Iterator[None]:
    """The decoder's config says that it uses ``name``."""
    config = vlm.text_config
    before = config._attn_implementation
    config._attn_implementation = {"": name}
    try:
        yield
    finally:
        config._attn_implementation = {"": before}


def test_the_implementation_comes_back_after_an_error_too() -> None:
    vlm = toy_vlm()
    items = [toy_item(0)]
    inputs = vlm.prepare(items)

    def stopped() -> None:
        with AttentionWatch(vlm) as watch:
            watch.follow(inputs, items)
            assert vlm.text_config._attn_implementation == "deixis_sdpa"
            assert vlm.model.config.vision_config._attn_implementation == "sdpa", "only what is watched"
            raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        stopped()
    assert vlm.text_config._attn_implementation == "sdpa"
    assert torch.equal(bare(vlm, items), bare(vlm, items))


def test_no_function_of_transformers_is_replaced() -> None:
    before = dict(AttentionInterface._global_mapping)
    vlm, other = toy_vlm(), toy_vlm(seed=1)
    items = [toy_item(0)]
    expected = bare(other, items)
    with AttentionWatch(vlm):
        assert torch.equal(bare(other, items), expected)
    after = AttentionInterface._global_mapping
    assert {name: after[name] for name in before} == before


def test_padding_reaches_the_model_while_it_is_watched() -> None:
    """A twin without its mask function would silently ignore it."""
    vlm = toy_vlm()
    items = [toy_item(0), toy_item(4)]
    seen, logits = watched(vlm, items, AttentionPlan())
    alone, single = watched(vlm, items[:1], AttentionPlan())
    torch.testing.assert_close(logits[0, -1], single[0, -1], atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(seen["attention/values"][0], alone["attention/values"][0], atol=1e-4, rtol=1e-3)


def test_two_watches_of_one_model_are_refused() -> None:
    vlm = toy_vlm()
    with AttentionWatch(vlm), pytest.raises(AttentionError, match="watched already; leave the other watch first"):
        AttentionWatch(vlm, AttentionPlan(layers=(0,)))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("flash_attention_2", "set to 'flash_attention_2', which does not run on a CPU; load with attn_implementation='sdpa'"),
        (
            "flex_attention",
            "implementation 'flex_attention', which can't be read; load the model with attn_implementation='sdpa'",
        ),
        ("secret", "no attention implementation 'secret' that transformers knows of"),
    ],
)
def test_what_can_not_be_read_is_named_with_the_way_out(name: str, words: str) -> None:
    vlm = toy_vlm()
    with implementation(vlm, name), pytest.raises(AttentionError, match=f"Qwen3VLTextAttention .*{words}"):
        AttentionWatch(vlm)


class OwnKernel(torch.nn.Module):
    """An attention of its own: it never asks transformers for one."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.is_causal = True

    def forward(self, hidden_states: Tensor, **_: Any) -> tuple[Tensor, None]:
        return hidden_states, None


def test_an_attention_with_a_kernel_of_its_own_is_named() -> None:
    vlm = toy_vlm()
    vlm.blocks[1].self_attn = OwnKernel(vlm.text_config)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttentionError, match=r"decoder layer 1 \(OwnKernel\) was never called through transformers'"):
        watched(vlm, [toy_item(0)], AttentionPlan())
    seen, _ = watched(vlm, [toy_item(0)], AttentionPlan(layers=(0, 2)))
    assert np.isfinite(seen["attention/values"][..., STATISTICS.index("entropy")]).all()
    vlm.blocks[1].self_attn.config = None  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]
    with pytest.raises(AttentionError, match="OwnKernel does not choose its attention through transformers' AttentionInterface"):
        AttentionWatch(vlm)


def test_a_pass_without_follow_is_refused() -> None:
    vlm = toy_vlm()
    with AttentionWatch(vlm), pytest.raises(AttentionError, match=r"ran without follow\(\) before it"):
        bare(vlm, [toy_item(0)])


def test_flash_is_told_its_rules_in_other_words() -> None:
    """Padding as a mask of keys, a window, packed sequences: as a mask they are what flash attention computes."""
    torch.manual_seed(0)
    module = torch.nn.Module()
    module.is_causal = True  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]
    query, key = torch.randn(2, 2, 6, 4), torch.randn(2, 2, 6, 4)
    padding = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
    call = AttentionCall.of(module, "flash_attention_2", query, key, padding, {"sliding_window": 3, "is_causal": True})
    rows = call.rows(torch.arange(2, 6))
    at = torch.arange(6)
    allowed = (at[None] <= at[:, None]) & (at[None] > at[:, None] - 3)
    for sequence in range(2):
        mine = allowed & padding[sequence].bool()[None]
        scores = (query[sequence] @ key[sequence].transpose(1, 2) / 2).masked_fill(~mine, -torch.inf)
        torch.testing.assert_close(rows[sequence], scores.softmax(dim=-1)[:, 2:])
    packed = AttentionCall.of(
        module, "flash_attention_2", query[:1], key[:1], None, {"is_causal": False, "cu_seq_lens_q": torch.tensor([0, 2, 6])}
    )
    expected = torch.zeros(2, 6, 6)
    for part in (slice(0, 2), slice(2, 6)):
        expected[:, part, part] = (query[0][:, part] @ key[0][:, part].transpose(1, 2) / 2).softmax(dim=-1)
    torch.testing.assert_close(packed.rows(at)[0], expected)


def test_pruned_heads_are_missing_and_not_zero() -> None:
    vlm = toy_vlm()
    attention = vlm.blocks[1].self_attn
    with torch.no_grad():  # the second group of keys and its two heads
        for part, rows in ((attention.q_proj, 16), (attention.k_proj, 8), (attention.v_proj, 8)):
            part.weight = torch.nn.Parameter(part.weight[:rows])
        attention.o_proj.weight = torch.nn.Parameter(attention.o_proj.weight[:, :16])
    seen, _ = watched(vlm, [toy_item(0), toy_item(1)], AttentionPlan())
    values = seen["attention/values"][..., STATISTICS.index("max_weight")]
    assert np.isfinite(values[:, [0, 2]]).all()
    assert np.isfinite(values[:, 1, :2]).all()
    assert np.isnan(values[:, 1, 2:]).all()


def test_one_token_has_no_entropy() -> None:
    call = AttentionCall(query=torch.randn(1, 2, 1, 4), key=torch.randn(1, 2, 1, 4), mask=None, causal=False, scale=1.0)
    sums = row_sums(call, torch.ones(1, 1, 1), MaskPlans())
    assert sums.several.item() == 0
    torch.testing.assert_close(sums.max_weight, torch.ones(1, 2, 1))
    torch.testing.assert_close(sums.effective_keys, torch.ones(1, 2, 1))


def test_roles_of_the_prompts_own_words() -> None:
    vlm = toy_vlm()
    options = (Option(label="near", forms=("near",)), Option(label="far", forms=("far",)))
    items = [
        toy_item(0, prompt="is this near middle far", options=options),
        toy_item(1, prompt="far star this is nearfar", options=options),
    ]
    inputs = vlm.prepare(items)
    roles = with_prompt_roles(("last_text", "options", "all"), vlm.token_roles(inputs, items), inputs, items, vlm)

    def words(role: str, row: int) -> str:
        return vlm.tokenizer.decode(inputs["input_ids"][row][roles[role][row]])

    assert [words("last_text", 0), words("options", 0)] == [" far", " near far"]
    assert words("options", 1) == "far", "not within another word"
    assert roles["all"].sum(dim=1).tolist() == inputs["attention_mask"].sum(dim=1).tolist()
    seen, _ = watched(vlm, items, AttentionPlan(queries=("options",)))
    rows = seen["attention/values"][0, :, :, 0, STATISTICS.index("keys")]
    positions = (roles["options"][0].nonzero()[:, 0] - int(inputs["attention_mask"][0].argmax()) + 1).float()
    np.testing.assert_allclose(rows, float(positions.mean()))
    changed = dict(inputs) | {"input_ids": inputs["input_ids"].clone()}
    changed["input_ids"][0, -12:] = vlm.tokenizer("?", add_special_tokens=False).input_ids[0]
    with pytest.raises(ValueError, match="its prompt is not found in the model's input; leave out 'last_text' and 'options'"):
        with_prompt_roles(("options",), vlm.token_roles(inputs, items), changed, items, vlm)


def test_roles_of_the_prompts_own_words_where_the_prompt_says_where_pictures_stand() -> None:
    vlm = toy_vlm()
    options = (Option(label="near", forms=("near",)), Option(label="far", forms=("far",)))
    picture = toy_item(0).images[0]
    item = toy_item(0, prompt="this <image>\nthat <image>\nis this near or far", images=(picture, picture), options=options)
    inputs = vlm.prepare([item])
    roles = with_prompt_roles(("last_text", "options"), vlm.token_roles(inputs, [item]), inputs, [item], vlm)
    found = {role: vlm.tokenizer.decode(inputs["input_ids"][0][roles[role][0]]) for role in ("last_text", "options")}
    assert found == {"last_text": " far", "options": " near far"}
