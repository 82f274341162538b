"""Nested, grouped cross-validation of a probe with its controls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int, Shaped
from threadpoolctl import threadpool_limits

from deixis.probes.checks import NotEnoughDataError, check_alpha, check_finite, check_option
from deixis.probes.code_length import code_length
from deixis.probes.fit_many import ALPHAS as ALPHAS
from deixis.probes.nested import METHODS, Division
from deixis.probes.nuisances import n_knots, residual_scores, spline_basis
from deixis.probes.power import warn_of_few
from deixis.probes.procedure import ORDER_STREAM, Procedure, interval
from deixis.probes.scores import ERRORS, METRICS, advantage, chance_of

if TYPE_CHECKING:
    import pandas as pd

_FEWEST_FOLDS = 3


@dataclass(frozen=True, kw_only=True)
class ProbeScores:
    """What a probe decodes on items it has not seen, beside what its controls reach."""

    kind: str
    """``classification`` or ``regression``."""
    probe: str
    metrics: tuple[str, ...]
    score: Float[np.ndarray, " metric"]
    low: Float[np.ndarray, " metric"]
    """Lower end of the bootstrap interval; NaN if it was not run."""
    high: Float[np.ndarray, " metric"]
    chance: Float[np.ndarray, " metric"]
    controls: Float[np.ndarray, "control metric"]
    """Score of each draw of the control task."""
    draws: Float[np.ndarray, "draw metric"]
    """Score of each bootstrap draw."""
    truth: Shaped[np.ndarray, " item"]
    predicted: Shaped[np.ndarray, " item"]
    """Made for each item by a probe that saw no item of its fold."""
    fold: Int[np.ndarray, " item"]
    alphas: Float[np.ndarray, " fold"]
    """Penalty chosen for each fold on the other folds."""
    inner: Float[np.ndarray, "fold metric"]
    """Score of that choice on the other folds, from probes that never saw the fold: what a layer may be chosen by."""
    permuted: Float[np.ndarray, "permutation metric"]
    """Score of each exchange of the labels between groups."""
    nuisance: Float[np.ndarray, " metric"]
    """Score from the nuisances alone; NaN if there were none."""
    residual: Float[np.ndarray, " metric"]
    """Score once the nuisances are taken out; NaN if there were none, or if they leave too little ("not identifiable")."""
    bits: float
    """Online code length in bits per item; NaN if it was not asked for."""
    baseline_bits: float
    """The code length of knowing nothing."""
    n_items: int
    n_groups: int

    @property
    def p_value(self) -> Float[np.ndarray, " metric"]:
        """Share of permutations that score as well; NaN if none were run. Of this probe alone: not corrected for other layers."""
        return p_values(self.metrics, self.score, self.permuted)

    @property
    def control(self) -> Float[np.ndarray, " metric"]:
        """Mean score of the control task; NaN if it was not run."""
        return self.controls.mean(axis=0) if len(self.controls) else np.full(len(self.metrics), np.nan)

    @property
    def selectivity(self) -> Float[np.ndarray, " metric"]:
        """Score less control (for errors: control less score); NaN if the control was not run."""
        return np.array([advantage(m, s, c) for m, s, c in zip(self.metrics, self.score, self.control, strict=True)])

    def to_frame(self) -> "pd.DataFrame":
        """One row per metric."""
        import pandas as pd

        columns = {"metric": self.metrics, "score": self.score, "low": self.low, "high": self.high, "chance": self.chance}
        columns |= {"control": self.control, "selectivity": self.selectivity, "p_value": self.p_value}
        columns |= {"nuisance": self.nuisance, "residual": self.residual, "bits": self.bits}
        return pd.DataFrame(columns | {"n_items": self.n_items, "n_groups": self.n_groups})


def p_values(
    metrics: tuple[str, ...], score: Float[np.ndarray, " metric"], permuted: Float[np.ndarray, "permutation metric"]
) -> Float[np.ndarray, " metric"]:
    """``(1 + permutations at least as good) / (1 + permutations)`` (Phipson and Smyth 2010, eq. 2); NaN without permutations."""
    if not len(permuted):
        return np.full(len(metrics), np.nan)
    sign = np.array([-1.0 if metric in ERRORS else 1.0 for metric in metrics])
    # Equal scores differ by rounding; a tie counts against the score.
    as_good = sign * permuted >= sign * score - 1e-9
    return (1 + as_good.sum(axis=0)) / (1 + len(permuted))


def cross_validate_probe(
    X: Float[np.ndarray, "item feature"],
    y: Shaped[np.ndarray, " _"] | Sequence[Any],
    groups: Shaped[np.ndarray, " _"] | Sequence[Any],
    *,
    kind: str | None = None,
    probe: str | None = None,
    types: Shaped[np.ndarray, " _"] | Sequence[Any] | None = None,
    nuisances: Float[np.ndarray, "_ nuisance"] | None = None,
    n_folds: int = 5,
    alphas: Sequence[float] = ALPHAS,
    n_controls: int = 20,
    n_permutations: int = 200,
    n_bootstrap: int = 200,
    n_orders: int = 5,
    level: float = 0.95,
    seed: int = 0,
) -> ProbeScores:
    """Score a probe on held-out groups, its penalty chosen without them.

    Groups are dealt into folds and never split. For each fold the penalty is the one that does best on the other folds, each
    predicted by a probe that saw neither it nor the test fold (ties go to the strongest penalty). Features are standardised on
    each training set, constant ones left out. Scores are taken over the pooled held-out predictions.

    *Control task* (Hewitt and Liang 2019, arXiv 1909.03368): the whole procedure with one random label or value per type, drawn
    from the target's own distribution, ``n_controls`` times.

    *Permutation p-value*: the whole procedure with the labels exchanged between groups, all items of a group together; the
    exchange keeps the stratification of the folds, so that the test is exact (see :func:`~deixis.probes.permutations.permuted`).
    Where scores tie, as balanced accuracies do, p is too large rather than too small.

    *Nuisances*: the score from natural cubic splines of the nuisances alone, and the score once their splines, fitted inside
    each training set, are taken out (see :func:`~deixis.probes.nuisances.residual_scores`).

    *Online code length* (Voita and Titov 2020, arXiv 2003.12298): see :func:`~deixis.probes.code_length.code_length`.

    *Interval*: the whole procedure again on groups drawn with replacement, folds dealt anew, copies of a group always together.
    A draw holds fewer distinct groups than the data, so its probes are trained on less and score lower; the draws are therefore
    shifted to have their mean at the score before their quantiles are taken, and the ends are kept within the metric's range.
    In simulations (60 groups, 128 features) 95 % intervals covered the expected score in 95-100 % of data sets, unshifted ones in
    46-100 %: they err on the wide side.

    Args:
        X: Features, used in float64.
        y: Class labels or values.
        groups: Items of a group are never on both sides of a division.
        kind: ``classification`` or ``regression``; None: regression for floating-point ``y``, else classification.
        probe: A name in ``METHODS``; None: ``discriminant`` for classes, ``ridge`` for values. Both are in closed form.
            ``logistic`` is fitted one penalty and fold at a time: with it a bootstrap of 200 draws takes minutes.
        types: Type of each item for the control task, such as shape and colour of the figure shown; None runs no control task.
        nuisances: What travels with the target in the data, a column each, such as the object's height in the picture.
        n_folds: At least 3, at most the number of groups.
        alphas: Penalties to choose from, above 0.
        n_controls: Draws of the control task; 0 for none.
        n_permutations: Exchanges of the labels; 0 for none. p is at least ``1 / (n_permutations + 1)``.
        n_bootstrap: Draws of the bootstrap; 0 for none.
        n_orders: Orders of the groups over which the code length is averaged; 0 for none.
        level: Of the interval.
        seed: Of folds, controls and bootstrap.

    Returns:
        The scores; metrics are ``balanced_accuracy``, or ``r2`` and ``mae`` (in the unit of ``y``).

    Warns:
        TooFewItemsWarning: Fewer than 20 groups; it names the smallest effect that could have been seen.

    Raises:
        NotEnoughDataError: One class or value only; a class in one group only; fewer groups than folds. A ValueError.
        ValueError: NaN or infinite values; lengths that differ; an argument outside what it allows.
    """
    found = cross_validated(
        X,
        y,
        groups,
        kind=kind,
        probe=probe,
        types=types,
        nuisances=nuisances,
        counts=Counts(n_controls=n_controls, n_permutations=n_permutations, n_bootstrap=n_bootstrap, n_orders=n_orders),
        n_folds=n_folds,
        alphas=alphas,
        level=level,
        seed=seed,
    )
    warn_of_few(found.kind, found.n_groups, len(np.unique(found.truth)))
    return found


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How often everything is repeated; 0 leaves it out.

    Raises:
        ValueError: A count is negative.
    """

    n_controls: int = 0
    n_permutations: int = 0
    n_bootstrap: int = 0
    n_orders: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0:
                raise ValueError(f"{name}={value} must be at least 0.")


