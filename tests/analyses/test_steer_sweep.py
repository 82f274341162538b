"""Steering pico along the distance it decodes moves its demonstratives; other directions do not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import deixis as dx
from deixis.analyses.directions import contrast_direction, probe_direction
from deixis.analyses.steer_sweep import COLUMNS, SteerSweep, ends, plot_steer_sweep, steer_sweep
from deixis.hooks.batches import Batch
from deixis.hooks.edit import Edit, edit_steps
from deixis.hooks.edit_sites import read_step
from deixis.hooks.errors import DirectionError
from deixis.hooks.tracing import run_steps
from deixis.probes import RidgeProbe
from tests.analyses.fake_run import FakeRun
from tests.analyses.pico_run import pico, pico_run
from tests.toys import toy_item, toy_vlm

LAYER = 5


def middle(run) -> dx.Items:
    return run.items.filter(lambda item: item.targets["distance_m"] == 1.5 and item.groups["shape"] == "star")


@pytest.fixture(scope="module")
def sweep():
    run = pico_run()
    colour = contrast_direction(run, "colour", "red", "blue", layer=LAYER)
    return steer_sweep(pico(), middle(run), probe_direction(run, "distance_m", layer=LAYER), unrelated=colour, n_random=2)


def written(n: int = 60, width: int = 6) -> tuple[FakeRun, np.ndarray]:
    """Vectors in which distance is written along a known axis, beside noise of unequal size."""
    items = dx.memory_game(languages=("en",), size=64)[:n]
    rng = np.random.default_rng(0)
    axis = np.array([1.0, -2.0, 0.5, 0.0, 0.0, 0.0])
    noise = rng.normal(size=(n, width)) * [0, 0, 0, 1, 3, 0.1]
    rows = noise + np.outer([item.targets["distance_m"] for item in items], axis) + 7.0
    return FakeRun(items, lambda item: {o.label: 0.5 for o in item.options}, {("answer", 0): rows}), axis


def test_the_direction_is_the_axis_along_which_the_target_was_written():
    run, axis = written()
    found = probe_direction(run, "distance_m", layer=0)
    spread = np.array([0, 0, 0, 1, 3, 0.1])  # of the noise: a pattern holds what went with the target by chance, too
    assert (np.abs(found.vector - axis) <= 0.02 + 3 * spread / np.sqrt(60)).all()
    assert (found.unit, found.layer, found.role, found.model) == ("m", 0, "answer", "fake")


@pytest.mark.parametrize("along", ["pattern", "weights"])
def test_one_step_moves_the_probes_reading_by_one_unit(along):
    """By scikit-learn's own ridge on standardised features, with hardly a penalty."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    run, _ = written()
    X, y = run.features["answer", 0], np.array([item.targets["distance_m"] for item in run.items])
    probe = make_pipeline(StandardScaler(), Ridge(alpha=0.06)).fit(X, y)
    step = probe_direction(run, "distance_m", layer=0, along=along).vector
    np.testing.assert_allclose(probe.predict(X + step) - probe.predict(X), 1.0, atol=0.01)


def test_weights_are_the_shortest_step():
    run, _ = written()
    assert probe_direction(run, "distance_m", layer=0, along="weights").norm < probe_direction(run, "distance_m", layer=0).norm


def test_a_contrast_is_the_difference_of_means():
    run, _ = written()
    found = contrast_direction(run, "colour", "red", "blue", layer=0)
    rows, colours = run.features["answer", 0], np.array([item.groups["colour"] for item in run.items])
    np.testing.assert_allclose(found.vector, rows[colours == "red"].mean(0) - rows[colours == "blue"].mean(0))
    with pytest.raises(ValueError, match="'pink' is no colour of these items; there are: 'black', 'blue', 'green', 'red'"):
        contrast_direction(run, "colour", "red", "pink", layer=0)


def test_a_target_that_is_not_there_gives_no_direction():
    run, _ = written()
    noise = {("answer", 0): np.random.default_rng(3).normal(size=(60, 6))}
    with pytest.raises(DirectionError, match="no linear probe finds distance_m at resid 0, role 'answer'"):
        probe_direction(replace(run, features=noise), "distance_m", layer=0)
    with pytest.raises(ValueError, match="along='up' is not one of: 'pattern', 'weights'"):
        probe_direction(run, "distance_m", layer=0, along="up")


def test_the_probe_reads_the_steered_model_a_metre_farther():
    """What a probe fitted on the run reads from the running, steered model."""
    run, vlm = pico_run(), pico()
    X, y = run.resid(LAYER), np.array([item.targets["distance_m"] for item in run.items])
    way = probe_direction(run, "distance_m", layer=LAYER, along="weights")
    probe = RidgeProbe(alpha=1e-3).fit(X, y)
    step = probe.coef_ / (probe.coef_ @ probe.coef_)
    batch = Batch(vlm, tuple(middle(run)))
    read = read_step(vlm, "resid", LAYER, batch.where("answer").of)
    steps = edit_steps([Edit.steer(way.with_vector(step, "distance_m"), 1.0)], batch, range(len(batch.items)))
    before, after = (run_steps(vlm, batch.inputs, given).seen[-1] for given in ([read], [*steps, read]))
    np.testing.assert_allclose(probe.predict(after.numpy()) - probe.predict(before.numpy()), 1.0, atol=1e-3)


def test_farther_means_less_proximal_and_nothing_else_does(sweep):
    frame = sweep.to_frame()
    assert tuple(frame) == COLUMNS
    prob = frame[(frame["metric"] == "prob:this")].pivot_table(index="direction", columns="dose", values="effect")
    probe = prob.loc["distance_m"]
    assert probe.is_monotonic_decreasing
    assert probe[-2.0] > 0.65 > 0.3 > probe[2.0]
    others = prob.drop(index="distance_m")
    assert (others.max(axis=1) - others.min(axis=1)).max() < 0.5 * (probe.max() - probe.min())
    slopes = sweep.slopes().set_index("direction")
    assert slopes.loc["distance_m", "high"] < -0.3
    assert (slopes.drop(index="distance_m")["slope"].abs() < 0.25).all()


def test_every_direction_is_equally_long_and_a_dose_of_nothing_is_the_model_left_alone(sweep):
    lengths = [direction.norm for direction in sweep.directions]
    np.testing.assert_allclose(lengths, lengths[0])
    assert sweep.kinds == ("target", "unrelated", "random", "random")
    batch = Batch(pico(), sweep.items)
    logits = run_steps(pico(), batch.inputs, []).logits
    for row, item in enumerate(sweep.items):
        expected = [float(logits[row, list(pico().first_tokens(option))].logsumexp(0)) for option in item.options]
        for number in range(4):
            np.testing.assert_allclose(sweep.logits[number, 2, row], expected, atol=1e-4)


def test_colour_and_shape_stay_right(sweep):
    frame = sweep.to_frame()
    side = frame[frame["metric"].isin(["colour_right", "shape_right"]) & (frame["dose"].abs() <= 1)]
    assert len(side) == 2 * 4 * 3
    assert (side[side["kind"] == "target"]["effect"] == 1).all()


def test_the_collapsed_model_does_not_follow():
    run = pico_run("pico-collapsed")
    way = probe_direction(run, "distance_m", layer=LAYER)
    found = steer_sweep(pico("pico-collapsed"), middle(run), way, n_random=0, side_effects=False)
    assert abs(found.slopes()["slope"].iloc[0]) < 0.05
    assert not found.to_frame()["metric"].isin(["colour_right"]).any()


def test_slopes_and_means_of_chosen_numbers():
    items = tuple(middle(pico_run()))
    way = probe_direction(written()[0], "distance_m", layer=0)
    logits = np.zeros((1, 3, len(items), 2))
    logits[0, :, :, 0] = np.array([3.0, 1.0, -1.0])[:, None] + np.arange(len(items))
    right = np.full((1, 3, len(items), 2), np.nan)
    found = SteerSweep("planted", items, (way,), ("target",), (-1.0, 0.0, 1.0), logits, right, 100, 0)
    assert found.slopes()["slope"].iloc[0] == pytest.approx(-2)
    frame = found.to_frame()
    difference = frame[frame["metric"] == "logit_difference"]["effect"].to_numpy()
    np.testing.assert_allclose(difference, np.array([3, 1, -1]) + np.arange(len(items)).mean())
    share = 1 / (1 + np.exp(-(3 + np.arange(len(items)))))
    assert frame[(frame["metric"] == "prob:this") & (frame["dose"] == -1)]["effect"].iloc[0] == pytest.approx(share.mean())


