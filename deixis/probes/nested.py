"""A nested cross-validation's predictions: every penalty, every target, where they are held out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from deixis.probes.classes import one_hot
from deixis.probes.discriminant import MeanDifferenceProbe
from deixis.probes.least_squares import Division, Part, least_squares
from deixis.probes.logistic import LogisticProbe

Targets = Sequence[Shaped[np.ndarray, " item"]]

_CHUNK = 30_000_000
"""Numbers that one chunk of training subsets may hold at once (240 MB)."""


def ridge(
    division: Division, part: Part, targets: Targets, alphas: Sequence[float]
) -> Float[np.ndarray, "target alpha subset item"]:
    """What :class:`RidgeProbe` predicts on standardised features; targets share the factorisations."""
    fitted, _, level = least_squares(division, part, np.stack(targets, axis=1), alphas)
    return np.moveaxis(fitted + level[:, None, :], -1, 0)


def discriminant(
    division: Division, part: Part, targets: Targets, alphas: Sequence[float]
) -> Int[np.ndarray, "target alpha subset item"]:
    """Class codes that :class:`DiscriminantProbe` predicts on standardised features; targets share the factorisations.

    Penalised discriminant analysis by way of ridge regression on the classes' indicators (Hastie, Buja and Tibshirani 1995).
    """
    members = [one_hot(target, int(target.max()) + 1) for target in targets]
    return np.stack([scores.argmax(axis=-1) for scores in _discriminants(division, part, members, alphas)])


def _discriminants(
    division: Division, part: Part, members: Sequence[Float[np.ndarray, "item cls"]], alphas: Sequence[float]
) -> Iterator[Float[np.ndarray, "alpha subset item cls"]]:
    """The classes' scores for each target in turn."""
    fitted, residual, _ = least_squares(division, part, np.concatenate(members, axis=1), alphas)
    ends = np.cumsum([member.shape[1] for member in members])[:-1]
    blocks = zip(np.split(fitted, ends, axis=-1), np.split(residual, ends, axis=-1), members, strict=True)
    for f, r, m in blocks:
        yield _class_scores(f, r, m, part.weight)


def ridge_scores(
    division: Division,
    part: Part,
    target: Shaped[np.ndarray, " item"],
    n_classes: int,  # noqa: ARG001 - values have none
    alphas: Sequence[float],
) -> Float[np.ndarray, "alpha subset item"]:
    """The predicted values of one target."""
    return ridge(division, part, [target], alphas)[0]


def discriminant_scores(
    division: Division, part: Part, target: Int[np.ndarray, " item"], n_classes: int, alphas: Sequence[float]
) -> Float[np.ndarray, "alpha subset item cls"]:
    """What tells the classes apart, as a log probability but for its scale; minus infinity for a class that was not seen."""
    scores = next(_discriminants(division, part, [one_hot(target, n_classes)], alphas))
    # The within scatter is a sum over items: times their number it is a covariance's inverse, alike for all training sets.
    return scores * part.weight.sum(axis=1)[:, None, None]


def _class_scores(
    fitted: Float[np.ndarray, "alpha subset item cls"],
    residual: Float[np.ndarray, "alpha subset item cls"],
    member: Float[np.ndarray, "item cls"],
    weight: Float[np.ndarray, "subset item"],
) -> Float[np.ndarray, "alpha subset item cls"]:
    """Discriminant scores from the ridge fit of the indicators.

    With ``A`` the total scatter plus the penalty, ``N`` the class sizes and ``M`` the centred class means, the fit gives
    ``X A^-1 M' N`` and ``G = M A^-1 M'``; the within scatter is ``A - M' N M``, so that by Woodbury's identity
    ``X W^-1 M' = X A^-1 M' (1 - N G)^-1`` and ``M W^-1 M' = G (1 - N G)^-1``. Where the classes separate and the penalty is
    small, ``1 - N G`` is all but singular: it is summed from the residuals, not subtracted. A class without training items is
    never chosen.
    """
    size = weight @ member
    inverse = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    between = (member.T * weight[:, None, :]) @ fitted
    absent = (size == 0)[:, :, None] * np.eye(member.shape[1])
    shares = (size / size.sum(axis=1, keepdims=True))[:, :, None] * (size > 0)[:, None, :]
    left = np.linalg.inv(member.T @ residual * inverse[:, None, :] + shares + absent)
    scores = fitted @ (inverse[:, :, None] * left)
    gram = inverse[:, :, None] * between * inverse[:, None, :]
    scores -= 0.5 * np.diagonal(gram @ left, axis1=-2, axis2=-1)[..., None, :]
    return np.where(size[:, None, :] > 0, scores, -np.inf)


