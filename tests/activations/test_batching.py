"""Which items run together: like lengths with like, as many as memory allows, and the stored order is the items' own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from deixis.activations import record, recording
from deixis.activations.batching import AUTO_BATCH, MemoryRule, grown, padded_tokens, running_order
from deixis.activations.recorder import Recorder
from deixis.benchmarks import Items
from deixis.hooks import Watch
from deixis.models import VLM
from deixis.models.lengths import PromptLengths
from tests.activations.test_recording import failing_at, recorded, same_files
from tests.models.tiny import tiny_vlm
from tests.toys import THIS_THAT, grey, toy_image, toy_item, toy_vlm

N = 8
WORDS = " this that"


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@pytest.fixture(scope="module")
def uneven() -> Items:
    """Short and long prompts in turns, and other options, answers and boxes for each."""
    return Items(toy_item(number, prompt="what is" + WORDS * (20 * (number % 2))) for number in range(N))


@pytest.fixture(autouse=True)
def one_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "SHARD_ITEMS", {"mean": N, None: N})


def order_of(path: Path) -> list[int] | None:
    with h5py.File(path / "shards" / "000000.h5") as file:
        return file["order"][()].tolist() if "order" in file else None


def test_like_lengths_run_together_the_longest_first():
    lengths = [10, 50, 12, 48]
    assert running_order(lengths, [1] * 4, 2, mixes_counts=True) == [1, 3, 2, 0]
    assert padded_tokens(lengths, 2) == 2 * 50 + 2 * 48
    assert padded_tokens([50, 48, 12, 10], 2) == 2 * 50 + 2 * 12


@pytest.mark.parametrize(("lengths", "size"), [([10, 50, 12, 48], 1), ([10, 50, 12, 48], 4), ([100, 102, 101, 103], 2)])
def test_items_keep_their_order_where_another_would_save_nothing(lengths: list[int], size: int):
    assert running_order(lengths, [1] * 4, size, mixes_counts=True) == [0, 1, 2, 3]


def test_equal_numbers_of_pictures_run_together_where_they_must():
    assert running_order([10, 90, 20, 80], [1, 2, 1, 2], 2, mixes_counts=False) == [0, 2, 1, 3]
    assert running_order([10, 90, 50, 12, 80, 48], [1, 2, 1, 1, 2, 1], 2, mixes_counts=False) == [2, 5, 3, 0, 1, 4]


@pytest.mark.parametrize("changes", [{}, {"pool": None, "roles": ("answer", "image", "text")}])
def test_a_run_in_buckets_holds_the_same_in_the_same_order(
    vlm: VLM, uneven: Items, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
):
    """Against a run whose batches follow the items: every row, option, answer and count, although other items were neighbours."""
    ran: list[list[str]] = []
    real = Recorder._recorded
    monkeypatch.setattr(
        Recorder, "_recorded", lambda self, batch: (ran.append([item.id for item in batch]), real(self, batch))[1]
    )
    run = recorded(vlm, uneven, tmp_path / "run", batch_size=4, **changes)
    assert order_of(run.path) == [1, 3, 5, 7, 0, 2, 4, 6]
    assert ran == [[f"toy/{number}" for number in part] for part in ((1, 3, 5, 7), (0, 2, 4, 6))]
    monkeypatch.setattr("deixis.activations.recorder.running_order", lambda lengths, *_, **__: list(range(len(lengths))))
    plain = recorded(vlm, uneven, tmp_path / "plain", batch_size=4, **changes)
    assert order_of(plain.path) is None
    assert run.answers == plain.answers
    assert len(set(run.answers)) > 2
    np.testing.assert_allclose(run.options["logit"], plain.options["logit"], rtol=1e-4, atol=1e-4)
    assert run.options[["item", "option"]].equals(plain.options[["item", "option"]])
    for role in run.roles:
        np.testing.assert_array_equal(run.counts(role), plain.counts(role))
        for layer in (0, 3):
            values = [
                r.tokens("resid", layer, role)[0] if r.settings["pool"] is None else r.resid(layer, role) for r in (run, plain)
            ]
            np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-4)
            assert (
                layer == 0 or len(np.unique(values[0].round(3), axis=0)) > 3
            )  # at 0 the answer position is one token's embedding
    assert run.verify() == 1
    with h5py.File(run.path / "run.h5") as view:
        assert "order" not in view
        np.testing.assert_array_equal(view["options/logit"][()], run.options["logit"])


def test_attention_in_buckets_keeps_its_items_order(vlm: VLM, uneven: Items, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Maps have a row for each image token, of which the items have different numbers."""
    items = Items(
        replace(item, images=(grey(128),) if number % 3 == 0 else item.images, objects=()) for number, item in enumerate(uneven)
    )
    run = recorded(vlm, items, tmp_path / "run", batch_size=4, attention=True)
    monkeypatch.setattr("deixis.activations.recorder.running_order", lambda lengths, *_, **__: list(range(len(lengths))))
    plain = recorded(vlm, items, tmp_path / "plain", batch_size=4, attention=True)
    assert order_of(run.path) is not None
    ours, theirs = run.attention(), plain.attention()
    assert len(set(ours.tokens.counts.tolist())) == 2
    np.testing.assert_array_equal(ours.tokens.counts, theirs.tokens.counts)
    np.testing.assert_array_equal(ours.tokens.boxes, theirs.tokens.boxes)
    np.testing.assert_allclose(ours.maps().astype(np.float32), theirs.maps().astype(np.float32), atol=2e-3)
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(ours.peaks.phi.astype(np.float32), theirs.peaks.phi.astype(np.float32), rtol=1e-2)


