"""What travels with a target: natural cubic splines of it, and probes of what it leaves unexplained."""

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from deixis.probes.classes import one_hot
from deixis.probes.nested import Division, Method
from deixis.probes.row_space import FLAT
from deixis.probes.scores import METRICS, SCORES

IDENTIFIABLE = 0.01
"""Share of the target's variance that nuisances must leave, for their residual to be worth decoding."""
_FEWEST_KNOTS, _MOST_KNOTS, _GROUPS_PER_KNOT = 3, 5, 10


def n_knots(n_groups: int) -> int:
    """Knots of each nuisance's spline: 3 to 5, as Harrell advises (*Regression Modeling Strategies*, 2nd ed., section 2.4.6)."""
    return int(np.clip(n_groups // _GROUPS_PER_KNOT, _FEWEST_KNOTS, _MOST_KNOTS))


def spline_basis(
    values: Float[np.ndarray, "item nuisance"], seen: Float[np.ndarray, "train nuisance"], knots: int
) -> Float[np.ndarray, "item column"]:
    """Natural cubic splines of each nuisance, added up: no products between nuisances.

    Knots lie at quantiles of ``seen``; beyond the outer ones the splines are straight lines (Hastie, Tibshirani and Friedman,
    *The Elements of Statistical Learning*, 2nd ed., eq. 5.4 and 5.5). A nuisance with two distinct values gives one column, a
    constant one none.
    """
    columns = [column for v, s in zip(values.T, seen.T, strict=True) for column in _natural_spline(v, s, knots)]
    return np.stack(columns, axis=1) if columns else np.empty((len(values), 0))


def _natural_spline(values: Float[np.ndarray, " item"], seen: Float[np.ndarray, " train"], knots: int) -> list[np.ndarray]:
    span = np.ptp(seen)
    if not span > 0:
        return []
    x, known = (values - seen.min()) / span, (seen - seen.min()) / span
    at = np.unique(np.quantile(np.unique(known), np.linspace(0, 1, knots)))
    last = at[-1]

    def bend(knot: float) -> Float[np.ndarray, " item"]:
        return (np.maximum(x - knot, 0) ** 3 - np.maximum(x - last, 0) ** 3) / (last - knot)

    return [x, *(bend(knot) - bend(at[-2]) for knot in at[:-2])]


def unexplained(
    values: Float[np.ndarray, "item column"], nuisances: Float[np.ndarray, "item nuisance"], train: np.ndarray, knots: int
) -> Float[np.ndarray, "item column"]:
    """What least squares on the nuisances' splines leaves of ``values``, the fit made on the training items alone."""
    basis = spline_basis(nuisances, nuisances[train], knots)
    design = np.column_stack([np.ones(len(values)), basis])
    coef = np.linalg.lstsq(design[train], values[train], rcond=1e-10)[0]
    return values - design @ coef


def residual_scores(
    division: Division,
    method: Method,
    target: Shaped[np.ndarray, " item"],
    nuisances: Float[np.ndarray, "item nuisance"],
    alphas: tuple[float, ...],
    knots: int,
) -> Float[np.ndarray, " metric"]:
    """Scores of the same nested cross-validation for what the nuisances leave of the target; NaN where they leave nothing.

    The probe sees the features alone, as always: the nuisances' splines, fitted anew on every training set, change what it is
    asked for. Values: the probe learns and predicts what the splines leave of the target. Classes: the probe is a penalised
    discriminant whose class means are those at equal nuisances (partial effects of the classes on the features in a regression
    on classes and splines, as in an analysis of covariance); what the nuisances do to the features counts as noise. The truth
    stays the class.

    Not identifiable, and so NaN: the held-out residual of the target (for classes of their indicators) has less than
    :data:`IDENTIFIABLE` of its variance.
    """
    taken = _Taken(division, method, target, nuisances, alphas, knots)
    return taken.scores() if taken.identifiable() else np.full(len(METRICS[method.kind]), np.nan)


class _Taken:
    """The nested predictions of one target with nuisances taken out."""

    def __init__(
        self,
        division: Division,
        method: Method,
        target: Shaped[np.ndarray, " item"],
        nuisances: Float[np.ndarray, "item nuisance"],
        alphas: tuple[float, ...],
        knots: int,
    ) -> None:
        self.division, self.method, self.target = division, method, target
        self.nuisances, self.alphas, self.knots = nuisances, alphas, knots
        self.values = target[:, None] if method.kind == "regression" else one_hot(target, int(target.max()) + 1)

    def left(self, subset: int) -> Float[np.ndarray, "item column"]:
        train = self.division.keep[subset][self.division.fold]
        return unexplained(self.values, self.nuisances, train, self.knots)

    def identifiable(self) -> bool:
        fold, error = self.division.fold, np.empty_like(self.values)
        for number in range(int(fold.max()) + 1):
            own = fold == number
            error[own] = self.left(self.division.table[number, number])[own]
        return bool((error**2).sum() >= IDENTIFIABLE * ((self.values - self.values.mean(axis=0)) ** 2).sum())

    def scores(self) -> Float[np.ndarray, " metric"]:
        source = self.division.table[:, self.division.fold]
        regression = self.method.kind == "regression"
        predicted = np.empty((len(self.alphas), *source.shape), dtype=float if regression else int)
        truth = np.empty(source.shape, dtype=predicted.dtype)
        for subset in range(len(self.division.keep)):
            training = self.division.training(np.array([subset]))
            if regression:
                wanted = self.left(subset)[:, 0]
                found = self.method.predict(self.division.X, training, [wanted], self.alphas)[0, :, 0]
            else:
                wanted = self.target
                found = adjusted_classes(self.division.X, training[0] > 0, self.target, self.nuisances, self.alphas, self.knots)
            where, item = np.nonzero(source == subset)
            predicted[:, where, item], truth[where, item] = found[:, item], wanted[item]
        return self._chosen(predicted, truth)

    def _chosen(
        self, predicted: Shaped[np.ndarray, "alpha fold item"], truth: Shaped[np.ndarray, "fold item"]
    ) -> Float[np.ndarray, " metric"]:
        """Scores of the held-out predictions, each fold's penalty chosen on the other folds."""
        fold, metrics, items = self.division.fold, METRICS[self.method.kind], np.arange(len(self.target))
        best = np.empty(len(truth), dtype=int)
        for number in range(len(truth)):
            others = (fold != number) * self.division.weight
            graded = SCORES[metrics[0]](predicted[:, number], truth[number], others)
            best[number] = len(self.alphas) - 1 - graded[::-1].argmax()
        held_out, wanted = predicted[best[fold], fold, items], truth[fold, items]
        return np.array([float(SCORES[metric](held_out, wanted, self.division.weight)) for metric in metrics])


def adjusted_classes(
    X: Float[np.ndarray, "item feature"],
    train: Bool[np.ndarray, " item"],
    codes: Int[np.ndarray, " item"],
    nuisances: Float[np.ndarray, "item nuisance"],
    alphas: tuple[float, ...],
    knots: int,
) -> Int[np.ndarray, "alpha item"]:
    """Classes that a penalised discriminant predicts from class means at equal nuisances; see :func:`residual_scores`."""
    mean, scale = X[train].mean(axis=0), X[train].std(axis=0)
    Z = (X - mean) / np.where(scale > FLAT * np.abs(X).max(axis=0), scale, np.inf)
    basis = spline_basis(nuisances, nuisances[train], knots)
    member = one_hot(codes, int(codes.max()) + 1)
    design = np.column_stack([member, basis - basis[train].mean(axis=0)])
    effect = np.linalg.lstsq(design[train], Z[train], rcond=1e-10)[0][: member.shape[1]]
    present = member[train].any(axis=0)
    effect -= effect[present].mean(axis=0)
    rest = Z[train] - effect[codes[train]]
    centre = rest.mean(axis=0)
    # (W + alpha)^-1 from the eigenvalues of the smaller Gram matrix of what is left of the training items.
    lengths, axes = _axes(rest - centre)
    inside = effect @ axes
    outside = effect - inside @ axes.T
    found = np.empty((len(alphas), len(Z)), dtype=int)
    for a, alpha in enumerate(alphas):
        coef = (inside / (lengths + alpha)) @ axes.T + outside / alpha
        scores = (Z - centre) @ coef.T - 0.5 * (coef * effect).sum(axis=1)
        found[a] = np.where(present, scores, -np.inf).argmax(axis=1)
    return found


def _axes(rows: Float[np.ndarray, "train feature"]) -> tuple[Float[np.ndarray, " axis"], Float[np.ndarray, "feature axis"]]:
    """Squared singular values and right singular vectors of what is not rounding."""
    if rows.shape[1] <= len(rows):
        squares, axes = np.linalg.eigh(rows.T @ rows)
        return np.maximum(squares, 0.0), axes
    squares, left = np.linalg.eigh(rows @ rows.T)
    real = squares > squares.max(initial=0.0) * 1e-12
    return squares[real], rows.T @ (left[:, real] / np.sqrt(squares[real]))
