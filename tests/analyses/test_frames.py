"""In which frame a layout is held: planted vectors that hold one frame, the other, both, none."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from deixis.analyses.frame_scores import joint_r2
from deixis.analyses.frames import COLUMNS, FRAMES, frame_sweep
from deixis.benchmarks import Items
from deixis.probes.nested import METHODS, Division
from deixis.probes.nuisances import residual_predictions, residual_scores
from tests.analyses.fake_run import FakeRun
from tests.analyses.made_layouts import made_layouts

WIDTH = 8
FAST = {"n_permutations": 19, "n_bootstrap": 0}


def holding(*frames, n=80, layers=(0, 1), noise=0.05, conditions=("real",), seed=0):
    """A run whose layer k holds k times the frames' coordinates, in random directions; blank pictures hold nothing."""
    items = made_layouts(n, conditions=conditions)
    rng = np.random.default_rng(seed)
    names = [name for frame in frames for name in FRAMES[frame]]
    mixing = rng.normal(size=(len(names), WIDTH))
    held = np.array([[item.targets[name] * (item.condition == "real") for name in names] for item in items]) @ mixing
    features = {("answer", k): k * held.reshape(len(items), WIDTH) + noise * rng.normal(size=(len(items), WIDTH)) for k in layers}
    return FakeRun(items, shares=lambda _: {}, features=features)


@pytest.mark.parametrize(("held", "other"), [("allocentric", "egocentric"), ("egocentric", "allocentric")])
def test_the_frame_that_the_vectors_hold_is_found_and_the_other_one_is_not(held, other):
    rows = frame_sweep(holding(held), **FAST).to_frame().set_index(["layer", "frame"])
    assert rows.loc[(1, held), "score"] > 0.8
    assert rows.loc[(1, held), "unique"] > 0.8
    assert rows.loc[(1, held), "unique_p"] <= 0.05
    assert rows.loc[(1, other), "unique"] < 0.15
    assert rows.loc[(0, held), "score"] < 0.1


def test_both_frames_are_each_unique_where_the_vectors_hold_both_and_none_where_they_hold_none():
    both = frame_sweep(holding("allocentric", "egocentric"), layers=[1], **FAST).to_frame()
    assert (both["unique"] > 0.7).all()
    none = frame_sweep(holding(), layers=[1], **FAST).to_frame()
    assert (none["unique"] < 0.1).all()
    assert (none["unique_p"] > 0.05).all()


def test_what_the_other_frame_explains_is_not_unique():
    """Frames that all lie as the camera does: the places in the two are the same up to a shift, and nothing is left."""
    run = holding("egocentric", layers=(1,))
    swap = {"x_m": "camera_x_m", "y_m": "camera_z_m"}
    run.items = Items(
        replace(i, targets={**i.targets, **{own: 2 * i.targets[other] + 0.3 for own, other in swap.items()}}) for i in run.items
    )
    rows = frame_sweep(run, **FAST).to_frame()
    assert (rows["score"] > 0.8).all()
    assert (rows["from_other"] > 0.99).all()
    assert rows[["unique", "unique_p"]].isna().all(axis=None)


def test_the_frames_of_made_layouts_are_nearly_independent():
    found = frame_sweep(holding(n=200, layers=(0,)), n_permutations=0, n_bootstrap=0)
    table = found.correlations()
    assert len(table) == 4
    assert table["r"].abs().max() < 0.25
    assert (found.to_frame()["from_other"] < 0.15).all()
    first = found.correlations().iloc[0]
    items = made_layouts(200)
    x, across = (np.array([item.targets[name] for item in items]) for name in (first["allocentric"], first["egocentric"]))
    assert first["r"] == pytest.approx(np.corrcoef(x, across)[0, 1])


def test_the_best_layer_is_chosen_on_other_folds():
    best = frame_sweep(holding("allocentric", layers=(0, 1, 2)), **FAST).best().set_index(["frame", "part"])
    assert best.loc[("allocentric", "unique"), "layer"] in (1, 2)
    assert best.loc[("allocentric", "unique"), "score"] > 0.8
    assert best.loc[("egocentric", "unique"), "score"] < 0.15


