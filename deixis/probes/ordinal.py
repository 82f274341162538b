"""Ordered classes: one direction, cut by thresholds."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, log_expit
from sklearn.utils.validation import check_is_fitted, validate_data

from deixis.probes.checks import Setting, check_alpha
from deixis.probes.classes import LinearClassifier, one_hot
from deixis.probes.row_space import plain, row_basis


class OrdinalProbe(LinearClassifier):
    """Proportional odds: ``P(y <= k) = logistic(threshold_k - w . x)``, classes in sorted order (McCullagh 1980, JRSS B 42:109).

    Minimises ``sum of log losses + alpha / 2 |w|^2``, thresholds unpenalised. All boundaries between neighbouring classes share
    one direction: what :class:`LogisticProbe` decodes and this does not is not laid out in order. With two classes it is
    :class:`LogisticProbe`. The loss is convex (Pratt 1981, JASA 76:103) and is minimised by Newton steps, in the row space.

    Args:
        alpha: Weight of the penalty, above 0.
        tol: Largest gradient entry (per item) at which the solver stops.
        max_iter: Newton steps at most.

    Attributes:
        coef_: ``(1, feature)``.
        thresholds_: ``(cls - 1,)``, rising.
        classes_: ``(cls,)``, sorted.
        n_iter_: Newton steps taken.
    """

    def __init__(self, alpha: Setting = 1.0, tol: Setting = 1e-8, max_iter: Setting = 200) -> None:
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Classes that lie in no order along any direction cannot be told apart: so the model says.
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> "OrdinalProbe":
        """Learn from ``X (item, feature)``, ``y (item,)``.

        Raises:
            ValueError: ``alpha`` is not above 0; one class only; ``X`` is not finite; the lengths differ.
            ArithmeticError: The optimum was not reached within ``max_iter`` steps.
        """
        check_alpha(self.alpha, zero=False)
        X, codes = self._checked(X, y)
        centre = X.mean(axis=0)
        rows, back = row_basis(X - centre)
        shares = np.cumsum(np.bincount(codes))[:-1] / len(codes)
        found = np.concatenate([np.zeros(rows.shape[1]), np.log(shares / (1 - shares))])
        for step in range(self.max_iter):
            self.n_iter_ = step
            gradient, hessian = _derivatives(rows, codes, found, self.alpha)
            if np.abs(gradient).max() <= self.tol * len(rows):
                break
            found = _step(rows, codes, found, self.alpha, gradient, np.linalg.solve(hessian, -gradient))
        else:
            raise ArithmeticError(f"max_iter={self.max_iter} Newton steps did not suffice; allow more, or use a larger alpha.")
        width = rows.shape[1]
        self.coef_ = (found[:width] @ back)[None]
        self.thresholds_ = found[width:] + self.coef_[0] @ centre
        return self

    def decision_function(self, X: Any) -> Float[np.ndarray, "item *cls"]:
        """With two classes ``w . x - threshold``, else the log probabilities ``(item, cls)``."""
        latent = self.latent(X)
        if len(self.classes_) == 2:
            return latent - self.thresholds_[0]
        return _log_probabilities(latent, self.thresholds_)

    def predict_proba(self, X: Any) -> Float[np.ndarray, "item cls"]:
        """Probabilities of the classes, in the order of ``classes_``; rows sum to one."""
        return np.exp(_log_probabilities(self.latent(X), self.thresholds_))

    def latent(self, X: Any) -> Float[np.ndarray, " item"]:
        """Where each item lies along the direction, in the unit of the thresholds.

        Raises:
            sklearn.exceptions.NotFittedError: ``fit`` was not called.
        """
        check_is_fitted(self)
        return validate_data(self, plain(X), reset=False, dtype=np.float64) @ self.coef_[0]


def _log_probabilities(
    latent: Float[np.ndarray, " item"], thresholds: Float[np.ndarray, " cut"]
) -> Float[np.ndarray, "item cls"]:
    """``log(logistic(upper) - logistic(lower))``, without the subtraction."""
    infinite = np.full((len(latent), 1), np.inf)
    cuts = np.hstack([-infinite, thresholds - latent[:, None], infinite])
    gap = np.concatenate([[np.inf], np.diff(thresholds), [np.inf]])
    return log_expit(cuts[:, 1:]) + log_expit(-cuts[:, :-1]) + np.log(-np.expm1(-gap))


def _loss(
    rows: Float[np.ndarray, "item axis"], codes: Int[np.ndarray, " item"], found: Float[np.ndarray, " parameter"], alpha: float
) -> float:
    width = rows.shape[1]
    if (np.diff(found[width:]) <= 0).any():
        return np.inf
    logs = _log_probabilities(rows @ found[:width], found[width:])
    return float(alpha / 2 * (found[:width] ** 2).sum() - logs[np.arange(len(codes)), codes].sum())


def _derivatives(
    rows: Float[np.ndarray, "item axis"], codes: Int[np.ndarray, " item"], found: Float[np.ndarray, " parameter"], alpha: float
) -> tuple[Float[np.ndarray, " parameter"], Float[np.ndarray, "parameter parameter"]]:
    """Gradient and Hessian of the loss in the weights, then the thresholds.

    With ``u`` and ``l`` an item's upper and lower cut, ``log p = log s(u) + log s(-l) + log(1 - exp(l - u))`` for the logistic
    function ``s``; a cut at infinity drops out.
    """
    width = rows.shape[1]
    coef, thresholds = found[:width], found[width:]
    padded = np.concatenate([[-np.inf], thresholds, [np.inf]])
    latent = rows @ coef
    upper, lower = padded[codes + 1] - latent, padded[codes] - latent
    gap = padded[codes + 1] - padded[codes]
    over = np.exp(-gap) / -np.expm1(-gap)  # 1 / (exp(gap) - 1)
    square = over / -np.expm1(-gap)
    # Thresholds that are an item's upper and lower cut.
    above = one_hot(codes, len(padded) - 1)[:, :-1]
    below = one_hot(codes, len(padded) - 1)[:, 1:]
    pull_up, pull_down = expit(-upper) + over, -expit(lower) - over
    bend_up, bend_down = expit(upper) * expit(-upper), expit(lower) * expit(-lower)
    gradient = np.concatenate([rows.T @ (pull_up + pull_down) + alpha * coef, -(pull_up @ above + pull_down @ below)])
    mixed = -rows.T @ (bend_up[:, None] * above + bend_down[:, None] * below)
    both = (above * square[:, None]).T @ below
    cuts = (above.T * (bend_up + square)) @ above + (below.T * (bend_down + square)) @ below - both - both.T
    weights = (rows.T * (bend_up + bend_down)) @ rows + alpha * np.eye(width)
    return gradient, np.block([[weights, mixed], [mixed.T, cuts]])


def _step(
    rows: Float[np.ndarray, "item axis"],
    codes: Int[np.ndarray, " item"],
    found: Float[np.ndarray, " parameter"],
    alpha: float,
    gradient: Float[np.ndarray, " parameter"],
    step: Float[np.ndarray, " parameter"],
) -> Float[np.ndarray, " parameter"]:
    """The first of the step, its half, its quarter, ... that lowers the loss as much as it should (Armijo 1966)."""
    start, slope = _loss(rows, codes, found, alpha), gradient @ step
    length = 1.0
    while length > 1e-9 and _loss(rows, codes, found + length * step, alpha) > start + 1e-4 * length * slope + 1e-13 * abs(start):
        length /= 2
    return found + length * step
