"""What a recording does not ask for is not computed, and what it asks for is the same with and without the rest."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from deixis.activations import RunError, record, repair
from deixis.activations.passes import PromptPass
from deixis.benchmarks import Items
from deixis.models import FAMILIES, VLM
from tests.activations.test_recording import recorded, same_files
from tests.hooks.test_watch import hooks_on
from tests.models.tiny import tiny_vlm
from tests.toys import THIS_THAT, toy_item, toy_items, toy_vlm

BARE = {"answers": False, "options": False}


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@pytest.fixture(scope="module")
def items() -> Items:
    return toy_items(5)


@contextmanager
def calls_of(vlm: VLM) -> Iterator[list[str]]:
    """The parts of the model that run: its blocks by number, the tower's, and the head."""
    parts = {f"block {n}": block for n, block in enumerate(vlm.blocks)} | {"head": vlm.head, "norm": vlm.final_norm}
    parts |= {f"vision {n}": block for n, block in enumerate(vlm.vision_block_modules)}
    ran: list[str] = []
    handles = [
        part.register_forward_hook(lambda *_, name=name: ran.append(name))  # pyright: ignore[reportArgumentType]
        for name, part in parts.items()
    ]
    try:
        yield ran
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def passes_of(vlm: VLM) -> Iterator[list[dict[str, Any]]]:
    """The keyword arguments of every pass."""
    seen: list[dict[str, Any]] = []
    handle = vlm.model.register_forward_pre_hook(lambda _m, _a, kwargs: seen.append(dict(kwargs)), with_kwargs=True)
    try:
        yield seen
    finally:
        handle.remove()


def test_a_pass_for_activations_alone_ends_behind_the_last_watched_layer(vlm: VLM, items: Items, tmp_path: Path):
    whole = recorded(vlm, items, tmp_path / "whole", layers=[0, 1])
    before = hooks_on(vlm)
    with calls_of(vlm) as ran:
        run = recorded(vlm, items, tmp_path / "bare", layers=[0, 1], **BARE)
    assert set(ran) == {"vision 0", "vision 1", "block 0"}  # resid 1 is what block 1 receives
    assert hooks_on(vlm) == before
    for layer in (0, 1):
        for role in run.roles:
            np.testing.assert_array_equal(run.resid(layer, role), whole.resid(layer, role))
    assert run.verify() == 1


def test_a_pass_for_the_vision_tower_alone_ends_there(vlm: VLM, items: Items, tmp_path: Path):
    roles = ("image", "object")
    whole = recorded(vlm, items, tmp_path / "whole", sites=("vision",), layers=[0], roles=roles)
    with calls_of(vlm) as ran:
        run = recorded(vlm, items, tmp_path / "bare", sites=("vision",), layers=[0], roles=roles, **BARE)
    assert set(ran) == {"vision 0"}
    np.testing.assert_array_equal(run.activations("vision", 0, "image"), whole.activations("vision", 0, "image"))


def test_a_run_without_options_says_so_and_is_another_run(vlm: VLM, items: Items, tmp_path: Path):
    run = recorded(vlm, items, tmp_path / "run", options=False)
    assert run.answers == recorded(vlm, items, tmp_path / "whole").answers
    assert run.info["whole_strings"] == 0
    with h5py.File(run.path / "shards" / "000000.h5") as file:
        assert "options" not in file
    with pytest.raises(RunError, match="recorded with options=False, so it holds no logits; record it again with options=True"):
        _ = run.options
    with pytest.raises(RunError, match="options is False there and None here"):
        recorded(vlm, items, run.path)
    damaged = run.path / "shards" / "000000.h5"
    before = damaged.read_bytes()
    damaged.write_bytes(before[:-9])
    repair(vlm, run, progress=False)
    assert damaged.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, True),
        ({"max_new_tokens": 1}, False),
        ({"answers": False}, False),
    ],
)
def test_keys_and_values_are_kept_only_for_what_continues(vlm: VLM, tmp_path: Path, changes: dict[str, Any], kept: bool):
    items = Items(toy_item(number, options=THIS_THAT) for number in range(3))
    with passes_of(vlm) as passes:
        recorded(vlm, items, tmp_path / "run", **changes)
    prompts = [kwargs for kwargs in passes if "pixel_values" in kwargs]
    assert [kwargs["use_cache"] for kwargs in prompts] == [kept] * 2
    assert all(kwargs["logits_to_keep"] == 1 for kwargs in prompts)


def test_options_that_share_a_token_need_the_keys_and_values(vlm: VLM, tmp_path: Path):
    with passes_of(vlm) as passes:
        recorded(vlm, Items([toy_item(3)]), tmp_path / "run", answers=False)
    assert passes[0]["use_cache"] is True


def test_the_answer_continues_from_the_recorded_pass(vlm: VLM, items: Items, tmp_path: Path):
    """A batch's prompt goes through the model once; everything else is one token at a time, behind the same keys and values."""
    plain = Items(toy_item(number, options=THIS_THAT) for number in range(4))
    with passes_of(vlm) as passes:
        recorded(vlm, plain, tmp_path / "run", batch_size=4, max_new_tokens=5)
    lengths = [kwargs["input_ids"].shape[1] for kwargs in passes]
    assert lengths[0] > 10
    assert lengths[1:] == [1] * (len(lengths) - 1)
    assert 1 < len(lengths) <= 5
    caches = [next(value for name, value in kwargs.items() if name in ("cache", "past_key_values")) for kwargs in passes[1:]]
    assert all(cache is caches[0] for cache in caches)
    assert caches[0].get_seq_length() == sum(lengths)


def test_nothing_continues_from_a_pass_without_a_cache(vlm: VLM, items: Items):
    state = PromptPass.run(vlm, vlm.prepare([items[0]]), keep_cache=False)
    with pytest.raises(ValueError, match="kept no cache; run it with keep_cache=True"):
        state.extended(torch.tensor([[1]]))


@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_family_gives_the_same_bits_with_less_and_can_be_trained_afterwards(architecture: str, tmp_path: Path):
    """Without a cache, without the rest of the pass, and in inference mode: equal bits, and no tensor that gradients refuse."""
    vlm, items = tiny_vlm(architecture), Items([toy_item(0), toy_item(4)])
    whole = record(vlm, items, tmp_path / "whole", layers=[0, 1], batch_size=2, max_new_tokens=2, progress=False)
    shorter = record(vlm, items, tmp_path / "shorter", layers=[0, 1], batch_size=2, answers=False, progress=False)
    bare = record(vlm, items, tmp_path / "bare", layers=[0, 1], batch_size=2, progress=False, **BARE)
    for layer in (0, 1):
        for role in whole.roles:
            np.testing.assert_array_equal(shorter.resid(layer, role), whole.resid(layer, role))
            np.testing.assert_array_equal(bare.resid(layer, role), whole.resid(layer, role))
    np.testing.assert_array_equal(shorter.options["logit"], whole.options["logit"])
    inputs = vlm.prepare(list(items))
    vlm.reset()
    vlm.model(**inputs).logits.sum().backward()
    vlm.reset()
    assert float(vlm.model.get_submodule(vlm.family.embeddings).weight.grad.abs().sum()) > 0
    vlm.model.zero_grad(set_to_none=True)
    again = record(vlm, items, tmp_path / "again", layers=[0, 1], batch_size=2, max_new_tokens=2, progress=False)
    same_files(whole.path, again.path)
