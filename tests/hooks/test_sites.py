"""Every site of every family, against plain hooks and sums made by hand."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from deixis.benchmarks import Box, Item
from deixis.hooks import SITES, Seen, Watch, WatchError
from deixis.models import FAMILIES, VLM
from deixis.models.checking.items import NoiseImage
from deixis.models.sites import SiteError, received, returned
from tests.models.tiny import tiny_vlm
from tests.toys import N_LAYERS, toy_item, toy_vlm

Kept = dict[tuple[str, int, str], Seen]
BOX = Box(name="disk", left=3.0, top=5.0, right=40.0, bottom=30.0)
EVERY_SITE = tuple(SITES)


def pictures(n: int) -> tuple[NoiseImage, ...]:
    """Of odd and of different sizes."""
    return tuple(NoiseImage(seed, *size) for seed, size in enumerate(((64, 64), (97, 61), (50, 120))[:n]))


def mixed_items(vlm: VLM) -> list[Item]:
    """Prompts of different lengths with one, two and no pictures, as far as the family takes them together."""
    one = toy_item(0, images=pictures(1), objects=(BOX,))
    two = toy_item(1, images=pictures(2), objects=(replace(BOX, image=1),))
    if not vlm.family.mixes_counts:
        return [one, toy_item(2, images=pictures(1), objects=())]
    if vlm.family.needs_picture:
        return [one, two]
    return [one, toy_item(3, images=(), objects=()), two]


def sites_of(vlm: VLM) -> tuple[str, ...]:
    missing = {"vision": vlm.family.vision_blocks, "merger_in": vlm.family.merger, "merger_out": vlm.family.merger}
    return tuple(site for site in SITES if missing.get(site, "there") is not None)


@torch.no_grad()
def watched(vlm: VLM, items: Sequence[Item], **arguments: Any) -> Kept:
    inputs = vlm.prepare(items)
    vlm.reset()
    try:
        with Watch(vlm, **arguments) as watch:
            watch.expect(inputs, items)
            vlm.model(**inputs)
            return watch.read()
    finally:
        vlm.reset()


def plain_modules(vlm: VLM) -> dict[tuple[str, int], tuple[nn.Module, str]]:
    """Module and side of every site and layer, written out again."""
    found: dict[tuple[str, int], tuple[nn.Module, str]] = {}
    for layer, block in enumerate(vlm.blocks):
        found["resid", layer] = (block, "in")
        attention = next(getattr(block, name) for name in vlm.family.attention if hasattr(block, name))
        found["attn_out", layer] = (attention, "out")
        found["mlp_out", layer] = (block.get_submodule(vlm.family.mlp), "out")
        for name in vlm.family.out_proj:
            if hasattr(attention, name):
                found["head", layer] = (getattr(attention, name), "in")
    found["resid", len(vlm.blocks)] = (vlm.final_norm, "in")
    if "vision" in sites_of(vlm):
        found |= {("vision", layer): (block, "out") for layer, block in enumerate(vlm.vision_block_modules)}
    if "merger_in" in sites_of(vlm):
        found |= {("merger_in", 0): (vlm.merger_module, "in"), ("merger_out", 0): (vlm.merger_module, "out")}
    return found


@torch.no_grad()
def by_plain_hooks(vlm: VLM, items: Sequence[Item]) -> dict[tuple[str, int], Tensor]:
    """What every site held, all of it, by hooks of the test's own; calls of a tower joined row by row."""
    kept: dict[tuple[str, int], list[Tensor]] = {}

    def note(point: tuple[str, int], value: Any) -> None:
        entries = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, (tuple, list)) else [value]
        tensor = next(entry for entry in entries if isinstance(entry, Tensor))
        if tensor.is_floating_point():
            kept.setdefault(point, []).append(tensor.clone())

    handles = []
    for point, (module, side) in plain_modules(vlm).items():
        if side == "in":
            handles.append(
                module.register_forward_pre_hook(
                    lambda _m, args, kwargs, p=point: note(p, [*args, *kwargs.values()]), with_kwargs=True
                )
            )
        else:
            handles.append(
                module.register_forward_hook(
                    lambda _m, args, out, p=point: None if args and not args[0].is_floating_point() else note(p, out)
                )
            )
    vlm.reset()
    vlm.model(**vlm.prepare(items))
    vlm.reset()
    for handle in handles:
        handle.remove()
    return {
        point: torch.cat([call.reshape(-1, call.shape[-1]) for call in calls]) if SITES[point[0]].vision else calls[0]
        for point, calls in kept.items()
    }


