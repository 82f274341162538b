"""Edits against plain hooks, on a tiny model of every family; bad input by name."""

import inspect
import subprocess
import sys
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import deixis as dx
from deixis.benchmarks import Item, Items
from deixis.hooks.attention import AttentionWatch
from deixis.hooks.batches import Batch, laid_over
from deixis.hooks.direction import Direction
from deixis.hooks.edit import Edit, edit_steps
from deixis.hooks.edit_sites import checked_layers, site_layers
from deixis.hooks.errors import DirectionError, DonorCountError, EditError, NeverFiredError, NoSuchSiteError, TokenCountError
from deixis.hooks.resume import Prefix
from deixis.hooks.tracing import run_steps
from deixis.models import FAMILIES, VLM
from deixis.models.sites import SITES
from tests.models.tiny import TINY, tiny_vlm
from tests.toys import toy_item

EVERY = [name for name in FAMILIES if name in TINY]
IN_SEQUENCE = [name for name in EVERY if FAMILIES[name].image_tokens == "sequence"]
QWEN = "Qwen3VLForConditionalGeneration"
PLACES = [("resid", 1), ("attn_out", 0), ("mlp_out", 1), ("head", 0)]


def items(n: int = 2) -> tuple[Item, ...]:
    """Questions of different lengths about different pictures, each with an object."""
    return tuple(toy_item(number) for number in (0, 1, 3, 4)[:n])


def donors(n: int = 2) -> Items:
    """The same questions about other pictures."""
    others = [toy_item(number) for number in (4, 3, 1, 0)[:n]]
    pairs = zip(items(n), others, strict=True)
    return Items(replace(mine, id=f"{mine.id}/donor", images=other.images) for mine, other in pairs)


def logits(vlm: VLM, batch: Batch, *edits: Edit) -> torch.Tensor:
    return run_steps(vlm, batch.inputs, edit_steps(edits, batch, range(len(batch.items)))).logits


def plain(vlm: VLM, batch: Batch) -> torch.Tensor:
    vlm.reset()
    with torch.inference_mode():
        found = vlm.model(**batch.inputs, use_cache=False).logits[:, -1].float()
    vlm.reset()
    return found


def hooks_on(vlm: VLM) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in vlm.model.modules())


def hooked(vlm: VLM, batch: Batch, site: str, layers: list[int], change) -> torch.Tensor:
    """The reference: the same change by torch's own hooks."""
    with ExitStack() as stack:
        for layer in layers:
            stack.callback(SITES[site].attach(vlm, layer, lambda tensor, layer=layer: change(tensor, layer)).remove)
        return plain(vlm, batch)


def running(vlm: VLM, site: str, batch: Batch) -> list[int]:
    skipped = vlm.family.optional_layers(vlm, batch.inputs) if vlm.family.optional_layers else ()
    return [layer for layer in site_layers(vlm, site) if layer not in skipped]


@pytest.mark.parametrize("architecture", EVERY)
@pytest.mark.parametrize(("site", "nth"), PLACES)
def test_an_ablation_equals_plain_hooks_and_leaves_the_model_as_it_was(architecture, site, nth):
    vlm, batch = tiny_vlm(architecture), Batch(tiny_vlm(architecture), items())
    layer = running(vlm, site, batch)[nth]
    before, left = plain(vlm, batch), hooks_on(vlm)
    found = logits(vlm, batch, Edit.ablate(role="text", layers=layer, site=site))
    mask = batch.mask("text")

    def zero(tensor, _layer):
        return torch.where(mask[..., None], torch.zeros((), dtype=tensor.dtype), tensor)

    expected = hooked(vlm, batch, site, [layer], zero)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(found, before)
    assert torch.equal(plain(vlm, batch), before)
    assert hooks_on(vlm) == left


def test_a_copy_of_an_edited_model_is_edited_by_itself():
    """nnsight leaves a forward on every module; the copy must neither wait for the original's nor compute with its weights."""
    vlm, edit = tiny_vlm(QWEN), Edit.ablate(role="text", layers=1)
    original = logits(vlm, Batch(vlm, items()), edit)
    copy = dx.wrap(deepcopy(vlm.model), vlm.processor, check=False)
    with torch.no_grad():
        copy.blocks[0].mlp.down_proj.weight.mul_(2)
    batch = Batch(copy, items())
    mask = batch.mask("text")[..., None]
    found = logits(copy, batch, edit)
    expected = hooked(copy, batch, "resid", [1], lambda tensor, _layer: tensor * ~mask)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(found, original)
    assert torch.equal(logits(vlm, Batch(vlm, items()), edit), original)


