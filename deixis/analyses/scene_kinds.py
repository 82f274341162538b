"""The same model on standard and on decoupled scenes: what of its use of distance is left when height and size say nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deixis.analyses.behaviour import term_behaviour
from deixis.analyses.layer_sweep import layer_sweep
from deixis.analyses.sensitivity import distance_sensitivity
from deixis.analyses.style import SERIES, axes, language_name

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

COLUMNS = ("model", "language", "measure", "scenes", "value", "low", "high", "layer", "n")
MEASURES = {
    "slope": "log-odds of distal, per metre",
    "js_distance": "Jensen-Shannon distance",
    "distance_m": "distance, R2 of the best layer",
    "region": "region, balanced accuracy of the best layer",
}
"""What is measured, and what it is called in tables and pictures."""


@dataclass(frozen=True)
class SceneKinds:
    """One model's measures on both kinds of scenes."""

    model: str
    role: str
    """Token positions of the probes."""
    _rows: "pd.DataFrame"

    def __repr__(self) -> str:
        return f"SceneKinds({self.model!r}; .to_frame(), .table(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per language, measure and kind of scenes.

        ``slope``: of :func:`deixis.distance_sensitivity`; ``js_distance``: from the reference, mean over regions (no rows
        without one); ``distance_m`` and ``region``: what a probe decodes at its best ``layer``, chosen on other folds. ``low,
        high``: 95 % (for probes at the layer that most folds chose); ``n`` items, for probes distinct vectors.
        """
        return self._rows.copy()

    def table(self) -> "pd.DataFrame":
        """One row per language and measure, standard and decoupled beside each other."""
        wide = self._rows.pivot(index=["model", "language", "measure"], columns="scenes", values="value")
        order = self._rows[["model", "language", "measure"]].drop_duplicates()
        return order.merge(wide[["standard", "decoupled"]].reset_index(), on=["model", "language", "measure"])

    def plot(self, ax: "Axes | None" = None, measure: str = "slope") -> "Axes":
        """See :func:`plot_scene_kinds`."""
        return plot_scene_kinds(self.to_frame(), ax, measure=measure)


def scene_kinds(
    standard: "Run",
    decoupled: "Run",
    reference: "str | Path | None" = None,
    *,
    role: str = "answer",
    probes: bool = True,
    layers: Sequence[int] | None = None,
    n_boot: int = 1000,
    seed: int = 0,
) -> SceneKinds:
    """Measure a model on standard scenes and on scenes in which distance, image height and apparent size are independent.

    Args:
        standard: A run of the model on ``dx.memory_game()``.
        decoupled: A run of the same model on ``dx.memory_game(decouple=True, n=...)``.
        reference: As for :func:`deixis.behaviour`.
        role: Token positions at which distance and region are decoded, in each language by itself.
        probes: Whether to run the layer sweeps, which take the longest.
        layers: Of the sweeps; None for all that were recorded.
        n_boot: Bootstrap draws of slopes and Jensen-Shannon distances.
        seed: Of everything random.

    Raises:
        ValueError: Runs of two models; the first holds decoupled scenes or the second doesn't; what the analyses refuse.
    """
    import pandas as pd

    models = [str(run.info["model"]) for run in (standard, decoupled)]
    if models[0] != models[1]:
        raise ValueError(
            f"the standard scenes were shown to {models[0]!r} and the decoupled to {models[1]!r}; pass one model's runs."
        )
    rows: list[dict[str, object]] = []
    for scenes, run in (("standard", standard), ("decoupled", decoupled)):
        found = distance_sensitivity(run, n_boot=n_boot, seed=seed)
        if found.scenes != scenes:
            raise ValueError(f"the run at the place of the {scenes} scenes holds {found.scenes} ones; exchange the runs.")
        measured = [_slopes(found.to_frame())]
        if reference is not None:
            measured.append(_distances(run, reference, n_boot, seed))
        if probes:
            measured += [_decoded(run, target, role, layers, seed) for target in ("distance_m", "region")]
        rows += [{"model": models[0], "scenes": scenes} | row for part in measured for row in part]
    frame = pd.DataFrame(rows).reindex(columns=list(COLUMNS))
    order = {name: number for number, name in enumerate(MEASURES)}
    frame = frame.sort_values(["measure"], key=lambda names: names.map(order), kind="stable").reset_index(drop=True)
    return SceneKinds(models[0], role, frame)


def _slopes(frame: "pd.DataFrame") -> list[dict[str, object]]:
    return [
        {"language": r.language, "measure": "slope", "value": r.slope, "low": r.low, "high": r.high, "n": r.n}
        for r in frame.itertuples()
    ]


def _distances(run: "Run", reference: "str | Path", n_boot: int, seed: int) -> list[dict[str, object]]:
    scores = term_behaviour(run, reference, n_boot=n_boot, seed=seed).scores()
    return [
        {"language": r.language, "measure": "js_distance", "value": r.js_distance, "low": r.low, "high": r.high, "n": r.n_scored}
        for r in scores[scores["region"] == "mean"].itertuples()
    ]


def _decoded(run: "Run", target: str, role: str, layers: Sequence[int] | None, seed: int) -> list[dict[str, object]]:
    sweep = layer_sweep(run, target, role=role, language="each", controls=("interval",), layers=layers, seed=seed)
    frame = sweep.to_frame()
    rows = []
    for language in dict.fromkeys(frame["language"]):
        best = sweep.best(language=language)
        mine = frame[(frame["language"] == language) & (frame["layer"] == best.layer) & (frame["metric"] == best.metric)].iloc[0]
        row = {"language": language, "measure": target, "value": best.score, "low": mine["low"], "high": mine["high"]}
        rows.append(row | {"layer": best.layer, "n": mine["n_items"]})
    return rows


def plot_scene_kinds(frame: "pd.DataFrame", ax: "Axes | None" = None, *, measure: str = "slope") -> "Axes":
    """One measure on both kinds of scenes: a row per model and language, filled for standard, hollow for decoupled.

    Args:
        frame: From :meth:`SceneKinds.to_frame`, or several of them concatenated.
        ax: Where to draw; None makes a figure.
        measure: One of :data:`MEASURES`.

    Raises:
        ValueError: The frame lacks the measure.
    """
    rows = frame[frame["measure"] == measure]
    if not len(rows):
        raise ValueError(f"measure={measure!r} is not one of: {', '.join(map(repr, dict.fromkeys(frame['measure'])))}.")
    groups = list(rows.groupby(["model", "language"], sort=False))
    models = list(dict.fromkeys(rows["model"]))
    ax = axes(ax, 5.2, 1.0 + 0.3 * len(groups))
    for place, ((model, _), part) in enumerate(groups):
        colour = SERIES[models.index(model) % len(SERIES)]
        first = place == [name for (name, _), _ in groups].index(model)
        for scenes, (value, low, high) in part.set_index("scenes")[["value", "low", "high"]].astype(float).T.items():
            y = place + (0.14 if scenes == "decoupled" else -0.14)
            ax.plot([low, high], [y, y], color=colour, linewidth=1.4)
            face = "white" if scenes == "decoupled" else colour
            label = f"{model}, {scenes}" if first else None
            ax.plot([value], [y], "o", color=colour, markerfacecolor=face, markersize=4.5, label=label)
    ax.set_yticks(range(len(groups)), [language_name(str(code)) for (_, code), _ in groups])
    ax.invert_yaxis()
    ax.axvline(0, color="#9A9A9A", linewidth=0.8, linestyle=":")
    ax.set_xlabel(MEASURES[measure])
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax
