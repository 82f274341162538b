"""Statistical truth of fit_many: scores that theory gives in closed form, p-values that must be uniform, over many data sets."""

import numpy as np
import pytest
from scipy.stats import kstest

from deixis.probes import fit_many

SCENES, PER_SCENE, FEATURES, DRAWS = 20, 2, 16, 99
SCENE = np.repeat(np.arange(SCENES), PER_SCENE)


def scene_orders(rng: np.random.Generator) -> np.ndarray:
    """Orders of the items in which scenes change places, whole."""
    return np.stack([(rng.permutation(SCENES)[:, None] * PER_SCENE + np.arange(PER_SCENE)).ravel() for _ in range(DRAWS)])


def unrelated(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features that items of a scene share in part, and a value of each scene that has nothing to do with them."""
    X = rng.normal(size=(SCENES, FEATURES))[SCENE] + 0.5 * rng.normal(size=(len(SCENE), FEATURES))
    return X, rng.normal(size=SCENES)[SCENE]


def tail(scores: np.ndarray, rng: np.random.Generator) -> float:
    """Share of the orders that score at least as high, ties broken at random: exactly uniform if all orders are alike."""
    above, ties = (scores[1:] > scores[0]).sum(), (scores[1:] == scores[0]).sum()
    return float((above + rng.uniform() * (ties + 1)) / len(scores))


def p_values(n_seeds: int, *, by_scene: bool = True) -> np.ndarray:
    found = []
    for seed in range(n_seeds):
        rng = np.random.default_rng((7, seed))
        X, y = unrelated(rng)
        orders = scene_orders(rng) if by_scene else np.stack([rng.permutation(len(y)) for _ in range(DRAWS)])
        folds = rng.permutation(np.arange(SCENES) % 4)[SCENE]
        fitted = fit_many(X, y, folds, alphas=(1.0, 30.0, 1000.0), permutations=orders)
        found.append(tail(fitted.best()[0, 0], rng))
    return np.array(found)


def test_p_values_of_r2_are_uniform_where_there_is_no_code():
    assert kstest(p_values(250), "uniform").pvalue > 0.01


@pytest.mark.slow
def test_p_values_of_r2_are_uniform_over_1500_data_sets():
    assert kstest(p_values(1500), "uniform").pvalue > 0.01


def test_the_check_of_uniformity_finds_labels_that_were_permuted_within_scenes():
    assert kstest(p_values(250, by_scene=False), "uniform").pvalue < 1e-4


@pytest.mark.parametrize(
    ("kind", "n_seeds"),
    [
        ("discriminant", 200),
        ("mean_difference", 200),
        ("logistic", 30),
        pytest.param("logistic", 400, marks=pytest.mark.slow),
        pytest.param("discriminant", 1500, marks=pytest.mark.slow),
    ],
)
def test_p_values_of_classes_are_never_too_small(kind, n_seeds):
    levels = np.array([0.01, 0.05, 0.1, 0.2, 0.5])
    found = []
    for seed in range(n_seeds):
        rng = np.random.default_rng((8, seed))
        X, _ = unrelated(rng)
        y = rng.permutation(np.arange(SCENES) % 3)[SCENE]
        folds = rng.permutation(np.arange(SCENES) % 4)[SCENE]
        scores = fit_many(X, y, folds, kind=kind, alphas=(1.0, 100.0), permutations=scene_orders(rng)[:49]).best()[0, 0]
        found.append((scores >= scores[0]).mean())
    share = (np.array(found)[:, None] <= levels).mean(axis=0)
    # Three standard deviations of such a share above what is allowed.
    assert (share <= levels + 3 * np.sqrt(levels * (1 - levels) / n_seeds)).all(), share


@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
def test_without_penalty_the_error_is_that_of_least_squares_in_closed_form(strength):
    """Stein 1960: with Gaussian features and an intercept it is ``noise (1 + 1/n) (n - 2) / (n - width - 2)``."""
    n, width, sets = 250, 30, 60
    rng = np.random.default_rng(int(10 * strength))
    folds = np.arange(n) % 5
    errors, scores = [], []
    for _ in range(sets):
        X = rng.normal(size=(n, width)) * rng.uniform(0.1, 10, size=width)
        direction = rng.normal(size=width)
        code = (X / X.std(axis=0)) @ direction / np.linalg.norm(direction)
        y = strength * code + rng.normal(size=n)
        got = fit_many(X, y, folds, alphas=(1e-8,), keep=("predictions",))
        errors.append(((got.predictions[0, 0, 0, 0] - y) ** 2).mean())
        scores.append(got.scores[0, 0, 0, 0])
    seen = n * 4 // 5
    expected = (1 + 1 / seen) * (seen - 2) / (seen - width - 2)
    assert np.mean(errors) == pytest.approx(expected, abs=4 * np.std(errors) / np.sqrt(sets))
    # A ratio of means is not the mean of ratios: their difference is of the order of 1 / n.
    assert np.mean(scores) == pytest.approx(1 - expected / (strength**2 + 1), abs=4 * np.std(scores) / np.sqrt(sets) + 2 / n)


@pytest.mark.parametrize("signal", [0.5, 1.0, 3.0])
def test_with_more_features_than_items_the_best_score_is_that_of_random_matrix_theory(signal):
    """Dobriban and Wager 2018 (Annals of Statistics 46:247), theorem 2.1, for uncorrelated features."""
    n, width, sets = 250, 500, 12
    seen = n * 4 // 5
    ratio = width / seen
    penalty = ratio / signal**2
    root = np.sqrt((1 - ratio + penalty) ** 2 + 4 * ratio * penalty)
    stieltjes = (root - (1 - ratio + penalty)) / (2 * ratio * penalty)
    companion = ratio * stieltjes + (1 - ratio) / penalty
    expected = 1 - 1 / (penalty * companion) / (1 + signal**2)
    rng = np.random.default_rng(int(10 * signal))
    scores = []
    for _ in range(sets):
        X = rng.normal(size=(n, width))
        y = X @ rng.normal(size=width) * signal / np.sqrt(width) + rng.normal(size=n)
        scores.append(fit_many(X, y, np.arange(n) % 5, alphas=(seen * penalty,)).scores[0, 0, 0, 0])
    # The limit is off by about 1 / n, as is the mean that every fold has to learn.
    assert np.mean(scores) == pytest.approx(expected, abs=4 * np.std(scores) / np.sqrt(sets) + 3 / n)
