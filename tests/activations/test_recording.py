"""Recording: what a run holds is what the model did, however often it was interrupted."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

import deixis as dx
from deixis.activations import (
    LockedRunError,
    NonFiniteError,
    NotARunError,
    Run,
    RunError,
    SettingsError,
    open_run,
    record,
    recording,
)
from deixis.activations.batching import AUTO_BATCH
from deixis.activations.lock import locked
from deixis.activations.recorder import Recorder
from deixis.activations.settings import read_header
from deixis.benchmarks import Items
from deixis.models import VLM
from tests.activations.test_passes import full_logits
from tests.hooks.test_watch import hooks_on, watched
from tests.toys import N_LAYERS, toy_items, toy_vlm

N = 7


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@pytest.fixture(scope="module")
def items() -> Items:
    return toy_items(N)


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "SHARD_ITEMS", {"mean": 4, None: 4})


def recorded(vlm: VLM, items: Items, path: Path, **changes: Any) -> Run:
    arguments: dict[str, Any] = {"batch_size": 2, "max_new_tokens": 4, "progress": False}
    return record(vlm, items, path, **(arguments | changes))


def batches_of(path: Path) -> list[list[int]]:
    found = []
    for shard in sorted((path / "shards").glob("*.h5")):
        with h5py.File(shard) as file:
            found.append(file["batches"][()].tolist())
    return found


def same_files(one: Path, other: Path) -> None:
    """All files but the view are equal byte for byte; the view (HDF5 dates its virtual datasets) value for value."""

    def contents(path: Path) -> dict[str, bytes]:
        return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file() and f.name != "run.h5"}

    assert contents(one) == contents(other)
    with h5py.File(one / "run.h5") as first, h5py.File(other / "run.h5") as second:
        names: list[str] = []
        first.visititems(lambda name, node: names.append(name) if isinstance(node, h5py.Dataset) else None)
        for name in names:
            np.testing.assert_array_equal(first[name][()], second[name][()])


def test_a_run_holds_what_single_passes_give(vlm: VLM, items: Items, tmp_path: Path, small_shards: None) -> None:
    run = recorded(vlm, items, tmp_path / "run", roles=("answer", "object", "image"), batch_size=3)
    logits = run.options.set_index(["item", "option"])["logit"]
    for row, item in enumerate(items):
        seen, _, _ = watched(vlm, [item])
        for (_, layer, role), found in seen.items():
            np.testing.assert_allclose(run.resid(layer, role)[row], found.values[0].numpy(), rtol=1e-4, atol=1e-4)
        assert run.answers[row] == generated_of_four(vlm, item)
        if item.options[0].label == "that":
            firsts = list(vlm.first_tokens(item.options[1]))
            expected = full_logits(vlm, item, [])[0][firsts].logsumexp(0)
            assert logits[item.id, "that"] == pytest.approx(float(expected), abs=1e-4)
    assert len(set(run.answers)) > 2
    assert [item.id for item in run.items] == [item.id for item in items]
    assert run.items.fingerprint == items.fingerprint


def generated_of_four(vlm: VLM, item: Any) -> str:
    inputs = vlm.prepare([item])
    vlm.reset()
    tokens = vlm.model.generate(**inputs, do_sample=False, max_new_tokens=4)
    vlm.reset()
    return vlm.tokenizer.decode(tokens[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


def test_a_run_in_bfloat16_keeps_the_bits(items: Items, tmp_path: Path) -> None:
    vlm = toy_vlm(torch.bfloat16)
    some = items[:3]
    run = recorded(vlm, some, tmp_path / "run", pool=None, roles=("answer", "image"), batch_size=3)
    seen, _, _ = watched(vlm, list(some), pool=None, roles=("answer", "image"))
    with h5py.File(run.path / "shards" / "000000.h5") as file:
        for layer in range(N_LAYERS + 1):
            stored = torch.from_numpy(file[f"resid/{layer}/image"][()].view(np.int16))
            assert torch.equal(stored, seen["resid", layer, "image"].values.view(torch.int16))
    values, offsets = run.tokens("resid", 2, "image")
    np.testing.assert_array_equal(values, seen["resid", 2, "image"].values.float().numpy())
    assert offsets.tolist() == np.concatenate([[0], seen["resid", 2, "image"].counts.cumsum(0).numpy()]).tolist()
    np.testing.assert_array_equal(run.resid(2), seen["resid", 2, "answer"].values.float().numpy())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("n_random", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_a_run_killed_at_any_moment_ends_as_if_undisturbed(tmp_path: Path, n_random: int) -> None:
    program = [sys.executable, "-m", "tests.activations.kills", str(tmp_path), str(n_random)]
    done = subprocess.run(program, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    killed = [path for path in tmp_path.iterdir() if path.name != "undisturbed"]
    assert len([path for path in killed if path.name.startswith("moment")]) >= n_random
    assert len([path for path in killed if path.name.startswith("operation")]) > 15
    for path in killed:
        same_files(tmp_path / "undisturbed", path)
    assert open_run(tmp_path / "undisturbed").verify() == 2


def test_a_finished_run_is_returned_without_a_pass(
    vlm: VLM, items: Items, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = recorded(vlm, items, tmp_path / "run")
    monkeypatch.setattr(Recorder, "_recorded", None)
    again = recorded(vlm, items, tmp_path / "run", layers=list(range(N_LAYERS + 1)))  # "all", said otherwise
    np.testing.assert_array_equal(again.resid(1), first.resid(1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": [0, 1]}, r"layers is \{'resid': \[0, 1, 2, 3\]\} there and \{'resid': \[0, 1\]\} here"),
        ({"roles": ("answer",)}, r"roles is \['answer', 'object', 'image'\] there and \['answer'\] here"),
        ({"pool": None}, "pool is 'mean' there and None here"),
        ({"max_new_tokens": 5}, "max_new_tokens is 4 there and 5 here"),
        ({"batch_size": 1}, "batch_size is 2 there and 1 here; use these settings again, or another path"),
        ({"answers": False}, "answers is True there and False here"),
    ],
)
def test_a_run_of_other_settings_is_refused(
    vlm: VLM, items: Items, finished: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        recorded(vlm, items, finished, **changes)


@pytest.fixture(scope="module")
def finished(vlm: VLM, items: Items, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(vlm, items, tmp_path_factory.mktemp("runs") / "run").path


def test_other_weights_and_other_items_are_refused(vlm: VLM, items: Items, finished: Path) -> None:
    with pytest.raises(SettingsError, match=r"weights is '[0-9a-f]+' there and '[0-9a-f]+' here"):
        recorded(toy_vlm(seed=1), items, finished)
    reworded = Items([replace(items[0], prompt="what is this"), *items[1:]])
    with pytest.raises(SettingsError, match=r"items is '[0-9a-f]+' there and"):
        recorded(vlm, reworded, finished)


def test_resume_false_refuses_a_run(vlm: VLM, items: Items, finished: Path) -> None:
    with pytest.raises(RunError, match="holds a run already and resume=False; name another path"):
        recorded(vlm, items, finished, resume=False)


def test_a_path_that_holds_something_else_is_left_alone(vlm: VLM, items: Items, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(NotARunError, match=r"is no run but holds letters\.txt; name an empty or new directory"):
        recorded(vlm, items, tmp_path)
    with pytest.raises(NotARunError, match=r"letters\.txt is a file; name a directory"):
        recorded(vlm, items, tmp_path / "letters.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention": "answer"}, "attention=.answer. is neither True, False, a list of queries"),
        ({"batch_size": 0}, "batch_size=0 is neither 'auto' nor a whole number"),
        ({"batch_size": "most"}, "batch_size='most' is neither"),
        ({"max_new_tokens": 0}, "max_new_tokens=0 must be a whole number from 1; use answers=False"),
        ({"sites": ("nowhere",)}, "sites holds 'nowhere', which is not one of: 'resid', 'attn_out'"),
        ({"pool": "max"}, "pool='max' is not one of: 'mean', None"),
    ],
)
def test_wrong_arguments_write_nothing(vlm: VLM, items: Items, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recorded(vlm, items, tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


def test_no_items_and_training_mode_are_refused(vlm: VLM, items: Items, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no items to record"):
        recorded(vlm, Items([]), tmp_path / "run")
    vlm.model.train()
    try:
        with pytest.raises(ValueError, match=r"training mode, .*; call vlm\.model\.eval\(\) first"):
            recorded(vlm, items, tmp_path / "run")
    finally:
        vlm.model.eval()


def failing_at(monkeypatch: pytest.MonkeyPatch, fails: Callable[[int, int], BaseException | None]) -> None:
    """Let a batch fail: ``fails`` gets the number of the attempt and the batch's size."""
    real, attempts = Recorder._recorded, iter(range(10_000))

    def attempt(self: Recorder, batch: list[Any]) -> Any:
        error = fails(next(attempts), len(batch))
        if error is not None:
            raise error
        return real(self, batch)

    monkeypatch.setattr(Recorder, "_recorded", attempt)


