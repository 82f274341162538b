"""MeanDifferenceProbe and DiscriminantProbe against scikit-learn, their formulas, and each other."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid

from deixis.probes import DiscriminantProbe, MeanDifferenceProbe


def planted(n: int, width: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    mixed = rng.normal(size=(n, width)) @ rng.normal(size=(width, width)) / np.sqrt(width)
    return mixed + rng.normal(size=(n_classes, width))[y] * 0.6 + 2, y


def test_the_direction_of_two_classes_is_the_difference_of_their_means():
    X, y = planted(40, 5, 2)
    probe = MeanDifferenceProbe().fit(X, y)
    first, second = X[y == 0].mean(axis=0), X[y == 1].mean(axis=0)
    np.testing.assert_allclose(probe.coef_[0], second - first)
    assert probe.decision_function([(first + second) / 2])[0] == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_mean_differences_decide_like_the_nearest_centroid(n_classes):
    X, y = planted(80, 6, n_classes)
    np.testing.assert_array_equal(MeanDifferenceProbe().fit(X, y).predict(X), NearestCentroid().fit(X, y).predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_penalty_it_is_linear_discriminant_analysis_with_equal_priors(n_classes):
    X, y = planted(90, 5, n_classes)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", priors=np.full(n_classes, 1 / n_classes)).fit(X, y)
    mine = DiscriminantProbe(alpha=1e-9).fit(X, y)
    # Scatter is a sum over items, covariance their mean.
    expected = theirs.decision_function(X) / len(X)
    got = mine.decision_function(X)
    if n_classes > 2:
        expected, got = (scores - scores.mean(axis=1, keepdims=True) for scores in (expected, got))
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("n", "width"), [(60, 6), (20, 40)])
def test_scores_follow_the_formula_written_out(n, width):
    X, y = planted(n, width, 3)
    alpha = 0.8
    probe = DiscriminantProbe(alpha=alpha).fit(X, y)
    means = np.stack([X[y == k].mean(axis=0) for k in range(3)])
    within = sum((X[y == k] - means[k]).T @ (X[y == k] - means[k]) for k in range(3)) + alpha * np.eye(width)
    centre = X.mean(axis=0)
    solved = np.linalg.solve(within, (means - centre).T)
    expected = (X - centre) @ solved - 0.5 * ((means - centre).T * solved).sum(axis=0)
    np.testing.assert_allclose(probe.decision_function(X), expected, rtol=1e-7, atol=1e-9)


def test_an_endless_penalty_decides_like_mean_differences():
    X, y = planted(60, 8, 3)
    np.testing.assert_array_equal(DiscriminantProbe(alpha=1e9).fit(X, y).predict(X), MeanDifferenceProbe().fit(X, y).predict(X))


def test_whitening_finds_classes_that_a_loud_nuisance_hides_from_mean_differences():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    loud = rng.normal(size=200) * 30
    X = np.stack([loud + y, loud], axis=1)
    assert (DiscriminantProbe(alpha=1e-3).fit(X, y).predict(X) == y).all()
    assert (MeanDifferenceProbe().fit(X, y).predict(X) == y).mean() < 0.7


def test_the_middle_of_three_classes_on_a_line_is_not_masked():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = y[:, None] + rng.normal(size=(90, 1)) * 0.05
    assert (DiscriminantProbe().fit(X, y).predict(X) == y).all()
