"""Linear probes in a row space: the same factorisation for every penalty and every target.

A solver takes a row space, targets ``(subset, train, target, output)`` and penalties, and yields for each penalty, in order, the
weights along the axes ``(subset, axis, target, output)`` and the intercepts ``(subset, target, output)``. Outputs are one value,
or one score per class, of which the highest wins.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from deixis.probes.multinomial import logistic
from deixis.probes.row_space import Array, RowSpace, Split, like, namespace, plain, row_space, standardised
from deixis.probes.tridiagonal import LARGE, Turned, tridiagonal_ridge

Solution = tuple[Float[Array, "subset axis target output"], Float[Array, "subset target output"]]


def ridge(space: RowSpace, Y: Float[Array, "subset train target output"], alphas: Sequence[float]) -> Iterator[Solution]:
    """Minimises ``sum_i w_i |y_i - z_i B - b|^2 + alpha |B|^2``: ``Z'WY / (length + alpha)`` along each axis."""
    level, cross = _moments(space, Y)
    for alpha in alphas:
        yield cross / (space.length + alpha)[:, :, None, None], level


def mean_difference(
    space: RowSpace, member: Float[Array, "subset train target output"], alphas: Sequence[float]
) -> Iterator[Solution]:
    """The nearest class mean, which has no penalty."""
    _, cross = _moments(space, member)
    size = _sizes(space, member)
    means = cross * _inverse(size)[:, None]
    for _ in alphas:
        yield means, _unless_absent(size, -0.5 * (means**2).sum(1))