@contextmanager
def giving(module: nn.Module, forward: Any) -> Iterator[None]:
    module.forward, real = forward, module.forward
    try:
        yield
    finally:
        module.forward = real


def rows_by_hand(vlm: VLM, items: Sequence[Item], site: str, role: str) -> list[list[int]]:
    """The rows of the tower that belong to a role, item by item, token by token."""
    layout = vlm.layout(vlm.prepare(items), items)
    mask = layout.token_roles(items)[role].tolist()
    rows: list[list[int]] = [[] for _ in items]
    feeds = layout.token_of_row(site).tolist()
    for token, item in enumerate(layout.item.tolist()):
        rows[item] += [row for row, fed in enumerate(feeds) if fed == token and mask[token]]
    return rows


@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_site_holds_what_a_plain_hook_sees(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    items = mixed_items(vlm)
    roles = ("answer", "image", "object", "image:1")
    seen = watched(vlm, items, sites=sites_of(vlm), roles=roles, pool=None)
    plain = by_plain_hooks(vlm, items)
    assert {(site, layer) for site, layer, _ in seen} == set(plain)
    masks = vlm.token_roles(vlm.prepare(items), items)
    none = torch.zeros_like(masks["answer"])
    for (site, layer, role), found in seen.items():
        held = plain[site, layer]
        if not SITES[site].vision:
            expected, counts = held[masks.get(role, none)], masks.get(role, none).sum(dim=1).tolist()
        elif role == "image:1" and role not in vlm.layout(vlm.prepare(items), items).token_roles(items):
            expected, counts = held[:0], [0] * len(items)
        else:
            rows = rows_by_hand(vlm, items, site, role)
            expected, counts = held[[row for own in rows for row in own]], [len(own) for own in rows]
        assert found.counts.tolist() == counts, (site, layer, role)
        torch.testing.assert_close(found.values, expected, rtol=0, atol=0)
    shown = seen["vision" if "vision" in sites_of(vlm) else "resid", 0, "image"]
    assert int(shown.counts.sum()) > 0


@pytest.mark.parametrize("architecture", FAMILIES)
def test_means_over_the_towers_rows_equal_those_taken_by_hand(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    items = mixed_items(vlm)
    sites = tuple(site for site in sites_of(vlm) if SITES[site].vision)
    seen = watched(vlm, items, sites=sites, roles=("image", "object", "background"))
    plain = by_plain_hooks(vlm, items)
    for (site, layer, role), found in seen.items():
        for item, rows in enumerate(rows_by_hand(vlm, items, site, role)):
            held = plain[site, layer].double().numpy()
            expected = held[rows].mean(axis=0) if rows else np.full(held.shape[1], np.nan)
            np.testing.assert_allclose(found.values[item].numpy(), expected, rtol=1e-4, atol=1e-5)
        assert found.values.dtype == torch.float32


AROUND = ("post_feedforward_layernorm", "post_mlp_layernorm")
"""A norm of this name stands between the MLP and the residual stream: a block that is not plainly pre-norm."""


@pytest.mark.parametrize("architecture", FAMILIES)
def test_attention_and_mlp_add_up_to_the_step_of_the_residual_stream(architecture: str) -> None:
    """At text tokens, where DeepStack adds nothing; a gate on cross-attention, and norms behind a part, are applied by hand."""
    vlm = tiny_vlm(architecture)
    items = mixed_items(vlm)
    seen = watched(vlm, items, sites=("resid", "attn_out", "mlp_out"), roles=("text",), pool=None)
    plainly = 0
    for layer, block in enumerate(vlm.blocks):
        attention, mlp = (seen[site, layer, "text"].values for site in ("attn_out", "mlp_out"))
        step = seen["resid", layer + 1, "text"].values - seen["resid", layer, "text"].values
        if any(hasattr(block, name) for name in AROUND) or hasattr(block, "cross_attn_attn_gate"):
            assert float((step - attention - mlp).abs().max()) > 1e-3  # so that the plain sum would be wrong here
            continue
        plainly += 1
        torch.testing.assert_close(step, attention + mlp, rtol=1e-3, atol=1e-4)
    assert plainly or any(hasattr(vlm.blocks[0], name) for name in AROUND)


@pytest.mark.parametrize("architecture", FAMILIES)
def test_heads_through_the_projection_are_what_the_attention_returns(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    seen = watched(vlm, mixed_items(vlm), sites=("head", "attn_out"), roles=("answer",))
    layers = SITES["head"].layers(vlm)
    assert layers
    for layer in layers:
        heads = seen["head", layer, "answer"].values
        assert heads.shape[1] % vlm.n_heads == 0
        with torch.no_grad():
            projected = vlm.out_proj_of(layer)(heads)
        torch.testing.assert_close(projected, seen["attn_out", layer, "answer"].values, rtol=1e-4, atol=1e-5)


REPLACED = [name for name, family in FAMILIES.items() if family.merger is not None and family.image_tokens == "sequence"]


@pytest.mark.parametrize("architecture", REPLACED)
def test_what_the_merger_returns_is_what_enters_the_decoder_at_image_tokens(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    items = mixed_items(vlm)
    merged = watched(vlm, items, sites=("merger_out",), roles=("image",), pool=None)["merger_out", 0, "image"].values
    entered = watched(vlm, items, layers=[0], roles=("image",), pool=None)["resid", 0, "image"].values
    layout = vlm.layout(vlm.prepare(items), items)
    fed = torch.zeros(len(entered), dtype=torch.bool)
    fed[layout.token_of_row("merger_out").clamp(min=0)] = True  # line ends of LLaVA-NeXT come from no row
    with torch.no_grad():
        token = vlm.model.get_submodule(vlm.family.embeddings)(torch.tensor([vlm.image_token_id]))
    base = token if architecture.startswith("Molmo2") else 0  # added to the token's embedding, not put in its place
    torch.testing.assert_close(merged, entered[fed] - base, rtol=1e-4, atol=1e-5)


def test_a_tower_that_is_called_picture_by_picture_is_joined() -> None:
    vlm = tiny_vlm("Gemma3ForConditionalGeneration")
    encoder = vlm.model.model.vision_tower.encoder
    items, sites = mixed_items(vlm), ("vision", "merger_in", "merger_out")
    whole = watched(vlm, items, sites=sites, roles=("image", "object"), pool=None)
    means = watched(vlm, items, sites=sites, roles=("image", "object"))
    calls = []

    def one_by_one(inputs_embeds: Tensor, **_: Any) -> BaseModelOutput:
        done = []
        for picture in inputs_embeds:
            hidden = picture[None]
            for block in encoder.layers:
                hidden = block(hidden, attention_mask=None)
            done.append(hidden)
            calls.append(picture)
        return BaseModelOutput(last_hidden_state=torch.cat(done))

    with giving(encoder, one_by_one):
        again = watched(vlm, items, sites=sites, roles=("image", "object"), pool=None)
        again_means = watched(vlm, items, sites=sites, roles=("image", "object"))
    assert len(calls) == 6
    for one, two in ((whole, again), (means, again_means)):
        for key in one:
            torch.testing.assert_close(two[key].values, one[key].values, rtol=1e-5, atol=1e-6, equal_nan=True)
            assert two[key].counts.tolist() == one[key].counts.tolist()


@pytest.mark.parametrize("pool", ["mean", None])
def test_a_batch_without_pictures_has_no_rows_of_the_tower(pool: str | None) -> None:
    vlm = tiny_vlm("Qwen3VLForConditionalGeneration")
    bare = [toy_item(n, images=(), objects=()) for n in range(2)]
    arguments = {"sites": ("resid", "vision", "merger_in"), "roles": ("answer", "image"), "pool": pool}
    with_pictures = watched(vlm, [toy_item(0), toy_item(1)], **arguments)
    seen = watched(vlm, bare, **arguments)
    assert list(seen) == list(with_pictures)
    for key, found in seen.items():
        assert found.values.shape[1:] == with_pictures[key].values.shape[1:]
        assert found.values.dtype == with_pictures[key].values.dtype
        if key[2] == "image":
            assert found.counts.tolist() == [0, 0]
            assert found.values.isnan().all()
            assert len(found.values) == (2 if pool else 0)


def test_layers_that_a_batch_passes_by_hold_the_next_residual_and_nothing_else() -> None:
    vlm = tiny_vlm("MllamaForConditionalGeneration")
    bare = [toy_item(n, images=(), objects=()) for n in range(2)]
    skipped = vlm.family.optional_layers(vlm, vlm.prepare(bare))
    assert skipped
    seen = watched(vlm, bare, sites=("resid", "attn_out", "mlp_out", "head"), roles=("answer",))
    plain = by_plain_hooks(vlm, bare)
    for layer in range(vlm.n_layers):
        if layer in skipped:
            assert ("resid", layer) not in plain
            next_one = next(n for n in range(layer, vlm.n_layers + 1) if n not in skipped)
            torch.testing.assert_close(seen["resid", layer, "answer"].values, plain["resid", next_one][:, -1], rtol=0, atol=0)
        for site in ("attn_out", "mlp_out", "head"):
            found = seen[site, layer, "answer"]
            assert found.ran == (layer not in skipped)
            assert bool(found.values.isnan().all()) == (layer in skipped)
            assert found.values.shape[1] > 1


def test_a_layer_that_should_have_run_is_still_missed() -> None:
    """Only what the record says of this batch is passed by."""
    vlm = tiny_vlm("MllamaForConditionalGeneration")
    bare = [toy_item(0, images=(), objects=())]
    lying = replace(vlm, family=replace(vlm.family, optional_layers=None))
    with pytest.raises(WatchError, match="never ran: attn_out"):
        watched(lying, bare, sites=("attn_out",), roles=("answer",))


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"sites": ("vision",), "roles": ("answer",)},
            "roles holds 'answer'; vision is in the vision tower, which has only: 'image'",
        ),
        ({"sites": ("merger_in",)}, "roles holds 'answer'; merger_in is in the vision tower"),
        ({"sites": ("resid", "vision"), "roles": ("text",)}, "holds none of a picture's; vision is in the vision tower"),
        ({"sites": ("attn_out",), "layers": [N_LAYERS]}, f"layers holds {N_LAYERS}; attn_out has the layers 0 to {N_LAYERS - 1}"),
        ({"sites": ("resid", "attn_out"), "layers": [N_LAYERS]}, r"holds none of attn_out; resid has .* a mapping gives each"),
        ({"sites": ("merger_in",), "roles": ("image",), "layers": [1]}, "merger_in has the layer 0 in this model"),
        (
            {"sites": ("resid", "vision"), "layers": {"resid": [0]}},
            "layers names the sites resid, where resid, vision are watched",
        ),
        ({"layers": {"resid": [9]}}, "layers holds 9; resid has the layers 0 to"),
    ],
)
def test_what_a_site_cannot_have_is_refused(vlm: VLM, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Watch(vlm, **arguments)


@pytest.mark.parametrize(("site", "field"), [("vision", "vision_blocks"), ("merger_in", "merger"), ("merger_out", "merger")])
def test_a_site_that_the_family_lacks_is_named(vlm: VLM, site: str, field: str) -> None:
    without = replace(vlm, family=replace(vlm.family, **{field: None}))
    with pytest.raises(ValueError, match=f"Qwen3VLForConditionalGeneration has no {field}; its record says so"):
        Watch(without, sites=(site,), roles=("image",))


def test_a_family_without_projections_has_no_heads(vlm: VLM) -> None:
    without = replace(vlm, family=replace(vlm.family, out_proj=()))
    with pytest.raises(ValueError, match="has no head"):
        Watch(without, sites=("head",))


def test_heads_are_watched_only_where_the_attention_has_them() -> None:
    vlm = tiny_vlm("Qwen3_5ForConditionalGeneration")
    linear = [layer for layer in range(vlm.n_layers) if vlm.attention_of(layer)[0] == "linear_attn"]
    assert linear
    assert set(Watch(vlm, sites=("head",)).layers("head")) == set(range(vlm.n_layers)) - set(linear)
    with pytest.raises(ValueError, match=f"layers holds {linear[0]}; head has the layer"):
        Watch(vlm, sites=("head",), layers=[linear[0]])


def test_each_site_takes_the_layers_and_roles_that_it_has(vlm: VLM) -> None:
    watch = Watch(vlm, sites=("resid", "attn_out", "vision"), layers=[0, 1, N_LAYERS], roles=("answer", "image"))
    assert (watch.layers("resid"), watch.layers("attn_out"), watch.layers("vision")) == ([0, 1, 3], [0, 1], [0, 1])
    assert (watch.roles_at("resid"), watch.roles_at("vision")) == (("answer", "image"), ("image",))
    own = Watch(vlm, sites=("resid", "vision"), layers={"resid": "all", "vision": [1]})
    assert (own.layers("resid"), own.layers("vision")) == ([0, 1, 2, 3], [1])


def test_rows_that_the_layout_does_not_know_are_an_error(vlm: VLM) -> None:
    """A layout of other pictures than those that were run."""
    small, large = toy_item(0, images=pictures(1)), toy_item(0, images=(NoiseImage(0, 128, 128),))

    @torch.no_grad()
    def run(expected: Item, shown: Item) -> None:
        with Watch(vlm, sites=("vision",), roles=("image",)) as watch:
            watch.expect(vlm.prepare([expected]), [expected])
            vlm.model(**vlm.prepare([shown]))
            watch.read()

    with pytest.raises(WatchError, match="vision 0 held 64 rows where the batch's pictures have 16"):
        run(small, large)
    with pytest.raises(WatchError, match="vision 0 held 16 rows where the batch's pictures have 64"):
        run(large, small)
    vlm.reset()


def test_a_block_of_the_tower_that_gives_two_tensors_is_named(vlm: VLM) -> None:
    first, second = vlm.vision_block_modules
    real, after = first.forward, second.forward
    with (
        giving(first, lambda *args, **kwargs: (real(*args, **kwargs),) * 2),
        giving(second, lambda hidden, *args, **kwargs: after(hidden[0], *args, **kwargs)),
        pytest.raises(SiteError, match=r"vision 0 gives a tuple of \(Tensor \(16, 32\), Tensor \(16, 32\)\), where one tensor"),
    ):
        watched(vlm, [toy_item(0)], sites=("vision",), roles=("image",))
    vlm.reset()


def test_a_tuple_with_one_candidate_gives_the_same_as_the_bare_tensor(vlm: VLM) -> None:
    """Attention weights, router logits and None stand beside it; it need not come first."""
    items = [toy_item(0), toy_item(1)]
    before = watched(vlm, items, sites=("mlp_out",), roles=("answer",))
    block = vlm.blocks[1]
    real, after = block.mlp.forward, block.forward

    def unpacked(*args: Any, **kwargs: Any) -> Any:
        with giving(block.mlp, lambda hidden: (None, torch.zeros(4, 8), real(hidden))):
            mlp = block.mlp
            block.mlp = nn.Sequential(mlp, _Third())
            try:
                return after(*args, **kwargs)
            finally:
                block.mlp = mlp

    with giving(block, unpacked):
        seen = watched(vlm, items, sites=("mlp_out",), roles=("answer",))
    for key, found in before.items():
        torch.testing.assert_close(seen[key].values, found.values)


class _Third(nn.Module):
    def forward(self, entries: Any) -> Any:
        return entries[2]


def test_the_first_row_of_a_batch_is_never_taken_for_its_tensor() -> None:
    hidden = torch.zeros(2, 5, 4)
    assert returned(hidden, "mlp_out 0", vision=False) == (None, hidden)
    at, found = returned((None, hidden, torch.zeros(2, 4, 5, 5)), "attn_out 0", vision=False)
    assert at == 1
    assert found is hidden
    with pytest.raises(SiteError, match="mlp_out 0 gives a int, not a tensor"):
        returned(3, "mlp_out 0", vision=False)
    with pytest.raises(SiteError, match=r"attn_out 0 gives a tuple of \(NoneType\)"):
        returned((None,), "attn_out 0", vision=False)
    with pytest.raises(SiteError, match=r"resid 1 is called with \(int, a Tensor \(2,\)\), where one tensor"):
        received((3,), {"a": torch.zeros(2)}, "resid 1")
