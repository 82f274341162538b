"""Does what a probe learned somewhere hold elsewhere: other languages, tasks, conditions, benchmarks, distances, figures."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from threadpoolctl import threadpool_limits

from deixis.analyses.layer_sweep import CLASS_TARGETS
from deixis.analyses.run_checks import refuse_paths
from deixis.analyses.transfer_data import Pool, distances_apart, leaves_out, pooled
from deixis.analyses.transfer_plot import plot_transfer
from deixis.probes import ALPHAS, NotEnoughDataError
from deixis.probes.folds import deal_folds, draw_groups
from deixis.probes.nested import METHODS
from deixis.probes.power import warn_of_few
from deixis.probes.procedure import Procedure, interval
from deixis.probes.scores import SCORES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

# fmt: off
COLUMNS = (
    "model", "target", "role", "site", "layer", "by", "train", "test", "metric", "score", "low", "high", "chance", "n_train",
    "n_test", "n_groups",
)
# fmt: on
"""Of the frame, in order."""
METRICS = {"classification": ("balanced_accuracy",), "regression": ("r2", "mae", "r")}
"""Of each kind of target."""
ALL, OTHERS = "all", "others"
_FEWEST_FOLDS = 3


@dataclass(frozen=True, kw_only=True)
class TransferCell:
    """A probe learned on some items and tested on others, scenes never on both sides."""

    model: str
    layer: int
    """Chosen on the training items of the other folds, by most folds."""
    train: str
    test: str
    metric: str
    score: float
    low: float
    high: float
    chance: float
    n_train: int
    n_test: int
    n_groups: int
    """Of the test items."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """Scores of every pair of training and test sets."""

    target: str
    role: str
    site: str
    by: str
    cells: tuple[TransferCell, ...]

    def __repr__(self) -> str:
        return f"Transfer({self.target} by {self.by}, role {self.role}, {len(self.cells)} cells; .to_frame(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per model, training set, test set and metric; the columns are ``COLUMNS``."""
        import pandas as pd

        same = {"target": self.target, "role": self.role, "site": self.site, "by": self.by}
        return pd.DataFrame([vars(cell) | same for cell in self.cells], columns=list(COLUMNS))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the first metric of the first model: ``plot_transfer(self.to_frame(), ax)``."""
        return plot_transfer(self.to_frame(), ax)


def transfer(
    run_or_runs: "Run | Sequence[Run]",
    target: str,
    by: str = "language",
    role: str = "answer",
    site: str = "resid",
    groups: str = "scene",
    condition: str = "real",
    *,
    task: str | None = None,
    language: str | None = None,
    layers: Sequence[int] | None = None,
    kind: str | None = None,
    n_folds: int = 5,
    n_bootstrap: int = 100,
    level: float = 0.95,
    seed: int = 0,
) -> Transfer:
    """Train a probe on one part of the items and test it on every other.

    ``by="language"``, ``"task"``, ``"condition"`` or ``"benchmark"``: every part against every part. A scene may occur in
    several parts: groups are dealt into folds once, and each fold of the test part is predicted by a probe that saw no item of
    that fold's groups in any part; on the diagonal this is ordinary cross-validation, with as many training scenes.

    ``by="distance"`` or one of the items' groups, such as ``"shape"`` or ``"colour"``: each part is left out in turn. ``others``
    is the probe that never saw the part, ``all`` one that saw it in other scenes. For ``distance`` the parts are the thirds
    ``near``, ``middle`` and ``far`` of the target's distinct values: leaving out the middle asks for interpolation, the ends for
    extrapolation. R2 compares with the spread of the target over all items, so that parts can be compared. ``r`` is the
    correlation of decoded and true values: where R2 is low and ``r`` high, the direction holds and its offset or scale does not.

    Penalty and layer are chosen on the training part of the other folds. Vectors that are the same for several questions about a
    scene count once in each part.

    Args:
        run_or_runs: One run, or several; those of one model are put together.
        target: A key of the items' ``targets``; ``region`` is decoded as classes.
        by: What the parts differ in.
        role: At which token positions.
        site: Where in the model.
        groups: The items' group that is never split between training and test.
        condition: Of the items, unless ``by`` is ``"condition"``.
        task: Of the items, unless ``by`` is ``"task"``; None for ``demonstrative`` where there are several.
        language: Of the items; None for all.
        layers: Numbers of recorded layers to choose from; None for all of them.
        kind: ``classification`` or ``regression``, where ``target`` is to be read otherwise.
        n_folds: At least 3.
        n_bootstrap: Draws of groups for the interval, the whole procedure at the chosen layer repeated on each; 0 for none.
        level: Of the interval.
        seed: Of folds and bootstrap.

    Warns:
        TooFewItemsWarning: Fewer than 20 groups in a test part.

    Raises:
        TypeError: A path was given in place of a run.
        ValueError: No run; runs of different networks under one name; the same picture in two groups; a layer that was not
            recorded; one part only; fewer than 8 distances; a trivial question: at image tokens before the text, vectors are
            the same whatever the language or task.
        NotEnoughDataError: A part is too small to be learned from. A ValueError.
    """
    given: Any = run_or_runs
    runs: list[Any] = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    refuse_paths(runs)
    if not runs:
        raise ValueError("no run was given; pass one run, or several of one network.")
    kind = kind or ("classification" if target in CLASS_TARGETS else "regression")
    name = next(name for name, method in METHODS.items() if method.kind == kind)
    work = Procedure(method=METHODS[name], n_folds=n_folds, alphas=ALPHAS, seed=seed)
    asked = {"groups": groups, "condition": condition, "task": task, "language": language}
    cells: list[TransferCell] = []
    n_classes = 0
    with threadpool_limits(limits=1):
        for pool in pooled(runs, target, by, site=site, role=role, layers=layers, **asked):
            cells += _Matrix(work, pool, by, n_bootstrap, level).cells()
            n_classes = len(np.unique(pool.target))
    smallest = min(cell.n_groups for cell in cells)
    warn_of_few(kind, smallest, n_classes)
    return Transfer(target=target, role=role, site=site, by=by, cells=tuple(cells))


class _Matrix:
    """All training and test sets of one model."""

    def __init__(self, work: Procedure, pool: Pool, by: str, n_bootstrap: int, level: float) -> None:
        self.work, self.pool, self.by = work, pool, by
        self.n_bootstrap, self.level = n_bootstrap, level
        classes = work.method.kind == "classification"
        self.target: Shaped[np.ndarray, " item"] = np.unique(pool.target, return_inverse=True)[1] if classes else pool.target
        self.group = np.unique(np.asarray(pool.groups), return_inverse=True)[1]
        self.fold = work.fold(self.target, self.group)

    def pairs(self) -> Iterator[tuple[str, str, Bool[np.ndarray, " item"], Bool[np.ndarray, " item"]]]:
        """Names and items of every training and test set."""
        parts = np.asarray(self.pool.parts)
        names = distances_apart(list(dict.fromkeys(self.pool.parts)))
        if leaves_out(self.by):
            for test in names:
                yield OTHERS, test, parts != test, parts == test
            for test in names:
                yield ALL, test, np.ones(len(parts), dtype=bool), parts == test
        else:
            for train in names:
                for test in names:
                    yield train, test, parts == train, parts == test

    def cells(self) -> list[TransferCell]:
        found: dict[bytes, tuple[int, np.ndarray, np.ndarray]] = {}
        cells = []
        for train, test, learned, tested in self.pairs():
            key = learned.tobytes()
            if key not in found:
                self.check(train, test, learned)
                found[key] = self.learn(learned)
            cells += self.row(train, test, learned, tested, found[key])
        return cells

    def check(self, train: str, test: str, learned: Bool[np.ndarray, " item"]) -> None:
        what = f"{train!r}" if train not in (ALL, OTHERS) else f"all but {test!r}"
        folds = len(np.unique(self.fold[learned]))
        if folds < _FEWEST_FOLDS or len(np.unique(self.target[learned])) < 2:
            raise NotEnoughDataError(
                f"the part {what} lies in {folds} folds and has {len(np.unique(self.target[learned]))} values of the target; a "
                f"probe needs at least {_FEWEST_FOLDS} folds and two values: record more scenes."
            )

    def learn(self, learned: Bool[np.ndarray, " item"]) -> tuple[int, np.ndarray, np.ndarray]:
        """The chosen layer, the held-out predictions of every item, and the place of the layer in the pool."""
        weight = learned.astype(float)
        outcomes = [self.work.outcomes(X, [self.target], weight, self.fold)[0] for X in self.pool.layers.values()]
        inner = np.stack([outcome.inner[:, 0] for outcome in outcomes])
        chosen = inner.argmax(axis=0)
        predicted = np.stack([outcome.predicted for outcome in outcomes])[chosen[self.fold], np.arange(len(self.fold))]
        times = Counter(chosen.tolist())
        place = min(times, key=lambda layer: (-times[layer], layer))
        layer = list(self.pool.layers)[place]
        return layer, predicted, self.redrawn(self.pool.layers[layer], weight)

    def redrawn(self, X: Float[np.ndarray, "item feature"], weight: Float[np.ndarray, " item"]) -> np.ndarray:
        """For each bootstrap draw the items' times and predictions; NaN for items that were not drawn."""
        rng, classes = self.work.rng(2), self.work.method.kind == "classification"
        draws = np.full((self.n_bootstrap, 2, len(X)), np.nan)
        for draw in draws:
            for _ in range(1000):
                times = draw_groups(self.target.astype(float), self.group, self.work.n_folds, rng, classes=classes)
                seen = np.flatnonzero(times)
                drawn = np.unique(self.group[seen], return_inverse=True)[1]
                fold = deal_folds(self.target[seen].astype(float), drawn, self.work.n_folds, rng)
                if self.usable(weight[seen], fold, self.target[seen]):
                    break
            else:
                raise NotEnoughDataError("no bootstrap draw can be learned from; use more scenes, or n_bootstrap=0.")
            outcome = self.work.outcomes(X[seen], [self.target[seen]], weight[seen] * times[seen], fold)[0]
            draw[0] = times
            draw[1, seen] = outcome.predicted
        return draws

    def usable(self, weight: np.ndarray, fold: Int[np.ndarray, " item"], target: np.ndarray) -> bool:
        """Whether any two folds can be left out and something with two values be left to learn from."""
        learned = weight > 0
        held = [set(target[learned & (fold == f)].tolist()) for f in range(self.work.n_folds)]
        pairs = ((a, b) for a in range(len(held)) for b in range(a, len(held)))
        return all(len(set().union(*(h for f, h in enumerate(held) if f not in pair))) > 1 for pair in pairs)

    def row(
        self,
        train: str,
        test: str,
        learned: Bool[np.ndarray, " item"],
        tested: Bool[np.ndarray, " item"],
        found: tuple[int, np.ndarray, np.ndarray],
    ) -> list[TransferCell]:
        layer, predicted, draws = found
        metrics = METRICS[self.work.method.kind]
        score = self.scored(predicted, np.ones(len(tested)), tested)
        redone = [self.scored(draw[1], draw[0], tested & (draw[0] > 0)) for draw in draws if (tested & (draw[0] > 0)).any()]
        low, high = interval(metrics, score, np.array(redone).reshape(-1, len(metrics)), self.level)
        low = np.where([m == "r" for m in metrics], np.maximum(low, -1.0), low)
        chance = self.chance(learned, tested)
        same: dict[str, Any] = {"model": self.pool.model, "layer": layer, "train": train, "test": test}
        same |= {"n_train": int(learned.sum()), "n_test": int(tested.sum()), "n_groups": len(np.unique(self.group[tested]))}
        return [
            TransferCell(metric=m, score=float(score[i]), low=float(low[i]), high=float(high[i]), chance=float(chance[i]), **same)
            for i, m in enumerate(metrics)
        ]

    def scored(
        self, predicted: np.ndarray, times: Float[np.ndarray, " item"], rows: Bool[np.ndarray, " item"]
    ) -> Float[np.ndarray, " metric"]:
        """Scores of some items; R2 against the spread of the target over all items."""
        if self.work.method.kind == "classification":
            found = SCORES["balanced_accuracy"](predicted[rows].astype(int), self.target[rows], times[rows])
            return np.array([float(found)])
        error = predicted[rows] - self.target[rows]
        weight = times[rows] / times[rows].sum()
        r2 = 1 - float(weight @ error**2) / float(self.target.var())
        return np.array([r2, float(weight @ np.abs(error)), _correlation(predicted[rows], self.target[rows], weight)])

    def chance(self, learned: Bool[np.ndarray, " item"], tested: Bool[np.ndarray, " item"]) -> Float[np.ndarray, " metric"]:
        """What a probe reaches that knows nothing but its training part's mean."""
        if self.work.method.kind == "classification":
            return np.array([1 / len(np.unique(self.target[learned]))])
        return self.scored(np.full(len(tested), self.target[learned].mean()), np.ones(len(tested)), tested)


def _correlation(a: Float[np.ndarray, " item"], b: Float[np.ndarray, " item"], weight: Float[np.ndarray, " item"]) -> float:
    """Weighted Pearson correlation; 0 where one of the two does not vary."""
    a, b = a - weight @ a, b - weight @ b
    size = float(np.sqrt((weight @ a**2) * (weight @ b**2)))
    return float(weight @ (a * b)) / size if size > 1e-12 else 0.0
