"""Every site goes through record into shards and back unchanged."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

import deixis as dx
from deixis.activations import RunError, open_run
from deixis.benchmarks import Box, Item, Items
from deixis.benchmarks.images import UniformImage
from deixis.hooks import SITES, Seen, Watch
from deixis.models import VLM
from tests.models.tiny import tiny_vlm
from tests.toys import toy_image, toy_item

# Windows; one tower call for tiles; no tokens in the sequence; linear attention.
TRIED = (
    "Qwen2_5_VLForConditionalGeneration",
    "InternVLForConditionalGeneration",
    "MllamaForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
)
ROLES = ("answer", "image", "object")
BATCH, N_ITEMS = 2, 5


def recorded_items() -> Items:
    box = Box(name="disk", left=3.0, top=5.0, right=40.0, bottom=30.0)
    one, wide = toy_image(1), UniformImage(width=97, height=61)
    return Items(
        [
            toy_item(0, images=(one,), objects=(box,)),
            toy_item(1, images=(wide,), objects=()),
            toy_item(2, images=(), objects=()),
            toy_item(3, images=(one, wide), objects=(box,)),
            toy_item(4, images=(), objects=()),
        ]
    )


@torch.no_grad()
def watched(vlm: VLM, batch: list[Item], pool: str | None) -> dict[Any, Any]:
    inputs = vlm.prepare(batch)
    vlm.reset()
    with Watch(vlm, sites=tuple(SITES), roles=ROLES, pool=pool) as watch:
        watch.expect(inputs, batch)
        vlm.model(**inputs)
        seen = watch.read()
    vlm.reset()
    return seen


def batches(run: Path, vlm: VLM) -> list[list[int]]:
    """The items that ran together, as the shard says it: in some families only those with equally many pictures."""
    with h5py.File(run / "shards" / "000000.h5") as file:
        order = file["order"][()].tolist() if "order" in file else list(range(N_ITEMS))
        bounds = [*file["batches"][()].tolist(), N_ITEMS]
    found = [order[start:end] for start, end in pairwise(bounds)]
    pictures = [len(item.images) for item in recorded_items()]
    assert sorted(order) == list(range(N_ITEMS))
    assert vlm.family.mixes_counts or all(len({pictures[number] for number in part}) == 1 for part in found)
    return found


def rows_of(seen: Seen, batch: list[int], pool: str | None) -> dict[int, np.ndarray]:
    """What a batch kept, by item."""
    values = seen.values.float().numpy()
    each = np.ones(len(batch), dtype=int) if pool is not None else seen.counts.numpy()
    return dict(zip(batch, np.split(values, np.cumsum(each)[:-1]), strict=True))


@pytest.mark.parametrize("pool", ["mean", None])
@pytest.mark.parametrize("architecture", TRIED)
def test_a_run_holds_what_was_watched_at_every_site(architecture: str, pool: str | None, tmp_path: Path) -> None:
    vlm, items = tiny_vlm(architecture), recorded_items()
    run = dx.record(
        vlm, items, tmp_path / "run", sites=tuple(SITES), roles=ROLES, pool=pool, answers=False, batch_size=BATCH, progress=False
    )
    ran = batches(run.path, vlm)
    seen = [watched(vlm, [items[number] for number in part], pool) for part in ran]
    assert run.sites == tuple(SITES)
    for site, layer, role in seen[0]:
        kept = [part[site, layer, role] for part in seen]
        rows = {item: row for found, part in zip(kept, ran, strict=True) for item, row in rows_of(found, part, pool).items()}
        expected = np.concatenate([rows[number] for number in range(N_ITEMS)])
        counts = np.concatenate([found.counts.numpy() for found in kept])[np.argsort(np.concatenate(ran))]
        if pool is None:
            values, offsets = run.tokens(site, layer, role)
            assert np.diff(offsets).tolist() == counts.tolist()
        else:
            values = run.activations(site, layer, role)
        np.testing.assert_array_equal(values, expected)
        assert run.counts(role, site).tolist() == counts.tolist()
    empty = int((run.counts("object") == 0).sum())
    assert empty == (5 if vlm.family.image_tokens == "cross" else 3)  # no image tokens in the sequence there
    assert run.info["nan_rows"] == {"answer": 0, "image": int((run.counts("image") == 0).sum()), "object": empty}
    with h5py.File(run.path / "run.h5") as file:
        assert file["merger_out/0/image"].shape == run._values("merger_out/0/image").shape
        assert "counts/vision/image" in file
    assert run.verify() == 1


def test_rows_and_tokens_are_counted_apart(tmp_path: Path) -> None:
    """Four patches of Qwen's tower merge into one token."""
    vlm = tiny_vlm("Qwen2_5_VLForConditionalGeneration")
    run = dx.record(vlm, recorded_items(), tmp_path / "run", sites=("resid", "vision"), roles=("image",), progress=False)
    assert run.counts("image", "vision").tolist() == (4 * run.counts("image", "resid")).tolist()
    assert run.counts("image").tolist() == run.counts("image", "resid").tolist()


def test_a_run_of_the_tower_alone_counts_its_rows(tmp_path: Path) -> None:
    vlm = tiny_vlm("Qwen2_5_VLForConditionalGeneration")
    run = dx.record(vlm, recorded_items(), tmp_path / "run", sites=("vision",), roles=("image", "object"), progress=False)
    assert run.info["nan_rows"] == {"image": 2, "object": 3}
    assert np.isnan(run.activations("vision", 1, "image")).all(axis=1).tolist() == [False, False, True, False, True]


def test_a_role_that_a_site_cannot_have_is_refused_in_reading(tmp_path: Path) -> None:
    vlm = tiny_vlm("Qwen2_5_VLForConditionalGeneration")
    layers = {"resid": [0, 3], "vision": [1]}
    dx.record(vlm, recorded_items(), tmp_path / "run", sites=("resid", "vision"), layers=layers, roles=ROLES, progress=False)
    run = open_run(tmp_path / "run")
    assert run.layers("vision") == [1]
    assert run.activations("resid", 3, "answer").shape == (5, vlm.d_model)
    with pytest.raises(RunError, match=r"role='answer' is not at vision, which lies in the vision tower; .* image, object"):
        run.activations("vision", 1, "answer")
    with pytest.raises(RunError, match="layer=0 was not recorded at vision; this run holds: 1"):
        run.activations("vision", 0, "image")
    again = dx.record(
        vlm, recorded_items(), tmp_path / "run", sites=("resid", "vision"), layers=layers, roles=ROLES, progress=False
    )
    assert again.path == run.path


def test_a_layer_that_some_batches_pass_by_is_nan_for_their_items_alone(tmp_path: Path) -> None:
    vlm, items = tiny_vlm("MllamaForConditionalGeneration"), recorded_items()
    skipped = vlm.family.optional_layers(vlm, vlm.prepare([items[2]]))[0]
    run = dx.record(
        vlm, items, tmp_path / "run", sites=("resid", "attn_out"), roles=("answer",), batch_size=BATCH, progress=False
    )
    assert np.isnan(run.activations("attn_out", skipped, "answer")).all(axis=1).tolist() == [False, False, True, False, True]
    assert np.isfinite(run.activations("resid", skipped, "answer")).all()
    # Counted apart from items without a token, of which there are none.
    assert run.info["nan_rows"] == {"answer": 0}
    assert run.info["passed_by"] == {f"attn_out {skipped}": 2}
