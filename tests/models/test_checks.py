"""Each check of a record is shown to pass on every family's model and to fail, by name, on a wrong one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from deixis.models import FAMILIES, VLM, ModelError, wrap
from deixis.models.checks import AT_LOAD, Check, check_vlm
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
def blocks_behaving(model: Any, block: int, forward: Any) -> Iterator[None]:
    layer = model.model.language_model.layers[block]
    layer.forward, real = forward, layer.forward
    try:
        yield
    finally:
        layer.forward = real


def test_a_block_whose_input_does_not_matter_is_caught(model: Any, processor: Any) -> None:
    def ignores_the_last_position(hidden: torch.Tensor, **_: Any) -> torch.Tensor:
        return torch.cat([hidden[:, :-1], torch.ones_like(hidden[:, -1:])], dim=1)

    with blocks_behaving(model, 2, ignores_the_last_position):
        assert "does not move the logits" in failed(with_record(model, processor)).said


def test_a_model_whose_rows_mix_is_caught(model: Any, processor: Any) -> None:
    def mixes(hidden: torch.Tensor, **_: Any) -> torch.Tensor:
        return hidden + hidden.mean(dim=0, keepdim=True)

    with blocks_behaving(model, 1, mixes):
        assert "left-padded batch" in failed(with_record(model, processor)).said


def test_wrap_refuses_what_fails_a_check(model: Any, processor: Any) -> None:
    with torch.no_grad():
        model.lm_head.weight = nn.Parameter(model.lm_head.weight.clone())
        model.lm_head.forward = lambda x: x @ model.lm_head.weight.T + 1.0 * torch.arange(len(model.lm_head.weight))
    with pytest.raises(ModelError, match="does not fit the record of Qwen3VLForConditionalGeneration"):
        wrap(model, processor)