def cross_validated(
    X: Float[np.ndarray, "item feature"],
    y: Shaped[np.ndarray, " _"] | Sequence[Any],
    groups: Shaped[np.ndarray, " _"] | Sequence[Any],
    *,
    kind: str | None,
    probe: str | None = None,
    types: Shaped[np.ndarray, " _"] | Sequence[Any] | None = None,
    nuisances: Float[np.ndarray, "_ nuisance"] | None = None,
    counts: Counts = Counts(),
    n_folds: int = 5,
    alphas: Sequence[float] = ALPHAS,
    level: float = 0.95,
    seed: int = 0,
) -> ProbeScores:
    """:func:`cross_validate_probe` without its warning, for callers that run many and warn once."""
    if probe is not None:
        check_option("probe", probe, tuple(METHODS))
    check_settings(n_folds=n_folds, alphas=alphas, level=level)
    X = np.asarray(X, dtype=np.float64)
    kind, target = _target(np.asarray(y), kind)
    _check_lengths(X, target, groups, types, nuisances)
    check_finite("X", X)
    if nuisances is not None:
        check_finite("nuisances", nuisances)
    group = np.unique(np.asarray(groups), return_inverse=True)[1]
    _check_groups(target, group, n_folds, np.unique(np.asarray(y)) if kind == "classification" else None)
    name = probe or next(name for name, method in METHODS.items() if method.kind == kind)
    if METHODS[name].kind != kind:
        fitting = ", ".join(repr(other) for other, method in METHODS.items() if method.kind == kind)
        raise ValueError(f"probe={name!r} is for {METHODS[name].kind}, not for {kind}; use one of: {fitting}.")
    work = Procedure(method=METHODS[name], n_folds=n_folds, alphas=tuple(sorted(alphas)), seed=seed)
    kinds = None if types is None or not counts.n_controls else np.unique(np.asarray(types), return_inverse=True)[1]
    with threadpool_limits(limits=1):  # Many small products: threads cost more than they bring.
        return _scores(work, name, X, target, group, kinds, nuisances, counts, level)


