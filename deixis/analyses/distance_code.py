"""Is a decoded distance metric or merely ordinal, and does it shrink at the ends."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from deixis.analyses.distance_code_plot import plot_distance_code
from deixis.analyses.probe_layers import decoded, layers_of, procedure
from deixis.analyses.transfer_data import FEWEST_DISTANCES
from deixis.probes.power import warn_of_few
from deixis.probes.scores import r2

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

CODES = ("linear", "logarithmic", "ordinal")
COLUMNS = ("model", "target", "role", "site", "layer", "code", "explained", "low", "high", "decoded", "n_items", "n_groups")
"""Of the frame, in order."""
MARGIN = 0.02
"""A curve must explain this much more of the decoded values than another, beside being surely better."""
_ENDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Shrinkage:
    """What regression to the mean does to decoded values, in the target's unit; intervals from redrawn groups."""

    slope: tuple[float, float, float]
    """Of decoded on true values with its interval: 1 keeps distances apart as they are, less draws them together."""
    near: tuple[float, float, float]
    """Mean decoded less true value in the nearest fifth of the items: positive is too far."""
    far: tuple[float, float, float]
    """The same in the farthest fifth: negative is too near."""


@dataclass(frozen=True, kw_only=True)
class DistanceCode:
    """How decoded values follow the true ones."""

    model: str
    target: str
    role: str
    site: str
    layer: int
    """Chosen on other folds."""
    explained: Float[np.ndarray, " code"]
    """Held-out share of the decoded values' variance that a curve of the true ones explains, one for each of ``CODES``."""
    low: Float[np.ndarray, " code"]
    high: Float[np.ndarray, " code"]
    decoded_as: Float[np.ndarray, " code"]
    """Held-out R2 of probes for the target, its logarithm and its rank."""
    verdict: str
    shrinkage: Shrinkage
    true: Float[np.ndarray, " item"]
    decoded: Float[np.ndarray, " item"]
    groups: Int[np.ndarray, " item"]

    def __repr__(self) -> str:
        slope = self.shrinkage.slope[0]
        return (
            f"DistanceCode({self.model!r}, {self.target}, role {self.role}, {self.site} layer {self.layer}: {self.verdict}, "
            f"slope {slope:.2f}; .to_frame(), .points(), .plot())"
        )

    def to_frame(self) -> "pd.DataFrame":
        """One row per code; the columns are ``COLUMNS``."""
        import pandas as pd

        same = {"model": self.model, "target": self.target, "role": self.role, "site": self.site, "layer": self.layer}
        same |= {"n_items": len(self.true), "n_groups": int(self.groups.max()) + 1}
        columns = {"explained": self.explained, "low": self.low, "high": self.high, "decoded": self.decoded_as}
        rows = [same | {"code": code} | {name: v[i] for name, v in columns.items()} for i, code in enumerate(CODES)]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def points(self) -> "pd.DataFrame":
        """One row per item: ``model``, ``target``, ``group``, ``true``, ``decoded``."""
        import pandas as pd

        columns = {"model": self.model, "target": self.target, "group": self.groups}
        return pd.DataFrame(columns | {"true": self.true, "decoded": self.decoded})

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw decoded against true values: ``plot_distance_code(self.points(), ax)``."""
        return plot_distance_code(self.points(), ax)


def distance_code(
    run: "Run",
    target: str = "distance_m",
    role: str = "answer",
    site: str = "resid",
    groups: str = "scene",
    condition: str = "real",
    *,
    layer: int | None = None,
    task: str | None = None,
    language: str | None = None,
    n_folds: int = 5,
    n_bootstrap: int = 200,
    seed: int = 0,
) -> DistanceCode:
    """Compare a straight line, a logarithm and any rising curve as accounts of what is decoded.

    A ridge probe decodes the target on held-out scenes. If the code is metric, decoded values follow the true ones along a line
    (or, if distances are compressed, along their logarithm). If only the order is kept, a rising curve of any form (isotonic
    regression; Barlow et al. 1972, *Statistical Inference under Order Restrictions*) accounts for more. Each curve is fitted on
    the decoded values of four folds and tested on the fifth, so that the freer one is not better by being freer.

    Verdicts: ``ordinal`` if the rising curve explains surely more than both others (its lead's 95 % interval over redrawn groups
    lies above 0, and is at least :data:`MARGIN`); else ``linear`` or ``logarithmic`` if one of them surely leads the other; else
    ``metric, linear or logarithmic``; ``not decoded`` where the rising curve explains nothing for sure. The intervals are
    conditional on the probe: its fits are not repeated.

    Args:
        run: What :func:`deixis.record` or :func:`deixis.open_run` returns.
        target: A key of the items' ``targets`` with at least 8 distinct, positive values.
        role: At which token positions.
        site: Where in the model.
        groups: The items' group that is never split between training and test.
        condition: Of the items.
        layer: None for the one that decodes best on other folds.
        task: Of the items; None for ``demonstrative`` where there are several.
        language: Of the items; None for all.
        n_folds: At least 3.
        n_bootstrap: Redrawn sets of groups.
        seed: Of folds and draws.

    Warns:
        TooFewItemsWarning: Fewer than 20 groups.

    Raises:
        ValueError: Fewer than 8 distinct values, or values that have no logarithm.
    """
    asked = {"groups": groups, "condition": condition, "task": task, "language": language}
    held = layers_of(run, [target], role=role, site=site, layers=None if layer is None else [layer], **asked)
    true = held.targets[0]
    levels = np.unique(true)
    if len(levels) < FEWEST_DISTANCES or levels[0] <= 0:
        raise ValueError(
            f"the shape of a code needs at least {FEWEST_DISTANCES} distinct positive values and {target!r} has {len(levels)}, "
            f"from {levels[0]:g}; draw more distances, such as memory_game(n=...)."
        )
    work = procedure(n_folds, seed)
    with threadpool_limits(limits=1):
        found = decoded(held, work)
        X = held.X[held.layers.index(found.layer)]
        scales = [true, np.log(true), np.searchsorted(levels, true).astype(float)]
        decoded_as = [o.score[0] for o in work.outcomes(X, scales, np.ones(len(true)), found.fold)]
    fitted = curves(true, found.predicted[0], found.fold)
    times = _times(held.group, n_bootstrap, seed)
    explained = np.array([float(r2(fit, found.predicted[0], np.ones(len(true)))) for fit in fitted])
    draws = np.stack([[float(r2(fit, found.predicted[0], t)) for fit in fitted] for t in times])
    warn_of_few("regression", int(held.group.max()) + 1)
    return DistanceCode(
        model=held.model,
        target=target,
        role=role,
        site=site,
        layer=found.layer,
        explained=explained,
        low=np.quantile(draws, 0.025, axis=0),
        high=np.quantile(draws, 0.975, axis=0),
        decoded_as=np.array(decoded_as),
        verdict=verdict_of(explained, draws),
        shrinkage=_shrinkage(true, found.predicted[0], times),
        true=true,
        decoded=found.predicted[0],
        groups=held.group,
    )


def curves(
    true: Float[np.ndarray, " item"], seen: Float[np.ndarray, " item"], fold: Int[np.ndarray, " item"]
) -> Float[np.ndarray, "code item"]:
    """Each item's decoded value as predicted from its true one by a line, a logarithm and a rising curve of the other folds."""
    from sklearn.isotonic import IsotonicRegression

    found = np.empty((len(CODES), len(true)))
    for number in range(int(fold.max()) + 1):
        train, test = fold != number, fold == number
        for row, scale in enumerate((true, np.log(true))):
            slope, level = np.polyfit(scale[train], seen[train], 1)
            found[row, test] = slope * scale[test] + level
        rising = IsotonicRegression(out_of_bounds="clip").fit(true[train], seen[train])
        found[2, test] = rising.predict(true[test])
    return found


