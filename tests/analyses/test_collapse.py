"""Heads whose attention was set by hand are called what they are, and random heads are not called collapsed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from deixis.activations import Run, record
from deixis.analyses.collapse import COLUMNS, AttentionCollapse, attention_collapse
from deixis.analyses.collapse_rule import CollapseRule
from deixis.analyses.scene_maps import follows_picture, likeness, mean_of_pairs, shuffled_pairs
from deixis.benchmarks import Items
from deixis.hooks import AttentionPlan, AttentionRows
from tests.analyses.planted import GRID, HEADS, LAYER, PLACE, made_run, planted_items, planted_vlm
from tests.toys import toy_item


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("planted")
    items = planted_items(folder)
    both = items + items.with_condition("blank")
    return record(planted_vlm(), both, folder / "run", attention=True, answers=False, progress=False)


@pytest.fixture(scope="module")
def collapse(planted: Run) -> AttentionCollapse:
    return attention_collapse(planted)


def head(collapse: AttentionCollapse, name: str) -> Any:
    frame = collapse.to_frame()
    return frame[(frame["layer"] == LAYER) & (frame["head"] == HEADS[name])].iloc[0]


@pytest.mark.parametrize("name", ["sink", "fixed", "uniform"])
def test_a_planted_head_is_called_what_it_is(collapse: AttentionCollapse, name: str) -> None:
    found = head(collapse, name)
    assert found["kind"] == name
    assert found["index"] == found[name]
    assert found["low"] <= found["index"] <= found["high"]
    assert found["index"] > 0.99


def test_a_head_that_looks_at_the_object_only_is_not_collapsed(collapse: AttentionCollapse) -> None:
    found = head(collapse, "object")
    assert found["kind"] == "none"
    assert found["matched_low"] > 1000, "the same places without the object get nothing"
    assert found["image_gain"] == pytest.approx(1 + 1 / 15, abs=0.02), "maps with one place each correlate by -1/15"
    assert found["image_p_value"] < 0.01
    fixed = head(collapse, "fixed")
    assert fixed["matched_lift"] == pytest.approx(1, abs=1e-3)
    assert fixed["image_p_value"] == 1


def test_the_planted_heads_look_where_they_were_told(planted: Run, tmp_path: Path) -> None:
    """Otherwise the tests above would say nothing."""
    vlm, items = planted_vlm(), list(planted_items(tmp_path, n=3))
    inputs = vlm.prepare(items)
    with torch.no_grad(), AttentionRows(vlm, layers=[LAYER]) as watch:
        watch.follow(inputs, items)
        vlm.reset()
        vlm.model(**inputs)
        rows = watch.read()[LAYER]
    roles = vlm.token_roles(inputs, items)
    for number in range(len(items)):
        bos, of_object = roles["bos"][number], roles["object"][number]
        here = roles["image"][number].nonzero()[:, 0][PLACE[0] * GRID + PLACE[1]]
        row = rows[number][:, 0]
        assert of_object.sum() == 1
        assert float(row[HEADS["sink"], bos].sum()) > 0.999
        assert float(row[HEADS["object"], of_object].sum()) > 0.999
        assert float(row[HEADS["fixed"], here]) > 0.999
        assert float(row[HEADS["uniform"]].max() / row[HEADS["uniform"], -1]) == pytest.approx(1, abs=1e-5)


def test_the_blank_picture_stands_beside_the_real_one(collapse: AttentionCollapse) -> None:
    fixed, looks = head(collapse, "fixed"), head(collapse, "object")
    assert fixed["blank_likeness"] == pytest.approx(1, abs=1e-3)
    assert looks["image_mass"] > 0.99
    assert np.isnan(looks["blank_likeness"]), "with nothing dark in sight it looks everywhere alike, which is no map"


def test_every_layer_is_told_too(collapse: AttentionCollapse) -> None:
    layers = collapse.layers()
    assert list(layers["layer"]) == [0, 1, 2]
    row = layers[layers["layer"] == LAYER].iloc[0]
    assert (row["kind"], row["index"], row["n_heads"]) == ("none", 0.75, 4), "three of four, each of another kind"
    assert row["low"] == 0.75 == row["high"], "nothing about them hangs on the scenes"
    assert list(collapse.to_frame().columns) == list(COLUMNS)
    assert sum(collapse.counts().values()) == 12


def test_a_layers_interval_is_over_scenes_and_counts_heads_that_may_be_collapsed() -> None:
    rng = np.random.default_rng(9)
    # Sink mass over scenes: wholly above the threshold, above it on average but not surely, below it but not surely, far below.
    limit, spread = CollapseRule().sink, np.linspace(-1, 1, SCENES)[:, None]
    bos = np.array([0.95, limit + 0.01, limit - 0.01, 0.1]) + np.array([0.02, 0.15, 0.15, 0.05]) * spread
    found = attention_collapse(random_run(rng, bos[:, None]))
    assert list(found.to_frame()["kind"]) == ["sink", "none", "none", "none"]
    [row] = found.layers().to_dict("records")
    assert (row["kind"], row["low"], row["index"], row["high"]) == ("none", 0.25, 0.5, 0.75)


def test_the_rule_can_be_adjusted() -> None:
    rng = np.random.default_rng(6)
    run = random_run(rng, rng.uniform(0.45, 0.55, size=(SCENES, 1, 2)))
    assert set(attention_collapse(run).to_frame()["kind"]) == {"none"}
    lenient = attention_collapse(run, rule=CollapseRule(sink=0.4)).to_frame()
    assert set(lenient["kind"]) == {"sink"}
    assert lenient["index"].to_numpy() == pytest.approx(lenient["sink"].to_numpy())
    with pytest.raises(ValueError, match=r"sink=1.5 must lie between 0 and 1"):
        CollapseRule(sink=1.5)
    with pytest.raises(ValueError, match="draws must be at least 100, and object_lift at least 1"):
        CollapseRule(draws=10)


def test_tokens_that_are_all_alike_have_rank_one(planted: Run, collapse: AttentionCollapse) -> None:
    frame = collapse.likeness()
    assert list(frame.columns) == ["model", "condition", "layer", "cosine", "low", "high", "rank", "rank_low", "rank_high"]
    first = frame[frame["layer"] == 0].set_index("condition")
    # A planted picture has three kinds of tokens: white, dark, and at the fixed place.
    assert 2 < first.loc["real", "rank"] <= 3
    assert first.loc["blank", "rank"] <= 2.001
    assert 0 < first.loc["real", "cosine"] < first.loc["blank", "cosine"] <= 1


def test_few_scenes_are_refused(tmp_path: Path) -> None:
    items = planted_items(tmp_path, n=4)
    run = record(planted_vlm(), items, tmp_path / "run", attention=True, answers=False, progress=False)
    with pytest.raises(ValueError, match="4 scenes with real pictures; intervals over scenes need at least 8"):
        attention_collapse(run)


def test_a_run_without_maps_says_what_it_lacks(tmp_path: Path) -> None:
    items = planted_items(tmp_path, n=8)
    plan = AttentionPlan(maps=False)
    run = record(planted_vlm(), items, tmp_path / "run", attention=plan, answers=False, progress=False)
    found = attention_collapse(run)
    assert "no head can be called fixed" in found.notes[0]
    assert head(found, "sink")["kind"] == "sink"
    assert head(found, "fixed")["kind"] == "none"


# What random heads are called.

SIDE, SCENES, HEADS_DRAWN = 6, 40, 60


def random_run(rng: np.random.Generator, bos: np.ndarray, concentration: float = 1.0, *, share: float = 0.4) -> Any:
    """Every item's map is drawn anew: nothing about the head is fixed."""
    tokens = SIDE * SIDE
    maps = rng.dirichlet(np.full(tokens, concentration), size=(SCENES, 1, bos.shape[-1]))
    maps = np.moveaxis(maps, 3, 1) * np.minimum(share, 0.9 * (1 - bos[:, None]))
    marked = np.zeros((SCENES, tokens), bool)
    marked[np.arange(SCENES), rng.integers(tokens, size=SCENES)] = True
    items = Items(toy_item(0, id=f"made/{k}", groups={"scene": str(k)}) for k in range(SCENES))
    return made_run(items, maps, bos, marked, SIDE)