def test_ctrl_c_leaves_a_run_that_goes_on(
    vlm: VLM, items: Items, tmp_path: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = recorded(vlm, items, tmp_path / "whole")
    with monkeypatch.context() as patch:
        failing_at(patch, lambda attempt, _: KeyboardInterrupt() if attempt == 3 else None)
        with pytest.raises(KeyboardInterrupt) as stopped:
            recorded(vlm, items, tmp_path / "run")
    assert stopped.value.__notes__ == [f"What is finished stays in {tmp_path / 'run'}; the same call again goes on from there."]
    assert sorted(path.name for path in (tmp_path / "run" / "shards").iterdir()) == ["000000.h5", "000000.sha256"]
    unfinished = open_run(tmp_path / "run")
    assert not unfinished.finished
    assert unfinished.info["shards"] == {"finished": 1, "total": 2}
    with pytest.raises(RunError, match=r"lacks 1 of 2 shards \(000001\.h5\); call dx\.record with the same arguments again"):
        unfinished.resid(0)
    passes: list[int] = []
    failing_at(monkeypatch, lambda attempt, _: passes.append(attempt))
    recorded(vlm, items, tmp_path / "run")
    assert len(passes) == 2  # the finished shard is not recorded again
    same_files(whole.path, tmp_path / "run")


def test_a_damaged_shard_of_an_unfinished_run_is_recorded_again(
    vlm: VLM, items: Items, tmp_path: Path, small_shards: None, caplog: pytest.LogCaptureFixture
) -> None:
    whole = recorded(vlm, items, tmp_path / "whole")
    run = recorded(vlm, items, tmp_path / "run")
    shards = run.path / "shards"
    (shards / "000001.h5").unlink()
    data = bytearray((shards / "000000.h5").read_bytes())
    data[len(data) // 2] ^= 255
    (shards / "000000.h5").write_bytes(data)
    recorded(vlm, items, run.path)
    assert "000000.h5 is recorded again" in caplog.text
    same_files(whole.path, run.path)


def test_memory_that_runs_out_halves_the_batch_and_loses_no_item(
    vlm: VLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "SHARD_ITEMS", {"mean": AUTO_BATCH, None: 4})
    many = toy_items(AUTO_BATCH + 5)
    whole = recorded(vlm, many, tmp_path / "whole", batch_size="auto")
    assert batches_of(whole.path) == [[0], [0]]
    failing_at(monkeypatch, lambda _, size: torch.OutOfMemoryError("full") if size > 5 else None)
    run = recorded(vlm, many, tmp_path / "run", batch_size="auto")
    assert batches_of(run.path) == [[0, 4, 8, 12], [0, 4]]
    np.testing.assert_allclose(run.resid(2), whole.resid(2), rtol=1e-4, atol=1e-4)
    assert run.answers == whole.answers
    last = run.path / "shards" / "000001.h5"
    before = last.read_bytes()
    last.unlink()
    recorded(vlm, many, run.path, batch_size="auto")  # starts with the size that the first shard ended with
    assert last.read_bytes() == before


def test_memory_that_runs_out_of_a_chosen_batch_is_an_error(
    vlm: VLM, items: Items, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_at(monkeypatch, lambda *_: torch.OutOfMemoryError("full"))
    with pytest.raises(torch.OutOfMemoryError) as error:
        recorded(vlm, items, tmp_path / "run", batch_size=2)
    assert error.value.__notes__ == [
        "2 items from 'toy/0' need more; use a smaller batch_size, or 'auto', then run the same call again."
    ]
    with pytest.raises(torch.OutOfMemoryError) as error:
        recorded(vlm, items, tmp_path / "auto", batch_size="auto")
    assert error.value.__notes__ == ["1 items from 'toy/0' need more; free memory on the device, then run the same call again."]


@pytest.mark.parametrize("pool", ["mean", None])
def test_activations_that_are_not_finite_name_layer_role_and_item(tmp_path: Path, items: Items, pool: str | None) -> None:
    vlm = toy_vlm()
    seen, _, _ = watched(vlm, list(items), layers=[2], roles=("image",), pool=None)
    tokens = seen["resid", 2, "image"].values

    def spoil(_module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = args[0].clone()
        mine = (hidden[:, :, None] == tokens[9]).all(dim=-1).any(dim=-1)  # one image token of the third item
        hidden[mine] = float("inf")
        return (hidden, *args[1:])

    assert items[2].id == "toy/2"
    before = hooks_on(vlm)
    handle = vlm.blocks[2].register_forward_pre_hook(spoil)
    with pytest.raises(NonFiniteError, match="resid at layer 2, role 'image', is NaN or infinite for item 'toy/2'; load"):
        recorded(vlm, items, tmp_path / "run", roles=("image",), pool=pool, batch_size=N)
    handle.remove()
    assert hooks_on(vlm) == before
    assert list((tmp_path / "run" / "shards").iterdir()) == []


def test_a_run_without_answers_says_so(vlm: VLM, items: Items, tmp_path: Path) -> None:
    run = recorded(vlm, items[:2], tmp_path / "run", answers=False)
    assert len(run.options) == 4
    with pytest.raises(RunError, match="recorded with answers=False, so nothing was written"):
        _ = run.answers


def test_the_header_tells_what_made_the_run(vlm: VLM, items: Items, finished: Path) -> None:
    header = read_header(finished)
    assert header["items"] == items.fingerprint
    assert header["libraries"]["torch"] == torch.__version__.split("+")[0]
    assert (header["n_items"], header["batch_size"], header["max_new_tokens"]) == (N, 2, 4)
    assert header["layers"] == {"resid": [0, 1, 2, 3]}
    assert (header["model"], header["dtype"], header["attention_implementation"]) == (vlm.name, "float32", "sdpa")


def test_a_lost_list_of_items_is_written_again(vlm: VLM, items: Items, finished: Path) -> None:
    text = (finished / "items.jsonl").read_bytes()
    (finished / "items.jsonl").unlink()
    again = recorded(vlm, items, finished)
    assert (finished / "items.jsonl").read_bytes() == text
    assert [item.id for item in again.items] == [item.id for item in items]


def test_a_run_whose_first_batch_was_refused_can_be_started_with_other_items(vlm: VLM, items: Items, tmp_path: Path) -> None:
    bad = Items([replace(items[0], prompt="look <|image_pad|>"), *items[1:]])
    with pytest.raises(ValueError, match="image token"):
        record(vlm, bad, tmp_path / "run", progress=False)
    assert record(vlm, items, tmp_path / "run", progress=False).finished


def test_logits_that_are_not_finite_name_the_item(items: Items, tmp_path: Path) -> None:
    broken = toy_vlm()
    broken.model.lm_head.weight = torch.nn.Parameter(broken.model.lm_head.weight.detach().clone())
    with torch.no_grad():
        broken.model.lm_head.weight[9] = float("nan")
    with pytest.raises(NonFiniteError, match=rf"logits are NaN or infinite for item '{items[0].id}'"):
        record(broken, items, tmp_path / "run", progress=False)


def test_another_recorder_on_the_same_path_is_named(vlm: VLM, items: Items, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with locked(tmp_path / "run"), pytest.raises(LockedRunError, match=rf"process {os.getpid()} on .* has been recording into"):
        record(vlm, items, tmp_path / "run", progress=False)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_finished_run_is_returned_without_touching_a_file(vlm: VLM, items: Items, tmp_path: Path) -> None:
    path = recorded(vlm, items, tmp_path / "run").path
    before = {file: file.stat().st_mtime_ns for file in (path, *path.rglob("*"))}
    recorded(vlm, items, path)
    assert {file: file.stat().st_mtime_ns for file in (path, *path.rglob("*"))} == before


def test_items_must_be_items(vlm: VLM, items: Items, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError), match="items"):
        record(vlm, list(items), tmp_path / "run", progress=False)  # pyright: ignore[reportArgumentType]


def test_items_without_options_are_refused_before_anything_is_written(vlm: VLM, items: Items, tmp_path: Path) -> None:
    bare = replace(items[1], id="mute", options=(), truth=None)
    with pytest.raises(ValueError, match="item 'mute' has no options, which a run keeps the logits of"):
        recorded(vlm, items + Items([bare]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_positions_that_a_model_held_are_there_after_a_recording(tmp_path: Path) -> None:
    pico = dx.load("pico", check=False)
    keeper = pico.model.get_submodule(str(pico.family.keeps_positions))
    keeper.rope_deltas = held = torch.tensor([[-7]])
    record(pico, dx.memory_game(n=1, languages=("en",), size=96)[:2], tmp_path / "run", layers=[1], progress=False)
    assert keeper.rope_deltas is held
