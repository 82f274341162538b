"""A nested cross-validation's predictions: every penalty, every target, where they are held out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from deixis.probes.folds import training_subsets
from deixis.probes.linear_fits import KINDS, encoded, fits, held_out
from deixis.probes.one_target import ONE_TARGET
from deixis.probes.row_space import plain

Targets = Sequence[Shaped[np.ndarray, " item"]]


class Division:
    """Items divided into folds.

    Args:
        X: Features.
        weight: How often each item counts in training; one of weight 0 is predicted, and never learned from.
        fold: ``0..n_folds-1``, each used.
    """

    def __init__(
        self, X: Float[np.ndarray, "item feature"], weight: Float[np.ndarray, " item"], fold: Int[np.ndarray, " item"]
    ) -> None:
        self.X, self.weight, self.fold = X, weight, fold
        self.keep: Bool[np.ndarray, "subset fold"]
        """Which folds each training subset holds."""
        self.table: Int[np.ndarray, "fold fold"]
        """The subset that leaves out these two folds."""
        self.keep, self.table = training_subsets(int(fold.max()) + 1)

    def training(self, subsets: Int[np.ndarray, " subset"] | slice = slice(None)) -> Float[np.ndarray, "subset item"]:
        """How often each item counts in these training subsets."""
        return self.keep[subsets][:, self.fold] * self.weight


@dataclass(frozen=True, kw_only=True)
class Method:
    """How a probe is fitted inside cross-validation: features standardised on each training set, targets sharing the work."""

    name: str

    @property
    def kind(self) -> str:
        """Of target: ``classification`` or ``regression``."""
        return KINDS[self.name].target

    @property
    def penalised(self) -> bool:
        """Whether it has a penalty to choose."""
        return KINDS[self.name].penalised

    def predict(
        self,
        X: Float[np.ndarray, "item feature"],
        training: Float[np.ndarray, "subset item"],
        targets: Targets,
        alphas: Sequence[float],
    ) -> Shaped[np.ndarray, "target alpha subset item"]:
        """Values, or class codes, for the items that a subset does not hold; what stands at the others means nothing."""
        if len(targets) == 1 and self.name in ONE_TARGET:
            return ONE_TARGET[self.name](X, training, targets[0], alphas)[None]
        return held_out(self.name, X, training, np.stack(targets), alphas)

    def scores(
        self,
        X: Float[np.ndarray, "item feature"],
        training: Float[np.ndarray, "subset item"],
        target: Shaped[np.ndarray, " item"],
        n_classes: int,
        alphas: Sequence[float],
    ) -> Float[np.ndarray, "alpha subset item output"]:
        """The same before the highest class is taken: one value, or one score per class; minus infinity for one not seen.

        A discriminant's scores are those of a scatter that is summed over the items; times their number it is a covariance, and
        the scores of training sets of different size are alike.
        """
        outputs = 1 if self.kind == "regression" else n_classes
        coded = encoded(self.name, target[None]) if self.kind == "regression" else np.eye(n_classes)[target][:, None]
        found = np.zeros((len(alphas), *training.shape, outputs))
        for part, split, space, solutions in fits(self.name, X, training, coded, alphas):
            for a, (coef, intercept) in enumerate(solutions):
                scores = space.predict(coef[:, :, 0]) + intercept[:, None, 0]
                split.put(plain(scores)[None], found[a : a + 1, part])
        return found * training.sum(axis=1)[:, None, None] if self.name == "discriminant" else found


METHODS: dict[str, Method] = {name: Method(name=name) for name in KINDS}
"""Probes by name; the first of a kind is that kind's default."""


def nested_predictions(
    division: Division, method: Method, targets: Targets, alphas: Sequence[float]
) -> Shaped[np.ndarray, "target alpha fold item"]:
    """Predictions of each item with its own fold and one more fold left out.

    Entry ``[..., f, i]`` comes from a fit that saw neither fold ``f`` nor the fold of item ``i``. Where the two are the same fold
    it is the outer prediction; the others choose the penalty (or the layer) for fold ``f`` without having seen it.
    """
    predicted = method.predict(division.X, division.training(), targets, alphas)
    return predicted[:, :, division.table[:, division.fold], np.arange(len(division.fold))]
