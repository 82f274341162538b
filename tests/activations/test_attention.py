"""Attention is kept with a run: what was seen is what is read, whenever the recording stopped."""

from pathlib import Path

import numpy as np
import pytest
import torch

from deixis.activations import RunError, SettingsError, open_run, record
from deixis.activations.recording import repair
from deixis.activations.shards import checksum_path, shard_path
from deixis.benchmarks import Items
from deixis.hooks import AttentionPlan, AttentionWatch
from deixis.hooks.attention_stats import STATISTICS
from deixis.models import VLM
from tests.toys import toy_image, toy_item, toy_items, toy_vlm

PLAN = AttentionPlan(queries=("answer", "text"), vision=True)


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@pytest.fixture(scope="module")
def items() -> Items:
    """One of them without a picture, one with two."""
    bare = toy_item(5, images=(), objects=())
    return toy_items(5) + Items([bare, toy_item(6, images=(toy_image(0), toy_image(1)))])


def seen_alone(vlm: VLM, items: Items) -> list[dict[str, np.ndarray]]:
    """What a watch of the test's own sees, item by item."""
    found = []
    for item in items:
        inputs = vlm.prepare([item])
        with torch.no_grad(), AttentionWatch(vlm, PLAN) as watch:
            watch.follow(inputs, [item])
            vlm.reset()
            vlm.model(**inputs)
            found.append(watch.read())
    vlm.reset()
    return found


def test_a_run_holds_what_is_seen_of_each_item_alone(vlm: VLM, items: Items, tmp_path: Path) -> None:
    run = record(vlm, items, tmp_path / "run", attention=PLAN, batch_size=4, progress=False)
    alone = seen_alone(vlm, items)
    for site in ("attention", "vision_attention"):
        kept = open_run(tmp_path / "run").attention(site)
        expected = np.concatenate([seen[f"{site}/values"] for seen in alone])
        np.testing.assert_allclose(kept.values, expected, atol=1e-5, rtol=1e-4)
        maps = np.concatenate([seen[f"{site}/maps"] for seen in alone])
        for place, query in enumerate(kept.queries):
            np.testing.assert_allclose(kept.maps(query), maps[..., place], atol=1e-4)
    kept = run.attention()
    assert kept.tokens.counts.tolist() == [4, 4, 4, 4, 4, 0, 8]
    np.testing.assert_array_equal(kept.tokens.boxes[:2], [[0, 0, 32, 32], [32, 0, 64, 32]])
    assert kept.tokens.pictures[kept.tokens.of(6)].tolist() == [0] * 4 + [1] * 4
    np.testing.assert_allclose(kept.peaks.phi, np.concatenate([seen["peaks/phi"] for seen in alone]), rtol=2e-3)
    np.testing.assert_allclose(kept.likeness()[1], np.concatenate([seen["likeness/rank"] for seen in alone]), rtol=1e-3)


def test_watching_changes_nothing_else_of_a_run(vlm: VLM, items: Items, tmp_path: Path) -> None:
    plain = record(vlm, items, tmp_path / "plain", progress=False)
    watched = record(vlm, items, tmp_path / "watched", attention=True, progress=False)
    assert plain.options.equals(watched.options)
    assert plain.answers == watched.answers
    for layer in plain.layers("resid"):
        np.testing.assert_array_equal(plain.resid(layer), watched.resid(layer))


def test_the_map_and_the_masses_tell_the_same(vlm: VLM, tmp_path: Path) -> None:
    kept = record(vlm, toy_items(5), tmp_path / "run", attention=True, progress=False).attention()
    mass = kept.statistic("object_mass")
    for item in range(5):
        mine = kept.tokens.of(item)
        on_object = kept.maps()[mine][kept.tokens.marked[mine]].astype(float).sum(axis=0)
        np.testing.assert_allclose(on_object, mass[item], atol=1e-3)
    frame = kept.to_frame()
    assert list(frame.columns) == ["model", "item", "site", "layer", "head", "query", *STATISTICS]
    row = frame[(frame["item"] == "toy/3") & (frame["layer"] == 2) & (frame["head"] == 1)].iloc[0]
    assert row["object_mass"] == pytest.approx(mass[3, 2, 1])


