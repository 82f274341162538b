"""AngleProbe against ridge regression on both coordinates, and the turns that it must not mind."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from deixis.probes import AngleProbe, RidgeProbe


def planted(noise: float = 0.1, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.uniform(0, 360, size=n)
    circle = np.stack([np.cos(np.deg2rad(y)), np.sin(np.deg2rad(y))], axis=1)
    return circle @ rng.normal(size=(2, 12)) + noise * rng.normal(size=(n, 12)), y


def apart(one: np.ndarray, other: np.ndarray, period: float = 360) -> np.ndarray:
    return np.abs((one - other + period / 2) % period - period / 2)


def test_predictions_are_the_angle_of_two_ridge_regressions():
    X, y = planted()
    cosine, sine = (Ridge(alpha=2.0).fit(X, part(np.deg2rad(y))).predict(X) for part in (np.cos, np.sin))
    expected = np.rad2deg(np.arctan2(sine, cosine)) % 360
    np.testing.assert_allclose(AngleProbe(alpha=2.0).fit(X, y).predict(X), expected, atol=1e-6)


def test_it_decodes_across_the_end_of_the_scale_where_a_number_cannot():
    X, y = planted()
    assert apart(AngleProbe().fit(X, y).predict(X), y).max() < 20
    assert apart(RidgeProbe().fit(X, y).predict(X), y).max() > 90


def test_full_turns_change_nothing_and_the_period_is_the_unit():
    X, y = planted()
    probe = AngleProbe().fit(X, y)
    np.testing.assert_allclose(AngleProbe().fit(X, y + 720).coef_, probe.coef_, atol=1e-9)
    hours = AngleProbe(period=12).fit(X, y / 30)
    np.testing.assert_allclose(hours.predict(X), probe.predict(X) / 30, atol=1e-9)


def test_the_score_is_one_for_exact_and_about_zero_for_unrelated_angles():
    X, y = planted(noise=0.0)
    assert AngleProbe(alpha=1e-9).fit(X, y).score(X, y) == pytest.approx(1.0)
    rng = np.random.default_rng(1)
    scores = [AngleProbe(alpha=1e9).fit(X, y).score(X, rng.uniform(0, 360, size=200)) for _ in range(200)]
    assert np.mean(scores) == pytest.approx(0.0, abs=0.15)
    mean = np.rad2deg(np.angle(np.exp(1j * np.deg2rad(y)).mean()))
    probe = AngleProbe(alpha=1e12).fit(X, y)
    np.testing.assert_allclose(apart(probe.predict(X), mean), 0, atol=1e-5)
    assert probe.score(X, y) == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("period", [0, -1.0, float("inf"), "turn"])
def test_a_period_out_of_range_is_refused(period):
    with pytest.raises(ValueError, match=r"period=.* must be a finite number above 0"):
        AngleProbe(period=period).fit(np.eye(3), np.arange(3.0))
