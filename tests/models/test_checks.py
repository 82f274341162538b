"""Each check of a record is shown to pass on every family's model and to fail, by name, on a wrong one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from deixis.models import FAMILIES, VLM, ModelError, passes, wrap
from deixis.models.checking.at_load import unmoved
from deixis.models.checking.evidence import Evidence
from deixis.models.checking.in_full import IN_FULL
from deixis.models.checks import AT_LOAD, Check, check_vlm
from deixis.models.layout import Layout, PictureLayout
from deixis.models.sites import SITES, Site
from tests.models.tiny import TINY, tiny_vlm
from tests.toys import toy_model, toy_processor

FAMILY = FAMILIES["Qwen3VLForConditionalGeneration"]


@pytest.fixture(scope="module")
def processor() -> Any:
    return toy_processor()


@pytest.fixture
def model(processor: Any) -> Any:
    return toy_model(processor)


def with_record(model: Any, processor: Any, **changes: Any) -> VLM:
    return VLM(model=model, processor=processor, family=replace(FAMILY, **changes), name="toy")


def failed(vlm: VLM, **arguments: Any) -> Check:
    """The check that fails, which must be the last that ran."""
    done = check_vlm(vlm, **arguments)
    assert done[-1].passed is False, done
    assert all(check.passed is not False for check in done[:-1])
    return done[-1]


def count_hooks(model: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def our_hooks(model: nn.Module) -> list[str]:
    """Hooks of this library; transformers leaves some of its own behind, where it has collected hidden states."""
    hooks = [hook for m in model.modules() for hook in (*m._forward_hooks.values(), *m._forward_pre_hooks.values())]
    return [hook.__qualname__ for hook in hooks if getattr(hook, "__module__", "").startswith("deixis")]


def test_the_true_record_passes_and_leaves_no_hook(model: Any, processor: Any) -> None:
    before = count_hooks(model)
    done = check_vlm(with_record(model, processor))
    assert [check.name for check in done] == list(AT_LOAD)
    assert all(check.passed for check in done)
    assert count_hooks(model) == before
    assert model.model.rope_deltas is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_passes_too(processor: Any, dtype: torch.dtype) -> None:
    assert all(check.passed for check in check_vlm(with_record(toy_model(processor, dtype), processor)))


@pytest.mark.parametrize("field", ["blocks", "final_norm", "head", "embeddings", "vision_blocks", "merger"])
def test_a_path_that_leads_nowhere_is_named(model: Any, processor: Any, field: str) -> None:
    assert "leads nowhere" in failed(with_record(model, processor, **{field: "model.no_such_part"})).said


def test_another_norm_in_the_record_is_caught(model: Any, processor: Any) -> None:
    wrong = with_record(model, processor, final_norm="model.language_model.layers.2.post_attention_layernorm")
    assert "do not give the model's logits" in failed(wrong).said


def test_a_norm_that_never_runs_is_caught(model: Any, processor: Any) -> None:
    model.spare = nn.LayerNorm(32)
    assert "never ran" in failed(with_record(model, processor, final_norm="spare")).said


def test_blocks_of_the_vision_tower_are_not_taken_for_the_decoder(model: Any, processor: Any) -> None:
    model.config.text_config.num_hidden_layers = 2  # as many as the tower has, so that counting alone does not help
    assert "has no self_attn" in failed(with_record(model, processor, blocks="model.visual.blocks")).said


def test_blocks_off_by_one_are_caught(model: Any, processor: Any) -> None:
    layers = model.model.language_model.layers
    model.shifted = nn.ModuleList([*layers[1:], layers[-1]])
    assert "holds 2 different blocks, the config names 3" in failed(with_record(model, processor, blocks="shifted")).said


def test_blocks_out_of_order_are_caught(model: Any, processor: Any) -> None:
    first, second, third = model.model.language_model.layers
    model.swapped = nn.ModuleList([second, first, third])
    assert "ran in the order [1, 0, 2, 3]" in failed(with_record(model, processor, blocks="swapped")).said


def test_a_first_block_that_does_not_get_the_embeddings_is_caught(model: Any, processor: Any) -> None:
    model.other = nn.Embedding(*model.model.language_model.embed_tokens.weight.shape)
    wrong = with_record(model, processor, embeddings="other")
    assert "not what the embeddings give" in failed(wrong).said


def test_a_model_that_ignores_its_picture_is_caught(model: Any, processor: Any) -> None:
    with torch.no_grad():
        for part in (model.model.visual.merger, *model.model.visual.deepstack_merger_list):
            part.linear_fc2.weight.zero_()
            part.linear_fc2.bias.zero_()
    assert "another picture does not move" in failed(with_record(model, processor)).said


@contextmanager
def giving(module: nn.Module, forward: Any) -> Iterator[None]:
    """Let a module compute something else."""
    module.forward, real = forward, module.forward
    try:
        yield
    finally:
        module.forward = real


def test_a_block_whose_input_does_not_matter_is_caught(model: Any, processor: Any) -> None:
    def ignores_the_last_position(hidden: torch.Tensor, **_: Any) -> torch.Tensor:
        return torch.cat([hidden[:, :-1], torch.ones_like(hidden[:, -1:])], dim=1)

    with giving(model.model.language_model.layers[2], ignores_the_last_position):
        assert "does not move the logits" in failed(with_record(model, processor)).said


def test_a_model_whose_rows_mix_is_caught(model: Any, processor: Any) -> None:
    def mixes(hidden: torch.Tensor, **_: Any) -> torch.Tensor:
        return hidden + hidden.mean(dim=0, keepdim=True)

    with giving(model.model.language_model.layers[1], mixes):
        assert "left-padded batch" in failed(with_record(model, processor)).said


def test_wrap_refuses_what_fails_a_check(model: Any, processor: Any) -> None:
    with torch.no_grad():
        model.lm_head.weight = nn.Parameter(model.lm_head.weight.clone())
        model.lm_head.forward = lambda x: x @ model.lm_head.weight.T + 1.0 * torch.arange(len(model.lm_head.weight))
    with pytest.raises(ModelError, match="does not fit the record of Qwen3VLForConditionalGeneration"):
        wrap(model, processor)


LIMIT = 64
"""Tokens of an item of the checks, where the family's processor can make pictures of few tokens."""