def test_a_damaged_shard_is_recorded_again_with_its_attention(vlm: VLM, items: Items, tmp_path: Path) -> None:
    run = record(vlm, items, tmp_path / "run", attention=PLAN, batch_size=4, progress=False)
    before = run.attention().values
    shard_path(run.path, 0).write_bytes(b"")
    repair(vlm, run, progress=False)
    np.testing.assert_array_equal(open_run(run.path).attention().values, before)
    assert checksum_path(shard_path(run.path, 0)).exists()


def test_another_plan_is_another_run(vlm: VLM, items: Items, tmp_path: Path) -> None:
    record(vlm, items, tmp_path / "run", attention=True, progress=False)
    with pytest.raises(SettingsError, match="attention is"):
        record(vlm, items, tmp_path / "run", attention=("text",), progress=False)


def test_a_run_without_attention_says_so(vlm: VLM, tmp_path: Path) -> None:
    run = record(vlm, toy_items(2), tmp_path / "run", progress=False)
    with pytest.raises(RunError, match="recorded without attention; record it again, elsewhere, with attention=True"):
        run.attention()
    run = record(vlm, toy_items(2), tmp_path / "other", attention=AttentionPlan(maps=False, spread=False), progress=False)
    kept = run.attention()
    with pytest.raises(RunError, match="'vision_attention' was not recorded; this run holds attention at: attention"):
        run.attention("vision_attention")
    with pytest.raises(RunError, match=r"without attention maps; record it with AttentionPlan\(maps=True\)"):
        kept.maps()
    with pytest.raises(RunError, match="without peaks and likeness"):
        kept.likeness()
    with pytest.raises(RunError, match="query='text' was not recorded at attention; this run holds: answer"):
        kept.statistic("entropy", "text")
    with pytest.raises(RunError, match="statistic 'mass' is not one of: entropy"):
        kept.statistic("mass")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("answer", "attention='answer' is neither True, False, a list of queries"),
        ((), r"queries=\(\) must be a non-empty list of: 'answer'"),
        (("answer", "nose"), "queries holds 'nose', which is not one of: 'answer', 'last_text'"),
        (AttentionPlan(layers=(7,)), "layers holds 7; attention has the layers 0 to 2"),
        (AttentionPlan(layers=()), "layers is empty; attention has the layers 0 to 2"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(vlm: VLM, wanted: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        record(vlm, toy_items(2), tmp_path / "run", attention=wanted, progress=False)  # pyright: ignore[reportArgumentType]
    assert not (tmp_path / "run").exists()


def test_a_run_that_begins_without_pictures_keeps_the_attention_of_tower_and_decoder(vlm: VLM, tmp_path: Path) -> None:
    """The tower's width is learned from a pass of its own, which the watch of the attention is not to take for the batch's."""
    bare = Items(toy_item(number, images=(), objects=()) for number in range(2))
    items = bare + Items([toy_item(2), toy_item(3)])
    where = {"sites": ("resid", "vision"), "roles": ("answer", "image"), "attention": PLAN, "progress": False}
    for name, asked, size in (("none", bare, 2), ("apart", items, 2), ("mixed", items, 4)):
        run = record(vlm, asked, tmp_path / name, batch_size=size, **where)
        tower, decoder = run.attention("vision_attention").values, run.attention().values
        alone = seen_alone(vlm, asked)
        np.testing.assert_allclose(
            tower, np.concatenate([seen["vision_attention/values"] for seen in alone]), atol=1e-5, rtol=1e-4
        )
        np.testing.assert_allclose(decoder, np.concatenate([seen["attention/values"] for seen in alone]), atol=1e-5, rtol=1e-4)
        assert np.isnan(tower[:2]).all()
        assert np.isfinite(tower[2:, :, :, 0, STATISTICS.index("max_weight")]).all()
        assert run.counts("image", "vision").tolist()[:2] == [0, 0]