def estimator_by_estimator(make: Callable[[float], Any]) -> Callable[..., np.ndarray]:
    """Predictions of any classifier on standardised features, one fit after the other, weights as repeated items."""

    def predict(
        division: Division, part: Part, targets: Targets, alphas: Sequence[float]
    ) -> Int[np.ndarray, "target alpha subset item"]:
        predicted = np.empty((len(targets), len(alphas), len(part.weight), len(division.X)), dtype=np.int64)
        for s, weight in enumerate(part.weight):
            Z = (division.X - part.mean[s]) / part.scale[s]
            rows = np.repeat(np.arange(len(Z)), weight.astype(int))
            for t, target in enumerate(targets):
                # With one class left there is nothing to fit and nothing else to answer.
                alone = len(np.unique(target[rows])) == 1
                for a, alpha in enumerate(alphas):
                    predicted[t, a, s] = target[rows[0]] if alone else make(alpha).fit(Z[rows], target[rows]).predict(Z)
        return predicted

    return predict


@dataclass(frozen=True, kw_only=True)
class Method:
    """How a probe is fitted inside cross-validation."""

    kind: str
    """Of target: ``classification`` or ``regression``."""
    predict: Callable[..., np.ndarray]
    scores: Callable[..., np.ndarray] | None = None
    """What a code length is made from; None where the probe has no distribution to offer."""
    penalised: bool = True


METHODS: dict[str, Method] = {
    "ridge": Method(kind="regression", predict=ridge, scores=ridge_scores),
    "discriminant": Method(kind="classification", predict=discriminant, scores=discriminant_scores),
    "logistic": Method(kind="classification", predict=estimator_by_estimator(LogisticProbe)),
    "mean_difference": Method(
        kind="classification", predict=estimator_by_estimator(lambda _: MeanDifferenceProbe()), penalised=False
    ),
}
"""Probes by name. A new one is a new entry; the first of a kind is that kind's default."""


def nested_predictions(
    division: Division, method: Method, targets: Targets, alphas: Sequence[float]
) -> Shaped[np.ndarray, "target alpha fold item"]:
    """Predictions of each item with its own fold and one more fold left out.

    Entry ``[..., f, i]`` comes from a fit that saw neither fold ``f`` nor the fold of item ``i``. Where the two are the same fold
    it is the outer prediction; the others choose the penalty (or the layer) for fold ``f`` without having seen it.
    """
    source = division.table[:, division.fold]
    n, width = division.X.shape
    columns = sum(1 if target.dtype.kind == "f" else int(target.max()) + 1 for target in targets)
    step = max(1, _CHUNK // (min(n, width) ** 2 + n * (len(alphas) * columns + (width if n < width else 0))))
    found = None
    for start in range(0, len(division.keep), step):
        part = division.part(slice(start, start + step))
        predicted = method.predict(division, part, targets, alphas)
        if found is None:
            found = np.empty((*predicted.shape[:2], *source.shape), dtype=predicted.dtype)
        fold, item = np.nonzero((source >= start) & (source < start + step))
        found[:, :, fold, item] = predicted[:, :, source[fold, item] - start, item]
    if found is None:
        raise ValueError("there are no folds to predict.")
    return found
