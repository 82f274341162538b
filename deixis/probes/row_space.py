"""One factorisation per training set, which every penalty, target and permutation shares.

Everything here has a leading axis of training sets (``subset``) and works on numpy arrays and on torch tensors, on the device
that holds them: the operators and the few functions used are spelled alike in both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

FLAT = 1e-6
"""A feature that deviates by less than this share of its size is constant but for rounding, and is left out (set to 0)."""
_CHUNK = 4_000_000
"""Numbers that the training sets worked on at once may hold (32 MB)."""

Array = Any
"""A numpy array or a torch tensor."""


def namespace(values: Array) -> Any:
    """The module, numpy or torch, whose functions take ``values``."""
    if type(values).__module__.partition(".")[0] == "torch":
        import torch

        return torch
    return np


def like(values: np.ndarray, model: Array) -> Array:
    """``values`` as an array of the kind, on the device and (unless integers) in the precision of ``model``."""
    if isinstance(model, np.ndarray):
        return values if values.dtype.kind in "iub" else np.asarray(values, dtype=model.dtype)
    import torch

    found = torch.as_tensor(values, device=model.device)
    return found.to(model.dtype) if values.dtype.kind == "f" else found


def plain(values: Any) -> Any:
    """A torch tensor as a numpy array in main memory (bfloat16 as float32, which holds it exactly); all else as it is."""
    if namespace(values) is np:
        return values
    held = values.detach().cpu()
    return (held.float() if held.is_floating_point() and held.element_size() < 4 else held).numpy()


def row_basis(X: Float[np.ndarray, "item feature"]) -> tuple[Float[np.ndarray, "item axis"], Float[np.ndarray, "axis feature"]]:
    """Coordinates of the rows in an orthonormal basis of their span, and that basis (the identity where it saves nothing)."""
    n, width = X.shape
    if width <= n:
        return X, np.eye(width)
    q, r = np.linalg.qr(X.T)
    return r.T, q.T


@dataclass(frozen=True, kw_only=True)
class Split:
    """Which items some training sets hold and which are to be predicted; padded to equal lengths."""

    rows: Int[np.ndarray, "subset train"]
    """Items trained on, those with a weight; padded by item 0."""
    weight: Float[np.ndarray, "subset train"]
    """How often each counts; 0 for padding."""
    held: Int[np.ndarray, "subset test"]
    """Items to be predicted; padded by item 0."""
    is_held: Float[np.ndarray, "subset test"]
    """0 for padding, else 1."""

    @classmethod
    def of(cls, weight: Float[np.ndarray, "subset item"]) -> "Split":
        """Train on the items with a weight, predict the others."""
        rows, counts = _padded(weight > 0, weight)
        held, is_held = _padded(weight == 0, np.ones_like(weight))
        return cls(rows=rows, weight=counts, held=held, is_held=is_held)

    def put(self, predicted: np.ndarray, into: np.ndarray) -> None:
        """Write ``predicted (alpha, subset, test, column)`` to its items in ``into (alpha, subset, item, column)``."""
        for s, (items, real) in enumerate(zip(self.held, self.is_held > 0, strict=True)):
            into[:, s, items[real]] = predicted[:, s, real]


def _padded(
    mask: np.ndarray, values: Float[np.ndarray, "subset item"]
) -> tuple[Int[np.ndarray, "subset place"], Float[np.ndarray, "subset place"]]:
    """The items that ``mask`` marks, and their values; shorter rows are filled up with item 0 of value 0."""
    counts = mask.sum(axis=1)
    places = np.arange(counts.max(initial=0))
    order = np.argsort(~mask, axis=1, kind="stable")[:, : len(places)]
    real = places < counts[:, None]
    return np.where(real, order, 0), np.where(real, np.take_along_axis(values, order, axis=1), 0.0)


@dataclass(frozen=True, kw_only=True)
class Standardised:
    """Items centred and divided by the features' deviation, both of the training items."""

    span: Float[Array, "subset train feature"]
    """Training items times the root of their weight."""
    test: Float[Array, "subset test feature"]
    """Items to be predicted."""
    weight: Float[Array, "subset train"]
    centre: Float[Array, "subset feature"]
    """Mean of the features as they were given."""
    inverse: Float[Array, "subset feature"]
    """One over their deviation; 0 for those that are constant."""


