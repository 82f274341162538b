"""Which layers hold a target: one probe per layer, with its controls."""

import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from deixis.analyses.probe_data import Chosen, ProbeData, choose_items, probe_data
from deixis.analyses.style import MUTED, SERIES, axes
from deixis.probes import ProbeScores, cross_validate_probe
from deixis.probes.controls import recurring
from deixis.probes.scores import ERRORS, SCORES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

CONTROLS = ("task", "interval")
"""What a sweep can run beside its scores: the control task, and the bootstrap interval."""
CLASS_TARGETS = frozenset({"region"})
"""Targets that are classes, whatever their numbers."""
# fmt: off
COLUMNS = (
    "model", "target", "role", "site", "layer", "language", "condition", "metric", "score", "low", "high", "chance", "control",
    "selectivity", "p_value", "nuisance", "residual", "untrained", "blank", "bits", "n_items", "n_groups",
)
# fmt: on
"""Of the frame, in order."""
_SERIES = ("model", "target", "role", "site", "language", "condition")
_LABELS = {"balanced_accuracy": "balanced accuracy", "r2": "$R^2$", "mae": "mean absolute error"}
_PLACES = {"resid": "layer (residual stream entering block)"}


@dataclass(frozen=True, kw_only=True)
class LayerScores:
    """The probe of one layer."""

    layer: int
    language: str
    """``all`` where languages are pooled."""
    scores: ProbeScores
    n_missing: int
    """Items left out because they have no token of the role."""


@dataclass(frozen=True, kw_only=True)
class BestLayer:
    """The layer that holds a target best, and a score that the choice has not flattered."""

    model: str
    target: str
    role: str
    site: str
    language: str
    condition: str
    metric: str
    layer: int
    """Chosen by most folds; the earliest of several."""
    score: float
    """On each fold, of the layer that the other folds chose."""
    by_fold: tuple[int, ...]
    """The layer chosen for each fold."""

    def to_frame(self) -> "pd.DataFrame":
        """One row, first column ``model``; ``by_fold`` as text."""
        import pandas as pd

        return pd.DataFrame([vars(self) | {"by_fold": " ".join(map(str, self.by_fold))}])

    def __str__(self) -> str:
        chosen = ", ".join(map(str, self.by_fold))
        return (
            f"{self.model}: {self.target} is decoded best at {self.site} layer {self.layer} (role {self.role}, language "
            f"{self.language}): {self.metric} {self.score:.3f} on folds that had no part in the choice; folds chose {chosen}"
        )


@dataclass(frozen=True, kw_only=True)
class LayerSweep:
    """A probe's scores at every layer of one model."""

    model: str
    target: str
    role: str
    site: str
    condition: str
    cells: tuple[LayerScores, ...]
    """By language, then layer."""

    def __repr__(self) -> str:
        layers = [cell.layer for cell in self.cells]
        where = f"role {self.role}, {self.site} {min(layers)} to {max(layers)}"
        return f"LayerSweep({self.model!r}, {self.target}, {where}; .to_frame(), .best(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per language, layer and metric; the columns are ``COLUMNS``, those of controls that were not run NaN.

        ``selectivity`` is the score less the control, for errors the control less the score: positive is better. ``mae`` and its
        ``low``, ``high``, ``chance`` and ``control`` are in the target's unit.
        """
        import pandas as pd

        same = {"model": self.model, "target": self.target, "role": self.role, "site": self.site, "condition": self.condition}
        rows = [
            same | {"layer": cell.layer, "language": cell.language} | row
            for cell in self.cells
            for row in cell.scores.to_frame().to_dict("records")
        ]
        return pd.DataFrame(rows).reindex(columns=list(COLUMNS))

    def best(self, metric: str | None = None, language: str | None = None) -> BestLayer:
        """Choose the layer without the items it is scored on.

        For every fold, the layer with the best score on the other folds is chosen, by probes that saw nothing of that fold
        (neither for fitting nor for their penalty), and its predictions for the fold are kept; the score is that of all kept
        predictions. The best of many layers' scores would be too good by chance.

        Args:
            metric: None for ``balanced_accuracy`` or ``r2``.
            language: One of the sweep's; None for the only one.

        Raises:
            ValueError: No such metric or language, or several languages and none chosen.
        """
        spoken = tuple(dict.fromkeys(cell.language for cell in self.cells))
        language = _among("language", spoken[0] if language is None and len(spoken) == 1 else language, spoken)
        cells = [cell for cell in self.cells if cell.language == language]
        metrics = cells[0].scores.metrics
        metric = _among("metric", metric or metrics[0], metrics)
        inner = np.stack([cell.scores.inner[:, metrics.index(metric)] for cell in cells])
        chosen = (-inner if metric in ERRORS else inner).argmax(axis=0)
        kept = [(cells[best].scores, cells[best].scores.fold == fold) for fold, best in enumerate(chosen)]
        truth = np.concatenate([scores.truth[rows] for scores, rows in kept])
        predicted = np.concatenate([scores.predicted[rows] for scores, rows in kept])
        by_fold = tuple(cells[best].layer for best in chosen)
        return BestLayer(
            model=self.model,
            target=self.target,
            role=self.role,
            site=self.site,
            language=cells[0].language,
            condition=self.condition,
            metric=metric,
            layer=min(by_fold, key=lambda layer: (-Counter(by_fold)[layer], layer)),
            score=float(SCORES[metric](predicted, truth, np.ones(len(truth)))),
            by_fold=by_fold,
        )

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the first metric: ``plot_layer_sweep(self.to_frame(), ax)``."""
        return plot_layer_sweep(self.to_frame(), ax)


def layer_sweep(
    run: "Run",
    target: str,
    role: str = "answer",
    site: str = "resid",
    groups: str = "scene",
    condition: str = "real",
    controls: str | Sequence[str] = "default",
    *,
    layers: Sequence[int] | None = None,
    language: str | None = None,
    task: str | None = None,
    types: str = "figure",
    kind: str | None = None,
    probe: str | None = None,
    n_folds: int = 5,
    n_controls: int = 20,
    n_bootstrap: int = 200,
    seed: int = 0,
    workers: int | None = None,
) -> LayerSweep:
    """Decode a target from every recorded layer, on scenes the probe has not seen.

    Each layer gets the nested, grouped cross-validation of :func:`deixis.probes.cross_validate_probe`, with the same folds.
    Vectors that are identical for several questions about a scene count once (``n_items`` is the number of distinct vectors).

    Args:
        run: What :func:`deixis.record` or :func:`deixis.open_run` returns.
        target: A key of the items' ``targets``. ``region`` is decoded as classes (balanced accuracy), others as values (R2, and
            the mean absolute error in the target's unit).
        role: At which token positions.
        site: Where in the model.
        groups: The items' group that is never split between training and test.
        condition: Of the items.
        controls: ``"default"`` for all that the items allow, or a list of: ``task`` (the control task), ``interval`` (the
            bootstrap).
        layers: Numbers of recorded layers; None for all of them.
        language: A language's code; None pools all languages (``all``); ``"each"`` sweeps them one by one.
        task: Of the items; None for ``demonstrative`` where there are several.
        types: The items' group whose members share a random label in the control task.
        kind: ``classification`` or ``regression``, where ``target`` is to be read otherwise.
        probe: As for ``cross_validate_probe``.
        n_folds: As there.
        n_controls: Draws of the control task.
        n_bootstrap: Draws of the bootstrap.
        seed: Of folds, controls and bootstrap.
        workers: Layers worked on at a time; None for one per core. The numbers do not depend on it.

    Raises:
        NotEnoughDataError: The items are too few for ``cross_validate_probe``. A ValueError.
        ValueError: The run does not hold what was asked for; a NaN or infinite vector or target; another refusal of
            ``cross_validate_probe``.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers={workers} must be at least 1, or None for one per core.")
    wanted = _controls(controls)
    chosen = choose_items(run, target, groups=groups, types=types, condition=condition, task=task)
    spoken = _languages(chosen, language)
    numbers = _layers(run, site, layers)
    kind = kind or ("classification" if target in CLASS_TARGETS else "regression")

    def score(layer: int, spoken_language: str, data: ProbeData) -> LayerScores:
        scores = cross_validate_probe(
            data.X,
            data.target,
            data.groups,
            kind=kind,
            probe=probe,
            types=data.types if "task" in wanted and (controls != "default" or _recur(data)) else None,
            n_folds=n_folds,
            n_controls=n_controls,
            n_bootstrap=n_bootstrap if "interval" in wanted else 0,
            seed=seed,
        )
        return LayerScores(layer=layer, language=spoken_language, scores=scores, n_missing=data.n_missing)

    if "task" in wanted and controls != "default" and chosen.types is None:
        raise ValueError(
            f"types={types!r} is no group of these items, so there is no control task; leave 'task' out of controls."
        )
    # One limit around all threads: each of them setting and resetting it would leave it wrong.
    with threadpool_limits(limits=1), ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
        jobs = []
        for name in spoken:
            for layer in numbers:
                data = probe_data(run, chosen, site=site, layer=layer, role=role, language=None if name == "all" else name)
                jobs.append(pool.submit(score, layer, name, data))
        cells = tuple(job.result() for job in jobs)
    return LayerSweep(model=str(run.info["model"]), target=target, role=role, site=site, condition=condition, cells=cells)


def _controls(controls: str | Sequence[str]) -> tuple[str, ...]:
    if controls == "default":
        return CONTROLS
    unknown = [controls] if isinstance(controls, str) else [name for name in controls if name not in CONTROLS]
    if unknown:
        raise ValueError(f"controls={controls!r} must be 'default' or a list of: {', '.join(map(repr, CONTROLS))}.")
    return tuple(controls)


def _layers(run: "Run", site: str, layers: Sequence[int] | None) -> list[int]:
    recorded = list(run.layers(site))
    if layers is None:
        return recorded
    missing = [layer for layer in layers if layer not in recorded]
    if missing or not len(layers):
        raise ValueError(f"layers={list(layers)} must be some of those recorded at {site}: {', '.join(map(str, recorded))}.")
    return sorted(set(layers))


def _languages(chosen: Chosen, language: str | None) -> list[str]:
    spoken = list(dict.fromkeys(chosen.languages))
    if language is None:
        return ["all"]
    if language == "each":
        return spoken
    return [_among("language", language, spoken)]


def _among(name: str, value: str | None, options: Sequence[str]) -> str:
    if value not in options or value is None:
        raise ValueError(f"{name}={value!r} is not one of: {', '.join(map(repr, options))}.")
    return value


def _recur(data: ProbeData) -> bool:
    """Whether a control task makes sense: several types, some of them in several groups."""
    if data.types is None or len(set(data.types)) < 2:
        return False
    codes = [np.unique(np.asarray(names), return_inverse=True)[1] for names in (data.types, data.groups)]
    return recurring(codes[0], codes[1])


def plot_layer_sweep(frame: "pd.DataFrame", ax: "Axes | None" = None, metric: str | None = None) -> "Axes":
    """Scores over layers: a curve with its interval per model (or role, language, ...), its control dashed, chance dotted.

    Args:
        frame: Of one sweep, or of several below each other.
        ax: Drawn on; None for a new figure.
        metric: None for the first in the frame.

    Raises:
        ValueError: The frame is empty or lacks the metric.
    """
    metrics = tuple(dict.fromkeys(frame["metric"]))
    if not metrics:
        raise ValueError("the frame has no rows to draw; pass a sweep's to_frame().")
    metric = _among("metric", metric or metrics[0], metrics)
    rows = frame[frame["metric"] == metric]
    ax = axes(ax)
    varying = [column for column in _SERIES if rows[column].nunique() > 1] or ["model"]
    for number, (_, series) in enumerate(rows.groupby(list(_SERIES), sort=False)):
        line = series.sort_values("layer")
        colour = SERIES[number % len(SERIES)]
        label = ", ".join(str(line[column].iloc[0]) for column in varying)
        ax.plot(line["layer"], line["score"], color=colour, marker="o", markersize=4, label=label)
        if line["low"].notna().any():
            ax.fill_between(line["layer"], line["low"], line["high"], color=colour, alpha=0.18, linewidth=0)
        if line["control"].notna().any():
            ax.plot(line["layer"], line["control"], color=colour, linestyle="--", linewidth=1.2, label=f"{label}: control task")
    for level in sorted(set(rows["chance"].round(6))):
        ax.axhline(level, color=MUTED, linestyle=":", linewidth=1.2, label="chance" if metric not in ERRORS else "training mean")
    _label(ax, rows, metric)
    return ax


def _label(ax: "Axes", rows: "pd.DataFrame", metric: str) -> None:
    from matplotlib.ticker import MaxNLocator

    targets = sorted(set(rows["target"]))
    unit = " (m)" if metric in ERRORS and all(name.endswith("_m") for name in targets) else ""
    ax.set_ylabel(f"{_LABELS[metric]}{unit}, {', '.join(targets)}")
    sites = set(rows["site"])
    ax.set_xlabel(_PLACES.get(sites.pop(), "layer") if len(sites) == 1 else "layer")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    ax.legend(once.values(), once.keys(), frameon=False, fontsize="small")
