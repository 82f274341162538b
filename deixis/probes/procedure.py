"""One nested cross-validation, and the same again on other targets and on redrawn groups."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from deixis.probes.controls import control_labels
from deixis.probes.folds import deal_folds, draw_groups
from deixis.probes.nested import Division, Method, nested_predictions
from deixis.probes.permutations import permuted
from deixis.probes.scores import ERRORS, METRICS, SCORES

_FOLD_STREAM, _CONTROL_STREAM, _BOOTSTRAP_STREAM, _PERMUTATION_STREAM, ORDER_STREAM = range(5)
_TARGETS_AT_ONCE = 60
"""More would need much memory for what they save: their predictions by every penalty and training set are held at once."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One target's nested cross-validation."""

    score: Float[np.ndarray, " metric"]
    predicted: Shaped[np.ndarray, " item"]
    alphas: Float[np.ndarray, " fold"]
    inner: Float[np.ndarray, "fold metric"]


@dataclass(frozen=True, kw_only=True)
class Procedure:
    """Everything about a cross-validation but the data."""

    method: Method
    n_folds: int
    alphas: tuple[float, ...]
    seed: int

    @property
    def metrics(self) -> tuple[str, ...]:
        """Of the scores, in order; the first one chooses penalties."""
        return METRICS[self.method.kind]

    @property
    def penalties(self) -> tuple[float, ...]:
        """Those that are tried: one NaN where the probe has none."""
        return self.alphas if self.method.penalised else (np.nan,)

    def rng(self, stream: int) -> np.random.Generator:
        """Randomness of one purpose: drawing more of one kind changes no other."""
        return np.random.default_rng((self.seed, stream))

    def fold(self, target: Shaped[np.ndarray, " item"], group: Int[np.ndarray, " item"]) -> Int[np.ndarray, " item"]:
        """The fold of each item."""
        return deal_folds(target.astype(float), group, self.n_folds, self.rng(_FOLD_STREAM))

    def outcomes(
        self,
        X: Float[np.ndarray, "item feature"],
        targets: Sequence[Shaped[np.ndarray, " item"]],
        weight: Float[np.ndarray, " item"],
        fold: Int[np.ndarray, " item"],
    ) -> list[Outcome]:
        """The nested cross-validation of each target; they share all that depends on the features alone."""
        division = Division(X, weight, fold)
        found = []
        for start in range(0, len(targets), _TARGETS_AT_ONCE):
            some = targets[start : start + _TARGETS_AT_ONCE]
            predicted = nested_predictions(division, self.method, some, self.penalties)
            found += [self.chosen(p, t, weight, fold) for p, t in zip(predicted, some, strict=True)]
        return found

    def chosen(
        self,
        predicted: Shaped[np.ndarray, "alpha fold item"],
        target: Shaped[np.ndarray, " item"],
        weight: Float[np.ndarray, " item"],
        fold: Int[np.ndarray, " item"],
    ) -> Outcome:
        """Choose each fold's penalty on the other folds, then take the predictions of that fold."""
        folds, alphas = np.arange(self.n_folds), np.array(self.penalties)
        others = (fold != folds[:, None]) * weight
        graded = SCORES[self.metrics[0]](predicted, target, others)
        best = len(alphas) - 1 - graded[::-1].argmax(axis=0)
        kept = predicted[best, folds]
        held_out = kept[fold, np.arange(len(fold))]
        return Outcome(
            score=np.array([float(SCORES[metric](held_out, target, weight)) for metric in self.metrics]),
            predicted=held_out,
            alphas=alphas[best],
            inner=np.stack([SCORES[metric](kept, target, others) for metric in self.metrics], axis=1),
        )

    def control_targets(
        self, target: Shaped[np.ndarray, " item"], types: Int[np.ndarray, " item"], group: Int[np.ndarray, " item"], n: int
    ) -> list[Shaped[np.ndarray, " item"]]:
        """Draws of the control task."""
        rng = self.rng(_CONTROL_STREAM)
        return [control_labels(target, types, group, rng) for _ in range(n)]

    def permuted_targets(
        self, target: Shaped[np.ndarray, " item"], group: Int[np.ndarray, " item"], fold: Int[np.ndarray, " item"], n: int
    ) -> list[Shaped[np.ndarray, " item"]]:
        """Exchanges of the labels between groups: the same for all features with these groups."""
        rng = self.rng(_PERMUTATION_STREAM)
        return [permuted(target, group, fold, rng) for _ in range(n)]

    def bootstrap(
        self, X: Float[np.ndarray, "item feature"], target: Shaped[np.ndarray, " item"], group: Int[np.ndarray, " item"], n: int
    ) -> Float[np.ndarray, "draw metric"]:
        """Scores of the whole procedure on groups drawn with replacement, folds dealt anew, copies of a group together."""
        rng = self.rng(_BOOTSTRAP_STREAM)
        scores = np.empty((n, len(self.metrics)))
        for draw in range(n):
            times = draw_groups(target.astype(float), group, self.n_folds, rng, classes=self.method.kind == "classification")
            seen = np.flatnonzero(times)
            drawn = np.unique(group[seen], return_inverse=True)[1]
            fold = deal_folds(target[seen].astype(float), drawn, self.n_folds, rng)
            scores[draw] = self.outcomes(X[seen], [target[seen]], times[seen].astype(float), fold)[0].score
        return scores


def interval(
    metrics: tuple[str, ...], score: Float[np.ndarray, " metric"], draws: Float[np.ndarray, "draw metric"], level: float
) -> tuple[Float[np.ndarray, " metric"], Float[np.ndarray, " metric"]]:
    """Quantiles of the draws, shifted so that their mean is the score, kept within the metric's range; NaN without draws."""
    if not len(draws):
        return np.full(len(metrics), np.nan), np.full(len(metrics), np.nan)
    low, high = score + np.quantile(draws - draws.mean(axis=0), [(1 - level) / 2, (1 + level) / 2], axis=0)
    bounds = np.array([(0.0, np.inf) if metric in ERRORS else (-np.inf, 1.0) for metric in metrics])
    return np.clip(low, *bounds.T), np.clip(high, *bounds.T)
