"""Classifiers in closed form: nearest class mean, and the same after whitening."""

from typing import Any

import numpy as np

from deixis.probes.checks import Setting, check_alpha
from deixis.probes.classes import LinearClassifier, one_hot


class MeanDifferenceProbe(LinearClassifier):
    """Nearest class mean. With two classes the direction is the difference of the means, the threshold their midpoint.

    No parameter, no covariance: what it finds lies along the plain difference of the class means, whose causal use as a steering
    direction is compared with trained probes by Marks and Tegmark (arXiv 2310.06824).

    Attributes:
        means_: ``(cls, feature)``.
        coef_, intercept_: See :class:`LinearClassifier`; scores are ``x . m - |m|^2 / 2``.
    """

    def fit(self, X: Any, y: Any) -> "MeanDifferenceProbe":
        """Learn the class means of ``X (item, feature)``, ``y (item,)``.

        Raises:
            ValueError: One class only; ``X`` is not finite; the lengths differ.
        """
        X, codes = self._checked(X, y)
        member = one_hot(codes, len(self.classes_))
        self.means_ = member.T @ X / member.sum(axis=0)[:, None]
        self._learn(self.means_, -0.5 * (self.means_**2).sum(axis=1))
        return self


class DiscriminantProbe(LinearClassifier):
    """Fisher's linear discriminant with a ridge penalty and equal priors.

    Scores are ``x' W^-1 m - m' W^-1 m / 2`` with class means ``m``, taken from the grand mean, and ``W`` = within-class scatter
    (a sum over items, not a mean) ``+ alpha I``: penalised discriminant analysis (Hastie, Buja and Tibshirani 1995, Annals of
    Statistics 23:73-102) with the identity as penalty. ``alpha -> 0`` is linear discriminant analysis, ``alpha -> inf`` decides
    like :class:`MeanDifferenceProbe`. Equal priors aim at balanced accuracy, whatever the class sizes.

    Args:
        alpha: Weight of the penalty, above 0.

    Attributes:
        means_: ``(cls, feature)``.
        coef_, intercept_: See :class:`LinearClassifier`.
    """

    def __init__(self, alpha: Setting = 1.0) -> None:
        self.alpha = alpha

    def fit(self, X: Any, y: Any) -> "DiscriminantProbe":
        """Learn from ``X (item, feature)``, ``y (item,)``.

        Raises:
            ValueError: ``alpha`` is not above 0; one class only; ``X`` is not finite; the lengths differ.
        """
        check_alpha(self.alpha, zero=False)
        X, codes = self._checked(X, y)
        member = one_hot(codes, len(self.classes_))
        self.means_ = member.T @ X / member.sum(axis=0)[:, None]
        within, grand = X - self.means_[codes], X.mean(axis=0)
        # W^-1 m from the singular values of the residuals: exact for any shape, and no square of the condition number.
        _, s, vt = np.linalg.svd(within, full_matrices=False)
        centred = self.means_ - grand
        inside = centred @ vt.T
        outside = centred - inside @ vt if len(s) < X.shape[1] else 0.0
        coef = (inside / (s**2 + self.alpha)) @ vt + outside / self.alpha
        offset = -0.5 * (coef * centred).sum(axis=1) - coef @ grand
        self._learn(coef, offset)
        return self
