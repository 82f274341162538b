"""What stands beside a sweep's scores, where each control's answer is known; and its place in the report."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from deixis.analyses import layer_sweep
from deixis.analyses.height import height_reading
from deixis.analyses.report_controls import height_sentence
from deixis.benchmarks import Items
from deixis.probes import TooFewItemsWarning, cross_validate_probe
from tests.analyses.written_scenes import written_scenes

WIDTH = 8
FEW = {"n_bootstrap": 4, "n_permutations": 19, "n_orders": 1, "n_controls": 3, "workers": 1}


def axis(number: int, value: float) -> np.ndarray:
    return value * np.eye(WIDTH)[number]


def real_only(item, layer):
    return axis(0, item.targets["distance_m"] * layer * (item.condition == "real"))


def with_figures(run):
    run.items = Items(replace(i, groups={**i.groups, "figure": f"{i.groups['colour']} {i.groups['shape']}"}) for i in run.items)
    return run


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    run = with_figures(written_scenes(real_only, conditions=("real", "blank"), noise=0.3))
    untrained = with_figures(written_scenes(lambda item, _: axis(0, item.targets["distance_m"]), noise=1.5, seed=0))
    return layer_sweep(run, "distance_m", controls="all", untrained=untrained, **FEW).to_frame().query("metric == 'r2'")


def test_every_control_is_run_and_says_what_was_planted(frame):
    assert frame.drop(columns="residual").notna().all().all()
    assert frame["residual"].isna().all()  # the row follows from the distance and leaves nothing
    code = frame.set_index("layer").loc[1]
    assert code["score"] > 0.8
    assert code["blank"] < 0.1
    assert 0.02 < code["untrained"] < 0.5
    assert code["p_value"] == 0.05
    assert code["nuisance"] > 0.95  # the row follows from the distance
    assert code["bits"] < 2.05
    empty = frame.set_index("layer").loc[0]
    assert empty["p_value"] > 0.05
    assert empty["score"] < 0.2


def test_a_row_that_gives_the_distance_away_leaves_no_residual_score():
    frame = layer_sweep(written_scenes(real_only), "distance_m", controls=("nuisance", "residual"), workers=1).to_frame()
    assert frame["residual"].isna().all()
    named = layer_sweep(
        written_scenes(real_only), "distance_m", controls=("nuisance", "residual"), nuisances=("object_area",), workers=1
    ).to_frame()
    assert named.query("metric == 'r2' and layer == 1")["residual"].iloc[0] > 0.8


def test_p_is_taken_against_the_best_of_all_layers():
    run = written_scenes(lambda *_: axis(0, 0.0), layers=(0, 1, 2, 3), noise=1.0)
    together = layer_sweep(run, "distance_m", controls=("permutation",), n_permutations=39, workers=1)
    best = np.max([cell.scores.permuted[:, 0] for cell in together.cells], axis=0)
    for cell in together.cells:
        want = (1 + (best >= cell.scores.score[0] - 1e-9).sum()) / 40
        assert cell.p_value[0] == pytest.approx(want)
        assert cell.p_value[0] >= cell.scores.p_value[0]
    # Errors: the smallest one of all layers.
    least = np.min([cell.scores.permuted[:, 1] for cell in together.cells], axis=0)
    assert together.cells[0].p_value[1] == pytest.approx((1 + (least <= together.cells[0].scores.score[1] + 1e-9).sum()) / 40)


def test_all_layers_are_permuted_alike():
    run = written_scenes(lambda item, _: axis(0, item.targets["distance_m"]), layers=(0, 1), noise=0.0)
    run.rows["answer", 1] = run.rows["answer", 0]
    cells = layer_sweep(run, "distance_m", controls=("permutation",), n_permutations=9, workers=1).cells
    np.testing.assert_array_equal(cells[0].scores.permuted, cells[1].scores.permuted)


def test_the_blank_picture_and_the_untrained_model_are_probed_as_the_run_is(frame):
    run = written_scenes(real_only, conditions=("real", "blank"), noise=0.3)
    blank = [n for n, item in enumerate(run.items) if item.condition == "blank"]
    items = [run.items[n] for n in blank]
    direct = cross_validate_probe(
        run.activations("resid", 1, "answer")[blank].astype(float),
        np.array([i.targets["distance_m"] for i in items]),
        [i.groups["scene"] for i in items],
        n_bootstrap=0,
        n_permutations=0,
        n_orders=0,
    )
    assert frame.set_index("layer").loc[1, "blank"] == pytest.approx(direct.score[0])


def test_an_untrained_run_of_other_items_is_refused():
    run, other = written_scenes(real_only), written_scenes(real_only, n=59)
    with pytest.raises(ValueError, match="the untrained run holds other items than the run"):
        layer_sweep(run, "distance_m", untrained=other, **FEW)


def test_a_blank_picture_that_differs_by_rounding_between_batches_is_one_picture():
    run = written_scenes(lambda *_: np.full(WIDTH, 3.7), noise=0.0)
    distance = np.array([i.targets["distance_m"] for i in run.items])
    run.rows["answer", 0] = run.rows["answer", 0] + 1e-6 * distance[:, None]  # rounding that happens to follow the target
    frame = layer_sweep(run, "distance_m", layers=[0], controls=(), workers=1).to_frame()
    assert frame["score"][0] == pytest.approx(0, abs=0.05)


def test_a_sweep_over_few_scenes_warns_once():
    with pytest.warns(TooFewItemsWarning, match="only 15 groups") as caught:
        layer_sweep(written_scenes(real_only, n=15), "distance_m", controls=(), workers=1)
    assert len(caught) == 1


def decoupled(write, **how):
    """Scenes whose row has nothing to do with the distance."""
    run = written_scenes(write, **how)
    rng = np.random.default_rng(9)
    run.items = Items(
        replace(i, nuisances={"object_row": float(rng.uniform(0.2, 0.8)), "object_area": float(rng.uniform(0.01, 0.02))})
        for i in run.items
    )
    return run


def test_a_probe_that_reads_the_row_is_told_from_one_that_reads_the_distance():
    def row(item, layer):
        return axis(0, item.nuisances["object_row"] * layer)

    standard = written_scenes(row, n=120, noise=0.002)
    apart = decoupled(row, n=120, noise=0.0, seed=3)
    apart.rows = {key: np.stack([row(item, key[1]) for item in apart.items]) for key in apart.rows}
    reading = height_reading(standard, apart)
    assert reading.object_row > 0.98
    assert reading.distance < 0.1
    honest = height_reading(written_scenes(real_only, n=120), decoupled(real_only, n=120, seed=3))
    assert honest.distance > 0.9
    assert honest.object_row < 0.1
    assert honest.r2 > 0.9


def test_the_sentence_says_the_numbers_and_their_difference():
    standard = {"nuisance": 1.0, "held_out": 0.97}
    apart = {"nuisance": -0.001, "n_groups": 80, "held_out": 0.53, "low": 0.35, "high": 0.7, "residual": 0.51, "untrained": 0.2}
    said = height_sentence("pico", standard, apart)
    assert "image height and size alone give R2 1.00, so the probe's 0.97 can't be told from theirs" in said
    assert "(alone 0.00, 80 scenes) it reaches 0.53 (interval at the chosen layer 0.35 to 0.70)" in said
    assert "against 0.20 from random weights; with both taken out 0.51 is left. Up to 0.44 of the standard score" in said
    without = height_sentence("pico", standard, apart | {"residual": np.nan, "untrained": np.nan})
    assert "; what they leave of it is too little to decode. Up to" in without
