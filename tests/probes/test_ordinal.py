"""OrdinalProbe against its likelihood maximised by scipy, logistic regression, and planted thresholds."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from deixis.probes import LogisticProbe, OrdinalProbe


def planted(n: int, width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)) + 2
    latent = (X - 2) @ np.linspace(1, -1, width) / np.sqrt(width) * 3 + rng.logistic(size=n)
    return X, np.digitize(latent, [-1.0, 0.5, 2.0])


@pytest.mark.parametrize(("n", "width"), [(200, 3), (25, 40)])
@pytest.mark.parametrize("alpha", [0.3, 20.0])
def test_the_fit_is_the_maximum_of_the_penalised_likelihood(n, width, alpha):
    X, y = planted(n, width)
    probe = OrdinalProbe(alpha=alpha).fit(X, y)
    k = len(probe.classes_)

    def objective(parameters):
        coef, cuts = (
            parameters[:width],
            np.cumsum(np.concatenate([parameters[width : width + 1], np.exp(parameters[width + 1 :])])),
        )
        below = expit(cuts - (X @ coef)[:, None])
        probability = np.diff(np.hstack([np.zeros((n, 1)), below, np.ones((n, 1))]))
        codes = np.searchsorted(probe.classes_, y)
        return -np.log(np.maximum(probability[np.arange(n), codes], 1e-300)).sum() + alpha / 2 * (coef**2).sum()

    found = minimize(objective, np.zeros(width + k - 1), method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(probe.coef_[0], found[:width], atol=2e-5)
    cuts = np.cumsum(np.concatenate([found[width : width + 1], np.exp(found[width + 1 :])]))
    np.testing.assert_allclose(probe.thresholds_, cuts, atol=1e-4)
    assert (np.diff(probe.thresholds_) > 0).all()


def test_with_two_classes_it_is_logistic_regression():
    X, y = planted(80, 5)
    two = y > 1
    ordinal, logistic = OrdinalProbe(alpha=0.7).fit(X, two), LogisticProbe(alpha=0.7).fit(X, two)
    np.testing.assert_allclose(ordinal.coef_, logistic.coef_, atol=1e-6)
    np.testing.assert_allclose(-ordinal.thresholds_, logistic.intercept_, atol=1e-6)
    np.testing.assert_allclose(ordinal.predict_proba(X), logistic.predict_proba(X), atol=1e-6)


def test_planted_direction_and_thresholds_are_found():
    X, y = planted(20_000, 3)
    probe = OrdinalProbe(alpha=1e-6).fit(X - 2, y)
    np.testing.assert_allclose(probe.coef_[0], np.linspace(1, -1, 3) / np.sqrt(3) * 3, atol=0.06)
    np.testing.assert_allclose(probe.thresholds_, [-1.0, 0.5, 2.0], atol=0.08)


def test_an_endless_penalty_gives_the_class_shares():
    X, y = planted(50, 4)
    share = np.bincount(y) / len(y)
    np.testing.assert_allclose(OrdinalProbe(alpha=1e10).fit(X, y).predict_proba(X), np.tile(share, (50, 1)), atol=1e-6)


def test_reversing_the_order_of_the_classes_reverses_the_direction():
    X, y = planted(60, 4)
    there, back = OrdinalProbe().fit(X, y), OrdinalProbe().fit(X, -y)
    np.testing.assert_allclose(back.coef_, -there.coef_, atol=1e-7)
    np.testing.assert_allclose(back.thresholds_, -there.thresholds_[::-1], atol=1e-6)


def test_labels_are_ordered_as_they_sort_and_separated_classes_stay_finite():
    X = np.arange(30.0)[:, None]
    probe = OrdinalProbe(alpha=1e-3).fit(X, np.repeat(["a near", "b middle", "c far"], 10))
    assert probe.predict([[0.0], [14.0], [29.0]]).tolist() == ["a near", "b middle", "c far"]
    assert np.isfinite(probe.predict_proba(X)).all()
    np.testing.assert_allclose(probe.predict_proba(X).sum(axis=1), 1.0)


def test_too_few_steps_and_a_penalty_of_zero_are_refused():
    X, y = planted(40, 3)
    with pytest.raises(ArithmeticError, match="max_iter=1 Newton steps did not suffice"):
        OrdinalProbe(max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match="must be a finite number above 0"):
        OrdinalProbe(alpha=0.0).fit(X, y)
