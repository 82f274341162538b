"""Ordinal fits against planted parameters, closed forms and scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, rel_entr
from sklearn.linear_model import LogisticRegression

from deixis.analyses.ordinal import fit_ordinal, nominal_explained

RNG = np.random.default_rng(0)
X = RNG.uniform(0.2, 2.9, size=80)


def ordered(x, slope, thresholds):
    below = expit(np.array(thresholds) - slope * x[:, None])
    return np.diff(np.concatenate([np.zeros((len(x), 1)), below, np.ones((len(x), 1))], axis=1), axis=1)


@pytest.mark.parametrize(
    ("slope", "thresholds"), [(1.7, (0.5, 2.5)), (-0.8, (-1.0, 0.2)), (2.0, (1.0,)), (0.6, (-1.0, 0.0, 1.5))]
)
def test_planted_parameters_come_back(slope, thresholds):
    fit = fit_ordinal(X, ordered(X, slope, thresholds))
    assert fit.slope == pytest.approx(slope, abs=1e-3)
    np.testing.assert_allclose(fit.thresholds, thresholds, atol=2e-3)
    assert fit.deviance == pytest.approx(0, abs=1e-7)
    assert fit.explained == pytest.approx(1, abs=1e-5)


def test_two_terms_are_the_logistic_regression_of_scikit_learn():
    answers = (RNG.random(80) < expit(1.5 * X - 2)).astype(int)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=2000).fit(X[:, None], answers)
    mine = fit_ordinal(X, np.eye(2)[answers])
    assert mine.slope == pytest.approx(theirs.coef_[0, 0], rel=1e-4)
    assert mine.thresholds[0] == pytest.approx(-theirs.intercept_[0], rel=1e-4)


def test_two_distances_and_two_terms_have_a_closed_form():
    x, shares = np.array([0.5, 2.5]), np.array([[0.8, 0.2], [0.3, 0.7]])
    logit = lambda p: np.log(p / (1 - p))  # noqa: E731
    assert fit_ordinal(x, shares).slope == pytest.approx((logit(0.7) - logit(0.2)) / 2, rel=1e-5)


def test_noisy_shares_are_fitted_as_another_minimiser_without_gradients_fits_them():
    shares = np.array([RNG.dirichlet(4 * row + 0.1) for row in ordered(X, 1.2, (0.3, 2.0))])

    def loss(p):
        fitted = np.maximum(ordered(X, p[0], (p[1], p[1] + abs(p[2]))), 1e-12)
        return rel_entr(shares, fitted).sum(axis=1).mean()

    theirs = minimize(loss, [1.0, 0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000})
    mine = fit_ordinal(X, shares)
    assert mine.deviance == pytest.approx(theirs.fun, abs=1e-8)
    assert mine.slope == pytest.approx(theirs.x[0], abs=1e-3)
    assert 0 < mine.explained < 1
    marginal = shares.mean(axis=0)
    assert mine.explained == pytest.approx(1 - theirs.fun / rel_entr(shares, marginal).sum(axis=1).mean(), abs=1e-6)


def test_weights_are_repeated_items():
    shares = RNG.dirichlet((1, 1, 1), size=80)
    times = RNG.integers(0, 4, size=80)
    weighted = fit_ordinal(X, shares, times.astype(float))
    repeated = fit_ordinal(np.repeat(X, times), np.repeat(shares, times, axis=0))
    assert weighted.slope == pytest.approx(repeated.slope, abs=1e-4)
    assert weighted.deviance == pytest.approx(repeated.deviance, abs=1e-8)


def test_the_unit_of_x_only_scales_the_slope():
    shares = RNG.dirichlet((1, 1, 1), size=80)
    metres, shifted = fit_ordinal(X, shares), fit_ordinal(100 * X + 50, shares)
    assert shifted.slope == pytest.approx(metres.slope / 100, abs=1e-6)
    assert shifted.deviance == pytest.approx(metres.deviance, abs=1e-9)


def test_what_does_not_depend_on_x_is_not_explained():
    flat = fit_ordinal(X, np.tile([0.5, 0.3, 0.2], (80, 1)))
    assert flat.slope == pytest.approx(0, abs=1e-6)
    assert np.isnan(flat.explained)
    assert np.isnan(nominal_explained(X, np.tile([0.5, 0.3, 0.2], (80, 1))))
    same = fit_ordinal(np.ones(80), RNG.dirichlet((1, 1), size=80))
    assert np.isnan([same.slope, same.explained]).all()
    assert np.isnan(nominal_explained(np.ones(80), RNG.dirichlet((1, 1), size=80)))


def test_the_unordered_fit_is_that_of_scikit_learn_and_equal_to_the_ordered_one_for_two_terms():
    two = RNG.dirichlet((2, 1), size=80)
    assert nominal_explained(X, two) == pytest.approx(fit_ordinal(X, two).explained, abs=1e-6)
    # A middle term that is far rarer in the middle than any order allows: only a slope of its own follows it.
    logits = np.stack([np.zeros(80), 2.5 * X - 2, 1.0 * X], axis=1)
    three = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert nominal_explained(X, three) == pytest.approx(1, abs=1e-5)
    assert fit_ordinal(X, three).explained < 0.9
    noisy = np.array([RNG.choice(3, p=row) for row in 0.5 * three + 0.5 / 3])
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(X[:, None], noisy)
    marginal = np.bincount(noisy, minlength=3) / 80
    fitted = theirs.predict_proba(X[:, None])
    expected = 1 - np.log(fitted[np.arange(80), noisy]).mean() / np.log(marginal[noisy]).mean()
    assert nominal_explained(X, np.eye(3)[noisy]) == pytest.approx(expected, abs=1e-5)
