"""Logistic regression with a squared penalty."""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from deixis.probes.checks import Setting, check_alpha
from deixis.probes.classes import LinearClassifier
from deixis.probes.row_space import row_basis


class LogisticProbe(LinearClassifier):
    """Logistic regression, binary or multinomial: minimises ``sum of log losses + alpha / 2 ||w||^2``, intercepts unpenalised.

    The objective is scikit-learn's ``LogisticRegression`` with ``C = 1 / alpha``, whose Newton solver does the work. With more
    features than items it runs in the row space of ``X``: the optimum lies there, because what is orthogonal to every item only
    adds to the penalty (the representer theorem; Kimeldorf and Wahba 1971).

    Args:
        alpha: Weight of the penalty, above 0.
        tol: Largest gradient entry (per item) at which the solver stops.
        max_iter: Newton steps at most.

    Attributes:
        coef_, intercept_: See :class:`LinearClassifier`.
        n_iter_: Newton steps taken.
    """

    def __init__(self, alpha: Setting = 1.0, tol: Setting = 1e-8, max_iter: Setting = 200) -> None:
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> "LogisticProbe":
        """Learn from ``X (item, feature)``, ``y (item,)``.

        Raises:
            ValueError: ``alpha`` is not above 0; one class only; ``X`` is not finite; the lengths differ.
        """
        check_alpha(self.alpha, zero=False)
        X, codes = self._checked(X, y)
        centre = X.mean(axis=0)
        rows, back = row_basis(X - centre)
        solver = LogisticRegression(C=1 / self.alpha, solver="newton-cholesky", tol=self.tol, max_iter=self.max_iter)
        solver.fit(rows, codes)
        self.coef_ = solver.coef_ @ back
        self.intercept_ = solver.intercept_ - self.coef_ @ centre
        self.n_iter_ = int(solver.n_iter_.max())
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "item cls"]:
        """Probabilities of the classes, in the order of ``classes_``; rows sum to one."""
        scores = self.decision_function(X)
        return np.stack([expit(-scores), expit(scores)], axis=1) if scores.ndim == 1 else softmax(scores, axis=1)