def _scores(
    work: Procedure,
    name: str,
    X: Float[np.ndarray, "item feature"],
    target: Shaped[np.ndarray, " item"],
    group: Int[np.ndarray, " item"],
    types: Int[np.ndarray, " item"] | None,
    nuisances: Float[np.ndarray, "item nuisance"] | None,
    counts: Counts,
    level: float,
) -> ProbeScores:
    fold, metrics = work.fold(target, group), work.metrics
    controls = [] if types is None else work.control_targets(target, types, group, counts.n_controls)
    exchanged = work.permuted_targets(target, group, fold, counts.n_permutations)
    found, *others = work.outcomes(X, [target, *controls, *exchanged], np.ones(len(X)), fold)
    scored = np.array([other.score for other in others]).reshape(-1, len(metrics))
    draws = work.bootstrap(X, target, group, counts.n_bootstrap)
    low, high = interval(metrics, found.score, draws, level)
    nuisance, residual = _nuisances(work, X, target, found.predicted, group, fold, nuisances)
    bits, baseline = _bits(work, X, target, group, counts.n_orders)
    return ProbeScores(
        kind=work.method.kind,
        probe=name,
        metrics=metrics,
        score=found.score,
        low=low,
        high=high,
        chance=np.array([chance_of(metric, target, fold) for metric in metrics]),
        controls=scored[: len(controls)],
        draws=draws,
        permuted=scored[len(controls) :],
        nuisance=nuisance,
        residual=residual,
        bits=bits,
        baseline_bits=baseline,
        truth=target,
        predicted=found.predicted,
        fold=fold,
        alphas=found.alphas,
        inner=found.inner,
        n_items=len(X),
        n_groups=int(group.max()) + 1,
    )


