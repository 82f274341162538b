"""What the scores must be where the truth is known: closed forms, leaks, memorising, coverage."""

import numpy as np
import pytest

from deixis.probes import cross_validate_probe
from deixis.probes.nested import METHODS
from deixis.probes.procedure import Procedure, interval

SCORE = {"n_bootstrap": 0, "n_controls": 0, "n_permutations": 0, "n_orders": 0}


@pytest.mark.parametrize("strength", [0.5, 1.0, 3.0])
def test_a_planted_code_of_known_strength_scores_its_closed_form(strength):
    """Noise in a code of unit deviation leaves ``s^2 / (s^2 + 1)`` of the target; few features and many items lose no more."""
    scores = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=2000)
        X = rng.normal(size=(2000, 4))
        X[:, 1] += strength * y
        scores.append(cross_validate_probe(X, y, np.arange(2000), **SCORE).score[0])
    # An R2 of 0.5 of 10,000 items has a standard error of 0.007 (2 R (1 - R^2) / sqrt(n)).
    assert np.mean(scores) == pytest.approx(strength**2 / (strength**2 + 1), abs=0.02)


def test_two_planted_classes_score_the_normal_distribution_s_closed_form():
    from scipy.stats import norm

    rng = np.random.default_rng(0)
    codes = np.arange(4000) % 2
    X = rng.normal(size=(4000, 3))
    X[:, 0] += 1.5 * codes
    found = cross_validate_probe(X, codes, np.arange(4000), **SCORE)
    assert found.score[0] == pytest.approx(norm.cdf(0.75), abs=0.015)


def test_a_memorising_probe_has_no_selectivity():
    """Features that name the figure and nothing else: what is learned of the task is learned of any labels of the figures."""
    rng = np.random.default_rng(0)
    figure = np.tile(np.arange(12), 8)
    X = np.eye(12)[figure] + 0.01 * rng.normal(size=(96, 12))
    label = (rng.permutation(12) % 2)[figure]  # the task itself follows the figure
    found = cross_validate_probe(X, label, np.arange(96), types=figure, **(SCORE | {"n_controls": 20}))
    assert found.score[0] > 0.95
    assert found.selectivity[0] == pytest.approx(0, abs=0.05)


def covered(seed: int, n_bootstrap: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score and interval of one data set of 60 groups and 128 features, where fixed predictions would cover 0.78."""
    rng = np.random.default_rng((seed, 5))
    y = np.repeat([0.25, 1.5, 2.75], 20)
    X = rng.normal(size=(60, 128))
    X[:, :4] += 0.8 * y[:, None]
    work = Procedure(method=METHODS["ridge"], n_folds=5, alphas=(1.0, 100.0, 1e4), seed=seed)
    group = np.arange(60)
    score = work.outcomes(X, [y], np.ones(60), work.fold(y, group))[0].score
    low, high = interval(("r2", "mae"), score, work.bootstrap(X, y, group, n_bootstrap), 0.95)
    return score, low, high


@pytest.mark.slow
def test_intervals_of_95_percent_cover_at_least_92():
    expected = np.mean([covered(1000 + seed, 0)[0] for seed in range(400)], axis=0)
    found = [covered(seed, 100) for seed in range(250)]
    share = np.mean([(low <= expected) & (expected <= high) for _, low, high in found], axis=0)
    assert (share >= 0.92).all()
    # Wide enough by being right, not by being endless.
    assert np.mean([high[0] - low[0] for _, low, high in found]) < 0.8
