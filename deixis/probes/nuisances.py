"""What travels with a target: natural cubic splines of it, and probes of what it leaves unexplained."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from deixis.probes.classes import one_hot
from deixis.probes.nested import Division, Method
from deixis.probes.scores import METRICS, SCORES

IDENTIFIABLE = 0.01
"""Share of the target's variance that nuisances must leave, for their residual to be worth decoding."""
_FEWEST_KNOTS, _MOST_KNOTS, _GROUPS_PER_KNOT = 3, 5, 10


def n_knots(n_groups: int) -> int:
    """Knots of each nuisance's spline: 3 to 5, as Harrell advises (*Regression Modeling Strategies*, 2nd ed., section 2.4.6)."""
    return int(np.clip(n_groups // _GROUPS_PER_KNOT, _FEWEST_KNOTS, _MOST_KNOTS))


def spline_basis(
    values: Float[np.ndarray, "item nuisance"], seen: Float[np.ndarray, "train nuisance"], knots: int
) -> Float[np.ndarray, "item column"]:
    """Natural cubic splines of each nuisance, added up: no products between nuisances.

    Knots lie at quantiles of the distinct values of ``seen``; beyond the outer ones the splines are straight lines (Hastie,
    Tibshirani and Friedman, *The Elements of Statistical Learning*, 2nd ed., eq. 5.4 and 5.5). A nuisance with two distinct
    values gives one column, a constant one none.
    """
    columns = [column for v, s in zip(values.T, seen.T, strict=True) for column in _natural_spline(v, s, knots)]
    return np.stack(columns, axis=1) if columns else np.empty((len(values), 0))


def _natural_spline(values: Float[np.ndarray, " item"], seen: Float[np.ndarray, " train"], knots: int) -> list[np.ndarray]:
    span = np.ptp(seen)
    if not span > 0:
        return []
    x, known = (values - seen.min()) / span, (seen - seen.min()) / span
    at = np.unique(np.quantile(np.unique(known), np.linspace(0, 1, knots), method="nearest"))
    last = at[-1]

    def bend(knot: float) -> Float[np.ndarray, " item"]:
        return (np.maximum(x - knot, 0) ** 3 - np.maximum(x - last, 0) ** 3) / (last - knot)

    return [x, *(bend(knot) - bend(at[-2]) for knot in at[:-2])]


def unexplained(
    values: Float[np.ndarray, "item column"], nuisances: Float[np.ndarray, "item nuisance"], train: np.ndarray, knots: int
) -> Float[np.ndarray, "item column"]:
    """What least squares on the nuisances' splines leaves of ``values``, the fit made on the training items alone."""
    basis = spline_basis(nuisances, nuisances[train], knots)
    design = np.column_stack([np.ones(len(values)), basis])
    coef = np.linalg.lstsq(design[train], values[train], rcond=1e-10)[0]
    return values - design @ coef


def residual_scores(
    division: Division,
    method: Method,
    target: Shaped[np.ndarray, " item"],
    predicted: Shaped[np.ndarray, " item"],
    nuisances: Float[np.ndarray, "item nuisance"],
    alphas: tuple[float, ...],
    knots: int,
) -> Float[np.ndarray, " metric"]:
    """Scores for what the nuisances leave of the target; NaN where they leave too little to be told from nothing.

    Values: the same nested cross-validation, where the probe learns and predicts what the nuisances' splines, fitted anew on
    every training set, leave of the target.

    Classes: the score of the held-out predictions less what the nuisances alone would make of them. A prediction ``k`` counts
    ``w_y [y = k] - w_k p_k`` with ``p_k`` the share of class ``k`` at the item's nuisances (splines fitted on the other folds,
    clipped to shares) and weights ``w`` that balance the classes; ``1/K`` is added. Predictions that follow the nuisances and
    nothing else have the expectation ``1/K``, however well they predict; where the nuisances say nothing, it is the balanced
    accuracy.

    Not identifiable, and so NaN: the held-out residual of the target (for classes of their indicators) has less than
    :data:`IDENTIFIABLE` of its variance.

    Args:
        division: The features, in folds.
        method: The probe.
        target: Values, or class codes.
        predicted: Held-out predictions of the target as it is.
        nuisances: A column each.
        alphas: Penalties to choose from.
        knots: Of each nuisance's spline.
    """
    values = target[:, None] if method.kind == "regression" else one_hot(target, int(target.max()) + 1)
    left = np.empty_like(values)
    for fold in range(int(division.fold.max()) + 1):
        own = division.fold == fold
        left[own] = unexplained(values, nuisances, ~own, knots)[own]
    if (left**2).sum() < IDENTIFIABLE * ((values - values.mean(axis=0)) ** 2).sum():
        return np.full(len(METRICS[method.kind]), np.nan)
    if method.kind == "classification":
        return np.array([_beyond_shares(predicted, target, values - left)])
    found = residual_predictions(division, method, target[None], nuisances, alphas, knots)
    scores = [SCORES[metric](found.predicted[0], found.wanted[0], division.weight) for metric in METRICS[method.kind]]
    return np.array([float(score) for score in scores])


def _beyond_shares(
    predicted: Int[np.ndarray, " item"], target: Int[np.ndarray, " item"], explained: Float[np.ndarray, "item cls"]
) -> float:
    shares = np.clip(explained, 0.0, None)
    total = shares.sum(axis=1, keepdims=True)
    shares = np.divide(shares, total, out=np.full_like(shares, 1 / shares.shape[1]), where=total > 0)
    weight = 1 / (shares.shape[1] * np.bincount(target))
    expected = weight[predicted] * shares[np.arange(len(predicted)), predicted]
    return float((weight[target] * (predicted == target) - expected).sum() + 1 / shares.shape[1])


@dataclass(frozen=True, kw_only=True)
class Residuals:
    """What a probe makes of the part of targets that nuisances leave, in folds that it has not seen."""

    predicted: Float[np.ndarray, "target item"]
    wanted: Float[np.ndarray, "target item"]
    """What is left, the splines fitted on the other folds."""
    inner: Float[np.ndarray, "target fold"]
    """R2 on the other folds, without this one: what chooses a layer for it."""


def residual_predictions(
    division: Division,
    method: Method,
    targets: Float[np.ndarray, "target item"],
    nuisances: Float[np.ndarray, "item nuisance"],
    alphas: tuple[float, ...],
    knots: int,
) -> Residuals:
    """The nested cross-validation of :func:`residual_scores` for values, of several targets that share the work.

    Args:
        division: The features, in folds.
        method: A probe of values.
        targets: A row each.
        nuisances: A column each.
        alphas: Penalties to choose from.
        knots: Of each nuisance's spline.
    """
    fold, source = division.fold, division.table[:, division.fold]
    predicted = np.empty((len(targets), len(alphas), *source.shape))
    truth = np.empty((len(targets), *source.shape))
    for subset, keep in enumerate(division.keep):
        wanted = unexplained(targets.T, nuisances, keep[fold], knots).T
        found = method.predict(division.X, division.training(np.array([subset])), list(wanted), alphas)[:, :, 0]
        where, item = np.nonzero(source == subset)
        predicted[:, :, where, item], truth[:, where, item] = found[:, :, item], wanted[:, item]
    return _graded(predicted, truth, division, SCORES[METRICS[method.kind][0]])


def _graded(
    predicted: Float[np.ndarray, "target alpha fold item"],
    truth: Float[np.ndarray, "target fold item"],
    division: Division,
    score: Callable[..., Any],
) -> Residuals:
    """Each fold's penalty is the largest of those that do best on the other folds."""
    fold, items = division.fold, np.arange(len(division.fold))
    kept = np.empty(truth.shape)
    inner = np.empty(truth.shape[:2])
    for target, number in np.ndindex(*truth.shape[:2]):
        others = (fold != number) * division.weight
        graded = score(predicted[target, :, number], truth[target, number], others)
        best = len(graded) - 1 - int(graded[::-1].argmax())
        kept[target, number], inner[target, number] = predicted[target, best, number], graded[best]
    return Residuals(predicted=kept[:, fold, items], wanted=truth[:, fold, items], inner=inner)