def _nuisances(
    work: Procedure,
    X: Float[np.ndarray, "item feature"],
    target: Shaped[np.ndarray, " item"],
    predicted: Shaped[np.ndarray, " item"],
    group: Int[np.ndarray, " item"],
    fold: Int[np.ndarray, " item"],
    nuisances: Float[np.ndarray, "item nuisance"] | None,
) -> tuple[Float[np.ndarray, " metric"], Float[np.ndarray, " metric"]]:
    """The score from the nuisances alone, and the score without what they explain."""
    if nuisances is None:
        return np.full(len(work.metrics), np.nan), np.full(len(work.metrics), np.nan)
    weight, knots = np.ones(len(X)), n_knots(int(group.max()) + 1)
    alone = spline_basis(nuisances, nuisances, knots)
    # Nuisances that never vary say nothing; one column of zeros lets the probe say so.
    alone = alone if alone.shape[1] else np.zeros((len(X), 1))
    nuisance = work.outcomes(alone, [target], weight, fold)[0].score
    residual = residual_scores(Division(X, weight, fold), work.method, target, predicted, nuisances, work.penalties, knots)
    return nuisance, residual


def _bits(
    work: Procedure,
    X: Float[np.ndarray, "item feature"],
    target: Shaped[np.ndarray, " item"],
    group: Int[np.ndarray, " item"],
    n_orders: int,
) -> tuple[float, float]:
    if not n_orders:
        return np.nan, np.nan
    found = code_length(X, target, group, work.method, work.penalties, n_orders, work.rng(ORDER_STREAM))
    return found.bits, found.baseline


def check_settings(*, n_folds: int, alphas: Sequence[float], level: float) -> None:
    """Refuse settings of a cross-validation that are out of range."""
    if n_folds < _FEWEST_FOLDS:
        raise ValueError(
            f"n_folds={n_folds} must be at least {_FEWEST_FOLDS}: "
            "one fold to test on, one to choose a penalty on, one to train on."
        )
    if not len(alphas):
        raise ValueError("alphas is empty; give at least one penalty.")
    for alpha in alphas:
        check_alpha(alpha, zero=False)
    if not 0 < level < 1:
        raise ValueError(f"level={level} must lie between 0 and 1, such as 0.95.")


def _target(y: Shaped[np.ndarray, " item"], kind: str | None) -> tuple[str, Shaped[np.ndarray, " item"]]:
    """The kind of target, and class codes (integers) or values (float64)."""
    if kind is None:
        kind = "regression" if y.dtype.kind == "f" else "classification"
    check_option("kind", kind, tuple(METRICS))
    if y.dtype.kind == "f":
        check_finite("y", y)
    if kind == "regression":
        if y.dtype.kind not in "fiu":
            raise ValueError(f"y holds {y.dtype} and regression needs numbers; use kind='classification'.")
        return kind, y.astype(np.float64)
    return kind, np.unique(y, return_inverse=True)[1]


def _check_lengths(X: np.ndarray, target: np.ndarray, groups: Sequence[Any] | np.ndarray, types: Any, nuisances: Any) -> None:
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} axes; it must have two, items and features.")
    lengths = {"X": len(X), "y": len(target), "groups": len(groups)}
    lengths |= {name: len(given) for name, given in {"types": types, "nuisances": nuisances}.items() if given is not None}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"lengths differ: {', '.join(f'{name} has {n}' for name, n in lengths.items())}; one entry per item.")


def _check_groups(target: np.ndarray, group: np.ndarray, n_folds: int, classes: np.ndarray | None) -> None:
    n_groups = len(np.unique(group))
    if n_groups < n_folds:
        way_out = f"use n_folds={n_groups} at most, or more groups" if n_groups >= _FEWEST_FOLDS else "more groups are needed"
        raise NotEnoughDataError(f"there are {n_groups} groups for {n_folds} folds; {way_out}.")
    if len(np.unique(target)) < 2:
        what = "value" if classes is None else "class"
        raise NotEnoughDataError(
            f"y holds one {what} only, so there is nothing to decode; choose items that differ in the target."
        )
    if classes is not None:
        lonely = [name for code, name in enumerate(classes.tolist()) if len(np.unique(group[target == code])) < 2]
        if lonely:
            listed = ", ".join(f"{name:g}" if isinstance(name, float) else repr(name) for name in lonely)
            raise NotEnoughDataError(
                f"{len(lonely)} of the classes of y ({listed}) lie within one group each, so they cannot be both learned and "
                "tested; leave them out, or add groups."
            )
