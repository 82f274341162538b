"""How well a frame's coordinates are decoded from one layer, as they are and without what the other frame says of them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from deixis.probes.folds import deal_folds, draw_groups
from deixis.probes.nested import Division
from deixis.probes.nuisances import IDENTIFIABLE, n_knots, residual_predictions, unexplained
from deixis.probes.procedure import Procedure

PARTS = ("whole", "unique")
_FOLDS, _EXCHANGES, _DRAWS = range(10, 13)


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """One part of one frame at one layer, on folds that the probe has not seen."""

    predicted: Float[np.ndarray, "axis item"]
    wanted: Float[np.ndarray, "axis item"]
    inner: Float[np.ndarray, " fold"]
    """R2 on the other folds, mean over the axes: what chooses a layer for this fold."""
    permuted: Float[np.ndarray, " exchange"]
    draws: Float[np.ndarray, " draw"]

    @property
    def score(self) -> float:
        """R2 of all axes together."""
        return joint_r2(self.predicted, self.wanted)


def joint_r2(predicted: Float[np.ndarray, "axis item"], wanted: Float[np.ndarray, "axis item"]) -> float:
    """One minus the squared errors over the squared deviations from the mean, both summed over the axes; NaN without spread."""
    spread = ((wanted - wanted.mean(axis=1, keepdims=True)) ** 2).sum()
    return float(1 - ((predicted - wanted) ** 2).sum() / spread) if spread > 0 else float("nan")


@dataclass(frozen=True, kw_only=True)
class Design:
    """Everything that the layers of a role share: coordinates, folds, exchanges of scenes, draws of scenes."""

    work: Procedure
    own: Float[np.ndarray, "axis item"]
    other: Float[np.ndarray, "other_axis item"]
    group: Int[np.ndarray, " item"]
    fold: Int[np.ndarray, " item"]
    exchanged: Float[np.ndarray, "exchange axis item"]
    exchanged_unique: Float[np.ndarray, "exchange axis item"]
    n_draws: int

    @classmethod
    def of(
        cls,
        work: Procedure,
        own: Float[np.ndarray, "axis item"],
        other: Float[np.ndarray, "other_axis item"],
        group: Int[np.ndarray, " item"],
        n_exchanges: int,
        n_draws: int,
    ) -> "Design":
        """Folds are dealt without regard to the coordinates, so that scenes can be exchanged freely over them.

        For the unique part it is the residuals on the other frame that are exchanged, the fitted part staying where it is
        (Freedman and Lane 1983, Journal of Business and Economic Statistics 1:292).
        """
        fold = deal_folds(np.zeros(len(group)), group, work.n_folds, work.rng(_FOLDS))
        first = np.unique(group, return_index=True)[1]
        rng = work.rng(_EXCHANGES)
        orders = np.array([first[rng.permutation(len(first))][group] for _ in range(n_exchanges)], dtype=int)
        orders = orders.reshape(-1, len(group))
        left = unexplained(own.T, other.T, np.ones(len(group), bool), n_knots(len(first))).T
        return cls(
            work=work,
            own=own,
            other=other,
            group=group,
            fold=fold,
            exchanged=np.moveaxis(own[:, orders], 0, 1),
            exchanged_unique=(own - left) + np.moveaxis(left[:, orders], 0, 1),
            n_draws=n_draws,
        )

    def decoded(self, X: Float[np.ndarray, "item feature"]) -> dict[str, Decoded]:
        """Both parts from the vectors of one layer."""
        rng, drawn = self.work.rng(_DRAWS), np.empty((len(PARTS), self.n_draws))
        for draw in range(self.n_draws):
            drawn[:, draw] = self._redrawn(X, rng)
        found = {}
        for number, (part, exchanged) in enumerate(zip(PARTS, (self.exchanged, self.exchanged_unique), strict=True)):
            targets = np.concatenate([self.own[None], exchanged]).reshape(-1, len(self.group))
            predicted, wanted, inner = self._predictions(part, X, targets, self.other, self.group, self.fold)
            shape = (-1, len(self.own), len(self.group))
            each, true = predicted.reshape(shape), wanted.reshape(shape)
            found[part] = Decoded(
                predicted=each[0],
                wanted=true[0],
                inner=inner[: len(self.own)].mean(axis=0),
                permuted=np.array([joint_r2(*pair) for pair in zip(each[1:], true[1:], strict=True)]),
                draws=drawn[number],
            )
        return found

    def whole(self, X: Float[np.ndarray, "item feature"]) -> float:
        """The whole frame's score alone."""
        predicted, wanted, _ = self._predictions("whole", X, self.own, self.other, self.group, self.fold)
        return joint_r2(predicted, wanted)

    def _redrawn(self, X: Float[np.ndarray, "item feature"], rng: np.random.Generator) -> list[float]:
        """Both scores on scenes drawn with replacement, copies of a scene in one fold."""
        times = draw_groups(self.own[0], self.group, self.work.n_folds, rng, classes=False)
        rows = np.repeat(np.arange(len(times)), times)
        group = np.unique(self.group[rows], return_inverse=True)[1]
        fold = deal_folds(np.zeros(len(rows)), group, self.work.n_folds, rng)
        of = (X[rows], self.own[:, rows], self.other[:, rows], group, fold)
        return [joint_r2(*self._predictions(part, *of)[:2]) for part in PARTS]

    def _predictions(
        self,
        part: str,
        X: Float[np.ndarray, "item feature"],
        targets: Float[np.ndarray, "target item"],
        other: Float[np.ndarray, "other_axis item"],
        group: Int[np.ndarray, " item"],
        fold: Int[np.ndarray, " item"],
    ) -> tuple[Float[np.ndarray, "target item"], Float[np.ndarray, "target item"], Float[np.ndarray, "target fold"]]:
        """Held-out predictions, what they should be, and the scores on the other folds."""
        weight = np.ones(len(fold))
        if part == "whole":
            outcomes = self.work.outcomes(X, list(targets), weight, fold)
            predicted = np.stack([outcome.predicted for outcome in outcomes])
            return predicted, targets, np.stack([outcome.inner[:, 0] for outcome in outcomes])
        division, knots = Division(X, weight, fold), n_knots(int(group.max()) + 1)
        some = [
            residual_predictions(division, self.work.method, targets[at : at + _AT_ONCE], other.T, self.work.alphas, knots)
            for at in range(0, len(targets), _AT_ONCE)
        ]
        predicted, wanted, inner = (np.concatenate([getattr(one, name) for one in some]) for name in _FIELDS)
        left, spread = (wanted**2).sum(axis=1), targets.var(axis=1) * targets.shape[1]
        # Not identifiable: the other frame says it all.
        return np.where((left < IDENTIFIABLE * spread)[:, None], np.nan, predicted), wanted, inner


_AT_ONCE = 60
"""Targets; more would need much memory for what they save."""
_FIELDS = ("predicted", "wanted", "inner")