@pytest.mark.parametrize("architecture", [QWEN, "Molmo2ForConditionalGeneration", "Ovis2ForConditionalGeneration"])
@pytest.mark.parametrize("site", ["vision", "merger_in", "merger_out"])
def test_an_ablation_in_the_tower_equals_plain_hooks(architecture, site):
    """Molmo2's merger returns a named output; that of Ovis2 is called once more, for the marks around a picture."""
    vlm, batch = tiny_vlm(architecture), Batch(tiny_vlm(architecture), items())
    feeds = batch.layout.token_of_row(site) >= 0

    def zero(tensor, _layer):
        return (tensor.flatten(0, -2) * ~feeds[:, None]).reshape(tensor.shape)

    found = logits(vlm, batch, Edit.ablate(role="image", layers=0, site=site))
    torch.testing.assert_close(found, hooked(vlm, batch, site, [0], zero), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(found, plain(vlm, batch))


@pytest.mark.parametrize("architecture", IN_SEQUENCE)
def test_a_patch_of_the_object_equals_plain_hooks(architecture):
    vlm = tiny_vlm(architecture)
    batch, source = Batch(vlm, items()), Batch(vlm, tuple(donors()))
    layer = running(vlm, "resid", batch)[1]
    held = {}

    def keep(tensor, number):
        held[number] = tensor.clone()

    hooked(vlm, source, "resid", [layer], keep)

    def put(tensor, number):
        changed = tensor.clone()
        for row in range(len(batch.items)):
            image = [part.tokens("image", row).nonzero()[:, 0] for part in (batch, source)]
            chosen = batch.tokens("object", row)[image[0]] | source.tokens("object", row)[image[1]]
            changed[row, image[0][chosen]] = held[number][row, image[1][chosen]]
        return changed

    found = logits(vlm, batch, Edit.patch(donors(), role="object", layers=layer))
    torch.testing.assert_close(found, hooked(vlm, batch, "resid", [layer], put), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(found, plain(vlm, batch))


@pytest.mark.parametrize("architecture", IN_SEQUENCE)
def test_a_donor_equal_to_its_receiver_changes_nothing(architecture):
    vlm, batch = tiny_vlm(architecture), Batch(tiny_vlm(architecture), items())
    found = logits(vlm, batch, Edit.swap(Items(items())))
    torch.testing.assert_close(found, plain(vlm, batch), rtol=1e-5, atol=1e-5)


def cut_by_hand(vlm: VLM, batch: Batch, layers: list[int], heads: list[int]) -> torch.Tensor:
    """Edges from the answer to the image, cut by hooks on the attention's arguments."""
    rows, length = batch.inputs["input_ids"].shape

    def hook(_module, args, kwargs):
        given = kwargs.get("attention_mask")
        allowed = torch.ones(rows, vlm.n_heads, length, length, dtype=torch.bool).tril()
        if given is not None:
            allowed = (given if given.dtype == torch.bool else given > -1e9)[..., :length].expand_as(allowed).clone()
        for row in range(rows):
            for head in heads:
                allowed[row, head, -1, batch.tokens("image", row)] = False
        added = torch.zeros(allowed.shape, dtype=vlm.model.dtype).masked_fill(~allowed, torch.finfo(vlm.model.dtype).min)
        return args, {**kwargs, "attention_mask": added}

    with ExitStack() as stack:
        for layer in layers:
            module = vlm.attention_of(layer)[1]
            stack.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)
        return plain(vlm, batch)


@pytest.mark.parametrize("architecture", IN_SEQUENCE)
@pytest.mark.parametrize("heads", [None, [1]])
def test_a_knock_out_equals_a_mask_by_hand(architecture, heads):
    vlm, batch = tiny_vlm(architecture), Batch(tiny_vlm(architecture), items())
    layers = [n for n in range(vlm.n_layers) if "linear" not in vlm.attention_of(n)[0]][:2]
    found = logits(vlm, batch, Edit.knock_out(queries="answer", keys="image", layers=layers, heads=heads))
    expected = cut_by_hand(vlm, batch, layers, heads or list(range(vlm.n_heads)))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(found, plain(vlm, batch))


@pytest.mark.parametrize("architecture", EVERY)
def test_a_pass_resumed_at_any_block_gives_the_unedited_logits_or_is_found_out(architecture):
    vlm, batch = tiny_vlm(architecture), Batch(tiny_vlm(architecture), items())
    if vlm.family.optional_layers is not None:
        pytest.skip("a sweep does not resume where layers may not run")
    prefix = Prefix.of(vlm, batch.inputs)
    torch.testing.assert_close(prefix.logits, plain(vlm, batch), rtol=1e-5, atol=1e-5)
    if prefix.holds():
        for start in range(vlm.n_layers + 1):
            torch.testing.assert_close(prefix.run([], start).logits, prefix.logits, rtol=1e-5, atol=1e-5)
    else:
        assert "Gemma3n" in architecture or "Gemma4" in architecture  # later blocks take keys and values of earlier ones


def test_a_batch_equals_single_items():
    vlm = tiny_vlm(QWEN)
    given, sources = items(3), donors(3)
    edits = (Edit.patch(sources, role="image", layers=[1]), Edit.ablate(role="answer", layers=[2], site="mlp_out"))
    together = logits(vlm, Batch(vlm, given), *edits)
    for row, item in enumerate(given):
        alone = (Edit.patch(sources[row], role="image", layers=[1]), edits[1])
        torch.testing.assert_close(logits(vlm, Batch(vlm, (item,)), *alone)[0], together[row], rtol=1e-4, atol=1e-4)


def test_edits_at_one_place_act_in_the_order_in_which_they_are_given():
    vlm, batch = tiny_vlm(QWEN), Batch(tiny_vlm(QWEN), items())
    zero, patch = Edit.ablate(role="image", layers=1), Edit.patch(donors(), role="image", layers=1)
    assert torch.equal(logits(vlm, batch, zero, patch), logits(vlm, batch, patch))
    assert torch.equal(logits(vlm, batch, patch, zero), logits(vlm, batch, zero))


def test_the_mean_of_a_reference_is_put_in():
    vlm, batch = tiny_vlm(QWEN), Batch(tiny_vlm(QWEN), items())
    reference = Batch(vlm, items(4))
    kept = []
    hooked(vlm, reference, "resid", [1], lambda tensor, _: kept.append(tensor[reference.mask("image")]))
    mean = kept[0].mean(dim=0)
    expected = hooked(vlm, batch, "resid", [1], lambda t, _: torch.where(batch.mask("image")[..., None], mean, t))
    found = logits(vlm, batch, Edit.ablate(role="image", layers=1, how="mean", reference=Items(items(4))))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def direction(vlm: VLM, width: int | None = None, **changes) -> Direction:
    rng = np.random.default_rng(0)
    known = {"site": "resid", "layer": 1, "role": "image", "model": vlm.name, "revision": vlm.revision}
    vector, mean = rng.normal(size=(2, width or vlm.d_model))
    return Direction(**({"target": "distance_m", "unit": "m", "vector": vector, "mean": mean} | known | changes))


def test_steering_adds_the_vector_and_projecting_leaves_the_mean_along_it():
    vlm, batch = tiny_vlm(QWEN), Batch(tiny_vlm(QWEN), items())
    way = direction(vlm)
    mask, vector = batch.mask("image")[..., None], torch.from_numpy(way.vector).float()
    expected = hooked(vlm, batch, "resid", [1], lambda t, _: torch.where(mask, t + 2.5 * vector, t))
    torch.testing.assert_close(logits(vlm, batch, Edit.steer(way, 2.5)), expected, rtol=1e-4, atol=1e-4)
    unit = vector / vector.norm()
    level = float(unit @ torch.from_numpy(way.mean).float())
    seen = []

    def project(tensor, _):
        changed = torch.where(mask, tensor - (tensor @ unit)[..., None] * unit + level * unit, tensor)
        seen.append((changed @ unit)[batch.mask("image")])
        return changed

    expected = hooked(vlm, batch, "resid", [1], project)
    torch.testing.assert_close(seen[0], torch.full_like(seen[0], level), rtol=1e-4, atol=1e-4)
    found = logits(vlm, batch, Edit.ablate(role="image", layers=1, how="project", direction=way))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_random_direction_has_the_same_length_and_another_course():
    way = direction(tiny_vlm(QWEN))
    drawn = way.random(0)
    assert drawn.norm == pytest.approx(way.norm)
    assert abs(drawn.vector @ way.vector) < 0.9 * way.norm**2
    assert not np.allclose(drawn.vector, way.random(1).vector)


REHEARSAL = """
import torch
from deixis.hooks.batches import Batch
from deixis.hooks.edit import Edit, edit_steps
from deixis.hooks.tracing import run_steps
from tests.toys import toy_item, toy_vlm

vlm = toy_vlm()
batch = Batch(vlm, (toy_item(0), toy_item(1)))
edits = (Edit.ablate(role="text", layers=1), Edit.knock_out(queries="answer", keys="image", layers=1), Edit.swap(toy_item(4)))
for edit in edits:
    near, far = (run_steps(vlm, batch.inputs, edit_steps([edit], batch, range(2)), remote=r).logits for r in (False, "local"))
    assert torch.equal(near, far), edit.kind
    assert not torch.allclose(near, run_steps(vlm, batch.inputs, []).logits), edit.kind
print("same")
"""


def test_remote_edits_travel_without_the_library():
    """``local`` sends the pass through nnsight's serializer with this package hidden, as it is on the service.

    In a process of its own: what the test runner's type checker wraps can't be serialized.
    """
    done = subprocess.run([sys.executable, "-c", REHEARSAL], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "same", done.stderr


def test_remote_is_passed_on_to_nnsight(monkeypatch):
    import nnsight

    vlm, batch = tiny_vlm(QWEN), Batch(tiny_vlm(QWEN), items())
    asked = []

    def refused(_self, remote, *_args):
        asked.append(remote)
        raise ConnectionError("no service here")

    monkeypatch.setattr(nnsight.TransformersModel, "_remote_backend", refused)
    with pytest.raises(ConnectionError, match="no service here"):
        run_steps(vlm, batch.inputs, edit_steps([Edit.ablate(role="text", layers=1)], batch, range(2)), remote=True)
    assert asked == [True]


def test_an_edit_that_never_fires_is_an_error_that_names_it():
    vlm, batch = tiny_vlm(QWEN), Batch(tiny_vlm(QWEN), items())
    steps = edit_steps([Edit.ablate(role="text", layers=[1, 2])], batch, range(2))
    idle = torch.nn.Identity()
    vlm.model.idle = idle
    vlm.model.__dict__.pop("_deixis_traced", None)  # the wrapper must see the new part
    try:
        with pytest.raises(NeverFiredError, match="the edit at resid 2 never fired: its module did not run"):
            run_steps(vlm, batch.inputs, [steps[0], replace(steps[1], module=idle)])
    finally:
        del vlm.model.idle
        vlm.model.__dict__.pop("_deixis_traced", None)
    torch.testing.assert_close(plain(vlm, batch), run_steps(vlm, batch.inputs, []).logits)


def test_a_role_without_tokens_never_fires():
    vlm = tiny_vlm(QWEN)
    bare = Batch(vlm, (replace(toy_item(0), objects=()),))
    with pytest.raises(NeverFiredError, match="role 'object' has no token in item 'toy/0'"):
        edit_steps([Edit.ablate(role="object", layers=1)], bare, [0])
    with pytest.raises(NeverFiredError, match="there is no edge from image to answer at block 1"):
        logits(vlm, bare, Edit.knock_out(queries="image", keys="answer", layers=1))


def test_a_token_that_would_see_nothing_is_refused():
    vlm, batch = tiny_vlm(QWEN), Batch(tiny_vlm(QWEN), items(1))
    with pytest.raises(ValueError, match="role='nose' is not one of: 'answer'"):
        logits(vlm, batch, Edit.knock_out(queries="nose", keys="image", layers=1))
    found = logits(vlm, batch, Edit.knock_out(queries="text", keys="text", layers=1))  # each still sees itself
    assert bool(found.isfinite().all())


def test_donors_that_cannot_be_laid_over_are_refused():
    vlm, batch = tiny_vlm(QWEN), Batch(tiny_vlm(QWEN), (toy_item(0),))
    longer = toy_item(1)
    with pytest.raises(TokenCountError, match=r"role 'text' has \d+ tokens in the donor 'toy/1' and \d+ in the receiver 'toy/0'"):
        edit_steps([Edit.patch(longer, role="text", layers=1)], batch, [0])
    logits(vlm, batch, Edit.patch(longer, role="image", layers=1))  # pictures of one grid lie over each other
    two = replace(toy_item(2), images=toy_item(2).images * 2)
    with pytest.raises(TokenCountError, match=r"the grids of tokens .* so role 'image' can't be laid over"):
        edit_steps([Edit.patch(two, role="image", layers=1)], batch, [0])


def test_object_tokens_are_those_of_either_picture_and_background_the_rest():
    vlm = tiny_vlm(QWEN)
    first = toy_item(0)
    moved = replace(first, id="moved", objects=tuple(replace(box, left=36.0, right=60.0) for box in first.objects))
    receiver, source = Batch(vlm, (first,)), Batch(vlm, (moved,))
    either, back, image = (laid_over(role, receiver, source)[0].rows for role in ("object", "background", "image"))
    own = {int(token) for token in receiver.tokens("object", 0).nonzero()[:, 0]}
    assert own < set(either.tolist())
    assert sorted([*either.tolist(), *back.tolist()]) == image.tolist()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda _: Edit.ablate(role="text", layers=9), NoSuchSiteError, "layer 9 is not one of those that resid has"),
        (lambda _: Edit.ablate(role="text", layers=[]), NoSuchSiteError, "layers is empty"),
        (lambda _: Edit.ablate(role="text", layers=1, site="nose"), NoSuchSiteError, "site='nose' is not one of: 'resid'"),
        (lambda _: Edit.knock_out(queries="answer", keys="image", layers=1, heads=[7]), NoSuchSiteError, r"heads=\[7\] must be"),
        (lambda v: Edit.steer(direction(v, width=5), 1), DirectionError, "has width 5 and resid of .* has width 32"),
        (
            lambda v: Edit.steer(direction(v, model="other"), 1),
            DirectionError,
            "was learned from other at revision none, not from",
        ),
        (lambda v: Edit.steer(direction(v, revision="b1"), 1), DirectionError, "at revision b1, not from"),
        (
            lambda v: Edit.ablate(role="text", layers=1, site="mlp_out", how="project", direction=direction(v)),
            DirectionError,
            "the direction is one of resid, not of mlp_out",
        ),
    ],
)
def test_what_does_not_fit_the_model_is_refused(make, error, words):
    vlm, batch = tiny_vlm(QWEN), Batch(tiny_vlm(QWEN), items())
    with pytest.raises(error, match=words):
        logits(vlm, batch, make(vlm))
    assert issubclass(error, EditError)


