"""Estimates against what a recording really takes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from typer.testing import CliRunner

import deixis as dx
from deixis.activations.size import model_size
from deixis.cli import app
from deixis.hooks import SITES
from deixis.models import VLM
from deixis.models.outline import is_outline, outline
from tests.toys import D_MODEL, N_LAYERS, toy_items, toy_vlm

ARGUMENTS: dict[str, Any] = {"batch_size": 4, "max_new_tokens": 3}


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"attention": True},
        {"pool": None, "roles": ("image", "answer")},
        {"sites": ("resid", "head", "vision", "merger_out"), "roles": ("image",)},
        {"options": False, "answers": False},
    ],
    ids=["means", "attention", "tokens", "tower", "activations alone"],
)
def test_the_disk_of_a_recorded_run_is_what_was_estimated(vlm: VLM, tmp_path: Path, kept: dict[str, Any]):
    items = toy_items(20)
    found = dx.estimate(vlm, items, tmp_path, **ARGUMENTS, **kept)
    run = dx.record(vlm, items, tmp_path / "run", progress=False, **ARGUMENTS, **kept)
    real = sum(path.stat().st_size for path in run.path.glob("shards/*.h5"))
    assert found.n_shards == run.n_shards
    assert found.bytes == pytest.approx(real, rel=0.04)


def test_the_operations_are_those_that_torch_counts(vlm: VLM):
    """Torch counts no fused attention on the CPU: that term is compared with its closed form."""
    item = toy_items(1)[0]
    inputs = vlm.prepare([item])
    vlm.reset()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        vlm.model(**inputs, logits_to_keep=1, use_cache=False)
    vlm.reset()
    tokens, patches = inputs["input_ids"].shape[1], len(inputs["pixel_values"])
    size = model_size(vlm)
    ours = float(size.of_prompt(np.array([tokens]))[0] + size.of_patches(np.array([patches]))[0])
    attended = 2 * N_LAYERS * D_MODEL * tokens**2 + 4 * 2 * 32 * patches**2
    assert ours - attended == pytest.approx(counter.get_total_flops(), rel=0.04)


@pytest.mark.parametrize(("sites", "layers", "blocks"), [(("resid",), [2], 2), (("mlp_out",), [1], 2), (("vision",), [1], 0)])
def test_a_pass_that_ends_early_does_the_operations_of_the_blocks_that_run(
    vlm: VLM, tmp_path: Path, sites: tuple[str, ...], layers: list[int], blocks: int
):
    items = toy_items(1)
    kept: dict[str, Any] = {"sites": sites, "layers": layers, "roles": ("image",), "answers": False, "options": False}
    found = dx.estimate(vlm, items, tmp_path, **kept)
    inputs, counts = vlm.prepare(list(items)), {}
    for name, layer in (("ends", layers), ("whole", "all")):
        with dx.Watch(vlm, sites=sites, layers=layer, roles=("image",)) as watch, torch.no_grad():
            watch.expect(inputs, list(items))
            with FlopCounterMode(display=False) as counter:
                watch.run(inputs) if name == "ends" else vlm.model(**inputs, logits_to_keep=1, use_cache=False)
        counts[name] = counter.get_total_flops()
    vlm.reset()
    tokens = inputs["input_ids"].shape[1]
    attended = 2 * blocks * D_MODEL * tokens**2
    whole = model_size(vlm).of_prompt(np.array([tokens]))[0]
    head = 2 * model_size(vlm).head
    saved = (whole - head - 2 * N_LAYERS * D_MODEL * tokens**2) * (N_LAYERS - blocks) / N_LAYERS + head
    assert found.flop_prompt - attended == pytest.approx(float(whole - 2 * N_LAYERS * D_MODEL * tokens**2 - saved), rel=1e-6)
    if not SITES[sites[0]].vision:
        assert counts["whole"] - counts["ends"] == pytest.approx(saved, rel=0.04)


def test_each_written_token_costs_what_a_longer_prompt_would(vlm: VLM):
    size = model_size(vlm)
    tokens = np.array([500])
    longer = size.of_prompt(tokens + 10) - size.of_prompt(tokens) + 2 * size.head * 10
    assert size.of_answer(tokens, 10)[0] == pytest.approx(float(longer[0]), rel=0.01)


def test_an_outline_estimates_what_the_loaded_model_does(tmp_path: Path):
    items = dx.memory_game(languages=("en",), size=32, shapes=("star",), colours=("red",))
    small, loaded = outline("pico"), dx.load("pico", check=False)
    assert is_outline(small)
    assert not is_outline(loaded)
    one, other = (dx.estimate(each, items, tmp_path, attention=True) for each in (small, loaded))
    assert (one.disk, one.size, one.flop, one.tokens_most) == (other.disk, other.size, other.flop, other.tokens_most)
    assert one.size.total == sum(weight.numel() for weight in loaded.model.parameters())
    with pytest.raises(ValueError, match="whose width only a pass tells; estimate it with the loaded model"):
        dx.estimate(small, items, sites=("vision",), roles=("image",))


def test_hours_follow_from_the_stated_rate(vlm: VLM, tmp_path: Path):
    found = dx.estimate(vlm, toy_items(3), tmp_path / "not" / "there", tflops=1e-6, **ARGUMENTS)
    assert found.hours == pytest.approx(found.flop / 1e6 / 3600)
    assert found.fits
    frame = found.to_frame()
    assert list(frame) == ["model", "what", "arrays", "rows", "row_bytes", "bytes"]
    assert frame["bytes"].sum() == pytest.approx(found.bytes)
    answer = frame.set_index("what").loc["resid/answer"]
    assert (answer["arrays"], answer["row_bytes"]) == (N_LAYERS + 1, 4 * D_MODEL)


def test_wrong_arguments_are_refused(vlm: VLM):
    with pytest.raises(ValueError, match="there are no items to estimate"):
        dx.estimate(vlm, dx.Items([]))
    with pytest.raises(ValueError, match=r"sample=0 and tflops=100\.0 must both be above 0"):
        dx.estimate(vlm, toy_items(1), sample=0)


def test_the_command_says_it_and_writes_nothing(tmp_path: Path):
    small = ["--languages", "en", "--size", "32", "--shapes", "star", "--colours", "red"]
    command = ["record", "pico", "memory-game", *small, "--out", str(tmp_path / "run"), "--dry-run"]
    done = CliRunner().invoke(app, [*command, "--json", "--tflops", "50"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["hours"] == pytest.approx(sum(told["pflop"].values()) * 1e15 / 50e12 / 3600)
    assert told["bytes"] == pytest.approx(sum(part["bytes"] for part in told["disk"]))
    shown = CliRunner().invoke(app, command).stdout
    assert "TFLOP/s" in shown
    assert "resid/answer" in shown
    assert list(tmp_path.iterdir()) == []
