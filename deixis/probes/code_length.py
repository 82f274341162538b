"""Online code length: how many bits it takes to tell someone the targets who learns the probe as they come in."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.special import log_softmax
from scipy.stats import t as student

from deixis.probes.folds import deal_folds
from deixis.probes.nested import Division, Method

SHARES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Of the groups, where blocks end (Voita and Titov 2020, section 3.2)."""
_FEWEST_GROUPS = 4
_TEMPERATURES = np.array([0.0, *(2.0**power for power in range(-4, 7))])


@dataclass(frozen=True, kw_only=True)
class CodeLength:
    """Bits per item."""

    bits: float
    """With the probe; less is better."""
    baseline: float
    """Knowing nothing: ``log2 K`` for K classes; ``log2(2 pi e) / 2`` = 2.05 for values in units of their deviation."""


def code_length(
    X: Float[np.ndarray, "item feature"],
    target: Shaped[np.ndarray, " item"],
    group: Int[np.ndarray, " item"],
    method: Method,
    alphas: tuple[float, ...],
    n_orders: int,
    rng: np.random.Generator,
) -> CodeLength:
    """Online (prequential) code length per item (Voita and Titov 2020, arXiv 2003.12298, section 3.2).

    Groups come in a random order, in blocks that end at :data:`SHARES` of them. Each block is coded with the probe trained on
    all blocks before it: ``L = L_first + sum_i -log2 p_i(block i+1)``, the mean over ``n_orders`` orders, divided by the items.
    Until there are four groups and (for classes) two classes, items are coded without a probe.

    Everything that a block is coded with is chosen on the blocks before it, by grouped cross-validation: the penalty, and what
    makes a distribution of a prediction. Classes: ``(1 - e) softmax(T score) + e / K`` with temperature ``T`` and
    ``e = 1 / (1 + groups seen)``. Values: Student's t around the prediction, its scale the cross-validated error, its degrees of
    freedom one less than the groups seen. Values are coded in units of their standard deviation (a density, so that the number
    can be negative): knowing nothing costs 2.05 bits.
    """
    classes = method.kind == "classification"
    if not classes:
        target = (target - target.mean()) / target.std()
    n_groups, k = int(group.max()) + 1, int(target.max()) + 1 if classes else 0
    baseline = float(np.log2(k)) if classes else float(np.log2(2 * np.pi * np.e) / 2)
    ends = sorted({int(np.ceil(share * n_groups)) for share in SHARES})
    totals = []
    for _ in range(n_orders):
        place = rng.permutation(n_groups)[group]
        total = 0.0
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            seen, block = place < start, (place >= start) & (place < end)
            if start < _FEWEST_GROUPS or len(np.unique(target[seen])) < 2:
                total += block.sum() * baseline if classes else float(_normal_bits(target[block]).sum())
                continue
            rows = np.flatnonzero(seen | block)
            known = seen[rows]
            code = _class_bits if classes else _value_bits
            total += float(code(*_fitted(X[rows], target[rows], place[rows], known, method, alphas, k, rng)))
        totals.append(total / len(target))
    return CodeLength(bits=float(np.mean(totals)), baseline=baseline)


def _normal_bits(values: Float[np.ndarray, " item"]) -> Float[np.ndarray, " item"]:
    return (values**2 / 2 + np.log(2 * np.pi) / 2) / np.log(2)


def _fitted(
    X: Float[np.ndarray, "item feature"],
    target: Shaped[np.ndarray, " item"],
    place: Int[np.ndarray, " item"],
    known: np.ndarray,
    method: Method,
    alphas: tuple[float, ...],
    n_classes: int,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "alpha item *cls"], Shaped[np.ndarray, " item"], np.ndarray, int]:
    """Scores of every item: of the known ones by probes that did not see their fold, of the others by a probe of all known."""
    group = np.unique(place[known], return_inverse=True)[1]
    n_groups = int(group.max()) + 1
    n_folds = min(5, n_groups)
    fold = np.full(len(target), n_folds)
    fold[known] = deal_folds(target[known].astype(float), group, n_folds, rng)
    division = Division(X, np.ones(len(X)), fold)
    # Training sets without the block (fold ``n_folds``) and one fold of the known, and last without the block alone.
    training = division.training(division.table[n_folds])
    scores = method.scores(X, training, target, n_classes, alphas)[:, fold, np.arange(len(target))]
    return scores if n_classes else scores[..., 0], target, known, n_groups


def _value_bits(
    predicted: Float[np.ndarray, "alpha item"], target: Float[np.ndarray, " item"], known: np.ndarray, n_groups: int
) -> float:
    error = target - predicted
    spread = (error[:, known] ** 2).mean(axis=1)
    best = len(spread) - 1 - int(spread[::-1].argmin())
    # Rounding decides nothing: an error of zero would make a density without end.
    scale = max(float(np.sqrt(spread[best])), 1e-6)
    return float(-student.logpdf(error[best, ~known] / scale, n_groups - 1).sum() + (~known).sum() * np.log(scale)) / np.log(2)


def _class_bits(
    scores: Float[np.ndarray, "alpha item cls"], target: Int[np.ndarray, " item"], known: np.ndarray, n_groups: int
) -> float:
    # A class that was never seen has a score of -inf; smoothing alone can name it.
    finite = np.isfinite(scores)
    size = np.sqrt(np.where(finite, scores, 0.0)[:, known].std(axis=(1, 2)) ** 2)
    size = np.where(size > 0, size, 1.0)[:, None, None]
    scaled = np.where(finite, scores / size, -1e300)
    heat = _TEMPERATURES[:, None, None, None]
    shares = np.exp(log_softmax(np.where(finite, heat * scaled, -np.inf), axis=-1))
    smooth = 1 / (1 + n_groups)
    bits = -np.log2((1 - smooth) * shares[..., np.arange(len(target)), target] + smooth / scores.shape[-1])
    cost = bits[..., known].sum(axis=-1)
    temperature, alpha = np.unravel_index(int(cost.argmin()), cost.shape)
    return float(bits[temperature, alpha][~known].sum())
