"""fit_many against loops of scikit-learn pipelines, and what it refuses."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deixis.probes import DiscriminantProbe, MeanDifferenceProbe
from deixis.probes.fit_many import fit_layers, fit_many

ALPHAS = (0.1, 10.0, 1000.0)
N, FOLDS = 60, np.arange(60) // 3 % 5


def data(name: str, seed: int = 0) -> np.ndarray:
    """Two layers of features of the kind that the name says."""
    rng = np.random.default_rng(seed)
    width = {"tall": 12, "collinear": 30}.get(name, 150)
    X = rng.normal(size=(2, N, width)) + rng.normal(size=(2, 1, width))
    if name == "collinear":
        X = X[:, :, :8] @ rng.normal(size=(2, 8, width))
        X[:, :, 1] = X[:, :, 0]
    elif name == "constant":
        X[:, :, ::5] = 7.0
    elif name == "scaled":
        X *= 10.0 ** rng.uniform(-6, 6, size=width)
        # The massive activation of a few tokens: one fold's deviation tells nothing about the others'.
        X[:, 0, :3] *= 1e4
    return X


SETS = ["wide", "tall", "collinear", "constant", "scaled"]


def values(X: np.ndarray, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Z = (X[0] - X[0].mean(axis=0)) / np.where(X[0].std(axis=0) > 0, X[0].std(axis=0), 1)
    return np.stack([Z[:, 1] + Z[:, 2] + rng.normal(size=N), rng.normal(size=N)], axis=1)


def classes(X: np.ndarray, unbalanced: bool = False) -> np.ndarray:
    y = values(X)[:, 0]
    return np.digitize(y, np.quantile(y, [0.75, 0.9] if unbalanced else [1 / 3, 2 / 3]))


def pipelines(make, alpha, X, y):
    """What people write: for every fold a scaler and an estimator, fitted on the other folds."""
    return [make_pipeline(StandardScaler(), make(alpha)).fit(X[fold != FOLDS], y[fold != FOLDS]) for fold in range(5)]


def raw_weights(pipeline):
    """Coefficients and intercept in terms of the features as they were given."""
    scaler, estimator = pipeline[0], pipeline[1]
    coef = np.atleast_2d(estimator.coef_) / scaler.scale_
    return coef, np.atleast_1d(estimator.intercept_) - coef @ scaler.mean_


def held_out(fitted, X):
    found = np.empty(N, dtype=fitted[0].predict(X[:1]).dtype)
    for fold, pipeline in enumerate(fitted):
        found[fold == FOLDS] = pipeline.predict(X[fold == FOLDS])
    return found


def close(got, expected, tolerance=1e-4):
    """Relative to the length of the vector, feature by feature in units of what each adds to a prediction."""
    assert np.abs(got - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("name", SETS)
def test_ridge_is_that_of_scikit_learn_on_every_layer_fold_penalty_target_and_permutation(name):
    X = data(name)
    Y = values(X)
    orders = np.stack([np.random.default_rng(s).permutation(N) for s in range(2)])
    got = fit_many(X, Y, FOLDS, alphas=ALPHAS, permutations=orders, keep=("predictions", "coefficients"))
    for layer, a, target, order in np.ndindex(2, 3, 2, 3):
        y = Y[:, target] if order == 0 else Y[orders[order - 1], target]
        fitted = pipelines(lambda alpha: Ridge(alpha=alpha, solver="svd"), ALPHAS[a], X[layer], y)
        expected = held_out(fitted, X[layer])
        np.testing.assert_allclose(got.predictions[layer, a, target, order], expected, rtol=1e-6, atol=1e-7)
        assert got.scores[layer, a, target, order] == pytest.approx(r2_score(y, expected), rel=1e-6)
        for fold, pipeline in enumerate(fitted):
            coef, intercept = raw_weights(pipeline)
            place = (layer, fold, a, target, order)
            close(got.coef[place] * pipeline[0].scale_, coef * pipeline[0].scale_)
            np.testing.assert_allclose(got.intercept[place], intercept, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("unbalanced", [False, True])
@pytest.mark.parametrize("name", SETS)
def test_discriminants_are_the_estimator_fitted_one_by_one(name, unbalanced):
    X = data(name)
    y = classes(X, unbalanced)
    got = fit_many(X, y, FOLDS, kind="discriminant", alphas=ALPHAS, keep=("predictions", "coefficients"))
    for layer, a in np.ndindex(2, 3):
        fitted = pipelines(lambda alpha: DiscriminantProbe(alpha=alpha), ALPHAS[a], X[layer], y)
        expected = held_out(fitted, X[layer])
        np.testing.assert_array_equal(got.predictions[layer, a, 0, 0], expected)
        assert got.scores[layer, a, 0, 0] == pytest.approx(balanced_accuracy_score(y, expected))
        for fold, pipeline in enumerate(fitted):
            close(got.coef[layer, fold, a, 0, 0] * pipeline[0].scale_, raw_weights(pipeline)[0] * pipeline[0].scale_)


@pytest.mark.parametrize("n_classes", [2, 3, "unbalanced"])
@pytest.mark.parametrize("name", SETS)
def test_logistic_regression_is_that_of_scikit_learn(name, n_classes):
    X = data(name)
    y = classes(X, unbalanced=n_classes == "unbalanced")
    y = np.minimum(y, 1) if n_classes == 2 else y
    alphas = (1e-3, 0.1, 10.0, 1000.0)
    got = fit_many(X, y, FOLDS, kind="logistic", alphas=alphas, keep=("predictions", "coefficients"))
    for layer, a in np.ndindex(1, 4):
        fitted = pipelines(
            lambda alpha: LogisticRegression(C=1 / alpha, solver="newton-cg", tol=1e-10, max_iter=2000),
            alphas[a],
            X[layer],
            y,
        )
        np.testing.assert_array_equal(got.predictions[layer, a, 0, 0], held_out(fitted, X[layer]))
        for fold, pipeline in enumerate(fitted):
            coef, intercept = raw_weights(pipeline)
            close(got.coef[layer, fold, a, 0, 0] * pipeline[0].scale_, coef * pipeline[0].scale_)
            np.testing.assert_allclose(got.intercept[layer, fold, a, 0, 0], intercept, rtol=1e-3, atol=1e-4)


def test_permutations_and_targets_of_logistic_regression_are_fitted_as_if_each_were_alone():
    X = data("wide")[0]
    y = classes(data("wide"))
    Y = np.stack([y, np.minimum(y, 1), np.arange(N) % 4], axis=1)
    order = np.random.default_rng(0).permutation(N)
    got = fit_many(X, Y, FOLDS, kind="logistic", alphas=ALPHAS, permutations=order[None], keep=("predictions",))
    for target in range(3):
        alone = fit_many(X, Y[order, target], FOLDS, kind="logistic", alphas=ALPHAS, keep=("predictions",))
        np.testing.assert_array_equal(got.predictions[0, :, target, 1], alone.predictions[0, :, 0, 0])


@pytest.mark.parametrize("kind", ["discriminant", "logistic", "mean_difference"])
def test_a_class_that_only_the_fold_left_out_has_is_never_chosen(kind):
    X = data("tall")[0]
    y = np.where(FOLDS == 0, 2, np.arange(N) % 2)
    got = fit_many(X, y, FOLDS, kind=kind, alphas=ALPHAS, keep=("predictions",))
    assert (got.predictions[0, :, 0, 0][:, FOLDS == 0] != 2).all()
    alone = fit_many(X, np.where(FOLDS == 0, "only", "rest"), FOLDS, kind=kind, alphas=ALPHAS, keep=("predictions",))
    assert (alone.predictions[0, :, 0, 0][:, FOLDS == 0] == 1).all()


def test_mean_differences_are_the_estimator_fitted_one_by_one():
    X = data("wide")
    y = classes(X)
    got = fit_many(X, y, FOLDS, kind="mean_difference", keep=("predictions",))
    expected = held_out(pipelines(lambda _: MeanDifferenceProbe(), 0, X[1], y), X[1])
    np.testing.assert_array_equal(got.predictions[1, 0, 0, 0], expected)


@pytest.mark.parametrize(("n", "width"), [(170, 300), (300, 140)], ids=["in item space", "in feature space"])
@pytest.mark.parametrize("n_orders", [0, 30], ids=["few targets", "many targets"])
def test_larger_ridge_regressions_are_those_of_scikit_learn(n, width, n_orders):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 40)) @ rng.normal(size=(40, width)) * 10.0 ** rng.uniform(-3, 3, size=width) + 50
    X[:, 7] = 1.0
    y, folds, times = rng.normal(size=n), rng.integers(4, size=n), rng.integers(1, 4, size=n)
    orders = np.stack([rng.permutation(n) for _ in range(n_orders)]) if n_orders else None
    got = fit_many(
        X, y, folds, alphas=ALPHAS, permutations=orders, weight=times.astype(float), keep=("predictions", "coefficients")
    )
    truth = y if orders is None else y[orders[-1]]
    for fold, (a, alpha) in itertools.product(range(4), enumerate(ALPHAS)):
        seen = np.repeat(np.arange(n), times * (folds != fold))
        pipeline = make_pipeline(StandardScaler(), Ridge(alpha=alpha, solver="svd")).fit(X[seen], truth[seen])
        mine = folds == fold
        np.testing.assert_allclose(got.predictions[0, a, 0, -1, mine], pipeline.predict(X[mine]), rtol=1e-6, atol=1e-7)
        coef, intercept = raw_weights(pipeline)
        close(got.coef[0, fold, a, 0, -1] * pipeline[0].scale_, coef * pipeline[0].scale_)
        assert got.intercept[0, fold, a, 0, -1] == pytest.approx(intercept[0], rel=1e-5)


def test_a_penalty_that_drowns_in_rounding_is_left_to_the_eigendecomposition():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 3)) @ rng.normal(size=(3, 500))).astype(np.float32)
    got = fit_many(X, X[:, 0], np.arange(400) % 4, alphas=(1e-4,), precision="float32")
    assert got.scores[0, 0, 0, 0] > 0.999


def test_weights_are_repeated_items():
    X, times = data("wide")[0], np.random.default_rng(3).integers(1, 4, size=N)
    Y = values(data("wide"))
    rows = np.repeat(np.arange(N), times)
    got = fit_many(X, Y, FOLDS, alphas=ALPHAS, weight=times.astype(float), keep=("predictions",))
    repeated = fit_many(X[rows], Y[rows], FOLDS[rows], alphas=ALPHAS, keep=("predictions",))
    np.testing.assert_allclose(got.predictions[..., rows], repeated.predictions, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(got.scores, repeated.scores, rtol=1e-8)


def test_nested_predictions_leave_out_two_folds():
    X = data("wide")[0]
    y = values(data("wide"))[:, 0]
    (got,) = fit_layers(X, y, FOLDS, alphas=(3.0,), nested=True)
    for outer, inner in np.ndindex(5, 5):
        seen, mine = (outer != FOLDS) & (inner != FOLDS), inner == FOLDS
        expected = make_pipeline(StandardScaler(), Ridge(alpha=3.0)).fit(X[seen], y[seen]).predict(X[mine])
        np.testing.assert_allclose(got.nested[outer, 0, 0, 0, mine], expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(got.nested[FOLDS, 0, 0, 0, np.arange(N)], got.predictions[0, 0, 0])


def test_layers_may_come_one_by_one_and_differ_in_width():
    layers = [data("wide")[0], data("tall")[0]]
    y = values(data("wide"))[:, 0]
    got = fit_many((layer for layer in layers), y, FOLDS, alphas=ALPHAS)
    for number, layer in enumerate(layers):
        np.testing.assert_array_equal(got.scores[number], fit_many(layer, y, FOLDS, alphas=ALPHAS).scores[0])


def test_another_metric_is_scored_as_scikit_learn_does():
    X, y = data("tall"), values(data("tall"))[:, 0]
    got = fit_many(X, y, FOLDS, metric="mae", keep=("predictions",))
    assert got.scores[1, 2, 0, 0] == pytest.approx(mean_absolute_error(y, got.predictions[1, 2, 0, 0]))


@pytest.mark.parametrize("kind", ["ridge", "discriminant", "logistic", "mean_difference"])
def test_tensors_give_what_arrays_give(kind):
    X = data("wide")
    y = values(X) if kind == "ridge" else classes(X)
    arrays = fit_many(X, y, FOLDS, kind=kind, alphas=ALPHAS, keep=("predictions", "coefficients"))
    tensors = fit_many(torch.as_tensor(X), y, FOLDS, kind=kind, alphas=ALPHAS, keep=("predictions", "coefficients"))
    np.testing.assert_allclose(tensors.predictions, arrays.predictions, rtol=1e-9, atol=1e-10)
    close(tensors.coef, arrays.coef, 1e-9 if kind != "logistic" else 1e-5)


@pytest.mark.parametrize("make", [np.float32, torch.float32, torch.bfloat16])
def test_features_of_lower_precision_are_computed_on_in_float64(make):
    X, y = data("wide"), values(data("wide"))
    low = X.astype(make) if make is np.float32 else torch.as_tensor(X).to(make)
    high = low.astype(float) if make is np.float32 else low.double()
    np.testing.assert_array_equal(fit_many(low, y, FOLDS).scores, fit_many(high, y, FOLDS).scores)


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize(("kind", "alphas"), [("ridge", (10.0,)), ("discriminant", (10.0,)), ("logistic", (1e-3, 10.0))])
def test_float32_is_close_where_the_penalty_is_not_small(kind, alphas, make):
    X = data("wide")
    y = values(X) if kind == "ridge" else classes(X)
    settings = {"kind": kind, "alphas": alphas, "keep": ("predictions", "coefficients")}
    low, high = fit_many(make(X), y, FOLDS, precision="float32", **settings), fit_many(X, y, FOLDS, **settings)
    np.testing.assert_allclose(low.predictions, high.predictions, atol=1e-4)
    close(low.coef, high.coef)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kind": "lasso"}, "kind='lasso' is not one of: 'ridge', 'discriminant', 'logistic', 'mean_difference'"),
        ({"precision": "float16"}, "precision='float16' is not one of: 'float32', 'float64'"),
        ({"keep": ("scores",)}, "keep='scores' is not one of: 'predictions', 'coefficients'"),
        ({"metric": "auc"}, "metric='auc' is not one of: 'r2', 'mae'"),
        ({"alphas": (0.0,)}, "alpha=0.0 must be a finite number above 0"),
        ({"folds": np.zeros(N, dtype=int)}, r"folds holds \[0\]; it must hold every number from 0"),
        ({"folds": FOLDS[1:]}, "lengths differ: y has 60, folds has 59"),
        ({"weight": np.zeros(N)}, "weight must be above 0"),
        ({"permutations": np.zeros((1, N), dtype=int)}, "permutations must each hold every item's number once"),
        ({"y": np.full(N, "near")}, "ridge needs numbers; use a classifying kind"),
        ({"y": np.full(N, np.nan)}, "y holds 60 values that are NaN or infinite"),
        ({"X": np.full((2, N, 3), np.inf)}, "layer 0 of X holds 180 values that are NaN or infinite"),
        ({"X": np.ones((2, 5, 3))}, r"layer 0 of X has shape \(5, 3\); it must be \(60 items, features\)"),
        ({"X": np.ones(N)}, "X has 1 axes; it must have two"),
        ({"X": []}, "X holds no layer"),
        ({"X": [np.ones((N, 3)), np.ones((N, 4))], "keep": ("coefficients",)}, r"layers have \[3, 4\] features"),
    ],
)
def test_what_cannot_be_fitted_is_refused(changed, said):
    given = {"X": data("tall"), "y": values(data("tall"))[:, 0], "folds": FOLDS} | changed
    with pytest.raises(ValueError, match=said):
        fit_many(given.pop("X"), given.pop("y"), given.pop("folds"), **given)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", ["ridge", "discriminant", "logistic", "mean_difference"])
def test_a_cuda_device_gives_what_the_processor_gives(kind):
    X = data("wide")
    y = values(X) if kind == "ridge" else classes(X)
    here = fit_many(X, y, FOLDS, kind=kind, alphas=ALPHAS, keep=("predictions", "coefficients"))
    there = fit_many(X, y, FOLDS, kind=kind, alphas=ALPHAS, keep=("predictions", "coefficients"), device="cuda")
    np.testing.assert_allclose(there.predictions, here.predictions, rtol=1e-8, atol=1e-9)
    close(there.coef, here.coef)


@pytest.mark.parametrize("kind", ["ridge", "discriminant", "logistic", "mean_difference"])
@pytest.mark.parametrize("shape", [(60, 3), (60, 90), (300, 200)])
def test_constant_features_tell_no_more_than_the_training_set_alone(kind, shape):
    n = shape[0]
    folds = np.arange(n) % 4
    y = np.arange(n) * 1.0 if kind == "ridge" else np.arange(n) // 4 % 3
    got = fit_many(np.full(shape, 7.0), y, folds, kind=kind, alphas=(1e-4, 1.0), keep=("predictions", "coefficients"))
    assert (got.coef == 0).all()
    if kind == "ridge":
        means = np.array([y[folds != fold].mean() for fold in range(4)])
        np.testing.assert_allclose(got.predictions[0, :, 0, 0], np.tile(means[folds], (2, 1)))
    else:
        np.testing.assert_allclose(got.scores, 1 / 3)
