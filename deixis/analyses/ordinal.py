"""Fits of a model's term distributions to distance: ordered (cumulative logit) and unordered (multinomial logit)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

_STEPS = 100
_SMALLEST_GAP = 1e-6


@dataclass(frozen=True)
class OrdinalFit:
    """The cumulative logit model ``P(term <= k | x) = sigmoid(threshold_k - slope x)`` (McCullagh 1980)."""

    slope: float
    """Log-odds of a later term per unit of x; NaN without spread in x."""
    thresholds: Float[np.ndarray, " boundary"]
    deviance: float
    """Mean ``KL(shares || fitted)`` over items, in nats, weighted."""
    explained: float
    """Share of the information about the terms that x accounts for: 1 - deviance over that of a fit without x (the R2 of Cameron
    and Windmeijer 1997 for the Kullback-Leibler divergence, with distributions for counts). NaN where shares do not vary."""


def fit_ordinal(
    x: Float[np.ndarray, " item"], shares: Float[np.ndarray, "item term"], weights: Float[np.ndarray, " item"] | None = None
) -> OrdinalFit:
    """Fit the cumulative logit model to distributions over ordered terms by least Kullback-Leibler divergence.

    With one-hot shares this is the maximum likelihood of the proportional-odds model. Two terms make it the logistic regression.

    Args:
        x: Of each item, such as its distance.
        shares: Rows sum to 1; the columns are in the order of the terms.
        weights: Of each item; None for 1 each.
    """
    weights = np.ones(len(x)) if weights is None else weights
    marginal = weights @ shares / weights.sum()
    spread = np.ptp(x[weights > 0]) if (weights > 0).any() else 0.0
    cumulative = np.clip(np.cumsum(marginal)[:-1], 1e-9, 1 - 1e-9)
    start = np.log(cumulative / (1 - cumulative))
    without = _divergence(shares, np.broadcast_to(marginal, shares.shape), weights)
    if spread == 0:
        return OrdinalFit(float("nan"), start, without, float("nan"))
    centre = float(weights @ x / weights.sum())
    scale = float(spread)
    found = _minimise(start, (x - centre) / scale, shares, weights)
    thresholds, slope = _ordered(found[:-1]), float(found[-1]) / scale
    deviance = _divergence(shares, _probabilities(thresholds, found[-1] * (x - centre) / scale), weights)
    explained = 1 - deviance / without if without > 1e-12 else float("nan")
    return OrdinalFit(slope, thresholds + slope * centre, deviance, explained)


def _ordered(free: Float[np.ndarray, " boundary"]) -> Float[np.ndarray, " boundary"]:
    """Thresholds from the first and the logarithms of the gaps between them, which keeps them in order."""
    return np.cumsum(np.concatenate([free[:1], np.exp(free[1:]) + _SMALLEST_GAP]))


def _probabilities(
    thresholds: Float[np.ndarray, " boundary"], shift: Float[np.ndarray, " item"]
) -> Float[np.ndarray, "item term"]:
    from scipy.special import expit

    below = expit(thresholds - shift[:, None])
    padded = np.concatenate([np.zeros((len(shift), 1)), below, np.ones((len(shift), 1))], axis=1)
    return np.maximum(np.diff(padded, axis=1), 1e-12)


def _minimise(
    start: Float[np.ndarray, " boundary"],
    x: Float[np.ndarray, " item"],
    shares: Float[np.ndarray, "item term"],
    weights: Float[np.ndarray, " item"],
) -> Float[np.ndarray, " parameter"]:
    from scipy.optimize import minimize

    free = np.concatenate([start[:1], np.log(np.maximum(np.diff(start), 1e-3)), [0.0]])

    def loss(parameters: Float[np.ndarray, " parameter"]) -> tuple[float, Float[np.ndarray, " parameter"]]:
        thresholds, slope = _ordered(parameters[:-1]), parameters[-1]
        fitted = _probabilities(thresholds, slope * x)
        below = np.cumsum(fitted, axis=1)[:, :-1]
        density = below * (1 - below)
        # d loss / d P(term <= k): the share of term k pulls one way, that of the next the other.
        ratio = weights[:, None] * shares / fitted / weights.sum()
        pull = -(ratio[:, :-1] - ratio[:, 1:]) * density
        by_threshold = pull.sum(axis=0)
        steps = np.cumsum(by_threshold[::-1])[::-1]  # a gap moves every threshold behind it
        gradient = np.concatenate([steps[:1], steps[1:] * np.exp(parameters[1:-1]), [-(pull.sum(axis=1) @ x)]])
        return -float((weights[:, None] * shares * np.log(fitted)).sum() / weights.sum()), gradient

    return np.asarray(minimize(loss, free, jac=True, method="BFGS", options={"maxiter": _STEPS, "gtol": 1e-8}).x)


def nominal_explained(x: Float[np.ndarray, " item"], shares: Float[np.ndarray, "item term"]) -> float:
    """What :attr:`OrdinalFit.explained` is for the multinomial logit, in which each term has a slope of its own.

    For comparison with the ordinal fit. For two terms both are the logistic regression; for three they are different curves and
    neither contains the other, so that only a clear gap between them says that the order of the terms does not hold.
    """
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    if np.ptp(x) == 0:
        return float("nan")
    scaled = (x - x.mean()) / np.ptp(x)
    design = np.stack([np.ones(len(x)), scaled], axis=1)
    marginal = shares.mean(axis=0)
    without = _divergence(shares, np.broadcast_to(marginal, shares.shape), np.ones(len(x)))
    if without <= 1e-12:
        return float("nan")

    def loss(flat: Float[np.ndarray, " parameter"]) -> tuple[float, Float[np.ndarray, " parameter"]]:
        logs = log_softmax(design @ flat.reshape(2, -1), axis=1)
        return -float((shares * logs).sum() / len(x)), (design.T @ (np.exp(logs) - shares) / len(x)).ravel()

    start = np.concatenate([np.log(np.maximum(marginal, 1e-9)), np.zeros(shares.shape[1])])
    best = minimize(loss, start, jac=True, method="BFGS", options={"maxiter": _STEPS, "gtol": 1e-8}).x
    fitted = np.exp(log_softmax(design @ best.reshape(2, -1), axis=1))
    return 1 - _divergence(shares, fitted, np.ones(len(x))) / without


def _divergence(
    shares: Float[np.ndarray, "item term"], fitted: Float[np.ndarray, "item term"], weights: Float[np.ndarray, " item"]
) -> float:
    from scipy.special import rel_entr

    return float(weights @ rel_entr(shares, fitted).sum(axis=1) / weights.sum())
