"""Pictures of SpaceNum's scores: the twenty columns of one or more models, beside the published ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from deixis.analyses.spacenum_columns import AVERAGE, COLUMNS, DIRECTIONS, published_scores

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_KEYS = (*(column.key for column in COLUMNS), AVERAGE)
_GAP = 0.8
"""Free space between the four blocks of columns, in columns."""


def plot_spacenum_scores(frame: "pd.DataFrame", ax: "Axes | None" = None, *, published: bool | Sequence[str] = False) -> "Axes":
    """Accuracy in the table's columns with intervals; chance is a grey line, the majority letter's rate a hollow square.

    Args:
        frame: Of :meth:`SpaceNumScores.to_frame`, of one way and condition; several models have a colour each.
        ax: Where to draw; None makes a figure.
        published: Show the 18 published models behind them as grey dots (True), or these of them. Their items are others.

    Raises:
        ValueError: The frame has no row of the table, or rows of several ways or conditions.
    """
    from deixis.analyses.style import MUTED, SERIES, axes

    rows = frame[frame["key"].isin(_KEYS)]
    if not len(rows) or rows.groupby(["way", "condition"]).ngroups != 1:
        raise ValueError("the frame must hold rows of the table, of one way and one condition; take those from to_frame().")
    places = _places()
    models = list(dict.fromkeys(rows["model"]))
    ax = axes(ax, 7.6, 3.4)
    if published is not False:
        _published(ax, places, None if published is True else list(published))
    first = rows[rows["model"] == models[0]].set_index("key")
    for key, x in places.items():
        label = None if x else "chance"
        ax.plot([x - 0.45, x + 0.45], [100 * first.loc[key, "chance"]] * 2, color=MUTED, linewidth=1.1, label=label)
        ax.plot([x], [100 * first.loc[key, "majority"]], "s", mfc="none", mec=MUTED, ms=5, label=None if x else "majority letter")
    for number, model in enumerate(models):
        own = rows[rows["model"] == model].set_index("key")
        shift = (number - (len(models) - 1) / 2) * 0.7 / len(models)
        for key, x in places.items():
            low, middle, high = (100 * float(own.loc[key, name]) for name in ("low", "accuracy", "high"))
            colour = SERIES[number % len(SERIES)]
            ax.plot([x + shift] * 2, [low, high], color=colour, linewidth=1.3)
            ax.plot([x + shift], [middle], "o", color=colour, markersize=4, label=None if x else model)
    _frame_of(ax, places)
    return ax


def _places() -> dict[str, float]:
    """Where each column stands: four blocks and the average."""
    places, at, block = {}, 0.0, (COLUMNS[0].kind, COLUMNS[0].direction)
    for column in COLUMNS:
        if (column.kind, column.direction) != block:
            block, at = (column.kind, column.direction), at + _GAP
        places[column.key] = at
        at += 1
    return places | {AVERAGE: at + _GAP}


def _published(ax: "Axes", places: dict[str, float], models: list[str] | None) -> None:
    known = published_scores().set_index("model").rename(columns={"avg": AVERAGE})
    unknown = [model for model in models or [] if model not in known.index]
    if unknown:
        raise ValueError(f"published={unknown[0]!r} is not one of: {', '.join(map(repr, known.index))}.")
    known = known if models is None else known.loc[models]
    for key, x in places.items():
        spread = np.linspace(-0.22, 0.22, len(known)) if len(known) > 1 else np.zeros(1)
        ax.plot(x + spread, known[key], ".", color="#B8B8B8", ms=3, zorder=0, label=None if x else "published, other items")


def _frame_of(ax: "Axes", places: dict[str, float]) -> None:
    names = [key.split(" ", 1)[1] if " " in key else key for key in places]
    ax.set_xticks(list(places.values()), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=7.5)
    for kind in ("transition", "layout"):
        for direction, title in DIRECTIONS.items():
            own = [places[column.key] for column in COLUMNS if (column.kind, column.direction) == (kind, direction)]
            ax.text(float(np.mean(own)), 1.02, f"{kind}\n{title}", transform=ax.get_xaxis_transform(), ha="center", fontsize=7.5)
    ax.set_ylim(-2, 102)
    ax.set_xlim(-0.8, places[AVERAGE] + 0.8)
    ax.set_ylabel("accuracy, %")
    ax.tick_params(axis="x", length=0)
    ax.legend(frameon=False, fontsize=7.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
