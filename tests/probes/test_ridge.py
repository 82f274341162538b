"""RidgeProbe against scikit-learn, the normal equations, and limits."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from deixis.probes import RidgeProbe


def planted(n: int, width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)) * rng.uniform(0.1, 10, size=width) + rng.normal(size=width)
    return X, X @ rng.normal(size=width) + rng.normal(size=n)


@pytest.mark.parametrize(("n", "width"), [(50, 8), (20, 60), (30, 30)])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 300.0])
def test_coefficients_are_those_of_scikit_learn(n, width, alpha):
    X, y = planted(n, width)
    mine, theirs = RidgeProbe(alpha=alpha).fit(X, y), Ridge(alpha=alpha, solver="cholesky").fit(X, y)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, rtol=1e-6)
    np.testing.assert_allclose(mine.predict(X), theirs.predict(X), rtol=1e-6)


def test_the_gradient_of_the_objective_vanishes_at_the_solution():
    X, y = planted(40, 6)
    probe = RidgeProbe(alpha=2.5).fit(X, y)
    residual = y - X @ probe.coef_ - probe.intercept_
    np.testing.assert_allclose(X.T @ residual, 2.5 * probe.coef_, rtol=1e-7)
    assert abs(residual.sum()) < 1e-9


def test_doubling_every_row_equals_halving_alpha():
    X, y = planted(30, 5)
    twice = RidgeProbe(alpha=2.0).fit(np.vstack([X, X]), np.concatenate([y, y]))
    np.testing.assert_allclose(twice.coef_, RidgeProbe(alpha=1.0).fit(X, y).coef_, rtol=1e-8)


def test_twin_columns_share_the_weight_of_one_column_at_half_the_penalty():
    X, y = planted(30, 1)
    twins = RidgeProbe(alpha=2.0).fit(np.hstack([X, X]), y)
    single = RidgeProbe(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(twins.coef_, np.repeat(single.coef_ / 2, 2), rtol=1e-8)


def test_a_constant_column_gets_no_weight():
    X, y = planted(30, 4)
    X[:, 2] = 7.0
    probe = RidgeProbe(alpha=0.0).fit(X, y)
    assert probe.coef_[2] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(np.delete(probe.coef_, 2), RidgeProbe(alpha=0.0).fit(np.delete(X, 2, 1), y).coef_, rtol=1e-8)


def test_without_penalty_collinear_columns_give_the_shortest_least_squares_solution():
    X, y = planted(30, 3)
    X = np.hstack([X, X[:, :1] + X[:, 1:2]])
    expected = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=1e-10)[0]
    np.testing.assert_allclose(RidgeProbe(alpha=0.0).fit(X, y).coef_, expected, rtol=1e-6, atol=1e-10)


def test_an_endless_penalty_predicts_the_mean():
    X, y = planted(30, 5)
    np.testing.assert_allclose(RidgeProbe(alpha=1e15).fit(X, y).predict(X), y.mean(), rtol=1e-6)


def test_several_targets_are_fitted_as_if_each_were_alone():
    X, y = planted(30, 5)
    Y = np.stack([y, y**2, X[:, 0]], axis=1)
    both = RidgeProbe(alpha=3.0).fit(X, Y)
    assert both.coef_.shape == (3, 5)
    for column in range(3):
        alone = RidgeProbe(alpha=3.0).fit(X, Y[:, column])
        np.testing.assert_allclose(both.predict(X)[:, column], alone.predict(X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("alpha", [-1.0, float("nan"), float("inf"), "much"])
def test_a_penalty_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match="must be a finite number at least 0"):
        RidgeProbe(alpha=alpha).fit(np.eye(3), np.arange(3.0))