def test_lengths_are_those_of_the_prepared_prompts_up_to_a_constant(vlm: VLM):
    items = [toy_item(0), toy_item(1, images=(grey(128),)), toy_item(2, images=(toy_image(1), grey(128))), toy_item(3, images=())]
    found = np.array(PromptLengths(vlm).of(items))
    real = np.array([vlm.prepare([item])["input_ids"].shape[1] for item in items])
    assert len(set(found - real)) == 1
    alike = [toy_item(0), toy_item(4)]
    assert np.diff(PromptLengths(vlm).of(alike)) == np.diff([vlm.prepare([item])["input_ids"].shape[1] for item in alike])


def test_a_family_that_mixes_no_counts_runs_equal_counts_together(tmp_path: Path):
    mllama = tiny_vlm("MllamaForConditionalGeneration")
    items = Items(toy_item(number, images=() if number % 2 else (toy_image(number),), objects=()) for number in range(4))
    run = record(mllama, items, tmp_path / "run", batch_size=2, max_new_tokens=1, layers=[0], progress=False)
    with h5py.File(run.path / "shards" / "000000.h5") as file:
        assert file["batches"][()].tolist() == [0, 2]


def test_batches_of_our_choice_grow_from_shard_to_shard():
    assert [grown(number, 64) for number in range(5)] == [16, 32, 64, 64, 64]
    assert grown(10**6, 48) == 48


def rule(**changes: Any) -> MemoryRule:
    fields: dict[str, Any] = {
        "per_token": 100,
        "per_square": 0,
        "kept_per_token": 0,
        "memory": 32_000_000,
        "growth_is_safe": False,
    }
    return MemoryRule(**(fields | changes))


def test_growth_stops_where_the_memory_rule_says():
    """A thirty-second of 32 MB is 1 MB, which 10,000 tokens at 100 bytes fill."""
    assert rule().largest(64, 156) == 64  # 64 x 156 x 100 = 998,400
    assert rule().largest(64, 157) == 32
    assert rule().largest(64, 10**6) == AUTO_BATCH  # what the user has always been given
    assert rule(growth_is_safe=True).largest(64, 10**6) == 64
    assert rule(per_square=1).largest(64, 110) == 32  # 64 x (11,000 + 12,100) is more than a million, half of it less


def test_what_is_kept_of_a_batch_bounds_it_too():
    keeps = rule(kept_per_token=1000, growth_is_safe=True)  # an eighth of 32 MB is 4 MB
    assert keeps.largest(16, 250) == 16
    assert keeps.largest(16, 251) == 8
    assert keeps.largest(16, 10**9) == 1


def test_the_memory_rule_knows_the_model(vlm: VLM):
    """Keys and values of 3 layers of width 32, and 20 times the width for a block's work; float32."""
    found = MemoryRule.of(vlm, Watch(vlm, pool=None))
    assert found.per_token == 4 * (2 * 3 * 32 + 20 * 32)
    assert found.kept_per_token == 4 * 4 * 32
    assert found.memory > 1 << 28
    assert MemoryRule.of(vlm, Watch(vlm)).kept_per_token == 0


def test_batches_grow_until_memory_runs_out_and_no_item_is_lost(vlm: VLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Shards of 64: 16, 32, then 64, of which no more than 40 fit; what memory allowed holds for the shards after it."""
    monkeypatch.setattr(recording, "SHARD_ITEMS", {"mean": 64, None: 64})
    items = Items(toy_item(number % 2, id=f"toy/{number}", options=THIS_THAT) for number in range(64 * 3 + 40))
    sizes: list[int] = []

    def fails(_: int, size: int) -> BaseException | None:
        sizes.append(size)
        return torch.OutOfMemoryError("full") if size > 40 else None

    failing_at(monkeypatch, fails)
    settings: dict[str, Any] = {"layers": [0], "answers": False, "batch_size": "auto", "progress": False}
    run = record(vlm, items, tmp_path / "run", **settings)
    assert sizes == [16] * 4 + [32] * 2 + [64, 32, 32] + [32, 8]
    assert run.resid(0).shape[0] == len(items)
    assert list(run.options["item"].unique()) == [item.id for item in items]
    last = run.path / "shards" / "000003.h5"
    before = last.read_bytes()
    last.unlink()
    record(vlm, items, run.path, **settings)
    assert last.read_bytes() == before
    other = record(vlm, items[: 64 * 3], tmp_path / "other", **settings)
    np.testing.assert_array_equal(other.resid(0), run.resid(0)[: 64 * 3])


def test_another_rank_makes_the_same_batches(vlm: VLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The size follows from the shard's number, not from what the process did before."""
    monkeypatch.setattr(recording, "SHARD_ITEMS", {"mean": 32, None: 32})
    items = Items(toy_item(number % 3, id=f"toy/{number}", options=THIS_THAT) for number in range(96))
    settings: dict[str, Any] = {"layers": [0], "answers": False, "batch_size": "auto", "progress": False}
    alone = record(vlm, items, tmp_path / "alone", **settings)
    monkeypatch.setenv("DEIXIS_PATIENCE", "0")
    with pytest.raises(Exception, match="lacks"):
        record(vlm, items, tmp_path / "two", ranks=(0, 2), **settings)
    record(vlm, items, tmp_path / "two", ranks=(1, 2), **settings)
    same_files(alone.path, tmp_path / "two")
