"""The picture of multiple-choice accuracy: every column against its chance and its majority letter."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_DIRECTIONS = {"num2space": "Num2Space", "space2num": "Space2Num"}


def plot_choices(frame: "pd.DataFrame", ax: "Axes | None" = None, *, way: str = "logits", condition: str = "real") -> "Axes":
    """Accuracy in each column with its interval, above a grey mark at chance and a hollow one at the majority letter's rate.

    Args:
        frame: From :meth:`Choices.scores`, or several of them concatenated: a colour for each model.
        ax: Where to draw; None makes a figure that fits.
        way: The way of reading that is drawn.
        condition: The condition that is drawn.

    Raises:
        ValueError: The frame has no row of this way and condition.
    """
    from deixis.analyses.choice_scores import MEAN
    from deixis.analyses.style import MUTED, SERIES, axes

    rows = frame[(frame["way"] == way) & (frame["condition"] == condition)]
    if not len(rows):
        raise ValueError(f"the frame has no row of way={way!r} and condition={condition!r}; there is nothing to draw.")
    places = {key: -at for at, key in enumerate(dict.fromkeys(zip(rows["direction"], rows["column"], strict=True)))}
    models = list(dict.fromkeys(rows["model"]))
    ax = axes(ax, 5.4, 0.9 + 0.19 * len(places) * max(1.0, 0.45 * len(models)))
    spread = 0.5 / len(models)
    for number, model in enumerate(models):
        for row in rows[rows["model"] == model].to_dict("records"):
            y = places[row["direction"], row["column"]] - (number - (len(models) - 1) / 2) * spread
            _point(ax, row, y, SERIES[number % len(SERIES)], model if row["column"] != MEAN else None)
    for (direction, column), y in places.items():
        known = rows[(rows["direction"] == direction) & (rows["column"] == column)].iloc[0]
        ax.plot([100 * known["chance"]] * 2, [y - 0.4, y + 0.4], color=MUTED, linewidth=1.2, label="chance")
        ax.plot([100 * known["majority"]], [y], "s", mfc="none", mec=MUTED, markersize=4.5, label="majority letter")
    ax.set_yticks(list(places.values()), [f"{_DIRECTIONS.get(d, d)} {c}".strip() for d, c in places], fontsize=7.5)
    ax.set_ylim(min(places.values()) - 0.7, 0.7)
    ax.set_xlim(-2, 102)
    ax.set_xlabel("accuracy, %")
    ax.tick_params(axis="y", length=0)
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    ax.legend(once.values(), once.keys(), frameon=False, fontsize=7.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def _point(ax: "Axes", row: dict[str, Any], y: float, colour: str, label: str | None) -> None:
    ax.plot([100 * row["low"], 100 * row["high"]], [y, y], color=colour, linewidth=1.3)
    ax.plot([100 * row["accuracy"]], [y], "o", color=colour, markersize=3.8, label=label or row["model"])
