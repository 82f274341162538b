"""Records removed from the registry are found again by structure, or refused with the record to write."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import pytest
from torch import nn

from deixis.models import FAMILIES, VLM, ModelError, wrap
from deixis.models.resolver import ResolveError, resolve
from tests.models.tiny import TINY

FOUND = (
    "Qwen2VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
    "Glm4vForConditionalGeneration",
    "LlavaNextForConditionalGeneration",
    "SmolVLMForConditionalGeneration",
)
"""Families whose record is found again: another record's layout of image tokens fits them."""
PLACES = ("blocks", "final_norm", "head", "embeddings", "mlp", "vision_blocks", "merger", "keeps_positions", "layout")


@contextmanager
def without_record(architecture: str) -> Iterator[None]:
    held = dict(FAMILIES)
    del FAMILIES[architecture]
    try:
        yield
    finally:
        FAMILIES.clear()
        FAMILIES.update(held)


def resolved(vlm: VLM, architecture: str) -> VLM:
    def vlm_of(family: Any) -> VLM:
        return VLM(model=vlm.model, processor=vlm.processor, family=family, name="unknown")

    with without_record(architecture):
        return resolve(vlm_of, vlm.model, architecture)


@pytest.mark.parametrize("architecture", FOUND)
def test_a_removed_record_is_found_again(architecture: str) -> None:
    vlm = TINY[architecture]()
    found, record = resolved(vlm, architecture).family, FAMILIES[architecture]
    assert {name: getattr(found, name) for name in PLACES} == {name: getattr(record, name) for name in PLACES}
    assert set(found.attention) == set(record.attention)
    assert set(found.out_proj) == set(record.out_proj)
    assert found.vision_attention in (record.vision_attention, *record.vision_attention)


@pytest.mark.parametrize("architecture", [name for name in FAMILIES if name not in FOUND])
def test_any_other_record_is_found_right_or_its_text_is_printed(architecture: str) -> None:
    """What is printed names every part that structure tells, and each of these is right."""
    vlm, record = TINY[architecture](), FAMILIES[architecture]
    try:
        found = resolved(vlm, architecture).family
    except ResolveError as error:
        text = str(error)
        printed = text[text.index("Family(") :]
        told = eval(printed, {"Family": dict})
        assert set(told) <= {part.name for part in fields(record)}
        assert f"no family record for {architecture!r}" in text
        for name in ("blocks", "final_norm", "head", "embeddings"):
            assert told[name] == getattr(record, name)
    else:
        assert found.blocks == record.blocks
        assert found.merger == record.merger


def test_wrap_resolves_a_class_that_has_no_record() -> None:
    vlm = TINY["Qwen3VLForConditionalGeneration"]()
    with without_record("Qwen3VLForConditionalGeneration"):
        assert wrap(vlm.model, vlm.processor).family.checked_with == "by structure"


def test_a_structure_that_tells_nothing_is_refused_with_the_record_to_write() -> None:
    vlm = TINY["Qwen3VLForConditionalGeneration"]()
    vlm.model.model.language_model.second = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    with (
        without_record("Qwen3VLForConditionalGeneration"),
        pytest.raises(
            ModelError, match=r"the list of 3 decoder blocks cannot be told \(found: .*layers, .*second\)[\s\S]*blocks=\.\.\."
        ),
    ):
        wrap(vlm.model, vlm.processor)


def test_a_structure_that_fails_a_check_is_refused_by_its_name() -> None:
    vlm = TINY["Qwen3VLForConditionalGeneration"]()
    vlm.model.lm_head.register_forward_hook(lambda _m, _a, out: 2 * out)
    with (
        without_record("Qwen3VLForConditionalGeneration"),
        pytest.raises(ModelError, match=r"do not give the model's logits[\s\S]*Family\("),
    ):
        wrap(vlm.model, vlm.processor)
