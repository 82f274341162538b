"""Nuisances: splines that can follow them, and what is left when they are taken out."""

import numpy as np
import pytest

from deixis.probes import cross_validate_probe
from deixis.probes.nuisances import n_knots, spline_basis, unexplained

ALONE = {"n_bootstrap": 0, "n_controls": 0, "n_orders": 0, "n_permutations": 0}
SCENES = np.arange(90)


def scenes(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Image rows, the distance that follows from them in perspective, and a distance that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    row = rng.uniform(0.3, 0.8, size=90)
    return row, 0.8 / row - 0.9, rng.uniform(0.2, 2.8, size=90)


def sees(*values: np.ndarray, seed: int, noise: float = 0.3) -> np.ndarray:
    """Thirty features that mix the values, in noise."""
    rng = np.random.default_rng((seed, 1))
    mix = rng.normal(size=(len(values), 30))
    return np.stack(values, axis=1) @ mix + noise * rng.normal(size=(90, 30))


def test_splines_are_those_of_their_definition_and_straight_beyond_the_knots():
    seen = np.linspace(0.0, 1.0, 101)[:, None]
    basis = spline_basis(np.linspace(-1, 2, 31)[:, None], seen, 5)
    assert basis.shape == (31, 4)
    steps = np.diff(basis, 2, axis=0)
    beyond = np.r_[0:8, 22:29]
    np.testing.assert_allclose(steps[beyond], 0, atol=1e-9)
    assert np.abs(steps[12:18]).max() > 1e-3
    # A natural cubic interpolates: any values at the knots can be met exactly.
    at = spline_basis(np.quantile(seen, np.linspace(0, 1, 5))[:, None], seen, 5)
    assert np.linalg.matrix_rank(np.column_stack([np.ones(5), at])) == 5


def test_splines_of_few_values_have_no_more_columns_than_they_can_bear():
    values = np.repeat([0.1, 0.5, 0.9], 10)[:, None]
    assert spline_basis(values, values, 5).shape == (30, 2)
    assert spline_basis(values[:20], values[:20], 5).shape == (20, 1)
    assert spline_basis(np.ones((30, 1)), np.ones((30, 1)), 5).shape == (30, 0)
    assert [n_knots(n) for n in (10, 40, 400)] == [3, 4, 5]


def test_a_perspective_law_is_explained_by_splines_and_not_by_a_line():
    row, follows, _ = scenes(0)
    train = SCENES % 5 > 0
    left = unexplained(follows[:, None], row[:, None], train, 5)[~train, 0]
    line = follows - np.polyval(np.polyfit(row[train], follows[train], 1), row)
    assert left.var() < 0.002 * follows.var()
    assert line[~train].var() > 0.02 * follows.var()


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_a_target_that_only_follows_the_row_is_at_chance_once_the_row_is_taken_out(kind):
    """The features hold the row and its curve; the target follows the row but for noise that they know nothing of."""
    raw, left = [], []
    for seed in range(12):
        row, follows, _ = scenes(seed)
        target = follows + 0.2 * np.random.default_rng((seed, 2)).normal(size=90)
        if kind == "classification":
            target = np.digitize(target, np.quantile(target, [1 / 3, 2 / 3]))
        found = cross_validate_probe(sees(row, follows, seed=seed), target, SCENES, kind=kind, nuisances=row[:, None], **ALONE)
        raw.append(found.score[0])
        left.append(found.residual[0])
    assert np.mean(raw) > (0.6 if kind == "regression" else 0.55)
    if kind == "regression":
        assert np.mean(left) == pytest.approx(0, abs=0.06)
    else:
        assert np.mean(left) == pytest.approx(1 / 3, abs=0.08)


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_a_target_that_has_nothing_to_do_with_the_row_keeps_its_score(kind):
    raw, left, alone = [], [], []
    for seed in range(6):
        row, follows, free = scenes(seed)
        target = np.digitize(free, [1.0, 2.0]) if kind == "classification" else free
        X = sees(row, follows, free, seed=seed)
        found = cross_validate_probe(X, target, SCENES, kind=kind, nuisances=row[:, None], **ALONE)
        raw.append(found.score[0])
        left.append(found.residual[0])
        alone.append(found.nuisance[0])
    assert np.mean(raw) > 0.8
    assert np.mean(left) == pytest.approx(np.mean(raw), abs=0.08)
    assert np.mean(alone) == pytest.approx(0.0 if kind == "regression" else 1 / 3, abs=0.1)


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_nuisances_that_leave_nothing_make_the_residual_score_undefined(kind):
    row = np.repeat([0.8, 0.5, 0.4], 30) + 1e-4 * np.random.default_rng(0).normal(size=90)
    target = np.repeat([0.25, 1.5, 2.75], 30)
    found = cross_validate_probe(sees(target, seed=0), target, SCENES, kind=kind, nuisances=row[:, None], **ALONE)
    assert np.isnan(found.residual).all()
    assert found.nuisance[0] > 0.99


def test_a_constant_nuisance_takes_nothing_out_and_knows_nothing():
    _, _, free = scenes(0)
    X = sees(free, seed=0)
    found = cross_validate_probe(X, free, SCENES, nuisances=np.ones((90, 1)), **ALONE)
    assert found.residual[0] == pytest.approx(found.score[0], abs=1e-6)
    assert found.nuisance[0] == pytest.approx(0, abs=0.05)


def test_predictions_that_follow_the_nuisance_alone_count_as_chance_whatever_they_gain():
    """By hand: two classes, a nuisance that gets three of four right, and predictions that are the nuisance, or the truth."""
    from deixis.probes.nuisances import _beyond_shares

    target = np.array([0, 0, 0, 1] * 10 + [1, 1, 1, 0] * 10)
    side = np.repeat([0, 1], 40)
    shares = np.where(side[:, None] == [0, 1], 0.75, 0.25)
    assert _beyond_shares(side, target, shares) == pytest.approx(0.5)
    assert _beyond_shares(1 - side, target, shares) == pytest.approx(0.5)
    assert _beyond_shares(target, target, shares) == pytest.approx(1 - (0.75 * 0.75 + 0.25 * 0.25) + 0.5)
    assert _beyond_shares(target, target, np.full((80, 2), 0.5)) == pytest.approx(1.0)
