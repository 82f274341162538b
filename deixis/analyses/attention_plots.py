"""Pictures of attention: heads by layer, a map over the scene, the object's lift by layer, language and distance."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.analyses.style import MUTED, SERIES, axes, language_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.benchmarks import Box

KIND_COLOURS = {"sink": "#D55E00", "uniform": "#56B4E9", "fixed": "#CC79A7", "none": "#F0F0F0"}
"""Okabe and Ito's, and a light grey."""
NAMES = {
    "entropy": "entropy / maximum",
    "max_weight": "largest weight",
    "effective_keys": "effective number of keys",
    "bos_mass": "weight on the first token",
    "sink_mass": "weight on visual sinks",
    "image_mass": "weight on the image",
    "object_mass": "weight on the object",
    "background_mass": "weight on the background",
    "text_mass": "weight on the text",
    "image_lift": "image: weight over its uniform share",
    "matched_lift": "object: weight over that on the same places in other scenes",
    "object_lift": "object: weight over its uniform share",
    "centre_distance": "distance of the centre of attention from the object",
    "sink": "weight on the first token and sinks",
    "uniform": "entropy / maximum",
    "fixed": "likeness of maps across scenes",
}
_SHARES = ("entropy", "max_weight", "sink", "uniform")


def plot_attention_heads(frame: "pd.DataFrame", statistic: str = "object_lift", ax: "Axes | None" = None) -> "Axes":
    """Layer by head, a cell the mean of one statistic.

    Args:
        frame: With ``layer``, ``head`` and the statistic: of ``AttentionSummary.mean()`` or ``.to_frame()``, or of
            ``AttentionCollapse.to_frame()``.
        statistic: A column. Lifts are drawn on a logarithmic scale around 1.
        ax: Where to draw; None makes a figure.

    Raises:
        ValueError: The frame has no such column, or more than one model.
    """
    grid = _grid(frame, statistic)
    ax = axes(ax, *_size(grid.shape))
    image = ax.imshow(grid, aspect="auto", origin="lower", interpolation="nearest", **_scale(statistic, grid))
    _label_cells(ax, frame)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02)
    _plain_ticks(bar)
    bar.set_label(NAMES.get(statistic, statistic.replace("_", " ")))
    return ax