@dataclass(frozen=True, kw_only=True)
class RowSpace:
    """Items in an orthonormal basis of what the training items span, along their principal axes.

    With ``Z`` the standardised features of the training items and ``W`` their weights, the basis ``V`` diagonalises ``Z' W Z``.
    Any linear probe whose penalty is the squared length of its weights has its optimum in this span (the representer theorem;
    Kimeldorf and Wahba 1971), and least squares is diagonal in it.
    """

    length: Float[Array, "subset axis"]
    """Sum of the squared coordinates of the training items along each axis; 0 where there is nothing but rounding."""
    train: Float[Array, "subset train axis"]
    """Coordinates of the training items."""
    test: Float[Array, "subset test axis"]
    """Coordinates of the items to be predicted."""
    weight: Float[Array, "subset train"]
    centre: Float[Array, "subset feature"]
    """Mean of the features as they were given."""
    inverse: Float[Array, "subset feature"]
    _turn: Float[Array, "subset row axis"]
    """The axes as sums of features or, if ``_span`` is there, of its rows."""
    _span: Float[Array, "subset row feature"] | None

    def features(self, coef: Float[Array, "subset axis column"]) -> Float[Array, "subset feature column"]:
        """Weights along the axes as weights of the features as they were given."""
        rows = self._turn @ coef
        return self.inverse[:, :, None] * (rows if self._span is None else self._span.swapaxes(1, 2) @ rows)

    def predict(self, coef: Float[Array, "subset axis column"]) -> Float[Array, "subset test column"]:
        """What weights along the axes say about the items to be predicted."""
        return self.test @ coef


def standardised(
    X: Float[Array, "item feature"], weight: Float[np.ndarray, "subset item"], *, per_item: int = 0
) -> Iterator[tuple[slice, Split, Standardised]]:
    """The items of training sets, as many sets at a time as memory allows.

    Args:
        X: Features in the precision to compute in, float64 where penalties may be small against the features.
        weight: How often each item counts in each training set; 0 for those to be predicted.
        per_item: Further numbers that the caller will hold for each item of each set.

    Yields:
        Numbers of the training sets, which items are in them, and these.
    """
    n, width = X.shape
    step = max(1, _CHUNK // (n * (width + min(n, width) + per_item)))
    for start in range(0, len(weight), step):
        part = slice(start, min(start + step, len(weight)))
        split = Split.of(weight[part])
        yield part, split, _standardised(X, split)


def _standardised(X: Float[Array, "item feature"], split: Split) -> Standardised:
    """Deviations are taken after centring, not from sums of squares: an outlier in one fold would leave the others' no digit."""
    xp = namespace(X)
    weight = like(split.weight, X)
    span = X[like(split.rows, X)]
    total = weight.sum(1)[:, None]
    centre = (weight[:, None, :] @ span)[:, 0] / total
    span -= centre[:, None, :]
    span *= xp.sqrt(weight)[:, :, None]
    variance = xp.einsum("sif,sif->sf", span, span) / total
    real = variance > FLAT**2 * (centre**2 + variance)
    inverse = xp.where(real, 1 / xp.sqrt(xp.where(real, variance, 1.0)), 0.0)
    span *= inverse[:, None, :]
    test = X[like(split.held, X)]
    test -= centre[:, None, :]
    test *= inverse[:, None, :]
    return Standardised(span=span, test=test, weight=weight, centre=centre, inverse=inverse)


def row_space(items: Standardised) -> RowSpace:
    """The row spaces of training sets, by an eigendecomposition of each."""
    xp = namespace(items.span)
    root = xp.sqrt(items.weight)[:, :, None]
    over_root = xp.where(root > 0, 1 / xp.where(root > 0, root, 1.0), 0.0)
    n, width = items.span.shape[1:]
    if width <= n:
        length, turn = xp.linalg.eigh(items.span.swapaxes(1, 2) @ items.span)
        length = _without_rounding(length, n)
        turn *= (length > 0)[:, None, :]
        train, test = over_root * (items.span @ turn), items.test @ turn
    else:
        length, turn = xp.linalg.eigh(items.span @ items.span.swapaxes(1, 2))
        length = _without_rounding(length, width)
        long = xp.sqrt(length)[:, None, :]
        train = turn * long * over_root
        turn = turn * xp.where(long > 0, 1 / xp.where(long > 0, long, 1.0), 0.0)
        test = (items.test @ items.span.swapaxes(1, 2)) @ turn
    return RowSpace(
        length=length,
        train=train,
        test=test,
        weight=items.weight,
        centre=items.centre,
        inverse=items.inverse,
        _turn=turn,
        _span=None if width <= n else items.span,
    )


def _without_rounding(length: Float[Array, "subset axis"], size: int) -> Float[Array, "subset axis"]:
    """Eigenvalues, those that are rounding errors set to 0."""
    xp = namespace(length)
    floor = size * xp.finfo(length.dtype).eps * xp.amax(length, -1)[:, None]
    return xp.where(length > floor, length, 0.0)
