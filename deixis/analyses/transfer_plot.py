"""Transfer as a heat map."""

from typing import TYPE_CHECKING

import numpy as np

from deixis.analyses.style import axes, language_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LABELS = {"balanced_accuracy": "balanced accuracy", "r2": "$R^2$", "mae": "mean absolute error", "r": "correlation"}
_ROWS = {"others": "learned on the others", "all": "learned on all"}


def plot_transfer(frame: "pd.DataFrame", ax: "Axes | None" = None, metric: str | None = None) -> "Axes":
    """Training sets down, test sets across, the score in each cell.

    Args:
        frame: Of :func:`deixis.transfer`; of several models the first is drawn.
        ax: Drawn on; None for a new figure.
        metric: None for the first in the frame.

    Raises:
        ValueError: The frame is empty or lacks the metric.
    """
    metrics = tuple(dict.fromkeys(frame["metric"]))
    if not metrics:
        raise ValueError("the frame has no rows to draw; pass a transfer's to_frame().")
    if metric is not None and metric not in metrics:
        raise ValueError(f"metric={metric!r} is not one of: {', '.join(map(repr, metrics))}.")
    metric = metric or str(metrics[0])
    rows = frame[(frame["metric"] == metric) & (frame["model"] == frame["model"].iloc[0])]
    trains, tests = list(dict.fromkeys(rows["train"])), list(dict.fromkeys(rows["test"]))
    grid = rows.pivot(index="train", columns="test", values="score").loc[trains, tests].to_numpy(float)
    ax = axes(ax, width=1.6 + 0.75 * len(tests), height=1.3 + 0.5 * len(trains))
    # From what knowing nothing reaches to the best that can be: an error is best at 0.
    worst, best = (
        (float(rows["chance"].max()), 0.0)
        if metric == "mae"
        else (0.0 if metric in ("r2", "r") else float(rows["chance"].min()), 1.0)
    )
    depth = np.clip((grid - worst) / (best - worst), 0, 1) if best != worst else np.zeros_like(grid)
    edges = [np.arange(size + 1) - 0.5 for size in depth.shape[::-1]]
    ax.pcolormesh(*edges, depth, cmap="Blues", vmin=0, vmax=1.15)
    ax.invert_yaxis()
    for (i, j), value in np.ndenumerate(grid):
        ink = "white" if depth[i, j] > 0.6 else "#333333"
        ax.text(j, i, f"{value:.2f}".replace("-", "\N{MINUS SIGN}"), ha="center", va="center", color=ink, fontsize="small")
    by = str(rows["by"].iloc[0])
    ax.set_xticks(range(len(tests)), [_name(by, name) for name in tests])
    ax.set_yticks(range(len(trains)), [_ROWS.get(name, _name(by, name)) for name in trains])
    ax.set_xlabel(f"tested on ({by})")
    ax.set_ylabel("" if set(trains) <= set(_ROWS) else f"learned on ({by})")
    unit = " (m)" if metric == "mae" and str(rows["target"].iloc[0]).endswith("_m") else ""
    ax.set_title(f"{_LABELS[metric]}{unit}, {rows['target'].iloc[0]}", fontsize="medium", loc="left")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def _name(by: str, value: str) -> str:
    return language_name(value) if by == "language" else value
