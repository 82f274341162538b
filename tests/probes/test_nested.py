"""The shared factorisations against plain loops of scikit-learn fits."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from deixis.probes import DiscriminantProbe, LogisticProbe, MeanDifferenceProbe
from deixis.probes import nested as nested_module
from deixis.probes.cross_validation import ALPHAS as DEFAULT_ALPHAS
from deixis.probes.least_squares import Division, least_squares
from deixis.probes.nested import METHODS, nested_predictions

ALPHAS = (0.3, 4.0, 100.0)
FOLD = np.arange(36) % 4


def planted(width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(36, width)) * rng.uniform(0.1, 20, size=width) + 50 * rng.normal(size=width)
    return X, X[:, 0] + rng.normal(size=36), rng.permutation(np.arange(36) % 3)


def plain_loops(make, X, target, weight=None):
    """One scikit-learn fit for every penalty and every two left-out folds."""
    times = np.ones(len(X), dtype=int) if weight is None else weight.astype(int)
    found = np.empty((len(ALPHAS), 4, len(X)))
    for a, alpha in enumerate(ALPHAS):
        for f in range(4):
            for own in range(4):
                rows = np.flatnonzero((f != FOLD) & (own != FOLD))
                rows = np.repeat(rows, times[rows])
                scaler = StandardScaler().fit(X[rows])
                fitted = make(alpha).fit(scaler.transform(X[rows]), target[rows])
                found[a, f, own == FOLD] = fitted.predict(scaler.transform(X[own == FOLD]))
    return found


@pytest.mark.parametrize("width", [5, 80], ids=["in feature space", "in item space"])
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_predictions_are_those_of_scikit_learn_fitted_one_by_one(width, weighted):
    X, y, _ = planted(width)
    weight = np.random.default_rng(5).integers(1, 4, size=36).astype(float) if weighted else np.ones(36)
    got = nested_predictions(Division(X, weight, FOLD), METHODS["ridge"], [y, y**2], ALPHAS)
    np.testing.assert_allclose(got[0], plain_loops(lambda a: Ridge(alpha=a), X, y, weight), rtol=1e-6)
    np.testing.assert_allclose(got[1], plain_loops(lambda a: Ridge(alpha=a), X, y**2, weight), rtol=1e-6)


@pytest.mark.parametrize("width", [5, 80], ids=["in feature space", "in item space"])
@pytest.mark.parametrize("weighted", [False, True])
def test_discriminants_by_way_of_regression_are_discriminants(width, weighted):
    X, _, codes = planted(width)
    weight = np.random.default_rng(5).integers(1, 4, size=36).astype(float) if weighted else np.ones(36)
    targets = [codes, (codes > 0).astype(int)]
    got = nested_predictions(Division(X, weight, FOLD), METHODS["discriminant"], targets, ALPHAS)
    for found, target in zip(got, targets, strict=True):
        np.testing.assert_array_equal(found, plain_loops(lambda a: DiscriminantProbe(alpha=a), X, target, weight))


@pytest.mark.parametrize(
    ("name", "make"),
    [("logistic", lambda a: LogisticProbe(alpha=a)), ("mean_difference", lambda _: MeanDifferenceProbe())],
)
def test_other_probes_are_fitted_on_the_same_subsets(name, make):
    X, _, codes = planted(5)
    got = nested_predictions(Division(X, np.ones(36), FOLD), METHODS[name], [codes], ALPHAS)
    np.testing.assert_array_equal(got[0], plain_loops(make, X, codes))


@pytest.mark.parametrize("name", ["ridge", "discriminant", "logistic"])
def test_working_in_small_chunks_changes_nothing(name, monkeypatch):
    X, y, codes = planted(5)
    division, target = Division(X, np.ones(36), FOLD), y if name == "ridge" else codes
    whole = nested_predictions(division, METHODS[name], [target], ALPHAS)
    monkeypatch.setattr(nested_module, "_CHUNK", 1)
    np.testing.assert_allclose(nested_predictions(division, METHODS[name], [target], ALPHAS), whole, rtol=1e-9)


def test_a_class_without_training_items_is_never_chosen():
    X, _, _ = planted(5)
    codes = np.where(FOLD == 0, 2, np.arange(36) // 4 % 2)
    got = nested_predictions(Division(X, np.ones(36), FOLD), METHODS["discriminant"], [codes], ALPHAS)
    assert (got[0][:, 0] != 2).all()
    assert (got[0][:, 1:, FOLD != 0] == 2).any()


def test_a_feature_that_is_constant_but_for_rounding_is_left_out():
    X, y, _ = planted(5)
    rounding = 1e6 + 1e-3 * y[:, None]
    division = Division(np.hstack([X, rounding]), np.ones(36), FOLD)
    got = nested_predictions(division, METHODS["ridge"], [y], ALPHAS)
    np.testing.assert_allclose(got, nested_predictions(Division(X, np.ones(36), FOLD), METHODS["ridge"], [y], ALPHAS))


@pytest.mark.parametrize("width", [20, 300], ids=["in feature space", "in item space"])
@pytest.mark.parametrize("alpha", [min(DEFAULT_ALPHAS), 1e-2])
def test_the_smallest_penalties_are_solved_exactly_on_collinear_features(width, alpha):
    rng = np.random.default_rng(0)
    fold = np.arange(60) // 3 % 5
    codes = np.arange(60) % 3
    X = rng.normal(size=(60, 20)) @ rng.normal(size=(20, width)) + 1e-6 * rng.normal(size=(60, width))
    X += 0.7 * (codes[:, None] == 1)
    X[:, 1] = X[:, 0]
    division = Division(X, np.ones(60), fold)
    part = division.part(slice(0, None))
    member = np.eye(3)[codes]
    fitted, residual, level = least_squares(division, part, member, [alpha])
    scores = nested_module._class_scores(fitted, residual, member, part.weight)[0]
    for s, weight in enumerate(part.weight):
        Z, seen = (division.X - part.mean[s]) / part.scale[s], weight > 0
        ridge = Ridge(alpha=alpha, solver="svd").fit(Z[seen], member[seen]).predict(Z)
        np.testing.assert_allclose(fitted[0, s] + level[s], ridge, atol=1e-7)
        expected = DiscriminantProbe(alpha=alpha).fit(Z[seen], codes[seen]).decision_function(Z)
        differences = scores[s] - scores[s][:, :1] - (expected - expected[:, :1])
        assert np.abs(differences).max() < 1e-6 * np.abs(expected).max()
