"""Probing all layers: fit_many against the loop that people write around scikit-learn.

37 layers x 1,000 items x 2,048 features x 5 folds x 10 penalties, float32 as activations are read from a run. The loop is
``GridSearchCV`` over ``Pipeline(StandardScaler, estimator)`` with grouped folds, one layer after the other. Every layer costs
the same, so the comparisons are made on one layer and the loop's time for permutations is multiplied by their number (it fits
every permuted target anew); fit_many is then also run on all layers.
"""

import warnings
from typing import Any

import numpy as np
from harness import Comparison, arguments, compare, matrix_rate, peak_memory, save, threads_set, timed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from deixis.probes import fit_many

ALPHAS = tuple(10.0**power for power in range(-4, 6))
FOLDS, PER_SCENE = 5, 4


def activations(layers: int, items: int, width: int, *, decaying: bool = True) -> np.ndarray:
    """Features ``(layer, item, feature)`` in float32: a spectrum that decays as activations' does, or white noise; offsets."""
    rng = np.random.default_rng(0)
    found = np.empty((layers, items, width), dtype=np.float32)
    rank = min(items, width) // 2
    for layer in found:
        noise = rng.normal(size=(items, width))
        if decaying:
            factors = rng.normal(size=(items, rank)) / np.arange(1, rank + 1)
            noise = 10 * factors @ rng.normal(size=(rank, width)) + 0.1 * noise
        layer[:] = noise + rng.normal(size=width)
    return found


