"""Decoded against true values."""

from typing import TYPE_CHECKING

import numpy as np

from deixis.analyses.style import MUTED, SERIES, axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_distance_code(points: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """A point for each group (the questions about a scene as their mean), with the line, logarithm and rising curve through them.

    Args:
        points: Of :meth:`DistanceCode.points`.
        ax: Drawn on; None for a new figure.

    Raises:
        ValueError: No row.
    """
    from sklearn.isotonic import IsotonicRegression

    if not len(points):
        raise ValueError("there are no points to draw; pass a code's points().")
    at = points.groupby("group")[["true", "decoded"]].mean().sort_values("true")
    true, seen = at["true"].to_numpy(float), at["decoded"].to_numpy(float)
    target = str(points["target"].iloc[0])
    ax = axes(ax, width=5.0, height=4.0)
    ax.plot([true.min(), true.max()], [true.min(), true.max()], color=MUTED, linestyle=":", linewidth=1.2, label="as it is")
    ax.scatter(true, seen, s=16, color=SERIES[0], alpha=0.6, linewidths=0)
    grid = np.linspace(true.min(), true.max(), 200)
    ax.plot(grid, np.polyval(np.polyfit(true, seen, 1), grid), color=SERIES[1], linewidth=1.6, label="linear")
    ax.plot(
        grid, np.polyval(np.polyfit(np.log(true), seen, 1), np.log(grid)), color=SERIES[3], linestyle="--", linewidth=1.6,
        label="logarithmic",
    )  # fmt: skip
    rising = IsotonicRegression(out_of_bounds="clip").fit(true, seen).predict(grid)
    ax.plot(grid, rising, color=SERIES[2], linestyle="-.", linewidth=1.4, label="any rising curve")
    unit = ", m" if target.endswith("_m") else ""
    ax.set_xlabel(f"true {target.removesuffix('_m')}{unit}")
    ax.set_ylabel(f"decoded {target.removesuffix('_m')}{unit}, held-out scenes")
    ax.legend(frameon=False, fontsize="small")
    return ax
