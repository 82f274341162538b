"""What is read of a model's attention equals eager attention, and the model computes as it did."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AttentionInterface

from deixis.benchmarks import Item, Option
from deixis.hooks.attention import VISION_QUERIES, AttentionWatch
from deixis.hooks.attention_calls import AttentionCall
from deixis.hooks.attention_keys import AttentionError
from deixis.hooks.attention_plan import AttentionPlan
from deixis.hooks.attention_rows import AttentionRows
from deixis.hooks.attention_stats import STATISTICS
from deixis.hooks.attention_sums import MaskPlans, row_sums
from deixis.hooks.prompt_roles import with_prompt_roles
from deixis.models import FAMILIES, VLM
from tests.models.tiny import TINY, tiny_vlm
from tests.toys import toy_image, toy_item, toy_vlm

QUERIES = ("answer", "bos", "image", "object", "background", "text", "all")
each_family = pytest.mark.parametrize("architecture", [name for name in FAMILIES if name in TINY])


def family_items(vlm: VLM) -> list[Item]:
    """Of different lengths, so that all but one are padded; one shows two pictures, one has no object."""
    # Mllama gives other results where a batch has items of one picture and of two.
    second = toy_item(1) if vlm.family.image_tokens == "cross" else toy_item(1, images=(toy_image(1), toy_image(2)))
    return [toy_item(0), second, toy_item(2), toy_item(4)]


@contextmanager
def eager(vlm: VLM) -> Iterator[None]:
    """The model with eager attention everywhere, which returns its weights."""
    before = {part: part.config._attn_implementation for part in vlm.model.modules() if hasattr(part, "config")}
    vlm.model.set_attn_implementation("eager")
    try:
        yield
    finally:
        for part, name in before.items():
            part.config._attn_implementation = {"": name}


@dataclass(frozen=True)
class Eager:
    """What was seen of one forward pass under eager attention, and the weights that it returned itself."""

    seen: dict[str, np.ndarray]
    rows: dict[int, list[Tensor]]
    decoder: dict[int, np.ndarray]
    """Weights (item head query key) of every decoder layer."""
    vision: dict[int, list[np.ndarray]]
    """Weights of every call in every vision block."""


@cache
def under_eager(architecture: str) -> Eager:
    """One pass, so that the model's layers have no part in any difference."""
    vlm = tiny_vlm(architecture)
    items = family_items(vlm)
    inputs = vlm.prepare(items)
    plan = AttentionPlan(queries=QUERIES, vision=vlm.family.vision_blocks is not None)
    with eager(vlm), noted_weights(vlm) as (decoder, vision), torch.no_grad():
        seen = watched(vlm, items, plan)[0]
        decoder.clear()
        vision.clear()
        with AttentionRows(vlm, "all") as watch:
            watch.follow(inputs, items)
            vlm.reset()
            vlm.model(**inputs)
            rows = watch.read()
        vlm.reset()
    return Eager(seen, rows, decoder, vision)


@contextmanager
def noted_weights(vlm: VLM) -> Iterator[tuple[dict[int, np.ndarray], dict[int, list[np.ndarray]]]]:
    """The weights that the models' own eager functions return."""
    decoder: dict[int, np.ndarray] = {}
    vision: dict[int, list[np.ndarray]] = {}
    owner: dict[Any, tuple[str, int]] = {vlm.attention_of(layer)[1]: ("decoder", layer) for layer in range(vlm.n_layers)}
    if vlm.family.vision_blocks is not None:
        owner |= {vlm.vision_attention_of(layer): ("vision", layer) for layer in range(len(vlm.vision_block_modules))}
    homes = {sys.modules[type(module).__module__] for module in owner}

    def noting(original: Any) -> Any:
        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(module, *args, **kwargs)
            part, layer = owner.get(module, ("neither", -1))  # a pooling head, say
            weights = result[1].double().numpy()
            if part == "decoder":
                decoder[layer] = weights
            elif part == "vision":
                vision.setdefault(layer, []).append(weights)
            return result

        return forward

    with pytest.MonkeyPatch.context() as patch:
        for home in homes:
            if hasattr(home, "eager_attention_forward"):
                patch.setattr(home, "eager_attention_forward", noting(home.eager_attention_forward))
        yield decoder, vision


def watched(vlm: VLM, items: Sequence[Item], plan: AttentionPlan) -> tuple[dict[str, np.ndarray], Tensor]:
    inputs = vlm.prepare(items)
    with torch.no_grad(), AttentionWatch(vlm, plan) as watch:
        watch.follow(inputs, items)
        vlm.reset()
        logits = vlm.model(**inputs).logits
        seen = watch.read()
    vlm.reset()
    return seen, logits


def bare(vlm: VLM, items: Sequence[Item]) -> Tensor:
    vlm.reset()
    with torch.no_grad():
        logits = vlm.model(**vlm.prepare(items)).logits
    vlm.reset()
    return logits


def naive(rows: np.ndarray, queries: np.ndarray, allowed: np.ndarray, groups: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Statistics of one item's rows (head query key), written down from their definitions."""
    found: dict[str, list[np.ndarray]] = {"entropy": [], "max_weight": [], "effective_keys": [], "keys": []}
    mass: dict[str, list[np.ndarray]] = {name: [] for name in groups}
    share: dict[str, list[float]] = {name: [] for name in groups}
    for query in np.flatnonzero(queries):
        p, n = rows[:, query], int(allowed[query].sum())
        h = -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0), axis=-1)
        if n > 1:
            found["entropy"].append(h / np.log(n))
        found["max_weight"].append(p.max(axis=-1))
        found["effective_keys"].append(np.exp(h))
        found["keys"].append(np.full(len(p), n))
        for name, group in groups.items():
            mass[name].append(p[:, group].sum(axis=-1))
            share[name].append(float((allowed[query] & group).sum() / n))
    result = {name: np.mean(values, axis=0) if values else np.full(len(rows), np.nan) for name, values in found.items()}
    for name in groups:
        if mass[name]:
            result[f"{name}_mass"] = np.mean(mass[name], axis=0)
            total = np.mean(share[name])
            result[f"{name}_lift"] = result[f"{name}_mass"] / total if total else np.full(len(rows), np.nan)
    return result


@each_family
def test_logits_are_those_of_the_unwatched_model_and_its_implementation_comes_back(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    items = family_items(vlm)
    before = {id(p): p.config._attn_implementation for p in vlm.model.modules() if hasattr(p, "config")}
    expected = bare(vlm, items)
    # Counted after a first pass: some vision towers leave hooks of transformers behind.
    hooks = sum(len(m._forward_pre_hooks) + len(m._forward_hooks) for m in vlm.model.modules())
    vision = vlm.family.vision_blocks is not None
    _, logits = watched(vlm, items, AttentionPlan(queries=QUERIES, vision=vision))
    assert torch.equal(logits, expected)
    assert {id(p): p.config._attn_implementation for p in vlm.model.modules() if hasattr(p, "config")} == before
    assert sum(len(m._forward_pre_hooks) + len(m._forward_hooks) for m in vlm.model.modules()) == hooks
    assert torch.equal(bare(vlm, items), expected)


@each_family
def test_rows_equal_those_that_eager_attention_returns(architecture: str) -> None:
    found = under_eager(architecture)
    real = masks(tiny_vlm(architecture), family_items(tiny_vlm(architecture)))["all"]
    assert set(found.rows) == set(found.decoder)
    for layer, rows in found.rows.items():
        for number, own in enumerate(rows):
            np.testing.assert_allclose(own.numpy(), found.decoder[layer][number][:, real[number]], atol=1e-5, rtol=0)


@each_family
def test_rows_times_values_are_what_sdpa_returns(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round: that the mask was understood is seen in the output of an implementation that has no rows to show."""
    vlm = tiny_vlm(architecture)
    items = family_items(vlm)
    inputs = vlm.prepare(items)
    returned: dict[Any, tuple[Tensor, Tensor]] = {}
    original = AttentionInterface._global_mapping["sdpa"]

    def noting(module: Any, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = original(module, query, key, value, *args, **kwargs)
        returned[module] = (value, result[0])
        return result

    monkeypatch.setitem(AttentionInterface._global_mapping, "sdpa", noting)
    with torch.no_grad(), AttentionRows(vlm, "all") as watch:
        watch.follow(inputs, items)
        vlm.reset()
        vlm.model(**inputs)
        rows = watch.read()
    vlm.reset()
    real = inputs["attention_mask"].bool()
    softly_capped = [layer for layer in rows if vlm.attention_of(layer)[1].config._attn_implementation == "eager"]
    assert not softly_capped or architecture == "PaliGemmaForConditionalGeneration"  # SDPA can't, so it does not run under it
    for layer, found in rows.items():
        if layer in softly_capped:
            continue
        value, output = returned[vlm.attention_of(layer)[1]]
        value = value.repeat_interleave(output.shape[2] // value.shape[1], dim=1)
        for number, own in enumerate(found):
            expected = output[number][real[number]].transpose(0, 1)
            torch.testing.assert_close(own @ value[number][:, : own.shape[-1]], expected, atol=1e-5, rtol=1e-5)


def masks(vlm: VLM, items: Sequence[Item]) -> dict[str, np.ndarray]:
    inputs = vlm.prepare(items)
    roles = {name: mask.numpy() for name, mask in vlm.token_roles(inputs, items).items()}
    return roles | {"all": inputs["attention_mask"].bool().numpy()}


@each_family
def test_statistics_over_all_queries_are_those_of_eager_rows(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    items = family_items(vlm)
    seen, expected = under_eager(architecture).seen, under_eager(architecture).decoder
    roles = masks(vlm, items)
    compared = 0
    for layer, number in [(layer, number) for layer in expected for number in range(len(items))]:
        rows = expected[layer][number]
        if rows.shape[-1] != roles["all"].shape[1]:
            continue  # cross-attention: its keys are not the sequence; see below
        allowed = (rows > 0).any(axis=0)
        groups = {name: roles[name][number] for name in ("bos", "image", "object", "background", "text")}
        for q, query in enumerate(QUERIES):
            by_hand = naive(rows, roles[query][number], allowed, groups)
            for name, value in by_hand.items():
                if name in STATISTICS:
                    found = seen["attention/values"][number, layer, : len(value), q, STATISTICS.index(name)]
                    np.testing.assert_allclose(found, value, atol=1e-5, rtol=2e-5, err_msg=f"{layer} {number} {query} {name}")
                    compared += np.isfinite(value).sum()
    assert compared > 500


@each_family
def test_maps_are_the_mean_weights_on_the_image_tokens(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    items = family_items(vlm)
    if vlm.family.image_tokens == "cross":
        pytest.skip("its image tokens are no positions")
    seen, expected = under_eager(architecture).seen, under_eager(architecture).decoder
    roles = masks(vlm, items)
    ends = np.cumsum(seen["image_tokens/count"])
    for layer, number in [(layer, number) for layer in expected for number in range(len(items))]:
        tokens = slice(ends[number] - seen["image_tokens/count"][number], ends[number])
        for query in ("answer", "text"):
            q = QUERIES.index(query)
            mean = expected[layer][number][:, roles[query][number]].mean(axis=1)[:, roles["image"][number]]
            np.testing.assert_allclose(seen["attention/maps"][tokens, layer, :, q], mean.T, atol=1e-6, rtol=1e-3)


@each_family
def test_the_vision_towers_calls_are_joined_per_layer(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    items = family_items(vlm)
    if vlm.family.vision_blocks is None:
        pytest.skip("it has no vision tower")
    seen, expected = under_eager(architecture).seen, under_eager(architecture).vision
    layout = vlm.layout(vlm.prepare(items), items)
    feeds = layout.token_of_row("vision").numpy()
    roles = {name: mask.numpy() for name, mask in layout.token_roles(items).items()}
    assert set(expected) == set(range(seen["vision_attention/values"].shape[1]))
    for layer, calls in expected.items():
        sequences = [sequence for call in calls for sequence in call]
        assert sum(len(s[0]) for s in sequences) == len(feeds)
        sums: dict[tuple[int, str], list[np.ndarray]] = {}
        on_token = np.zeros((len(roles["image"]), len(sequences[0]), len(VISION_QUERIES)))
        at = 0
        for rows in sequences:  # head query key
            to = feeds[at : at + rows.shape[1]]
            at += rows.shape[1]
            for q, query in enumerate(VISION_QUERIES):
                for place in np.flatnonzero((to >= 0) & roles[query][to.clip(0)]):
                    p = rows[:, place]
                    h = -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0), axis=-1) / np.log(
                        (p > 0).any(axis=0).sum()
                    )
                    item = int(layout.item[to[place]])
                    sums.setdefault((item, query), []).append(np.stack([h, p.max(axis=-1)]))
                    np.add.at(on_token[:, :, q], to[to >= 0], p[:, to >= 0].T)
        for (item, query), values in sums.items():
            q = VISION_QUERIES.index(query)
            found = seen["vision_attention/values"][item, layer, :, q]
            np.testing.assert_allclose(found[:, STATISTICS.index("entropy")], np.mean(values, axis=0)[0], atol=1e-5)
            np.testing.assert_allclose(found[:, STATISTICS.index("max_weight")], np.mean(values, axis=0)[1], atol=1e-5)
            mine = layout.item.numpy() == item
            mean = on_token[mine, :, q] / len(values)
            np.testing.assert_allclose(seen["vision_attention/maps"][mine, layer, :, q], mean, atol=1e-5, rtol=1e-3)
            marked = mine & roles["object"]
            mass = on_token[marked, :, q].sum(axis=0) / len(values)
            np.testing.assert_allclose(found[:, STATISTICS.index("object_mass")], mass, atol=1e-5)


def test_the_tiny_families_have_what_makes_attention_hard() -> None:
    """Otherwise the tests above would show nothing about it."""
    found = under_eager("Gemma3ForConditionalGeneration")
    vlm = tiny_vlm("Gemma3ForConditionalGeneration")
    image = masks(vlm, family_items(vlm))["image"][1]
    ahead = np.triu(np.ones_like(found.decoder[0][1][0], bool), k=1)
    both = image[:, None] & image[None, :] & ahead
    assert (found.decoder[0][1][0][both] > 0).any(), "image tokens see each other in both directions"
    assert not (found.decoder[0][1][0][ahead & ~both] > 0).any()
    kinds = [layer for layer, kind in enumerate(vlm.text_config.layer_types) if kind == "sliding_attention"]
    window = vlm.text_config.sliding_window
    assert kinds
    assert window < found.decoder[0][0].shape[-1]
    text = ~image
    far = np.tril(np.ones_like(ahead), k=-window) & text[:, None] & text[None, :]
    assert not (found.decoder[kinds[0]][1][:, far] > 0).any(), "a sliding window ends"
    capped = tiny_vlm("PaliGemmaForConditionalGeneration")
    assert capped.text_config.attn_logit_softcapping < 60
    assert max(vlm.attention_of(0)[1].num_key_value_groups for vlm in (vlm, capped)) > 1
    lengths = masks(vlm, family_items(vlm))["all"].sum(axis=1)
    assert len(set(lengths.tolist())) > 1, "rows are padded"


def test_learned_sinks_take_their_part_as_in_gpt_oss() -> None:
    from transformers import GptOssConfig
    from transformers.models.gpt_oss import modeling_gpt_oss as gpt_oss

    torch.manual_seed(0)
    config = GptOssConfig(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8, num_hidden_layers=1)
    module = gpt_oss.GptOssAttention(config, layer_idx=0)
    torch.nn.init.normal_(module.sinks)
    query, key, value = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 8)
    mask = torch.triu(torch.full((6, 6), torch.finfo(torch.float32).min), 1)[None, None].expand(2, 1, 6, 6)
    _, expected = gpt_oss.eager_attention_forward(module, query, key, value, mask, scaling=0.3)
    call = AttentionCall.of(module, "eager", query, key, mask, {"scaling": 0.3})
    rows = call.rows(torch.arange(6))
    torch.testing.assert_close(rows, expected, atol=1e-6, rtol=0)
    sums = row_sums(call, torch.ones(2, 1, 6), MaskPlans())
    torch.testing.assert_close(sums.weights[:, :, 0], expected.sum(dim=2))
    torch.testing.assert_close(sums.learned_sink[..., 0], (1 - expected.sum(dim=-1)).sum(dim=-1))
    whole = torch.cat([expected, 1 - expected.sum(dim=-1, keepdim=True)], dim=-1)
    entropy = torch.special.entr(whole).sum(dim=-1)
    torch.testing.assert_close(sums.effective_keys[..., 0], entropy.exp().sum(dim=-1))
    n = torch.arange(1, 7)
    torch.testing.assert_close(sums.entropy[..., 0], (entropy / (n + 1).log())[..., 1:].sum(dim=-1))


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_blocks_do_not_change_the_sums(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    mask = torch.rand(2, 1, 50, 50) < 0.3
    mask |= torch.eye(50, dtype=torch.bool)
    call = AttentionCall(query=torch.randn(2, 4, 50, 8), key=torch.randn(2, 2, 50, 8), mask=mask, causal=True, scale=0.5)
    member = (torch.rand(2, 3, 50) < 0.5).float()
    monkeypatch.setattr("deixis.hooks.attention_sums.BLOCK_BYTES", block * 4 * 2 * 4 * 50)
    sums = row_sums(call, member, MaskPlans())
    rows = call.rows(torch.arange(50))
    torch.testing.assert_close(sums.weights, torch.einsum("bhqk,brq->bhrk", rows, member))
    torch.testing.assert_close(sums.max_weight, torch.einsum("bhq,brq->bhr", rows.amax(dim=-1), member))
    uniform = mask[:, 0].float() / mask[:, 0].sum(dim=-1, keepdim=True)
    torch.testing.assert_close(sums.uniform, torch.einsum("bqk,brq->brk", uniform, member))


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


def test_linear_layers_are_not_applicable() -> None:
    vlm = tiny_vlm("Qwen3_5ForConditionalGeneration")
    watch = AttentionWatch(vlm)
    kinds = vlm.text_config.layer_types
    assert watch.not_applicable == tuple(n for n, kind in enumerate(kinds) if kind == "linear_attention")
    assert watch.not_applicable
    values = under_eager("Qwen3_5ForConditionalGeneration").seen["attention/values"]
    assert np.isnan(values[:, list(watch.not_applicable)]).all()
    with pytest.raises(AttentionError, match="has softmax attention; watch other layers"):
        AttentionWatch(vlm, AttentionPlan(layers=watch.not_applicable))


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
