"""Ridge regression and discriminants of one target: a Cholesky factor for each penalty.

Where targets and permutations share the work, one eigendecomposition for all penalties (:mod:`deixis.probes.linear_fits`) is
cheaper; for a single target, as in each draw of a bootstrap, it costs about twice as much as ten of these factors.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.linalg.lapack import dposv  # pyright: ignore[reportAttributeAccessIssue]

from deixis.probes.row_space import FLAT


def ridge(
    X: Float[np.ndarray, "item feature"],
    training: Float[np.ndarray, "subset item"],
    target: Float[np.ndarray, " item"],
    alphas: Sequence[float],
) -> Float[np.ndarray, "alpha subset item"]:
    """What :class:`RidgeProbe` predicts for every item, features standardised on each training set."""
    fitted, _, level = _least_squares(X, training, target[:, None], alphas)
    return (fitted + level[:, None, :])[..., 0]


def discriminant(
    X: Float[np.ndarray, "item feature"],
    training: Float[np.ndarray, "subset item"],
    target: Int[np.ndarray, " item"],
    alphas: Sequence[float],
) -> Int[np.ndarray, "alpha subset item"]:
    """Class codes that :class:`DiscriminantProbe` predicts for every item, features standardised on each training set.

    With ``A`` the total scatter plus the penalty, ``N`` the class sizes and ``M`` the centred class means, the ridge fit of the
    classes' indicators gives ``X A^-1 M' N`` and ``G = M A^-1 M'``; the within scatter is ``A - M' N M``, so that by Woodbury's
    identity ``X W^-1 M' = X A^-1 M' (1 - N G)^-1`` and ``M W^-1 M' = G (1 - N G)^-1``. ``1 - N G`` is summed from the residuals,
    not subtracted: where the classes separate and the penalty is small it is all but singular.
    """
    member = np.eye(int(target.max()) + 1)[target]
    fitted, residual, _ = _least_squares(X, training, member, alphas)
    size = training @ member
    inverse = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    between = (member.T * training[:, None, :]) @ fitted
    absent = (size == 0)[:, :, None] * np.eye(member.shape[1])
    shares = (size / size.sum(axis=1, keepdims=True))[:, :, None] * (size > 0)[:, None, :]
    left = np.linalg.inv(member.T @ residual * inverse[:, None, :] + shares + absent)
    scores = fitted @ (inverse[:, :, None] * left)
    gram = inverse[:, :, None] * between * inverse[:, None, :]
    scores -= 0.5 * np.diagonal(gram @ left, axis1=-2, axis2=-1)[..., None, :]
    return np.where(size[:, None, :] > 0, scores, -np.inf).argmax(axis=-1)


ONE_TARGET = {"ridge": ridge, "discriminant": discriminant}
"""Probes by name."""


def _least_squares(
    X: Float[np.ndarray, "item feature"],
    training: Float[np.ndarray, "subset item"],
    Y: Shaped[np.ndarray, "item column"],
    alphas: Sequence[float],
) -> tuple[
    Float[np.ndarray, "alpha subset item column"],
    Float[np.ndarray, "alpha subset item column"],
    Float[np.ndarray, "subset column"],
]:
    """Predictions of every item less the training mean of ``Y``; residuals of the training items, weighted; and those means."""
    # A common shift and scale changes no standardised value, and keeps the sums of squares accurate.
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > FLAT * np.abs(X).max(axis=0), spread, np.inf)
    total = training.sum(axis=1)[:, None]
    mean, level = training @ X / total, training @ Y / total
    scale = np.sqrt(np.maximum(training @ X**2 / total - mean**2, 0.0))
    scale = np.where(scale > FLAT, scale, np.inf)
    shape = (len(alphas), *training.shape, Y.shape[1])
    fitted, residual = np.empty(shape), np.empty(shape)
    solve = _in_feature_space if X.shape[1] <= np.count_nonzero(training, axis=1).max() else _in_item_space
    for s, weight in enumerate(training):
        Z = (X - mean[s]) / scale[s]
        for a, (predicted, error) in enumerate(solve(Z, weight, Y - level[s], alphas)):
            fitted[a, s], residual[a, s] = predicted, error
    return fitted, residual, level


def _in_feature_space(Z: np.ndarray, weight: np.ndarray, Y: np.ndarray, alphas: Sequence[float]):
    seen = np.flatnonzero(weight)
    weighted = Z[seen] * weight[seen, None]
    scatter, cross = weighted.T @ Z[seen], weighted.T @ Y[seen]
    for alpha in alphas:
        fitted = Z @ _ridged(scatter, cross, alpha)
        yield fitted, weight[:, None] * (Y - fitted)


def _in_item_space(Z: np.ndarray, weight: np.ndarray, Y: np.ndarray, alphas: Sequence[float]):
    seen = np.flatnonzero(weight)
    root = np.sqrt(weight[seen])[:, None]
    kernel = Z @ (root * Z[seen]).T
    for alpha in alphas:
        dual = _ridged(root * kernel[seen], root * Y[seen], alpha)
        residual = np.zeros_like(Y)
        # alpha times the dual is the residual, without the cancellation of Y less a fit that is all but exact.
        residual[seen] = alpha * root * dual
        yield kernel @ dual, residual


def _ridged(matrix: np.ndarray, right: np.ndarray, alpha: float) -> np.ndarray:
    ridged = matrix.copy()
    ridged[np.diag_indices(len(ridged))] += alpha
    # Transposed, the symmetric matrix is already in the order that LAPACK wants: no second copy.
    _, solved, failed = dposv(ridged.T, right, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError(f"alpha={alpha:g} is too small for these features; leave it out of alphas.")
    return solved