def test_a_site_that_a_family_lacks_is_refused_in_its_words():
    free = next((name for name in EVERY if FAMILIES[name].merger is None), None)
    if free is None:
        pytest.skip("every tiny family has a merger")
    with pytest.raises(NoSuchSiteError, match=r"can't be edited at merger_out: .* has no merger"):
        site_layers(tiny_vlm(free), "merger_out")


def test_contradicting_arguments_are_refused():
    with pytest.raises(ValueError, match="how='mean' takes reference="):
        Edit.ablate(role="text", layers=1, how="mean")
    with pytest.raises(ValueError, match="how='half' is not one of"):
        Edit.ablate(role="text", layers=1, how="half")
    with pytest.raises(ValueError, match="there is no donor or reference item"):
        Edit.patch(Items([]), role="image", layers=1)


def test_edits_of_a_model_whose_weights_are_kept_on_disk_are_those_of_the_whole_model(tmp_path):
    from accelerate import disk_offload

    items = dx.memory_game(languages=("en",), size=64)
    asked, donors = items[:2], items[20:22]
    whole, offloaded = dx.load("pico"), dx.load("pico")
    disk_offload(offloaded.model, str(tmp_path), execution_device=torch.device("cpu"))
    assert {parameter.device.type for parameter in offloaded.model.parameters()} == {"meta"}
    kinds = [
        dx.Edit.patch(donors, role="object", layers=1),
        dx.Edit.ablate(role="image", layers=3),
        dx.Edit.knock_out(queries="answer", keys="object", layers=[2, 3]),
    ]
    for kind in kinds:
        mine, theirs = (dx.run_edits(vlm, asked, kind).to_frame() for vlm in (whole, offloaded))
        pd.testing.assert_frame_equal(mine, theirs)
        assert (mine["edited"] - mine["unedited"]).abs().max() > 0.01


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_is_no_direction_to_steer_by(wrong):
    way = direction(tiny_vlm(QWEN))
    bad = way.with_vector(np.where(np.arange(len(way.vector)) == 3, wrong, way.vector), "broken")
    with pytest.raises(DirectionError, match="the direction of broken holds NaN or infinity; learn it from finite"):
        Edit.steer(bad, 1.0)
    with pytest.raises(DirectionError, match="the direction of broken holds NaN or infinity"):
        Edit.ablate(role="text", layers=1, how="project", direction=bad)
    with pytest.raises(DirectionError, match=f"amount={wrong} is no amount to steer by"):
        Edit.steer(way, wrong)