@pytest.mark.parametrize("concentration", [0.1, 1.0, 5.0])
def test_random_heads_are_not_called_collapsed(concentration: float) -> None:
    rng = np.random.default_rng(0)
    bos = rng.uniform(0, 0.3, size=(SCENES, 1, HEADS_DRAWN))
    counts = attention_collapse(random_run(rng, bos, concentration)).counts()
    assert HEADS_DRAWN - counts["none"] <= 0.05 * HEADS_DRAWN
    assert counts["fixed"] == 0


def test_heads_just_at_the_threshold_are_called_collapsed_no_more_often_than_stated() -> None:
    """Their true sink mass is exactly the threshold; 2.5 % is what a perfect interval would give, 5 % is what is promised."""
    rng = np.random.default_rng(1)
    called = total = 0
    for _ in range(8):
        bos = rng.beta(8, 2, size=(SCENES, 1, HEADS_DRAWN))  # mean 0.8
        found = attention_collapse(random_run(rng, bos, share=0.1), rule=CollapseRule(draws=400))
        called, total = called + found.counts()["sink"], total + HEADS_DRAWN
    assert called / total <= 0.05
    assert called > 0, "the test can fail: at the threshold some are called so"


def test_heads_that_share_a_map_but_for_a_little_are_fixed_and_others_are_not() -> None:
    rng = np.random.default_rng(2)
    tokens = SIDE * SIDE
    shared = rng.dirichlet(np.full(tokens, 0.3))
    noise = np.moveaxis(rng.dirichlet(np.full(tokens, 0.3), size=(SCENES, 1, 3)), 3, 1)
    weight = np.array([0.05, 0.5, 1.0])
    maps = 0.4 * ((1 - weight) * shared[None, :, None, None] + weight * noise)
    marked = np.zeros((SCENES, tokens), bool)
    marked[np.arange(SCENES), np.arange(SCENES) % tokens] = True
    items = Items(toy_item(0, id=f"made/{k}", groups={"scene": str(k)}) for k in range(SCENES))
    frame = attention_collapse(made_run(items, maps, np.full((SCENES, 1, 3), 0.1), marked, SIDE)).to_frame()
    assert list(frame["kind"]) == ["fixed", "none", "none"]
    assert frame["fixed"][0] > 0.95
    expected = 0.5**2 / (0.5**2 + 0.5**2)  # of the variance, what is shared
    assert frame["fixed"][1] == pytest.approx(expected, abs=0.1)
    assert frame["fixed"][2] == pytest.approx(0, abs=0.03)


