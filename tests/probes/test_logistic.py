"""LogisticProbe against scikit-learn's other solver and the gradient of its objective."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from deixis.probes import LogisticProbe


def planted(n: int, width: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, width)) + rng.normal(size=(n_classes, width))[y] * 0.7 + 3, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("n", "width"), [(60, 6), (24, 50)])
@pytest.mark.parametrize("alpha", [0.1, 5.0])
def test_coefficients_are_those_of_scikit_learn(n_classes, n, width, alpha):
    X, y = planted(n, width, n_classes)
    mine = LogisticProbe(alpha=alpha).fit(X, y)
    theirs = LogisticRegression(C=1 / alpha, tol=1e-12, max_iter=20_000).fit(X, y)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=2e-4)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_gradient_of_the_objective_vanishes_at_the_solution(n_classes):
    X, y = planted(48, 5, n_classes)
    alpha = 0.7
    probe = LogisticProbe(alpha=alpha).fit(X, y)
    surplus = probe.predict_proba(X) - np.eye(n_classes)[y]
    gradient = (surplus.T @ X)[1:] if n_classes == 2 else surplus.T @ X
    np.testing.assert_allclose(gradient + alpha * probe.coef_, 0, atol=1e-4)
    np.testing.assert_allclose(surplus.sum(axis=0), 0, atol=1e-4)


def test_a_constant_column_gets_no_weight():
    X, y = planted(40, 4, 3)
    X[:, 1] = 5.0
    np.testing.assert_allclose(LogisticProbe().fit(X, y).coef_[:, 1], 0, atol=1e-10)


def test_twin_columns_get_equal_weights():
    X, y = planted(40, 3, 2)
    coef = LogisticProbe().fit(np.hstack([X, X[:, :1]]), y).coef_[0]
    assert coef[0] == pytest.approx(coef[3], rel=1e-6)


def test_an_endless_penalty_gives_the_class_shares():
    X, _ = planted(40, 4, 2)
    y = np.repeat([0, 1], [30, 10])
    np.testing.assert_allclose(LogisticProbe(alpha=1e9).fit(X, y).predict_proba(X)[:, 1], 0.25, atol=1e-4)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only"):
        LogisticProbe().fit(np.eye(3), [1, 1, 1])


def test_a_penalty_of_zero_is_refused():
    with pytest.raises(ValueError, match="must be a finite number above 0"):
        LogisticProbe(alpha=0.0).fit(np.eye(4), [0, 1, 0, 1])