def test_along_a_zero_direction_nothing_can_be_projected_out():
    way = direction(tiny_vlm(QWEN))
    with pytest.raises(DirectionError, match="is zero, which points nowhere"):
        Edit.ablate(role="image", layers=1, how="project", direction=way.with_vector(np.zeros(len(way.vector)), "none"))


@pytest.mark.parametrize("n", [2, 4])
def test_donors_that_are_neither_one_nor_one_for_each_are_refused(n):
    vlm = tiny_vlm(QWEN)
    with pytest.raises(DonorCountError, match=f"the patch has {n} donors for 3 items; give one for each item"):
        dx.run_edits(vlm, items(3), Edit.patch(donors(n), role="image", layers=1), batch_size=1)


def test_fewer_donors_than_items_are_refused_where_a_batch_is_edited_by_hand():
    batch = Batch(tiny_vlm(QWEN), items(3))
    with pytest.raises(DonorCountError, match="the swap has 2 donors for 3 items"):
        edit_steps([Edit.swap(donors(2))], batch, range(3))


def test_layers_that_are_no_whole_numbers_are_refused():
    vlm, layers_of = tiny_vlm(QWEN), inspect.unwrap(checked_layers)  # past the import hook of the tests, as users call it
    with pytest.raises(NoSuchSiteError, match=r"layers=1\.0 is neither 'all' nor a whole number"):
        layers_of(vlm, "resid", 1.0)
    with pytest.raises(NoSuchSiteError, match=r"layer 1\.0 is not one of those that resid has"):
        layers_of(vlm, "resid", [1.0])
    assert layers_of(vlm, "resid", np.arange(2)) == [0, 1]