def plot_attention_collapse(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """Layer by head, a cell the kind of collapse; the number is the kind's index in hundredths.

    Args:
        frame: Of ``AttentionCollapse.to_frame()``, of one model.
        ax: Where to draw; None makes a figure.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    numbers = {kind: k for k, kind in enumerate(KIND_COLOURS)}
    grid = _grid(frame.assign(number=frame["kind"].map(numbers)), "number")
    ax = axes(ax, *_size(grid.shape))
    colours = ListedColormap(list(KIND_COLOURS.values()))
    ax.imshow(grid, aspect="auto", origin="lower", interpolation="nearest", cmap=colours, vmin=-0.5, vmax=len(numbers) - 0.5)
    if grid.size <= 200:  # more than that can't be read
        rows = frame[frame["kind"] != "none"]
        for layer, head, index in zip(rows["layer"], rows["head"], rows["index"], strict=True):
            ax.text(head, layer - _first(frame), f"{100 * index:.0f}", ha="center", va="center", fontsize=7)
    _label_cells(ax, frame)
    handles = [Patch(facecolor=colour, label=kind) for kind, colour in KIND_COLOURS.items() if (frame["kind"] == kind).any()]
    ax.legend(handles=handles, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def _first(frame: "pd.DataFrame") -> int:
    return int(frame["layer"].min())


def _grid(frame: "pd.DataFrame", statistic: str) -> Any:
    """Means by layer and head, NaN where there is none."""
    if statistic not in frame:
        known = [name for name in frame.columns if frame[name].dtype.kind == "f"]
        raise ValueError(f"statistic={statistic!r} is not one of: {', '.join(known)}.")
    models = frame["model"].unique() if "model" in frame else [None]
    if len(models) > 1:
        raise ValueError(f"the frame holds the models {', '.join(map(str, models))}; draw one of them at a time.")
    table = frame.pivot_table(index="layer", columns="head", values=statistic, aggfunc="mean")
    layers = range(int(frame["layer"].min()), int(frame["layer"].max()) + 1)
    return table.reindex(index=layers, columns=range(int(frame["head"].max()) + 1)).to_numpy(float)


def _size(shape: tuple[int, ...]) -> tuple[float, float]:
    layers, heads = shape
    return min(9.0, 2.6 + 0.28 * heads), min(9.0, 1.6 + 0.24 * layers)


def _scale(statistic: str, grid: Any) -> dict[str, Any]:
    from matplotlib.colors import LogNorm, Normalize

    if statistic.endswith(("_lift", "_lift_without_sinks")):
        logs = np.abs(np.log2(grid[np.isfinite(grid) & (grid > 0)]))
        reach = 2.0 ** max(1.0, float(logs.max(initial=1.0)))
        return {"cmap": "RdBu_r", "norm": LogNorm(1 / reach, reach)}
    if statistic.endswith(("_mass", "_mass_without_sinks")) or statistic.startswith("entropy") or statistic in _SHARES:
        return {"cmap": "viridis", "norm": Normalize(0, 1)}
    return {"cmap": "viridis"}


def _plain_ticks(bar: Any) -> None:
    """Lifts as powers of two, written out: 1/2, 1, 2, 4."""
    from matplotlib.colors import LogNorm

    if not isinstance(bar.norm, LogNorm):
        return
    reach = int(np.log2(float(bar.norm.vmax or 2.0)))
    powers = range(-reach, reach + 1, max(1, reach // 3))
    bar.set_ticks([2.0**k for k in powers], labels=[f"1/{2**-k}" if k < 0 else str(2**k) for k in powers])
    bar.minorticks_off()


def _label_cells(ax: "Axes", frame: "pd.DataFrame") -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    first = _first(frame)
    ax.set_xlabel("head")
    ax.set_ylabel("layer")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value + first:.0f}"))


def plot_attention_map(frame: "pd.DataFrame", image: Any = None, boxes: "Sequence[Box]" = (), ax: "Axes | None" = None) -> "Axes":
    """A head's weights over a picture, the object's box drawn in.

    Args:
        frame: Of ``AttentionMap.to_frame()``: a row per image token with its pixels and ``weight``.
        image: The picture, as PIL or an array; None draws the weights alone.
        boxes: Boxes to draw, in the picture's pixels.
        ax: Where to draw; None makes a figure.
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    ax = axes(ax, 4.6, 3.6)
    seen = frame.dropna(subset=["left"])
    corners = seen[["left", "top", "right", "bottom"]].to_numpy(float).tolist()
    tiles = [Rectangle((left, top), right - left, bottom - top) for left, top, right, bottom in corners]
    if image is not None:
        pixels = np.asarray(image)
        ax.imshow(pixels if pixels.ndim == 2 else pixels[..., :3].mean(axis=2), cmap="gray", vmin=0, vmax=255)
    cover = PatchCollection(tiles, cmap="inferno", alpha=0.55 if image is not None else 1.0, linewidths=0)
    cover.set_array(seen["weight"].to_numpy(float))
    cover.set_clim(0, float(seen["weight"].max()))
    ax.add_collection(cover)
    for box in boxes:
        place, width, height = (box.left, box.top), box.right - box.left, box.bottom - box.top
        ax.add_patch(Rectangle(place, width, height, fill=False, edgecolor="#00E5FF", linewidth=1.6))
    ax.set_xlim(float(seen["left"].min()), float(seen["right"].max()))
    ax.set_ylim(float(seen["bottom"].max()), float(seen["top"].min()))
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(cover, ax=ax, pad=0.02, label="weight of the query")
    return ax


def plot_object_lift(frame: "pd.DataFrame", statistic: str = "object_lift", ax: "Axes | None" = None) -> "Axes":
    """The object's lift by layer, a line for each language (mean over heads and items).

    Args:
        frame: Of ``AttentionSummary.mean(by=("layer", "language"))``.
        statistic: A column.
        ax: Where to draw; None makes a figure.
    """
    ax = axes(ax)
    for number, (language, rows) in enumerate(frame.groupby("language", sort=False)):
        ordered = rows.sort_values("layer")
        colour = SERIES[number % len(SERIES)]
        ax.plot(ordered["layer"], ordered[statistic], marker="o", markersize=3, color=colour, label=language_name(str(language)))
    ax.set_xlabel("layer")
    _finish_lines(ax, statistic)
    ax.legend(frameon=False)
    return ax


def plot_attention_distance(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """Attention against the object's distance, a line for each layer, with intervals over scenes.

    Args:
        frame: Of ``AttentionSummary.by_distance()``.
        ax: Where to draw; None makes a figure.
    """
    from matplotlib import colormaps

    ax = axes(ax)
    layers = sorted(frame["layer"].unique())
    colours = colormaps["viridis"](np.linspace(0, 0.9, len(layers)))
    for layer, colour in zip(layers, colours, strict=True):
        rows = frame[frame["layer"] == layer].sort_values("distance_m")
        ax.plot(rows["distance_m"], rows["mean"], marker="o", markersize=3, color=colour, label=f"layer {layer}")
        ax.fill_between(rows["distance_m"], rows["low"], rows["high"], color=colour, alpha=0.15, linewidth=0)
    _finish_lines(ax, str(frame["statistic"].iloc[0]))
    ax.set_xlabel("distance of the object, m")
    ax.legend(frameon=False, ncols=2 if len(layers) > 6 else 1)
    return ax


def _finish_lines(ax: "Axes", statistic: str) -> None:
    from matplotlib.ticker import MaxNLocator

    if statistic.endswith("_lift"):
        ax.axhline(1, color=MUTED, linewidth=0.8, linestyle="--", zorder=0)
    ax.set_ylabel(NAMES.get(statistic, statistic.replace("_", " ")))
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True) if ax.get_xlabel() == "layer" else MaxNLocator())
