"""What the classifying probes share: one linear score per class, the highest wins."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from deixis.probes.row_space import plain


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """Prediction and checks of a classifier that learns ``coef_`` and ``intercept_``.

    With two classes there is one row of coefficients, positive for ``classes_[1]``; otherwise one row per class.
    """

    coef_: Float[np.ndarray, "score feature"]
    intercept_: Float[np.ndarray, " score"]
    classes_: Shaped[np.ndarray, " cls"]

    def decision_function(self, X: Any) -> Float[np.ndarray, "item *score"]:
        """Scores ``X @ coef_.T + intercept_``: ``(item,)`` with two classes, else ``(item, cls)``.

        Raises:
            sklearn.exceptions.NotFittedError: ``fit`` was not called.
        """
        check_is_fitted(self)
        X = validate_data(self, plain(X), reset=False, dtype=np.float64)
        scores = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Shaped[np.ndarray, " item"]:
        """The class with the highest score, one per row of ``X``."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def _checked(self, X: Any, y: Any) -> tuple[Float[np.ndarray, "item feature"], Int[np.ndarray, " item"]]:
        """Features in float64 and class codes; sets ``classes_``."""
        X, y = validate_data(self, plain(X), plain(y), dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only ({self.classes_[0]!r}); {type(self).__name__} needs at least two.")
        return X, codes

    def _learn(self, coef: Float[np.ndarray, "cls feature"], intercept: Float[np.ndarray, " cls"]) -> None:
        two = len(self.classes_) == 2
        self.coef_ = coef[1:] - coef[:1] if two else coef
        self.intercept_ = intercept[1:] - intercept[:1] if two else intercept


def one_hot(codes: Int[np.ndarray, " item"], n_classes: int) -> Float[np.ndarray, "item cls"]:
    """Indicator matrix of class codes."""
    return np.eye(n_classes)[codes]