def discriminant(
    space: RowSpace, member: Float[Array, "subset train target output"], alphas: Sequence[float]
) -> Iterator[Solution]:
    """Penalised discriminant analysis by way of ridge regression on the classes' indicators (Hastie, Buja and Tibshirani 1995).

    With ``A`` the total scatter plus the penalty, ``N`` the class sizes and ``M`` the centred class means, the within scatter is
    ``A - M' N M``, so that by Woodbury's identity ``W^-1 M' = A^-1 M' (1 - N G)^-1`` with ``G = M A^-1 M'``. Where the classes
    separate and the penalty is small, ``1 - N G`` is all but singular: it is the residuals' share in each class, and summed from
    these, not subtracted. A class without training items is never chosen.
    """
    xp = namespace(member)
    _, cross = _moments(space, member)
    size = _sizes(space, member)
    inverse = _inverse(size)
    n_classes = member.shape[-1]
    length = space.length[:, None, :]
    penalty = like(np.asarray(alphas, dtype=np.float64), member)[None, :, None]
    over = xp.where(length > 0, 1 / xp.where(length > 0, length, 1), 0)
    # Sums over the axes of products of two classes, for all penalties in one product of matrices.
    pairs = (cross[..., :, None] * cross[..., None, :]).reshape(*cross.shape[:2], -1)
    inside, between, residual = (
        (weights @ pairs).reshape(len(pairs), -1, *size.shape[1:], n_classes)
        for weights in (over, 1 / (length + penalty), over * (penalty / (length + penalty)))
    )
    unit = like(np.eye(n_classes), member)
    share = size / size.sum(-1)[..., None]
    # Indicators have covariance diag(N) - N N' / n; what the axes do not hold of it no penalty changes.
    outside = size[..., None] * (unit - share[..., None, :]) - inside[:, 0]
    ends = share[..., None] * (size > 0)[..., None, :] + unit * (size == 0)[..., None]
    left = xp.linalg.inv((residual + outside[:, None]) * inverse[:, None, :, None, :] + ends[:, None])
    mixed = inverse[:, None, :, :, None] * left
    offset = -0.5 * (inverse[:, None, :, :, None] * (between @ mixed)).diagonal(0, -2, -1)
    for a, alpha in enumerate(alphas):
        shrunk = cross / (space.length + alpha)[:, :, None, None]
        coef = sum(shrunk[..., k, None] * mixed[:, None, a, :, k] for k in range(n_classes))
        yield coef, _unless_absent(size, offset[:, a])


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A probe that is fitted in a row space."""

    target: str
    """``regression`` or ``classification``."""
    solve: Callable[[RowSpace, Any, Sequence[float]], Iterator[Solution]]
    penalised: bool = True


KINDS: dict[str, Kind] = {
    "ridge": Kind(target="regression", solve=ridge),
    "discriminant": Kind(target="classification", solve=discriminant),
    "logistic": Kind(target="classification", solve=logistic),
    "mean_difference": Kind(target="classification", solve=mean_difference, penalised=False),
}
"""Probes by name; the first of each kind of target is its default."""


def held_out(
    kind: str,
    X: Float[Array, "item feature"],
    weight: Float[np.ndarray, "subset item"],
    targets: Shaped[np.ndarray, "target item"],
    alphas: Sequence[float],
) -> Shaped[np.ndarray, "target alpha subset item"]:
    """Predictions of the items that each training set gives no weight; those of the others are left 0.

    Args:
        kind: A name in ``KINDS``.
        X: Features; standardised on each training set.
        weight: How often each item counts in each training set.
        targets: Values, or class codes ``0..n-1``.
        alphas: Penalties.
    """
    found = np.zeros(
        (len(alphas), len(weight), weight.shape[1], len(targets)), dtype=float if KINDS[kind].target == "regression" else np.int64
    )
    coded = encoded(kind, targets)
    for part, split, space, solutions in fits(kind, X, weight, coded, alphas):
        for a, (coef, intercept) in enumerate(solutions):
            split.put(predictions(kind, space, coef, intercept)[None], found[a : a + 1, part])
    return np.moveaxis(found, -1, 0)


def encoded(kind: str, targets: Shaped[np.ndarray, "target item"]) -> Float[np.ndarray, "item target output"]:
    """What a solver is given for each item: its value, or 1 at its class."""
    if KINDS[kind].target == "regression":
        return np.asarray(targets.T[:, :, None], dtype=np.float64)
    return np.eye(int(targets.max()) + 1)[targets.T]


def fits(
    kind: str,
    X: Float[Array, "item feature"],
    weight: Float[np.ndarray, "subset item"],
    coded: Float[np.ndarray, "item target output"],
    alphas: Sequence[float],
) -> Iterator[tuple[slice, Split, RowSpace | Turned, Iterator[Solution]]]:
    """The solutions of every penalty, for as many training sets at a time as memory allows, and the space that they live in."""
    Y = like(coded, X)
    for part, split, items in standardised(X, weight, per_item=(4 + coded.shape[-1]) * coded[0].size):
        given = Y[like(split.rows, X)]
        large = isinstance(items.span, np.ndarray) and min(items.span.shape[1:]) >= LARGE
        solved = tridiagonal_ridge(items, given, alphas) if kind == "ridge" and large else None
        if solved is None:
            space = row_space(items)
            yield part, split, space, KINDS[kind].solve(space, given, alphas)
        else:
            yield part, split, *solved


def predictions(
    kind: str,
    space: RowSpace | Turned,
    coef: Float[Array, "subset axis target output"],
    intercept: Float[Array, "subset target output"],
) -> Shaped[np.ndarray, "subset test target"]:
    """Values, or codes of the classes with the highest score (the first of several)."""
    flat = space.predict(coef.reshape(*coef.shape[:2], -1))
    scores = flat.reshape(*flat.shape[:2], *coef.shape[2:]) + intercept[:, None]
    return plain(scores[..., 0] if KINDS[kind].target == "regression" else scores.argmax(-1))


def _moments(
    space: RowSpace, Y: Float[Array, "subset train target output"]
) -> tuple[Float[Array, "subset target output"], Float[Array, "subset axis target output"]]:
    """Weighted means of the targets, and their products with the coordinates."""
    flat = Y.reshape(*Y.shape[:2], -1)
    weight = space.weight[:, :, None]
    level = (weight * flat).sum(1) / weight.sum(1)
    cross = space.train.swapaxes(1, 2) @ (weight * (flat - level[:, None]))
    shape = Y.shape[2:]
    return level.reshape(-1, *shape), cross.reshape(*cross.shape[:2], *shape)


def _sizes(space: RowSpace, member: Float[Array, "subset train target output"]) -> Float[Array, "subset target output"]:
    flat = member.reshape(*member.shape[:2], -1)
    return (space.weight[:, None, :] @ flat)[:, 0].reshape(-1, *member.shape[2:])


def _inverse(size: Float[Array, "subset target output"]) -> Float[Array, "subset target output"]:
    xp = namespace(size)
    return xp.where(size > 0, 1 / xp.where(size > 0, size, 1), 0)


def _unless_absent(
    size: Float[Array, "subset target output"], offset: Float[Array, "subset target output"]
) -> Float[Array, "subset target output"]:
    return namespace(size).where(size > 0, offset, -np.inf)
