"""Ridge regression on all training subsets of a nested cross-validation at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg.lapack import dposv  # pyright: ignore[reportAttributeAccessIssue]

from deixis.probes.classes import one_hot
from deixis.probes.folds import training_subsets

FLAT = 1e-6
"""A feature that deviates by less than this share of its size is constant but for rounding, and is left out (set to 0)."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some training subsets: their items' weights (0 where held out), and their features' mean and deviation."""

    keep: Bool[np.ndarray, "subset fold"]
    weight: Float[np.ndarray, "subset item"]
    mean: Float[np.ndarray, "subset feature"]
    scale: Float[np.ndarray, "subset feature"]


class Division:
    """Items divided into folds, with features standardised anew on every training subset.

    Args:
        X: Features.
        weight: How often each item counts, above 0.
        fold: ``0..n_folds-1``, each used.
    """

    def __init__(
        self, X: Float[np.ndarray, "item feature"], weight: Float[np.ndarray, " item"], fold: Int[np.ndarray, " item"]
    ) -> None:
        # A common shift and scale changes no standardised value, and keeps the sums of squares below accurate.
        level, spread = X.mean(axis=0), X.std(axis=0)
        self.X = (X - level) / np.where(spread > FLAT * np.abs(X).max(axis=0), spread, np.inf)
        self.weight, self.fold = weight, fold
        n_folds = int(fold.max()) + 1
        self.keep, self.table = training_subsets(n_folds)
        member = one_hot(fold, n_folds).T * weight
        total = (self.keep @ member.sum(axis=1))[:, None]
        self._mean = self.keep @ (member @ self.X) / total
        spread = np.sqrt(np.maximum(self.keep @ (member @ self.X**2) / total - self._mean**2, 0.0))
        self._scale = np.where(spread > FLAT, spread, np.inf)

    def part(self, subsets: slice | Int[np.ndarray, " subset"]) -> Part:
        """The training subsets with these numbers."""
        keep = self.keep[subsets]
        weight = keep[:, self.fold] * self.weight
        return Part(keep=keep, weight=weight, mean=self._mean[subsets], scale=self._scale[subsets])


def least_squares(
    division: Division, part: Part, Y: Float[np.ndarray, "item column"], alphas: Sequence[float]
) -> tuple[
    Float[np.ndarray, "alpha subset item column"],
    Float[np.ndarray, "alpha subset item column"],
    Float[np.ndarray, "subset column"],
]:
    """Ridge predictions of every item by every training subset, less the subset's mean of ``Y``; residuals; and those means.

    The residuals are those of the training items times their weight, 0 for held-out items.

    Minimises ``sum_i weight_i |y_i - z_i B - b|^2 + alpha |B|^2`` over standardised features ``z``. The normal equations are
    solved by Cholesky in feature space or, with fewer items than features, in item space
    (``Z (Z'Z + a)^-1 Z' = K (K + a)^-1`` with ``K = Z Z'``).

    Raises:
        numpy.linalg.LinAlgError: A penalty is too small for the features at hand.
    """
    level = part.weight @ Y / part.weight.sum(axis=1)[:, None]
    n, width = division.X.shape
    solve = _in_feature_space if width <= n else _in_item_space
    return *solve(division, part, Y, level, alphas), level


def _in_feature_space(
    division: Division,
    part: Part,
    Y: Float[np.ndarray, "item column"],
    level: Float[np.ndarray, "subset column"],
    alphas: Sequence[float],
) -> tuple[Float[np.ndarray, "alpha subset item column"], Float[np.ndarray, "alpha subset item column"]]:
    width, columns = division.X.shape[1], Y.shape[1]
    # Sums over a subset are sums over its folds.
    both = np.concatenate([division.X, Y], axis=1)
    rows = [np.flatnonzero(division.fold == f) for f in range(part.keep.shape[1])]
    products = np.stack([(division.X[r] * division.weight[r, None]).T @ both[r] for r in rows])
    summed = (part.keep @ products.reshape(len(rows), -1)).reshape(len(part.keep), width, width + columns)
    centre = np.concatenate([part.mean, level], axis=1)
    summed -= part.weight.sum(axis=1)[:, None, None] * part.mean[:, :, None] * centre[:, None, :]
    summed /= part.scale[:, :, None]
    coef = _ridged(summed[:, :, :width] / part.scale[:, None, :], summed[:, :, width:], alphas) / part.scale[:, :, None]
    fitted = division.X @ coef - part.mean[:, None, :] @ coef
    return fitted, part.weight[:, :, None] * (Y - level[:, None, :] - fitted)


def _in_item_space(
    division: Division,
    part: Part,
    Y: Float[np.ndarray, "item column"],
    level: Float[np.ndarray, "subset column"],
    alphas: Sequence[float],
) -> tuple[Float[np.ndarray, "alpha subset item column"], Float[np.ndarray, "alpha subset item column"]]:
    Z = (division.X - part.mean[:, None, :]) / part.scale[:, None, :]
    kernel = Z @ Z.swapaxes(1, 2)
    root = np.sqrt(part.weight)[:, :, None]
    dual = root * _ridged(root * kernel * root.swapaxes(1, 2), root * (Y - level[:, None, :]), alphas)
    # alpha times the dual is the residual, without the cancellation of Y less a fit that is all but exact.
    return kernel @ dual, np.asarray(alphas)[:, None, None, None] * dual


def _ridged(
    matrices: Float[np.ndarray, "subset row row"], right: Float[np.ndarray, "subset row column"], alphas: Sequence[float]
) -> Float[np.ndarray, "alpha subset row column"]:
    """``(matrix + alpha)^-1 right`` for every subset and penalty. Held-out items have empty rows, which alpha keeps regular."""
    solved = np.empty((len(alphas), *right.shape))
    diagonal = np.arange(matrices.shape[1])
    for s, matrix in enumerate(matrices):
        for a, alpha in enumerate(alphas):
            ridged = matrix.copy()
            ridged[diagonal, diagonal] += alpha
            # Transposed, the symmetric matrix is already in the order that LAPACK wants: no second copy.
            _, solved[a, s], failed = dposv(ridged.T, right[s], overwrite_a=True)
            if failed:
                raise np.linalg.LinAlgError(f"alpha={alpha:g} is too small for these features; leave it out of alphas.")
    return solved
