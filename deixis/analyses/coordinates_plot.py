"""Decoded positions beside the true ones, seen from above."""

from typing import TYPE_CHECKING

import numpy as np

from deixis.analyses.style import MUTED, SERIES, axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_PREFIX = "true_"


def plot_coordinates(
    points: "pd.DataFrame", ax: "Axes | None" = None, *, where: tuple[str, str] = ("sideways", "away from the viewer")
) -> "Axes":
    """A line from each true point to the decoded one; the first axis sideways, the second away from the viewer, who is below.

    Args:
        points: Of :meth:`Coordinates.points`; items of a group (the questions about a scene) are drawn as their mean.
        ax: Drawn on; None for a new figure.
        where: What the two directions are, for the labels.

    Raises:
        ValueError: Fewer than two axes, or no row.
    """
    names = [column.removeprefix(_PREFIX) for column in points.columns if column.startswith(_PREFIX)]
    if len(names) < 2 or not len(points):
        raise ValueError(f"the points have the axes {names} and {len(points)} rows; two axes and a row are needed.")
    across, away = names[:2]
    columns = [f"{kind}_{name}" for kind in ("true", "decoded") for name in (across, away)]
    at = points.groupby("group")[columns].mean()
    ax = axes(ax, width=4.6, height=4.6)
    start, end = at[columns[:2]].to_numpy(float), at[columns[2:]].to_numpy(float)
    ax.plot(*np.stack([start, end]).transpose(2, 0, 1), color=MUTED, linewidth=0.8, alpha=0.6, zorder=1)
    ax.scatter(*end.T, s=22, color=SERIES[0], label="decoded", zorder=3)
    ax.scatter(*start.T, s=26, facecolors="white", edgecolors="#333333", linewidths=1.0, label="true", zorder=2)
    for label, name, direction in zip((ax.set_xlabel, ax.set_ylabel), (across, away), where, strict=True):
        label(f"{_words(name)} ({direction})")
    ax.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return ax


def _words(name: str) -> str:
    return f"{name.removesuffix('_m')}, m" if name.endswith("_m") else name