def targets(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A value that the first layer holds with as much noise, and its three ranges."""
    rng = np.random.default_rng(1)
    direction = (X[0] - X[0].mean(axis=0)) @ rng.normal(size=X.shape[-1])
    y = direction / direction.std() + rng.normal(size=len(direction))
    return y, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))


def loop(X: np.ndarray, y: np.ndarray, groups: np.ndarray, estimator: Any, grid: dict[str, list[float]]) -> GridSearchCV:
    """What people write, for one layer."""
    pipeline = Pipeline([("scale", StandardScaler()), ("probe", estimator)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GridSearchCV(pipeline, grid, cv=GroupKFold(FOLDS)).fit(X, y, groups=groups)


def ridge_rows(X: np.ndarray, y: np.ndarray, groups: np.ndarray, folds: np.ndarray, orders: np.ndarray, options: Any):
    """Ridge alone, in both precisions of the features, and with permutations. fit_many computes in float64 throughout."""
    grid = {"probe__alpha": list(ALPHAS)}
    common = {"labels": ("fit_many", "GridSearchCV loop"), "threads": options.threads, "rounds": options.rounds}
    double = X[:1].astype(np.float64)
    yield compare(
        "ridge",
        lambda: fit_many(X[:1], y, folds, alphas=ALPHAS),
        lambda: loop(X[0], y, groups, Ridge(), grid),
        target=6,
        note="the loop computes in float32, fit_many in float64",
        **common,
    )
    yield compare(
        "ridge, float64 features",
        lambda: fit_many(double, y, folds, alphas=ALPHAS),
        lambda: loop(double[0], y, groups, Ridge(), grid),
        target=6,
        **common,
    )
    yield compare(
        f"ridge, {len(orders)} permutations",
        lambda: fit_many(X[:1], y, folds, alphas=ALPHAS, permutations=orders),
        lambda: loop(X[0], y, groups, Ridge(), grid),
        target=500,
        scale=len(orders) + 1,
        note="the loop's time is that of one target times the number of targets",
        **common,
    )


def logistic_row(
    name: str, X: np.ndarray, y: np.ndarray, groups: np.ndarray, folds: np.ndarray, options: Any, **settings: Any
) -> Comparison:
    """Three classes; unless told otherwise the loop has scikit-learn's tolerance, far from the optimum at small penalties."""
    grid = {"probe__C": [1 / alpha for alpha in ALPHAS]}
    estimator = LogisticRegression(**({"max_iter": 1000} | settings))
    errors = {alpha: coefficient_error(estimator, X[0], y, folds, alpha) for alpha in (ALPHAS[0], 1.0, ALPHAS[-1])}
    listed = ", ".join(f"{error:.0e} at alpha={alpha:g}" for alpha, error in errors.items())
    return compare(
        name,
        lambda: fit_many(X[:1], y, folds, kind="logistic", alphas=ALPHAS),
        lambda: loop(X[0], y, groups, estimator, grid),
        labels=("fit_many", "GridSearchCV loop"),
        threads=options.threads,
        rounds=max(2, options.rounds // 2),
        target=3,
        note=f"fit_many is within 1e-5 of the optimal coefficients; the loop's are off by {listed}",
    )


def coefficient_error(estimator: LogisticRegression, X: np.ndarray, y: np.ndarray, folds: np.ndarray, alpha: float) -> float:
    """How far the loop's coefficients are from those of fit_many, over the largest, on the first fold."""
    exact = fit_many(X[None], y, folds, kind="logistic", alphas=(alpha,), keep=("coefficients",)).coef
    scaler = StandardScaler().fit(X[folds != 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(estimator).set_params(C=1 / alpha).fit(scaler.transform(X[folds != 0]), y[folds != 0])
    ours = exact[0, 0, 0, 0, 0] * scaler.scale_
    return float(np.abs(fitted.coef_ - ours).max() / np.abs(ours).max())


def floor(items: int, width: int, rate: float) -> float:
    """CPU seconds of one layer's ridge regressions if all its operations ran at the rate of a product of matrices.

    Per fold half a product for the symmetric Gram matrix, and its reduction to a tridiagonal one.
    """
    train = items * (FOLDS - 1) // FOLDS
    size = min(train, width)
    return FOLDS * (train * width * size + 4 / 3 * size**3) / rate


def main() -> None:
    options = arguments(str(__doc__).partition("\n")[0])
    layers, items, width, n_orders = (3, 200, 256, 50) if options.quick else (37, 1000, 2048, 200)
    options.rounds = options.rounds or (2 if options.quick else 4)
    X = activations(layers, items, width)
    y, classes = targets(X)
    groups = np.arange(items) // PER_SCENE
    folds = groups % FOLDS
    scene_orders = [np.random.default_rng(s).permutation(items // PER_SCENE) for s in range(n_orders)]
    orders = np.stack([(order[:, None] * PER_SCENE + np.arange(PER_SCENE)).ravel() for order in scene_orders])
    rows = list(ridge_rows(X, y, groups, folds, orders, options))
    rows.append(logistic_row("logistic, 3 classes", X, classes, groups, folds, options))
    white = activations(1, items, width, decaying=False)
    easy = targets(white)[1]
    rows.append(logistic_row("logistic, white noise", white, easy, groups, folds, options))
    double = white.astype(np.float64)
    name = "logistic, white noise, loop at tol=1e-10"
    rows.append(logistic_row(name, double, easy, groups, folds, options, tol=1e-10, max_iter=20_000))
    facts: dict[str, Any] = {
        "shape": {"layers": layers, "items": items, "features": width, "folds": FOLDS, "penalties": len(ALPHAS)}
    }
    facts["input_bytes"] = X.nbytes
    rate = matrix_rate("float64")
    facts["float64_rate"], facts["ridge_floor"] = rate, floor(items, width, rate)
    facts["ridge_over_floor"] = float(np.median(rows[0].ours_cpu)) / facts["ridge_floor"]
    with threads_set(options.threads):
        for name, call in {
            "ridge": lambda: fit_many(X, y, folds, alphas=ALPHAS),
            "ridge_permutations": lambda: fit_many(X, y, folds, alphas=ALPHAS, permutations=orders),
            "logistic": lambda: fit_many(X, classes, folds, kind="logistic", alphas=ALPHAS),
        }.items():
            clocks: list[float] = []
            extra = peak_memory(lambda call=call, clocks=clocks: clocks.extend(timed(call)))
            facts[f"all_layers_{name}"] = {"cpu_s": clocks[0], "wall_s": clocks[1], "peak_over_input": 1 + extra / X.nbytes}
    save("probes", rows, options.out, **facts)


if __name__ == "__main__":
    main()