def test_blank_pictures_are_scored_beside():
    rows = frame_sweep(holding("egocentric", conditions=("real", "blank"), layers=(1,)), **FAST).to_frame().set_index("frame")
    assert rows.loc["egocentric", "score"] > 0.8
    assert rows.loc["egocentric", "blank"] < 0.1


def test_an_untrained_run_is_scored_beside():
    run, fresh = holding("egocentric", layers=(1,)), holding(layers=(1,))
    row = frame_sweep(run, untrained=fresh, **FAST).to_frame().iloc[1]
    assert row["frame"] == "egocentric"
    assert row["untrained"] < 0.1 < row["score"]


def test_intervals_hold_the_score_and_are_wider_for_fewer_scenes():
    wide, narrow = (
        frame_sweep(holding("allocentric", n=n, layers=(1,), noise=0.3), n_permutations=0, n_bootstrap=12).to_frame().iloc[0]
        for n in (25, 120)
    )
    for row in (wide, narrow):
        assert row["low"] <= row["score"] <= row["high"]
        assert row["unique_low"] <= row["unique"] <= row["unique_high"]
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]


def test_residuals_of_several_targets_are_those_of_each_alone():
    """The shared work against the one-target route, whose score was tested before, and against least squares by hand."""
    rng = np.random.default_rng(0)
    X, nuisances = rng.normal(size=(60, 3)), rng.normal(size=(60, 1))
    targets = np.stack([X[:, 0] + nuisances[:, 0], X[:, 1] - 2 * nuisances[:, 0]])
    division = Division(X, np.ones(60), np.arange(60) % 5)
    alphas = (1e-6, 1.0)
    found = residual_predictions(division, METHODS["ridge"], targets, nuisances, alphas, 3)
    for k in range(2):
        alone = residual_scores(division, METHODS["ridge"], targets[k], targets[k], nuisances, alphas, 3)
        assert joint_r2(found.predicted[k : k + 1], found.wanted[k : k + 1]) == pytest.approx(alone[0])
        train = division.fold != 2
        fit = LinearRegression().fit(np.column_stack([nuisances, nuisances**2, nuisances**3])[train], targets[k][train])
        assert np.corrcoef(
            found.wanted[k][~train],
            (targets[k] - fit.predict(np.column_stack([nuisances, nuisances**2, nuisances**3])))[~train],
        )[0, 1] == pytest.approx(1, abs=0.02)


def test_joint_r2_counts_both_axes_together():
    wanted = np.array([[0.0, 2.0], [0.0, 4.0]])
    assert joint_r2(wanted, wanted) == 1.0
    assert joint_r2(np.array([[1.0, 1.0], [2.0, 2.0]]), wanted) == 0.0
    assert joint_r2(np.array([[0.0, 2.0], [2.0, 2.0]]), wanted) == pytest.approx(1 - 8 / 10)


def test_columns_and_picture():
    found = frame_sweep(holding("allocentric", layers=(0, 1)), **FAST)
    assert list(found.to_frame().columns) == list(COLUMNS)
    ax = found.plot()
    assert ax.get_xlabel() == "layer"
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    rows = found.to_frame()
    assert list(drawn["allocentric, unique"]) == list(rows[rows["frame"] == "allocentric"]["unique"])


def test_what_is_no_layout_run_or_not_enough_is_refused():
    run = holding("allocentric", layers=(1,))
    with pytest.raises(ValueError, match="holds none of the roles"):
        frame_sweep(FakeRun(run.items, shares=lambda _: {}, features={("text", 0): np.zeros((80, 2))}))
    with pytest.raises(ValueError, match="must be a sequence of names"):
        frame_sweep(run, "answer")
    with pytest.raises(ValueError, match="no layout items"):
        frame_sweep(FakeRun(run.items.filter(lambda _: False), shares=lambda _: {}, features=run.features))
    with pytest.raises(TypeError, match="is a path, not a run"):
        frame_sweep("runs/pico")  # pyright: ignore[reportArgumentType]
