"""The picture of what models say: Figure 2 of arXiv 2607.07251 with intervals, counts and the native words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.analyses.fonts import family_for
from deixis.analyses.style import PALETTES, axes, language_name, luminance
from deixis.benchmarks.languages import TERMS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_PITCH = 1.3
"""From one language's bars to the next, in lengths of a whole bar."""
_SMALLEST_LABELLED = 0.2
_HEADING = 0.95
"""Room for a model's name above its bars, in bars."""
_SMALL, _SMALLEST = 6.5, 5.5
"""Points: the smallest that can be read in a printed column."""
_HATCH = "////"


def plot_behaviour(frame: "pd.DataFrame", ax: "Axes | None" = None, *, palette: str = "paper", native: bool = True) -> "Axes":
    """Stacked bars of the real items' terms: a column per language, a bar per model and region, the reference at the bottom.

    Whiskers are the 95 % intervals of the first and of the last term's share; the grey number is the count of items behind a
    bar. A cell of too few items is a hatched frame with its count. Without ``ax`` the figure is one printed column wide (3.4
    inches for up to four languages).

    Args:
        frame: From :meth:`Behaviour.to_frame`, or several of them concatenated.
        ax: Where to draw; None makes a figure that fits.
        palette: ``"paper"`` for the published green, orange and light blue; ``"ordered"`` for dark to light in the order of the
            terms, which also survives a grey print.
        native: Write each language's own words below its name, where a font has them.

    Raises:
        ValueError: No row of real items, or no such palette.
    """
    if palette not in PALETTES:
        raise ValueError(f"palette={palette!r} is not one of: {', '.join(map(repr, PALETTES))}.")
    real = frame[frame["condition"] == "real"]
    if not len(real):
        raise ValueError("the frame has no row of the condition 'real'; there is nothing to draw.")
    colours = PALETTES[palette]
    languages = list(dict.fromkeys(real["language"]))
    regions = sorted(set(real["region"]))
    blocks = [(str(model), rows, "proportion") for model, rows in real.groupby("model", sort=False)]
    if real["reference"].notna().any():
        first = real.drop_duplicates(["language", "region", "term"]).dropna(subset="reference")
        blocks.append(("reference", first, "reference"))
    height = len(blocks) * (len(regions) + _HEADING)
    ax = axes(ax, 0.35 + 0.77 * max(len(languages), 3), 0.9 + 0.16 * height)
    ticks: dict[float, str] = {}
    counts = real.loc[real["proportion"].notna(), "n"].unique()
    for number, (name, rows, column) in enumerate(blocks):
        top = number * (len(regions) + _HEADING)
        ax.text(0, top - 0.82, name, fontsize=_SMALL, fontweight="bold", va="center", ha="left")
        for line, region in enumerate(regions):
            ticks[top + line] = str(region)
            for place, language in enumerate(languages):
                part = rows[(rows["language"] == language) & (rows["region"] == region)]
                if len(part):
                    _bar(ax, top + line, place * _PITCH, part, column, colours, show_n=len(counts) > 1)
    _frame_of(ax, ticks, height, len(languages))
    for place, language in enumerate(languages):
        _column_heading(ax, place * _PITCH, language, native=native)
    _legend(ax, real, colours, None if len(counts) != 1 else int(counts[0]))
    return ax


