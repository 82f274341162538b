"""Layer curves with everything that they must be read beside."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deixis.analyses.style import MUTED, SERIES, axes
from deixis.probes.scores import ERRORS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_SERIES = ("model", "target", "role", "site", "language", "condition")
_LABELS = {"balanced_accuracy": "balanced accuracy", "r2": "$R^2$", "mae": "mean absolute error"}
_PLACES = {
    "resid": "layer (residual stream entering block)",
    "vision": "block of the vision tower",
    "merger_in": "merger, input",
    "merger_out": "merger, output",
}
_LOWEST_R2 = -0.6
"""R2 has no lower end: what lies below this is cut off, lest it flatten everything else."""


@dataclass(frozen=True, kw_only=True)
class _Line:
    label: str
    style: Any
    colour: str
    """Where there is one curve; beside several, a line takes its curve's colour."""
    shared: bool = False
    """The same for all models: drawn once, grey."""


# The score stands out; what it must beat is thin, and told apart by dashes as well as by colour.
LINES: Mapping[str, _Line] = {
    "residual": _Line(label="nuisances taken out", style=(0, (6, 1.5)), colour="#009E73"),
    "nuisance": _Line(label="nuisances alone", style=(0, (4, 1.5, 1, 1.5)), colour="#D55E00", shared=True),
    "untrained": _Line(label="untrained model", style=(0, (1.5, 1.5)), colour="#CC79A7"),
    "control": _Line(label="control task", style="--", colour="#E69F00"),
    "blank": _Line(label="blank picture", style=(0, (1, 3)), colour="#56B4E9"),
}
"""Columns that are drawn beside the score, where they hold anything."""


def plot_layer_sweep(frame: "pd.DataFrame", ax: "Axes | None" = None, metric: str | None = None) -> "Axes":
    """Scores over layers: a curve with its interval per model (or role, language, ...), beside it chance and the controls.

    One curve: every control that was run has a colour and a dash of its own. Several curves: each has a colour, in which its
    control task and its untrained model are dashed; nuisances, which are the same for all, are grey.

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
    if metric is not None and metric not in metrics:
        raise ValueError(f"metric={metric!r} is not one of: {', '.join(map(repr, metrics))}.")
    metric = metric or str(metrics[0])
    rows = frame[frame["metric"] == metric]
    ax = axes(ax, width=6.4, height=3.8)
    varying = [column for column in _SERIES if rows[column].nunique() > 1] or ["model"]
    groups = [series.sort_values("layer") for _, series in rows.groupby(list(_SERIES), sort=False)]
    for number, line in enumerate(groups):
        label = ", ".join(str(line[column].iloc[0]) for column in varying)
        _draw(ax, line, label, SERIES[number % len(SERIES)], alone=len(groups) == 1)
    if len(groups) > 1:
        _draw_shared(ax, groups)
    for level in sorted(set(rows["chance"].round(6))):
        ax.axhline(level, color=MUTED, linestyle=":", linewidth=1.2, label="chance" if metric not in ERRORS else "training mean")
    if metric == "r2":
        ax.set_ylim(bottom=max(ax.get_ylim()[0], _LOWEST_R2))
    _label(ax, rows, metric)
    return ax


def _draw(ax: "Axes", line: "pd.DataFrame", label: str, colour: str, *, alone: bool) -> None:
    single: dict[str, Any] = {"marker": "o"} if len(line) == 1 else {}
    ax.plot(line["layer"], line["score"], color=colour, marker="o", markersize=4, linewidth=2, label=label)
    if line["low"].notna().any():
        ax.fill_between(line["layer"], line["low"], line["high"], color=colour, alpha=0.18, linewidth=0)
    for column, drawn in LINES.items():
        if line[column].isna().all() or (not alone and column not in ("control", "untrained")):
            continue
        # A style's name stands in the legend once, in grey, however many curves share it.
        named = drawn.label if alone else None
        shade = drawn.colour if alone else colour
        ax.plot(line["layer"], line[column], color=shade, linestyle=drawn.style, linewidth=1.4, label=named, **single)


def _draw_shared(ax: "Axes", groups: "list[pd.DataFrame]") -> None:
    for column, drawn in LINES.items():
        held = [line for line in groups if line[column].notna().any()]
        if not held or (not drawn.shared and column not in ("control", "untrained")):
            continue
        if drawn.shared:
            ax.plot(held[0]["layer"], held[0][column], color=MUTED, linestyle=drawn.style, linewidth=1.4, label=drawn.label)
        else:
            ax.plot([], [], color=MUTED, linestyle=drawn.style, linewidth=1.4, label=drawn.label)


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
    ax.legend(once.values(), once.keys(), frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