# The parts, by other routes.


def test_likeness_is_pearsons_correlation_and_its_mean_leaves_copies_out() -> None:
    rng = np.random.default_rng(3)
    maps = rng.dirichlet(np.ones(20), size=5)[:, :, None]
    alike = likeness(maps)[0]
    np.testing.assert_allclose(alike, np.corrcoef(maps[:, :, 0]))
    times = np.array([[1.0, 1, 1, 1, 1], [2, 0, 1, 1, 1]])
    off = ~np.eye(5, dtype=bool)
    drawn = np.array([0, 0, 2, 3, 4])
    pairs = [alike[a, b] for i, a in enumerate(drawn) for j, b in enumerate(drawn) if i != j and a != b]
    np.testing.assert_allclose(mean_of_pairs(alike, times), [alike[off].mean(), np.mean(pairs)])


def test_flat_maps_have_no_likeness() -> None:
    flat = np.full((3, 16, 1), 1 / 200, np.float16).astype(np.float32)
    assert np.isnan(likeness(flat)).all()
    faint = np.random.default_rng(0).dirichlet(np.ones(16), size=3)[:, :, None] * 1e-7
    assert np.isnan(likeness(faint)).all()


def test_shuffled_maps_share_nothing_on_average() -> None:
    rng = np.random.default_rng(4)
    maps = rng.dirichlet(np.full(30, 0.2), size=12)
    drawn = shuffled_pairs(maps, 400, rng)
    assert abs(drawn.mean()) < 4 * drawn.std() / 20
    # Shuffled independently, the correlation of two maps has variance 1 / (tokens - 1), and no two pairs are correlated.
    assert drawn.std() == pytest.approx((2 / (12 * 11) / 29) ** 0.5, rel=0.15)


def test_the_test_of_following_holds_its_level_and_finds_what_is_there() -> None:
    rng = np.random.default_rng(5)
    null = [rng.dirichlet(np.ones(16), size=(2, 20)).transpose(1, 2, 0).copy() for _ in range(100)]
    # Questions differ, and each has a map of its own that all scenes share: no picture is followed.
    base = rng.dirichlet(np.ones(16), size=2)
    ours, theirs = (np.stack([base[q] + 0.3 * one[:, :, q] for one in null], axis=2) for q in (0, 1))
    gain, p_value = follows_picture(ours, theirs, 199, rng)
    assert (p_value <= 0.05).mean() <= 0.05 + 3 * (0.05 * 0.95 / 100) ** 0.5
    shared = rng.dirichlet(np.ones(16), size=20)[:, :, None]
    _, found = follows_picture(ours[:, :, :5] + shared, theirs[:, :, :5] + shared, 199, rng)
    assert (found <= 0.01).all()
    against = shared.max() - shared
    gain, opposite = follows_picture(ours[:, :, :5] + shared, theirs[:, :, :5] + against, 199, rng)
    assert (opposite <= 0.01).all()
    assert (gain < 0).all()
