"""Pictures that several items show go through the vision tower once, and nobody can tell from the numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from deixis.activations import record, recording
from deixis.activations.passes import PromptPass
from deixis.activations.recorder import shares_pictures
from deixis.benchmarks import Items
from deixis.benchmarks.images import UniformImage
from deixis.hooks import AttentionPlan, AttentionWatch, Watch
from deixis.models import FAMILIES, VLM
from deixis.models.features import VisionFeatures
from tests.activations.test_recording import same_files
from tests.models.tiny import pixtral, tiny_vlm
from tests.toys import toy_image, toy_item, toy_vlm

WITH_FEATURES = [name for name, family in FAMILIES.items() if family.vision_cache]
WIDE = UniformImage(width=96, height=64)


@contextmanager
def tower_runs(vlm: VLM) -> Iterator[list[int]]:
    """One entry for each call for features, however the family makes them."""
    owner: Any = vlm.model if hasattr(vlm.model, "get_image_features") else vlm.model.model
    real, runs = owner.get_image_features, []
    owner.get_image_features = lambda *args, **kwargs: (runs.append(1), real(*args, **kwargs))[1]
    try:
        yield runs
    finally:
        del owner.get_image_features


@pytest.mark.parametrize("architecture", [*WITH_FEATURES, "pixtral"])
@torch.inference_mode()
def test_features_in_place_of_pixels_give_the_same_bits(architecture: str):
    """One picture alone, two of one item (of other sizes), and one that two items share, in each family that takes features."""
    vlm = pixtral() if architecture == "pixtral" else tiny_vlm(architecture)
    pair = toy_item(1, images=(toy_image(1), WIDE), objects=())
    for items in ([toy_item(0)], [pair], [toy_item(0), toy_item(4, images=(toy_image(0),))]):
        inputs = vlm.prepare(items)
        plain = PromptPass.run(vlm, inputs)
        with tower_runs(vlm) as runs:
            features = VisionFeatures(vlm)
            given = features.instead_of_pixels(inputs, items)
            assert "pixel_values" not in given
            assert len(runs) == (len(items[0].images) if vlm.family.pictures_apart else 1)
            other = PromptPass.run(vlm, given)
            features.instead_of_pixels(inputs, items)
        assert len(runs) == (len(items[0].images) if vlm.family.pictures_apart else 1)
        # Where a batch's pictures go through the tower one by one, sums of other lengths may round otherwise (LLaVA-NeXT's do).
        close = {"rtol": 0, "atol": 0} if len(items) == 1 else {"rtol": 1e-5, "atol": 1e-5}
        torch.testing.assert_close(other.logits, plain.logits, **close)
        assert torch.equal(other.shift, plain.shift)
    blank = PromptPass.run(vlm, vlm.prepare([toy_item(0, images=(UniformImage(width=64, height=64),))]))
    assert float((blank.logits - PromptPass.run(vlm, vlm.prepare([toy_item(0)])).logits).abs().max()) > 1e-4
    vlm.reset()


def test_a_family_that_takes_pixels_only_is_refused():
    with pytest.raises(ValueError, match="MllamaForConditionalGeneration takes pixels only; run it as it is"):
        VisionFeatures(tiny_vlm("MllamaForConditionalGeneration"))


@torch.inference_mode()
def test_what_is_kept_stays_within_its_bytes_and_the_oldest_goes_first():
    vlm = toy_vlm()
    items = [toy_item(number) for number in (0, 1, 2, 4)]
    alone = VisionFeatures(vlm)
    alone.instead_of_pixels(vlm.prepare(items[:1]), items[:1])
    (each,) = alone._bytes.values()
    assert each == 2 * 4 * vlm.d_model * 4  # four image tokens in float32, for the embeddings and one DeepStack layer
    features = VisionFeatures(vlm, most_bytes=2 * each)
    with tower_runs(vlm) as runs:
        for number in (0, 1, 0, 2, 0, 1):  # when 2 comes, 1 has not been asked for the longest
            features.instead_of_pixels(vlm.prepare([items[number]]), [items[number]])
            assert sum(features._bytes.values()) <= 2 * each
    assert len(runs) == 4


@pytest.fixture
def shared() -> Items:
    """Twelve items of three pictures, in other words and languages."""
    return Items(
        toy_item(number, id=f"toy/{number}", images=(toy_image(number % 3),), language=("en", "ja")[number % 2])
        for number in range(12)
    )


def test_a_run_makes_the_features_of_each_picture_once(shared: Items, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Across batches and shards; a run that keeps none is the same, byte for byte, and one from pixels within rounding."""
    monkeypatch.setattr(recording, "SHARD_ITEMS", {"mean": 4, None: 4})
    vlm, settings = toy_vlm(), {"batch_size": 2, "max_new_tokens": 2, "progress": False}
    with tower_runs(vlm) as runs:
        run = record(vlm, shared, tmp_path / "run", **settings)
    assert len(runs) == 3
    monkeypatch.setattr(VisionFeatures, "__init__", _forgetful(VisionFeatures.__init__))
    with tower_runs(vlm) as runs:
        again = record(vlm, shared, tmp_path / "again", **settings)
    assert len(runs) == 12
    same_files(run.path, again.path)
    monkeypatch.setattr("deixis.activations.recorder.shares_pictures", lambda *_: False)
    pixels = record(vlm, shared, tmp_path / "pixels", **settings)
    for role in run.roles:
        np.testing.assert_allclose(run.resid(3, role), pixels.resid(3, role), rtol=1e-4, atol=1e-4)
    assert run.answers == pixels.answers


def _forgetful(real: Any) -> Any:
    return lambda self, vlm: real(self, vlm, most_bytes=0)


def test_where_the_tower_is_watched_every_item_runs_it(shared: Items):
    vlm = toy_vlm()
    resid, tower = Watch(vlm), Watch(vlm, sites=("resid", "merger_in"))
    assert shares_pictures(vlm, shared, resid, None)
    assert not shares_pictures(vlm, shared, tower, None)
    assert not shares_pictures(vlm, shared[:3], resid, None)  # each picture once
    assert shares_pictures(vlm, shared[:4], resid, None)  # one of four has been seen before
    assert not shares_pictures(vlm, Items([*shared[:4], toy_item(4, id="toy/other")]), resid, None)  # one of five
    assert shares_pictures(vlm, shared, resid, AttentionWatch(vlm, AttentionPlan(spread=False)))
    assert not shares_pictures(vlm, shared, resid, AttentionWatch(vlm, AttentionPlan(vision=True, spread=False)))
    assert not shares_pictures(vlm, shared, resid, AttentionWatch(vlm, AttentionPlan()))
    assert not shares_pictures(tiny_vlm("MllamaForConditionalGeneration"), shared, resid, None)