def test_the_curve_shows_the_frame(sweep):
    ax = sweep.plot()
    frame = sweep.to_frame()
    rows = frame[(frame["metric"] == "logit_difference") & (frame["kind"] == "target")]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), rows["effect"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "distance_m",
        "colour: blue to red",
        "random, equally far",
    ]
    with pytest.raises(ValueError, match="metric='nose' is not one of: 'prob:this'"):
        plot_steer_sweep(frame, metric="nose")


def test_directions_that_do_not_belong_are_refused(sweep):
    run, items = pico_run(), middle(pico_run())
    way = sweep.directions[0]
    other = replace(way, weights="0" * 64)
    with pytest.raises(DirectionError, match="learned from other weights than those of pico"):
        steer_sweep(pico(), items, other)
    with pytest.raises(DirectionError, match="was learned from pico at revision none, not from pico-collapsed"):
        steer_sweep(pico("pico-collapsed"), items, way)
    with pytest.raises(DirectionError, match="the unrelated direction is one of resid 4"):
        steer_sweep(pico(), items, way, unrelated=contrast_direction(run, "colour", "red", "blue", layer=4))
    with pytest.raises(ValueError, match="at least one item and two different doses"):
        steer_sweep(pico(), items, way, doses=(1.0,))


def test_options_without_a_nearest_one_are_refused():
    item = toy_item(0)
    bare = replace(item, options=tuple(replace(option, term=None) for option in item.options))
    with pytest.raises(ValueError, match="have neither terms nor values"):
        ends(bare)
    assert ends(toy_item(3)) == (0, 2)


def test_run_edits_gives_the_frame_of_both_passes():
    vlm, items = toy_vlm(), [toy_item(0), toy_item(3)]
    found = dx.run_edits(vlm, items, dx.Edit.ablate(role="image", layers=1), answers=True, max_new_tokens=2)
    frame = found.to_frame()
    assert len(frame) == 5
    np.testing.assert_allclose(frame["change"], frame["edited"] - frame["unedited"])
    np.testing.assert_allclose(frame.groupby("item")[["prob", "edited_prob"]].sum(), 1.0)
    batch = Batch(vlm, (items[0],))
    logits = run_steps(vlm, batch.inputs, edit_steps([Edit.ablate(role="image", layers=1)], batch, [0])).logits[0]
    expected = [float(logits[list(vlm.first_tokens(option))].logsumexp(0)) for option in items[0].options]
    np.testing.assert_allclose(frame["edited"][:2], expected, atol=1e-4)
    assert len(found.answers) == len(found.unedited_answers) == 2
    assert found.plot().get_xlabel() == "mean probability among the options"
    with pytest.raises(ValueError, match="there is nothing to run"):
        dx.run_edits(vlm, [], dx.Edit.ablate(role="image", layers=1))
    assert torch.is_tensor(logits)


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_of_no_items_is_refused(size):
    with pytest.raises(ValueError, match=f"batch_size={size} is not a whole number from 1"):
        dx.run_edits(toy_vlm(), [toy_item(0)], dx.Edit.ablate(role="image", layers=1), batch_size=size)


def test_the_positions_that_a_model_held_are_there_after_edits_and_after_an_error_in_one():
    vlm, items = dx.load("pico", check=False), dx.memory_game(n=1, languages=("en",), size=96)[:2]
    keeper = vlm.model.get_submodule(vlm.family.keeps_positions)
    held = torch.tensor([[-7]])
    keeper.rope_deltas = held
    dx.run_edits(vlm, items, dx.Edit.ablate(role="image", layers=1))
    assert keeper.rope_deltas is held
    with pytest.raises(ValueError, match="layer 99 is not one of"):
        dx.run_edits(vlm, items, dx.Edit.ablate(role="image", layers=99))
    assert keeper.rope_deltas is held
