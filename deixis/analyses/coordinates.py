"""Where the model puts the object: several coordinates decoded together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Shaped
from threadpoolctl import threadpool_limits

from deixis.analyses.coordinates_plot import plot_coordinates
from deixis.analyses.probe_layers import decoded, layers_of, procedure
from deixis.probes.folds import deal_folds, draw_groups
from deixis.probes.power import warn_of_few
from deixis.probes.procedure import Procedure, interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

COLUMNS = ("model", "role", "site", "layer", "axis", "metric", "score", "low", "high", "chance", "n_items", "n_groups")
"""Of the frame, in order."""
JOINT = "joint"
METRICS = ("r2", "error")


@dataclass(frozen=True, kw_only=True)
class Coordinates:
    """Decoded coordinates on scenes that the probe has not seen."""

    model: str
    role: str
    site: str
    layer: int
    """Chosen on other folds, for all axes together."""
    axes: tuple[str, ...]
    score: Float[np.ndarray, "axis_and_joint metric"]
    """Of every axis, and last of all together; metrics are R2 and the error in the targets' unit."""
    low: Float[np.ndarray, "axis_and_joint metric"]
    high: Float[np.ndarray, "axis_and_joint metric"]
    chance: Float[np.ndarray, "axis_and_joint metric"]
    true: Float[np.ndarray, "axis item"]
    decoded: Float[np.ndarray, "axis item"]
    groups: Shaped[np.ndarray, " item"]

    def __repr__(self) -> str:
        r2, error = self.score[-1]
        return (
            f"Coordinates({self.model!r}, {', '.join(self.axes)}, role {self.role}, {self.site} layer {self.layer}: joint R2 "
            f"{r2:.2f}, error {error:.2f}; .to_frame(), .points(), .plot())"
        )

    def to_frame(self) -> "pd.DataFrame":
        """One row per axis (last ``joint``) and metric; the columns are ``COLUMNS``.

        ``r2`` of an axis is the usual one, the joint one is ``1 - sum of squared errors / sum of squared deviations`` over all
        axes. ``error`` is the mean absolute error of an axis, for ``joint`` the mean distance between decoded and true points,
        in the targets' unit; its ``chance`` is that of answering the training mean.
        """
        import pandas as pd

        same = {"model": self.model, "role": self.role, "site": self.site, "layer": self.layer}
        same |= {"n_items": self.true.shape[1], "n_groups": len(np.unique(self.groups))}
        rows = [
            same
            | {"axis": axis, "metric": metric, "score": self.score[i, j]}
            | {"low": self.low[i, j], "high": self.high[i, j], "chance": self.chance[i, j]}
            for i, axis in enumerate((*self.axes, JOINT))
            for j, metric in enumerate(METRICS)
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def points(self) -> "pd.DataFrame":
        """One row per item: ``model``, ``group``, and for each axis ``true_<axis>`` and ``decoded_<axis>``."""
        import pandas as pd

        columns = {"model": self.model, "group": self.groups}
        columns |= {f"true_{axis}": values for axis, values in zip(self.axes, self.true, strict=True)}
        return pd.DataFrame(columns | {f"decoded_{a}": values for a, values in zip(self.axes, self.decoded, strict=True)})

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw decoded against true points from above: ``plot_coordinates(self.points(), ax)``."""
        return plot_coordinates(self.points(), ax)


def decode_coordinates(
    run: "Run",
    targets: Sequence[str] = ("x_m", "distance_m"),
    role: str = "object",
    site: str = "resid",
    groups: str = "scene",
    condition: str = "real",
    *,
    layers: Sequence[int] | None = None,
    task: str | None = None,
    language: str | None = None,
    where: Mapping[str, str] | None = None,
    n_folds: int = 5,
    n_bootstrap: int = 100,
    level: float = 0.95,
    seed: int = 0,
) -> Coordinates:
    """Decode several targets of one unit together, on scenes that the probe has not seen.

    Ridge regression on the same features and folds for all axes, each with its own penalty; the layer is chosen on the other
    folds for all of them together. The interval repeats the cross-validation at that layer on groups drawn with replacement.

    Args:
        run: What :func:`deixis.record` or :func:`deixis.open_run` returns.
        targets: Two or more keys of the items' ``targets`` that share a unit, such as ``x_m``, ``y_m``, ``z_m``, ``size_m``; the
            first two are drawn, sideways and away from the viewer.
        role: At which token positions.
        site: Where in the model.
        groups: The items' group that is never split between training and test.
        condition: Of the items.
        layers: Numbers of recorded layers to choose from; None for all of them.
        task: Of the items; None for ``demonstrative`` where there are several.
        language: Of the items; None for all.
        where: Further groups and the value that an item must have in each, such as ``{"scale": "desk"}``.
        n_folds: At least 3.
        n_bootstrap: Draws of the bootstrap; 0 for none.
        level: Of the interval.
        seed: Of folds and bootstrap.

    Warns:
        TooFewItemsWarning: Fewer than 20 groups.

    Raises:
        ValueError: Fewer than two targets, or what the run does not hold.
    """
    if isinstance(targets, str) or len(targets) < 2:
        raise ValueError(f"targets={targets!r} must name two or more, such as ('x_m', 'distance_m'); for one use dx.layer_sweep.")
    work = procedure(n_folds, seed)
    asked = {"groups": groups, "condition": condition, "task": task, "language": language, "where": where}
    held = layers_of(run, targets, role=role, site=site, layers=layers, **asked)
    with threadpool_limits(limits=1):
        found = decoded(held, work)
        X = held.X[held.layers.index(found.layer)]
        draws = _draws(work, X, held.targets, held.group, n_bootstrap)
    once = np.ones(len(held.group))
    score = _scores(found.predicted, held.targets, once)
    ends = [interval(METRICS_OF_INTERVAL, score[i], draws[:, i], level) for i in range(len(score))]
    mean = np.stack([[t[found.fold != f].mean() for f in found.fold] for t in held.targets])
    warn_of_few("regression", int(held.group.max()) + 1)
    return Coordinates(
        model=held.model,
        role=role,
        site=site,
        layer=found.layer,
        axes=tuple(targets),
        score=score,
        low=np.stack([low for low, _ in ends]),
        high=np.stack([high for _, high in ends]),
        chance=_scores(mean, held.targets, once),
        true=held.targets,
        decoded=found.predicted,
        groups=held.group,
    )


METRICS_OF_INTERVAL = ("r2", "mae")
"""The range of each metric's interval: an R2 is at most 1, an error at least 0."""


def _scores(
    predicted: Float[np.ndarray, "axis item"], true: Float[np.ndarray, "axis item"], weight: Float[np.ndarray, " item"]
) -> Float[np.ndarray, "axis_and_joint metric"]:
    weight = weight / weight.sum()
    error = predicted - true
    squared, spread = error**2 @ weight, (true - (true @ weight)[:, None]) ** 2 @ weight
    each = np.stack([1 - squared / np.where(spread > 0, spread, np.nan), np.abs(error) @ weight], axis=1)
    together = [1 - squared.sum() / spread.sum(), float(np.sqrt((error**2).sum(axis=0)) @ weight)]
    return np.vstack([each, together])


def _draws(
    work: Procedure,
    X: Float[np.ndarray, "item feature"],
    targets: Float[np.ndarray, "axis item"],
    group: Shaped[np.ndarray, " item"],
    n: int,
) -> Float[np.ndarray, "draw axis_and_joint metric"]:
    rng = work.rng(2)
    found = np.empty((n, len(targets) + 1, len(METRICS)))
    for draw in range(n):
        times = draw_groups(targets[0], group, work.n_folds, rng, classes=False)
        seen = np.flatnonzero(times)
        drawn = np.unique(group[seen], return_inverse=True)[1]
        fold = deal_folds(targets[0][seen], drawn, work.n_folds, rng)
        weight = times[seen].astype(float)
        outcomes = work.outcomes(X[seen], [target[seen] for target in targets], weight, fold)
        found[draw] = _scores(np.stack([outcome.predicted for outcome in outcomes]), targets[:, seen], weight)
    return found