def test_two_knock_outs_may_share_edges_and_cut_all_that_either_does():
    vlm, batch = tiny_vlm(QWEN), Batch(tiny_vlm(QWEN), items())
    layers = [0, 1]
    part = Edit.knock_out(queries="answer", keys="object", layers=layers)
    whole = Edit.knock_out(queries="answer", keys="image", layers=layers)
    expected = cut_by_hand(vlm, batch, layers, list(range(vlm.n_heads)))
    for pair in ((part, whole), (whole, part), (whole, whole)):
        torch.testing.assert_close(logits(vlm, batch, *pair), expected, rtol=1e-4, atol=1e-5)
    ahead = Edit.knock_out(queries="image", keys="answer", layers=layers)
    with pytest.raises(NeverFiredError, match="there is no edge from image to answer"):
        logits(vlm, batch, whole, ahead)
    assert not torch.allclose(plain(vlm, batch), expected)


def test_edits_under_a_watch_of_the_attention_are_refused():
    vlm, batch = tiny_vlm(QWEN), Batch(tiny_vlm(QWEN), items())
    edit = Edit.knock_out(queries="answer", keys="image", layers=1)
    with AttentionWatch(vlm):
        with pytest.raises(EditError, match=r"edits don't run under an AttentionWatch, .*; leave the watch first"):
            dx.run_edits(vlm, batch.items, edit)
        with pytest.raises(EditError, match="edits don't run under an AttentionWatch"):
            logits(vlm, batch, edit)
        with pytest.raises(EditError, match="edits don't run under an AttentionWatch"):
            run_steps(vlm, batch.inputs, [])
    assert torch.isfinite(logits(vlm, batch, edit)).all()
