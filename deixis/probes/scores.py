"""Scores of predictions, and what they are by chance. Weights count items; leading axes broadcast."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int, Shaped

METRICS: dict[str, tuple[str, ...]] = {"classification": ("balanced_accuracy",), "regression": ("r2", "mae")}
"""Metrics of each kind of target; the first one chooses penalties."""

ERRORS = frozenset({"mae"})
"""Metrics of which less is better."""


def balanced_accuracy(
    predicted: Shaped[np.ndarray, "*_"], truth: Int[np.ndarray, "*_"], weight: Float[np.ndarray, "*_"]
) -> Float[np.ndarray, "*_"]:
    """Mean over the classes present of the share of their items that is predicted right (Brodersen et al. 2010)."""
    member = np.equal.outer(truth, np.unique(truth)).astype(float)
    hit = (predicted == truth) * weight
    # With one truth for all predictions it is one product of matrices.
    right = hit @ member if truth.ndim == 1 else (hit[..., None, :] @ member)[..., 0, :]
    size = weight @ member if truth.ndim == 1 else (weight[..., None, :] @ member)[..., 0, :]
    size = np.broadcast_to(size, right.shape)
    recall = np.divide(right, size, out=np.zeros_like(right), where=size > 0)
    return np.asarray(recall.sum(axis=-1) / (size > 0).sum(axis=-1))


def r2(
    predicted: Float[np.ndarray, "*_"], truth: Float[np.ndarray, "*_"], weight: Float[np.ndarray, "*_"]
) -> Float[np.ndarray, "*_"]:
    """One minus squared error over the squared deviation from the mean of the truths that are scored.

    Where those truths are all the same, it is 1 for exact predictions and else 0, as in scikit-learn.
    """
    level = (weight * truth).sum(axis=-1, keepdims=True) / weight.sum(axis=-1, keepdims=True)
    spread = (weight * (truth - level) ** 2).sum(axis=-1)
    error = (weight * (predicted - truth) ** 2).sum(axis=-1)
    spread, error = np.broadcast_arrays(spread, error)
    share = np.divide(error, spread, out=np.array(error > 0, dtype=float), where=spread > 0)
    return np.asarray(1 - share)


def mae(
    predicted: Float[np.ndarray, "*_"], truth: Float[np.ndarray, "*_"], weight: Float[np.ndarray, "*_"]
) -> Float[np.ndarray, "*_"]:
    """Mean absolute error, in the target's unit."""
    return np.asarray((weight * np.abs(predicted - truth)).sum(axis=-1) / weight.sum(axis=-1))


SCORES: dict[str, Callable[..., np.ndarray]] = {"balanced_accuracy": balanced_accuracy, "r2": r2, "mae": mae}


def advantage(metric: str, score: float, control: float) -> float:
    """Score minus control, turned round for errors: positive where the task is decoded better than its control."""
    return control - score if metric in ERRORS else score - control


def chance_of(metric: str, truth: Shaped[np.ndarray, " item"], fold: Int[np.ndarray, " item"]) -> float:
    """Score of a probe that knows nothing: one over the classes, an R2 of 0, the error of predicting the training mean."""
    if metric == "balanced_accuracy":
        return 1 / len(np.unique(truth))
    if metric == "r2":
        return 0.0
    level = np.array([truth[fold != f].mean() for f in range(int(fold.max()) + 1)])
    return float(np.abs(truth - level[fold]).mean())
