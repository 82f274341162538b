"""Cosines between probe directions as a heat map."""

from typing import TYPE_CHECKING

import numpy as np

from deixis.analyses.style import axes, language_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_WORDS = {
    "halves": "cosine of directions from different halves of the scenes",
    "cosine": "cosine of directions from the same scenes",
}


def plot_probe_geometry(frame: "pd.DataFrame", ax: "Axes | None" = None, value: str = "halves") -> "Axes":
    """A cell for each pair; on the diagonal of ``halves``, how well a direction is known.

    Args:
        frame: Of :func:`deixis.probe_geometry`.
        ax: Drawn on; None for a new figure.
        value: ``halves`` or ``cosine``.

    Raises:
        ValueError: Another value, or no rows.
    """
    if value not in _WORDS:
        raise ValueError(f"value={value!r} is not one of: {', '.join(map(repr, _WORDS))}.")
    if not len(frame):
        raise ValueError("the frame has no rows to draw; pass a geometry's to_frame().")
    names = list(dict.fromkeys(frame["a"]))
    grid = frame.pivot(index="a", columns="b", values=value).loc[names, names].to_numpy(float)
    by = str(frame["by"].iloc[0])
    shown = [language_name(name) if by == "language" else name for name in names]
    ax = axes(ax, width=2.2 + 0.5 * len(names), height=1.8 + 0.42 * len(names))
    edges = [np.arange(size + 1) - 0.5 for size in grid.shape[::-1]]
    ax.pcolormesh(*edges, grid, cmap="RdBu_r", vmin=-1, vmax=1)
    ax.invert_yaxis()
    for (i, j), number in np.ndenumerate(grid):
        ink = "white" if abs(number) > 0.65 else "#333333"
        ax.text(j, i, f"{number:.2f}".replace("-", "\N{MINUS SIGN}"), ha="center", va="center", color=ink, fontsize="small")
    ax.set_xticks(range(len(names)), shown)
    ax.set_yticks(range(len(names)), shown)
    ax.set_xlabel(by)
    ax.set_ylabel(by)
    ax.set_title(_WORDS[value], fontsize="small", loc="left")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax
