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

from deixis.benchmarks import Item
from deixis.hooks.attention import VISION_QUERIES, AttentionWatch
from deixis.hooks.attention_calls import AttentionCall
from deixis.hooks.attention_keys import AttentionError
from deixis.hooks.attention_plan import AttentionPlan
from deixis.hooks.attention_rows import AttentionRows
from deixis.hooks.attention_stats import STATISTICS
from deixis.hooks.attention_sums import MaskPlans, row_sums
from deixis.models import FAMILIES, VLM
from tests.hooks.attention_passes import bare, watched
from tests.models.tiny import TINY, tiny_vlm
from tests.toys import toy_image, toy_item

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
