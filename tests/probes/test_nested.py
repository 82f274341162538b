"""The shared factorisations against plain loops of scikit-learn fits."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from deixis.probes import DiscriminantProbe, LogisticProbe, MeanDifferenceProbe
from deixis.probes.nested import METHODS, Division, nested_predictions

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


@pytest.mark.parametrize("name", ["discriminant", "logistic", "mean_difference"])
def test_scores_are_those_of_the_estimators_up_to_a_shift_of_each_item(name):
    X, _, codes = planted(5)
    training = (FOLD != 0)[None].astype(float)
    got = METHODS[name].scores(X, training, codes, 3, (4.0,))[0, 0]
    make = {"discriminant": DiscriminantProbe(4.0), "logistic": LogisticProbe(4.0), "mean_difference": MeanDifferenceProbe()}
    scaler = StandardScaler().fit(X[FOLD != 0])
    fitted = make[name].fit(scaler.transform(X[FOLD != 0]), codes[FOLD != 0])
    want = fitted.decision_function(scaler.transform(X[FOLD == 0])) * (27 if name == "discriminant" else 1)
    got = got[FOLD == 0]
    np.testing.assert_allclose(got - got.mean(axis=1, keepdims=True), want - want.mean(axis=1, keepdims=True), atol=1e-5)


def test_items_without_weight_are_predicted_and_not_learned_from():
    X, y, _ = planted(5)
    weight = (np.arange(36) < 24).astype(float)
    got = nested_predictions(Division(X, weight, FOLD), METHODS["ridge"], [y], (4.0,))[0, 0]
    for f in range(4):
        rows = (f != FOLD) & (weight > 0)
        scaler = StandardScaler().fit(X[rows])
        fitted = Ridge(alpha=4.0).fit(scaler.transform(X[rows]), y[rows])
        np.testing.assert_allclose(got[f, f == FOLD], fitted.predict(scaler.transform(X[f == FOLD])), rtol=1e-6)
