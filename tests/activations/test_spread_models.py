"""A model that accelerate has spread, as far as a machine without GPUs can: weights on disk, fetched for each block."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deixis as dx
from deixis.activations import record
from deixis.models import VLM
from tests.activations.test_recording import same_files
from tests.toys import toy_items, toy_model, toy_processor

SETTINGS: dict[str, Any] = {"batch_size": 2, "max_new_tokens": 3, "progress": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, processor = tmp_path_factory.mktemp("models") / "toy", toy_processor()
    toy_model(processor).save_pretrained(path)
    processor.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def whole(folder: Path) -> VLM:
    return dx.load(str(folder), device="cpu", check=False)


@pytest.fixture
def spread(folder: Path, tmp_path: Path) -> VLM:
    """Every second block, and the tower, on disk."""
    parts = {"model.visual": "disk", "model.language_model.embed_tokens": "cpu", "lm_head": "cpu"}
    parts |= {"model.language_model.norm": "cpu", "model.language_model.rotary_emb": "cpu"}
    parts |= {f"model.language_model.layers.{layer}": ("cpu", "disk")[layer % 2] for layer in range(3)}
    return dx.load(str(folder), device_map=parts, offload_folder=str(tmp_path / "off"), check=False)


def test_a_spread_model_records_the_same_bits(whole: VLM, spread: VLM, tmp_path: Path):
    assert spread.blocks[1].mlp.down_proj.weight.device.type == "meta"
    items = toy_items(5)
    one, other = record(whole, items, tmp_path / "one", **SETTINGS), record(spread, items, tmp_path / "other", **SETTINGS)
    for layer in one.layers():
        for role in one.roles:
            np.testing.assert_array_equal(other.resid(layer, role), one.resid(layer, role))
    np.testing.assert_array_equal(other.options["logit"], one.options["logit"])
    assert other.answers == one.answers
    assert float(np.abs(one.resid(3)).sum()) > 0


def test_a_pass_over_a_spread_model_runs_to_its_end(whole: VLM, spread: VLM, tmp_path: Path):
    """What was fetched for a block goes back when the block returns, so that no pass is left half-way."""
    kept: dict[str, Any] = {"layers": [1], "answers": False, "options": False}
    ran: list[int] = []
    handle = spread.blocks[2].register_forward_hook(lambda *_: ran.append(2))
    other = record(spread, toy_items(2), tmp_path / "other", **SETTINGS, **kept)
    handle.remove()
    assert ran == [2]
    assert spread.blocks[1].mlp.down_proj.weight.device.type == "meta"
    np.testing.assert_array_equal(other.resid(1), record(whole, toy_items(2), tmp_path / "one", **SETTINGS, **kept).resid(1))


def test_device_map_auto_where_there_is_only_a_cpu_is_the_whole_model_there(folder: Path, whole: VLM, tmp_path: Path):
    auto = dx.load(str(folder), device_map="auto", check=False)
    assert {parameter.device.type for parameter in auto.model.parameters()} == {"cpu"}
    items = toy_items(3)
    same_files(record(whole, items, tmp_path / "one", **SETTINGS).path, record(auto, items, tmp_path / "two", **SETTINGS).path)