def _bar(
    ax: "Axes", y: float, left: float, rows: "pd.DataFrame", column: str, colours: Mapping[str, str], *, show_n: bool
) -> None:
    shares = rows.set_index("term")[column]
    n = int(rows["n"].iloc[0])
    if column == "proportion" and shares.isna().all():
        ax.barh(y, 1, left=left, height=0.84, facecolor="none", edgecolor="#9A9A9A", linewidth=0.5, hatch=_HATCH)
        ax.text(left + 0.5, y, f"n = {n}", fontsize=_SMALLEST, va="center", ha="center", bbox=_PAPER)
        return
    at, lift = left, 0.1 if column == "proportion" else -0.03  # whiskers lie in the lower third of the bar
    for term in (term for term in TERMS if term in shares.index):
        value = float(shares[term])
        ax.barh(y, value, left=at, height=0.84, color=colours[term], edgecolor="white", linewidth=0.4)
        if value >= _SMALLEST_LABELLED:
            ink = "white" if luminance(colours[term]) < 0.2 else "black"
            ax.text(at + value / 2, y - lift, f"{100 * value:.0f}", ha="center", va="center", fontsize=_SMALLEST, color=ink)
        at += value
    if column == "proportion":
        _whiskers(ax, y, left, rows)
        if show_n:
            ax.text(left + 1.03, y + 0.03, str(n), fontsize=_SMALLEST - 0.5, va="center", ha="left", color="#6A6A6A")


_PAPER: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}


def _whiskers(ax: "Axes", y: float, left: float, rows: "pd.DataFrame") -> None:
    """Intervals at the two ends: of the first term's share from the left, of the last one's from the right."""
    from matplotlib.patheffects import withStroke

    found = rows.set_index("term")
    present = [term for term in TERMS if term in found.index]
    # In a language of two terms both boundaries are the same.
    ends = [(present[0], 1)] if len(present) < 3 else [(present[0], 1), (present[-1], -1)]
    for number, (term, way) in enumerate(ends):
        values = found.loc[term, ["low", "proportion", "high"]].to_numpy(float)
        low, middle, high = np.sort(left + values if way > 0 else left + 1 - values)
        line = y + 0.25 + (0 if len(ends) == 1 else (-0.06, 0.06)[number])  # where they overlap, both can be seen
        drawn = ax.errorbar(
            middle, line, xerr=[[middle - low], [high - middle]], color="black", linewidth=0.6, capsize=1.1, capthick=0.6
        )
        for artist in (*drawn.lines[1], *drawn.lines[2]):
            artist.set_path_effects([withStroke(linewidth=1.5, foreground="white")])


def _frame_of(ax: "Axes", ticks: Mapping[float, str], height: float, columns: int) -> None:
    ax.set_yticks(list(ticks), list(ticks.values()), fontsize=_SMALL)
    ax.set_ylabel("region (1 near, 3 far)", fontsize=_SMALL)
    ax.set_xticks([])
    ax.tick_params(length=0, pad=1)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xlim(-0.03, columns * _PITCH - _PITCH + 1.12)
    ax.set_ylim(height - _HEADING - 0.4, -1.3)


def _column_heading(ax: "Axes", left: float, language: str, *, native: bool) -> None:
    words = _native_words(language) if native else ""
    family = family_for(words, language) if words else None
    lines: list[tuple[str, float, str | None]] = [(language_name(language), _SMALL + 0.5, None)]
    if family is not None:
        lines.insert(0, (words, _SMALLEST, family))
    for number, (text, points, name) in enumerate(lines):
        where: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points", "xytext": (0, 8 * number)}
        ax.annotate(text, (left + 0.5, 1.0), **where, fontsize=points, ha="center", va="bottom", fontfamily=name)


def _native_words(language: str) -> str:
    from deixis.benchmarks.languages import languages

    table = languages().get(language)
    return "" if table is None else " · ".join(option.label for option in table.demonstrative.options)


def _legend(ax: "Axes", real: "pd.DataFrame", colours: Mapping[str, str], n: int | None) -> None:
    from matplotlib.patches import Patch

    present = [term for term in TERMS if term in set(real["term"])]
    handles = [Patch(color=colours[term], label=term) for term in present]
    if real["proportion"].isna().any():
        handles.append(Patch(facecolor="none", edgecolor="#9A9A9A", hatch=_HATCH, label="too few"))
    title = None if n is None else f"share of each term, %; {n} items a bar"
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=len(handles),
        frameon=False,
        fontsize=_SMALL,
        title=title,
        title_fontsize=_SMALLEST + 0.5,
        handlelength=1.1,
        handletextpad=0.4,
        columnspacing=1.0,
    )