def verdict_of(explained: Float[np.ndarray, " code"], draws: Float[np.ndarray, "draw code"]) -> str:
    """Which curve accounts for the decoded values; see :func:`distance_code`."""

    def leads(code: int, others: tuple[int, ...]) -> bool:
        lead = explained[code] - explained[list(others)].max()
        low = np.quantile(draws[:, code] - draws[:, list(others)].max(axis=1), 0.025)
        return bool(lead >= MARGIN and low > 0)

    if np.quantile(draws[:, 2], 0.025) <= 0:
        return "not decoded"
    if leads(2, (0, 1)):
        return "ordinal"
    if leads(0, (1,)):
        return "linear"
    return "logarithmic" if leads(1, (0,)) else "metric, linear or logarithmic"


def _times(group: Int[np.ndarray, " item"], n: int, seed: int) -> Float[np.ndarray, "draw item"]:
    """How often each item counts when its group is drawn with replacement."""
    rng, n_groups = np.random.default_rng((seed, 8)), int(group.max()) + 1
    return rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=n)[:, group].astype(float)


def _shrinkage(
    true: Float[np.ndarray, " item"], seen: Float[np.ndarray, " item"], times: Float[np.ndarray, "draw item"]
) -> Shrinkage:
    near, far = true <= np.quantile(true, _ENDS), true >= np.quantile(true, 1 - _ENDS)

    def of(weight: Float[np.ndarray, " item"]) -> tuple[float, float, float]:
        level = weight @ true / weight.sum()
        slope = weight @ ((true - level) * seen) / (weight @ (true - level) ** 2)
        error = weight * (seen - true)
        return float(slope), float(error[near].sum() / weight[near].sum()), float(error[far].sum() / weight[far].sum())

    value = of(np.ones(len(true)))
    draws = np.array([of(t) for t in times if t[near].sum() and t[far].sum()])
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    slope, at_near, at_far = ((value[i], float(low[i]), float(high[i])) for i in range(3))
    return Shrinkage(slope=slope, near=at_near, far=at_far)