@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_record_passes_at_load_in_six_calls_of_short_items(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    calls: list[int] = []

    def note(_module: nn.Module, _args: Any, kwargs: dict[str, Any]) -> None:
        calls.append(kwargs["input_ids"].shape[1])

    handle = vlm.model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        done = check_vlm(vlm)
    finally:
        handle.remove()
    assert [check.name for check in done] == list(AT_LOAD)
    assert not [check.said for check in done if check.passed is False]
    assert {check.name for check in done if check.passed is None} <= set(EXCUSED.get(architecture, ()))
    assert len(calls) <= 6
    assert our_hooks(vlm.model) == []
    assert min(calls) == 1  # the token behind the prompts


EXCUSED = {"MllamaForConditionalGeneration": ("image",)}
"""Checks that can't run, by family."""
TAKEN_EARLIER = {"LlavaForConditionalGeneration": 1, "LlavaNextForConditionalGeneration": 1}
"""Vision blocks behind the one whose features the tiny model takes."""


@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_record_passes_the_slow_checks(architecture: str) -> None:
    done = check_vlm(tiny_vlm(architecture), full=True, stop=False)
    assert [check.name for check in done] == [*AT_LOAD, *IN_FULL]
    assert not [(check.name, check.said) for check in done if check.passed is False]
    left_out = {check.name: check.left_out for check in done if check.left_out}
    last = TAKEN_EARLIER.get(architecture)
    assert bool(left_out) == (last is not None)
    assert all(part in done[[*AT_LOAD, *IN_FULL].index(name)].said for name, parts in left_out.items() for part in parts)
    if last is not None:
        assert left_out["every site"][0].startswith(f"vision {last}: the config takes the features of a block before")
    excused = {*EXCUSED.get(architecture, ()), *(["every token"] if tiny_vlm(architecture).family.vision_blocks is None else [])}
    assert {check.name for check in done if check.passed is None} <= excused


def test_items_of_the_checks_are_short(model: Any, processor: Any) -> None:
    vlm = with_record(model, processor)
    widths = [vlm.prepare([item])["input_ids"].shape[1] for item in Evidence(vlm).items]
    assert max(widths) <= LIMIT + 20  # the toy's tokenizer spells most words out, letter by letter
    assert min(widths) <= LIMIT


def test_an_off_by_one_layer_is_caught(model: Any, processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The site names the block before: what it reads is a residual stream, of another layer."""
    wrong = replace(SITES["resid"], module=lambda vlm, layer: vlm.blocks[max(layer - 1, 0)])
    monkeypatch.setitem(SITES, "resid", wrong)
    done = check_vlm(with_record(model, processor), stop=False)
    said = {check.name: check.said for check in done if check.passed is False}
    assert "on resid 3 do not give the model's logits" in said["logits"]
    assert "the blocks ran in the order" in said["resid"]  # two layers name one block


class Nothing(nn.Module):
    """Looks like a norm, and is none."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(32))

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden


def test_a_norm_left_out_is_caught(model: Any, processor: Any) -> None:
    """What enters the named module is normed already: with the head it gives the logits, but no block returned it."""
    inner = model.model.language_model
    inner.nothing, real = Nothing(), inner.forward

    def through(*args: Any, **kwargs: Any) -> Any:
        out = real(*args, **kwargs)
        inner.nothing(out.last_hidden_state)
        return out

    with giving(inner, through):
        found = failed(with_record(model, processor, final_norm="model.language_model.nothing"))
    assert found.said == "resid 3 at a text token is not what block 2 returns."


def test_a_norm_that_the_model_does_not_apply_is_caught(model: Any, processor: Any) -> None:
    """The other way round: the head reads the last block's output as it is."""
    norm = model.model.language_model.norm
    with giving(norm, lambda hidden: hidden):
        vlm = with_record(model, processor)
        object.__setattr__(vlm, "family", replace(FAMILY, final_norm="model.language_model.norm"))
        real = type(norm).forward
        wrong = VLM._headed

        def normed(self: VLM, resid: Tensor, rows: Any) -> Tensor:
            return wrong(self, real(norm, resid), rows)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(VLM, "_headed", normed)
            assert "do not give the model's logits" in failed(vlm).said


class RightPadding:
    """A processor that pads on the right, whatever it is told."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    def __call__(self, **arguments: Any) -> Any:
        return self._processor(**arguments | {"padding_side": "right"})


def test_right_padding_is_caught(model: Any, processor: Any) -> None:
    assert "the batch is padded on the right" in failed(with_record(model, RightPadding(processor))).said


def test_a_shifted_image_range_is_caught(model: Any, processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = VLM.token_roles

    def shifted(self: VLM, inputs: Any, items: Any) -> dict[str, Tensor]:
        return {role: mask.roll(1, dims=1) if role == "image" else mask for role, mask in real(self, inputs, items).items()}

    monkeypatch.setattr(VLM, "token_roles", shifted)
    check = next(c for c in check_vlm(with_record(model, processor), stop=False) if c.name == "image")
    assert check.passed is False
    assert "the image range or the order of its rows is wrong" in check.said


def test_rows_of_the_merger_in_another_order_are_caught(model: Any, processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Layout.token_of_row
    monkeypatch.setattr(
        Layout, "token_of_row", lambda self, site: real(self, site).flip(0) if site == "merger_out" else real(self, site)
    )
    assert "the order of its rows is wrong" in failed(with_record(model, processor)).said


def test_an_output_turned_into_a_tuple_is_caught(model: Any, processor: Any) -> None:
    first, second = model.model.visual.blocks
    before, after = first.forward, second.forward
    with (
        giving(first, lambda *args, **kwargs: (before(*args, **kwargs),) * 2),
        giving(second, lambda hidden, *args, **kwargs: after(hidden[0], *args, **kwargs)),
    ):
        assert "vision 0 gives a tuple of (Tensor" in failed(with_record(model, processor)).said


def test_a_decoder_block_that_gives_a_tuple_of_two_is_caught(model: Any, processor: Any) -> None:
    layer, following = model.model.language_model.layers[1:]
    before, after = layer.forward, following.forward
    with (
        giving(layer, lambda *args, **kwargs: (before(*args, **kwargs),) * 2),
        giving(following, lambda hidden, *args, **kwargs: after(hidden[0], *args, **kwargs)),
    ):
        problem = failed(with_record(model, processor)).said
    assert "tuple" in problem


def test_positions_that_are_not_derived_from_the_mask_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row is numbered from the batch's first column, padding included; what follows is numbered from the mask."""
    vlm = TINY["LlavaForConditionalGeneration"]()
    real = VLM.prepare
    monkeypatch.setattr(
        VLM,
        "prepare",
        lambda self, items: (inputs := real(self, items)) | {"position_ids": torch.arange(inputs["input_ids"].shape[1])[None]},
    )
    assert failed(vlm).name in ("batch", "continuation")


def test_a_wrong_position_behind_the_prompt_is_caught(model: Any, processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = passes._rope_shift
    monkeypatch.setattr(passes, "_rope_shift", lambda vlm, inputs: real(vlm, inputs) + 1)
    assert "its positions are not counted alike" in failed(with_record(model, processor)).said


def test_rope_deltas_that_are_not_reset_are_caught(model: Any, processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VLM, "reset", lambda _vlm: None)
    problem = failed(with_record(model, processor)).said
    assert "model keeps rope_deltas of the last pass, and the record's keeps_positions does not name it" in problem


@pytest.mark.parametrize("turn", ["transposed", "mirrored", "shifted"])
def test_a_wrong_map_from_pixels_to_tokens_is_caught(
    model: Any, processor: Any, turn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = FAMILY.layout

    def wrong(vlm: VLM, inputs: Any, sizes: Any) -> list[PictureLayout]:
        found = []
        for picture in real(vlm, inputs, sizes):
            boxes = picture.boxes.copy()
            if turn == "transposed":
                boxes = boxes[:, [1, 0, 3, 2]]
            elif turn == "mirrored":
                width = boxes[:, 2].max()
                boxes = np.stack([width - boxes[:, 2], boxes[:, 1], width - boxes[:, 0], boxes[:, 3]], axis=1)
            else:
                boxes = np.roll(boxes, 1, axis=0)
            found.append(replace(picture, boxes=boxes))
        return found

    check = failed(with_record(model, processor, layout=wrong))
    assert (check.name, "the map from pixels to tokens is wrong" in check.said) == ("pixels", True)


def test_one_wrong_token_far_from_the_corner_is_caught_by_the_slow_check(model: Any, processor: Any) -> None:
    def swapped(vlm: VLM, inputs: Any, sizes: Any) -> list[PictureLayout]:
        found = []
        for picture in FAMILY.layout(vlm, inputs, sizes):
            order = np.arange(len(picture.boxes))
            order[[-1, -2]] = order[[-2, -1]]
            found.append(replace(picture, boxes=picture.boxes[order]))
        return found

    wrong = with_record(model, processor, layout=swapped)
    assert all(check.passed for check in check_vlm(wrong))
    problems = {check.name: check.said for check in check_vlm(wrong, full=True, stop=False) if check.passed is False}
    assert list(problems) == ["every token"]
    assert "the map from pixels to tokens is wrong" in problems["every token"]


def test_one_site_that_does_nothing_at_one_layer_is_caught_by_the_slow_check(model: Any, processor: Any) -> None:
    """The last block's MLP is computed and thrown away; the checks at load look at the middle one."""
    layer = model.model.language_model.layers[2]
    real = layer.mlp.forward
    layer.mlp.register_forward_hook(lambda *_: None)

    def thrown_away(hidden: Tensor, **kwargs: Any) -> Tensor:
        residual = hidden
        attended, _ = layer.self_attn(hidden_states=layer.input_layernorm(hidden), **kwargs)
        layer.mlp(layer.post_attention_layernorm(residual + attended))
        return residual + attended

    assert real is not None
    with giving(layer, thrown_away):
        vlm = with_record(model, processor)
        assert all(check.passed for check in check_vlm(vlm))
        problem = failed(vlm, full=True)
    assert (problem.name, problem.said) == (
        "every site",
        "replacing mlp_out 2 at the last position does not move the logits.",
    )


def test_a_replacement_by_itself_that_moves_the_logits_is_caught(
    model: Any, processor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that reads one tensor and writes another."""
    attach = Site.attach

    def crooked(self: Site, vlm: VLM, layer: int, visit: Any) -> Any:
        def moved(tensor: Tensor) -> Tensor | None:
            changed = visit(tensor)
            return None if changed is None else changed + 0.1 * changed.std()

        return attach(self, vlm, layer, moved if self.name == "resid" else visit)

    monkeypatch.setattr(Site, "attach", crooked)
    vlm, evidence = with_record(model, processor), None
    evidence = Evidence(vlm)
    edits = evidence.edit([("resid", 1)])
    result = replace(edits, clean=evidence.generated[1][0])
    assert unmoved(vlm, result) == "replacing resid 1 by themselves moves the logits."


def test_heads_of_another_layer_are_caught(model: Any, processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SITES, "head", replace(SITES["head"], module=lambda vlm, _layer: vlm.out_proj_of(0)))
    assert "the output projection on head 1 does not give attn_out 1" in failed(with_record(model, processor)).said
