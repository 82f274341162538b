"""Linear regression with a squared penalty."""

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from deixis.probes.checks import Setting, check_alpha
from deixis.probes.row_space import plain


class RidgeProbe(RegressorMixin, BaseEstimator):
    """Ridge regression: minimises ``||y - X w - b||^2 + alpha ||w||^2``, the intercept ``b`` unpenalised.

    The objective is scikit-learn's ``Ridge``. It is solved by the singular value decomposition of the centred features, so any
    shape works and ``alpha=0`` gives the shortest least-squares solution (Hastie, Tibshirani and Friedman, *The Elements of
    Statistical Learning*, 2nd ed., eq. 3.47).

    Args:
        alpha: Weight of the penalty, at least 0.

    Attributes:
        coef_: ``(feature,)``, or ``(target, feature)`` where ``y`` has two axes.
        intercept_: One number, or one per target.
    """

    def __init__(self, alpha: Setting = 1.0) -> None:
        self.alpha = alpha

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> "RidgeProbe":
        """Learn from ``X (item, feature)`` and ``y (item,)`` or ``(item, target)``, in float64.

        Raises:
            ValueError: ``alpha`` is negative; ``X`` or ``y`` is not finite; their lengths differ.
        """
        check_alpha(self.alpha, zero=True)
        X, y = validate_data(self, plain(X), plain(y), y_numeric=True, multi_output=True, dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        centre, level = X.mean(axis=0), y.mean(axis=0)
        self.coef_ = _ridge_solution(X - centre, y.reshape(len(y), -1) - level, self.alpha).T
        if y.ndim == 1:
            self.coef_ = self.coef_[0]
        self.intercept_ = level - self.coef_ @ centre
        return self

    def predict(self, X: Any) -> Float[np.ndarray, "item *target"]:
        """``X @ w + b``, in the unit of ``y``.

        Raises:
            sklearn.exceptions.NotFittedError: ``fit`` was not called.
        """
        check_is_fitted(self)
        X = validate_data(self, plain(X), reset=False, dtype=np.float64)
        return X @ self.coef_.T + self.intercept_


def _ridge_solution(
    X: Float[np.ndarray, "item feature"], y: Float[np.ndarray, "item target"], alpha: float
) -> Float[np.ndarray, "feature target"]:
    u, s, vt = np.linalg.svd(X, full_matrices=False)
    # Directions without variance hold rounding noise only: dividing by it would invent a code where there is none.
    real = s > s.max(initial=0.0) * max(X.shape) * np.finfo(np.float64).eps
    shrink = np.divide(s, s**2 + alpha, out=np.zeros_like(s), where=real)
    return vt.T @ (shrink[:, None] * (u.T @ y))
