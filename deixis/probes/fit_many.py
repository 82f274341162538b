"""Layers x folds x penalties x targets x permutations of a probe in one call."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from deixis.probes.checks import check_alpha, check_finite, check_option
from deixis.probes.folds import training_subsets
from deixis.probes.linear_fits import KINDS, encoded, fits, predictions
from deixis.probes.row_space import Array, RowSpace, namespace, plain
from deixis.probes.scores import METRICS, SCORES
from deixis.probes.tridiagonal import Turned

ALPHAS = tuple(10.0**power for power in range(-4, 6))
"""Penalties tried, for features of unit deviation."""
KEEP = ("predictions", "coefficients")
"""What :func:`fit_many` keeps beside the scores, if asked."""
PRECISIONS = ("float32", "float64")


@dataclass(frozen=True, kw_only=True)
class LayerFits:
    """The fits of one layer. The first permutation is the targets as they are."""

    layer: int
    """Its place among the layers given, from 0."""
    kind: str
    alphas: tuple[float, ...]
    classes: tuple[Shaped[np.ndarray, " _"], ...]
    """Of each target, in the order of their codes; empty arrays for values."""
    truth: Shaped[np.ndarray, "target permutation item"]
    """Values, or class codes."""
    fold: Int[np.ndarray, " item"]
    weight: Float[np.ndarray, " item"]
    predictions: Shaped[np.ndarray, "alpha target permutation item"]
    """Values or class codes for each item, by the fit that left its fold out."""
    nested: Shaped[np.ndarray, "fold alpha target permutation item"] | None
    """Values or class codes by the fit that left out both the item's fold and one more; None unless asked for."""
    coef: Float[np.ndarray, "fold alpha target permutation output feature"] | None
    """Weights of the features as they were given; one output for values and for two classes (positive: the second one), else one
    for each class, summing to zero over the classes. None unless asked for."""
    intercept: Float[np.ndarray, "fold alpha target permutation output"] | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the scores."""
        return METRICS[KINDS[self.kind].target]

    def scores(self, metric: str | None = None) -> Float[np.ndarray, "alpha target permutation"]:
        """Score of the pooled held-out predictions; the first of ``metrics`` unless another is named."""
        return SCORES[metric or self.metrics[0]](self.predictions, self.truth, self.weight)


@dataclass(frozen=True, kw_only=True)
class ManyFits:
    """The fits of all layers. The first permutation is the targets as they are."""

    kind: str
    metric: str
    alphas: tuple[float, ...]
    layers: tuple[int, ...]
    classes: tuple[Shaped[np.ndarray, " _"], ...]
    """Of each target, in the order of their codes; empty arrays for values."""
    scores: Float[np.ndarray, "layer alpha target permutation"]
    """Of the pooled held-out predictions."""
    predictions: Shaped[np.ndarray, "layer alpha target permutation item"] | None
    """Values or class codes for each item, by the fit that left its fold out."""
    coef: Float[np.ndarray, "layer fold alpha target permutation output feature"] | None
    """As in :class:`LayerFits`."""
    intercept: Float[np.ndarray, "layer fold alpha target permutation output"] | None

    def best(self) -> Float[np.ndarray, "layer target permutation"]:
        """The best penalty's score.

        Of targets and permutations alike, so that comparing the two is fair, but higher than what a penalty chosen on other items
        would reach.
        """
        return self.scores.max(axis=1)


def fit_many(
    X: Array | Iterable[Array],
    y: Shaped[np.ndarray, "..."] | Sequence[Any],
    folds: Int[np.ndarray, " item"] | Sequence[int],
    *,
    kind: str = "ridge",
    alphas: Sequence[float] = ALPHAS,
    permutations: Int[np.ndarray, "permutation item"] | None = None,
    weight: Float[np.ndarray, " item"] | None = None,
    metric: str | None = None,
    keep: Sequence[str] = (),
    precision: str = "float64",
    device: Any = None,
) -> ManyFits:
    """Fit a probe on every layer, fold, penalty, target and permutation, and score it on the folds left out.

    Features are standardised on each training set. One factorisation per layer and fold serves all the rest. Layers are worked on
    one after the other: memory beside the input is that of one layer and of what is kept.

    Args:
        X: Features ``(layer, item, feature)`` or ``(item, feature)``, or an iterable of the latter, such as
            ``(run.resid(layer) for layer in layers)``; numpy arrays or torch tensors.
        y: Targets ``(item,)`` or ``(item, target)``: values, or class labels for classifying probes.
        folds: The fold of each item, ``0..n_folds-1``; keep what belongs together in one fold.
        kind: ``ridge``, ``discriminant``, ``logistic`` or ``mean_difference``.
        alphas: Penalties, above 0. Ridge minimises ``sum of squared errors + alpha |w|^2``, logistic
            ``sum of log losses + alpha / 2 |w|^2``, the discriminant adds ``alpha`` to the within-class scatter.
        permutations: Orders of the items; each gives further targets ``y[permutation]``.
        weight: How often each item counts, above 0; None for once.
        metric: Score to return; None for ``r2`` or ``balanced_accuracy``.
        keep: Of ``predictions`` and ``coefficients``; both can be many times larger than the input.
        precision: To compute in. In ``float32`` small penalties drown in rounding where features are nearly collinear.
        device: Where to compute, such as ``"cuda"``; None for where the features are.

    Raises:
        ValueError: NaN or infinite features or values; lengths that differ; an argument outside what it allows.
    """
    for name in keep:
        check_option("keep", name, KEEP)
    columns: dict[str, list[Any]] = {name: [] for name in ("layers", "scores", "predictions", "coef", "intercept")}
    fitted = None
    for fitted in fit_layers(
        X,
        y,
        folds,
        kind=kind,
        alphas=alphas,
        permutations=permutations,
        weight=weight,
        coefficients="coefficients" in keep,
        precision=precision,
        device=device,
    ):
        check_option("metric", metric or fitted.metrics[0], fitted.metrics)
        columns["layers"].append(fitted.layer)
        columns["scores"].append(fitted.scores(metric))
        columns["predictions"].append(fitted.predictions if "predictions" in keep else None)
        columns["coef"].append(fitted.coef)
        columns["intercept"].append(fitted.intercept)
    if fitted is None:
        raise ValueError("X holds no layer.")
    _check_widths(columns["coef"])
    return ManyFits(
        kind=kind,
        metric=metric or fitted.metrics[0],
        alphas=fitted.alphas,
        classes=fitted.classes,
        layers=tuple(columns.pop("layers")),
        scores=np.stack(columns.pop("scores")),
        **{name: None if values[0] is None else np.stack(values) for name, values in columns.items()},
    )


def fit_layers(
    X: Array | Iterable[Array],
    y: Shaped[np.ndarray, "..."] | Sequence[Any],
    folds: Int[np.ndarray, " item"] | Sequence[int],
    *,
    kind: str = "ridge",
    alphas: Sequence[float] = ALPHAS,
    permutations: Int[np.ndarray, "permutation item"] | None = None,
    weight: Float[np.ndarray, " item"] | None = None,
    nested: bool = False,
    coefficients: bool = False,
    precision: str = "float64",
    device: Any = None,
) -> Iterator[LayerFits]:
    """The same as :func:`fit_many`, one layer at a time, for those who reduce the predictions themselves.

    Args:
        X: As for :func:`fit_many`.
        y: As there.
        folds: As there.
        kind: As there.
        alphas: As there.
        permutations: As there.
        weight: As there.
        nested: Also predict each item by the fits that left out one more fold, on which penalties may be chosen.
        coefficients: Also return coefficients and intercepts.
        precision: As there.
        device: As there.
    """
    check_option("kind", kind, tuple(KINDS))
    check_option("precision", precision, PRECISIONS)
    for alpha in alphas:
        check_alpha(alpha, zero=False)
    task = _Task.of(y, np.asarray(folds), kind=kind, alphas=alphas, permutations=permutations, weight=weight)
    for layer, features in enumerate(_each(X)):
        values = _features(features, layer, len(task.fold), precision, device)
        yield task.fit(layer, values, nested=nested, coefficients=coefficients)


@dataclass(frozen=True, kw_only=True)
class _Task:
    """Everything about the fits but the features."""

    kind: str
    alphas: tuple[float, ...]
    fold: Int[np.ndarray, " item"]
    weight: Float[np.ndarray, " item"]
    classes: tuple[Shaped[np.ndarray, " _"], ...]
    truth: Shaped[np.ndarray, "target permutation item"]
    coded: Float[np.ndarray, "item column output"]

    @classmethod
    def of(
        cls,
        y: Any,
        fold: Int[np.ndarray, " item"],
        *,
        kind: str,
        alphas: Sequence[float],
        permutations: Int[np.ndarray, "permutation item"] | None,
        weight: Float[np.ndarray, " item"] | None,
    ) -> "_Task":
        targets = np.asarray(y)
        targets = targets[None] if targets.ndim == 1 else targets.T
        n = targets.shape[-1]
        weight = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        orders = np.arange(n)[None] if permutations is None else np.concatenate([np.arange(n)[None], permutations])
        _check_items(targets, fold, weight, orders)
        values, classes = _coded(targets, KINDS[kind].target)
        truth = values[:, orders]
        return cls(
            kind=kind,
            alphas=tuple(map(float, alphas)) if KINDS[kind].penalised else (np.nan,),
            fold=fold,
            weight=weight,
            classes=classes,
            truth=truth,
            coded=encoded(kind, truth.reshape(-1, n)),
        )

    def fit(self, layer: int, X: Float[Array, "item feature"], *, nested: bool, coefficients: bool) -> LayerFits:
        n_folds = int(self.fold.max()) + 1
        keep = training_subsets(n_folds)[0] if nested else ~np.eye(n_folds, dtype=bool)
        kept = _Kept.empty(self, X.shape[1], n_folds, nested=nested, coefficients=coefficients)
        for part, split, space, solutions in fits(self.kind, X, keep[:, self.fold] * self.weight, self.coded, self.alphas):
            for a, (coef, intercept) in enumerate(solutions):
                predicted = predictions(self.kind, space, coef, intercept)
                for s, left_out in enumerate(~keep[part]):
                    items = split.held[s][split.is_held[s] > 0]
                    kept.put(a, np.flatnonzero(left_out), items, predicted[s, : len(items)].T, self.fold)
                if coefficients:
                    kept.put_coefficients(a, keep[part], space, coef, intercept)
        return LayerFits(
            layer=layer,
            kind=self.kind,
            alphas=self.alphas,
            classes=self.classes,
            truth=self.truth,
            fold=self.fold,
            weight=self.weight,
            predictions=kept.predictions,
            nested=kept.nested,
            coef=kept.coef,
            intercept=kept.intercept,
        )


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """Where the results of one layer are written."""

    predictions: Shaped[np.ndarray, "alpha target permutation item"]
    nested: Shaped[np.ndarray, "fold alpha target permutation item"] | None
    coef: Float[np.ndarray, "fold alpha target permutation output feature"] | None
    intercept: Float[np.ndarray, "fold alpha target permutation output"] | None

    @classmethod
    def empty(cls, task: _Task, width: int, n_folds: int, *, nested: bool, coefficients: bool) -> "_Kept":
        dtype = np.float64 if KINDS[task.kind].target == "regression" else np.int16
        shape = (len(task.alphas), *task.truth.shape)
        outputs = task.coded.shape[-1]
        weights = (n_folds, *shape[:3], 1 if outputs == 2 else outputs)
        return cls(
            predictions=np.empty(shape, dtype=dtype),
            nested=np.empty((n_folds, *shape), dtype=dtype) if nested else None,
            coef=np.empty((*weights, width)) if coefficients else None,
            intercept=np.empty(weights) if coefficients else None,
        )

    def put(
        self,
        alpha: int,
        left_out: Int[np.ndarray, " fold"],
        items: Int[np.ndarray, " test"],
        predicted: Shaped[np.ndarray, "column test"],
        fold: Int[np.ndarray, " item"],
    ) -> None:
        """Write what a fit without one or two folds predicts for the items of these folds."""
        shaped = predicted.reshape(*self.predictions.shape[1:3], -1)
        if len(left_out) == 1:
            self.predictions[alpha][..., items] = shaped
        if self.nested is None:
            return
        for own, other in zip(left_out, left_out[::-1], strict=True):
            mine = fold[items] == own
            self.nested[other, alpha][..., items[mine]] = shaped[..., mine]

    def put_coefficients(
        self,
        alpha: int,
        keep: Shaped[np.ndarray, "subset fold"],
        space: RowSpace | Turned,
        coef: Float[Array, "subset axis target output"],
        intercept: Float[Array, "subset target output"],
    ) -> None:
        """Write the weights of the fits that left out one fold, in terms of the features as they were given."""
        if self.coef is None or self.intercept is None:
            return
        if coef.shape[-1] == 2:
            coef, intercept = coef[..., 1:] - coef[..., :1], intercept[..., 1:] - intercept[..., :1]
        flat = space.features(coef.reshape(*coef.shape[:2], -1))
        level = intercept.reshape(len(flat), -1) - (space.centre[:, None, :] @ flat)[:, 0]
        shape = self.intercept.shape[2:]
        for s, left_out in enumerate(~keep):
            if left_out.sum() == 1:
                fold = int(left_out.argmax())
                self.coef[fold, alpha] = plain(flat[s]).T.reshape(*shape, -1)
                self.intercept[fold, alpha] = plain(level[s]).reshape(shape)


def _coded(
    targets: Shaped[np.ndarray, "target item"], kind: str
) -> tuple[Shaped[np.ndarray, "target item"], tuple[Shaped[np.ndarray, " _"], ...]]:
    """Values in float64, or class codes, and the classes of each target."""
    if kind == "regression":
        if targets.dtype.kind not in "fiub":
            raise ValueError(f"y holds {targets.dtype} and ridge needs numbers; use a classifying kind such as 'discriminant'.")
        check_finite("y", targets.T)
        return targets.astype(np.float64), tuple(np.empty(0) for _ in targets)
    found = [np.unique(target, return_inverse=True) for target in targets]
    return np.stack([codes for _, codes in found]), tuple(labels for labels, _ in found)


def _check_items(targets: np.ndarray, fold: np.ndarray, weight: np.ndarray, orders: np.ndarray) -> None:
    lengths = {"y": targets.shape[-1], "folds": len(fold), "weight": len(weight), "permutations": orders.shape[-1]}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"lengths differ: {', '.join(f'{name} has {n}' for name, n in lengths.items())}; one entry per item.")
    used = np.unique(fold)
    if len(used) < 2 or not np.array_equal(used, np.arange(len(used))):
        raise ValueError(f"folds holds {used[:8].tolist()}; it must hold every number from 0 to the last fold, at least 0 and 1.")
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError("weight must be above 0 for every item; leave out items that do not count.")
    if not np.array_equal(np.sort(orders, axis=1), np.broadcast_to(np.arange(orders.shape[1]), orders.shape)):
        raise ValueError("permutations must each hold every item's number once.")


def _each(X: Array | Iterable[Array]) -> Iterable[Array]:
    """The layers of ``X``, one by one."""
    n_axes = getattr(X, "ndim", None)
    if n_axes not in (None, 2, 3):
        raise ValueError(f"X has {n_axes} axes; it must have two (items, features) or three (layers, items, features).")
    return [X] if n_axes == 2 else X


def _features(features: Array, layer: int, n_items: int, precision: str, device: Any) -> Float[Array, "item feature"]:
    """One layer in the precision and on the device to compute on, its numbers checked."""
    xp: Any = namespace(features)
    if xp is np and device is None:
        values: Array = np.asarray(features, dtype=precision)
    else:
        import torch

        values = torch.as_tensor(features).to(device=device, dtype=getattr(torch, precision))
        xp = torch
    if tuple(values.shape[:-1]) != (n_items,):
        raise ValueError(f"layer {layer} of X has shape {tuple(values.shape)}; it must be ({n_items} items, features), as y has.")
    if not bool(xp.isfinite(values).all()):
        check_finite(f"layer {layer} of X", plain(values))
    return values


def _check_widths(coefs: Sequence[np.ndarray | None]) -> None:
    widths = {coef.shape[-1] for coef in coefs if coef is not None}
    if len(widths) > 1:
        raise ValueError(f"layers have {sorted(widths)} features, so their coefficients fit in no one array; fit them apart.")
