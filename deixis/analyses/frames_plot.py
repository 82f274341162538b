"""Pictures of frames: how well each is decoded by layer, and which one the answers follow."""

from typing import TYPE_CHECKING

from deixis.analyses.style import MUTED, SERIES, axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLOURS = {"allocentric": SERIES[0], "egocentric": SERIES[1]}
READERS = {"anchor": SERIES[0], "image": SERIES[1]}


def plot_frames(frame: "pd.DataFrame", ax: "Axes | None" = None, *, role: str | None = None) -> "Axes":
    """R2 of each frame by layer (solid), and of what the other frame leaves of it (dashed, with the interval as a band).

    Args:
        frame: Of :meth:`FrameSweep.to_frame`, of one model.
        ax: Drawn on; None for a new figure.
        role: Which role's rows; None for the first.

    Raises:
        ValueError: The frame has no row of this role.
    """
    role = str(frame["role"].iloc[0]) if role is None and len(frame) else role
    rows = frame[frame["role"] == role]
    if not len(rows):
        raise ValueError(f"the frame has no row of role {role!r}; it has: {', '.join(dict.fromkeys(frame['role']))}.")
    ax = axes(ax)
    for name, part in rows.groupby("frame", sort=False):
        part = part.sort_values("layer")
        colour = COLOURS[str(name)]
        ax.plot(part["layer"], part["score"], "-", color=colour, label=str(name))
        ax.plot(part["layer"], part["unique"], "--", color=colour, label=f"{name}, unique")
        ax.fill_between(part["layer"], part["unique_low"], part["unique_high"], color=colour, alpha=0.12, linewidth=0)
    ax.axhline(0, color=MUTED, linewidth=0.8, linestyle=":")
    ax.set_ylim(min(-0.1, *ax.get_ylim()), 1.0)
    ax.set_xlabel("layer")
    ax.set_ylabel("R2 of the target's place")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_answer_frame(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """The weight of each reading of the picture in the answers, with its interval; the grey band is what counts as nothing.

    Args:
        frame: Of :meth:`AnswerFrame.to_frame`; several of them concatenated give a row for each model, map and scale.
        ax: Drawn on; None for a new figure.
    """
    from matplotlib.ticker import MaxNLocator

    names = [f"{model}, {items}" for model, items in zip(frame["model"], frame["items"], strict=True)]
    order = list(dict.fromkeys(names))
    ax = axes(ax, 5.0, 0.9 + 0.5 * len(order))
    least = float(frame["least"].iloc[0])
    ax.axvspan(-least, least, color=MUTED, alpha=0.15, linewidth=0)
    ax.axvline(0, color=MUTED, linewidth=0.8)
    for name, row in zip(names, frame.to_dict("records"), strict=True):
        reader = str(row["frame"])
        y = -order.index(name) + (0.13 if reader == "anchor" else -0.13)
        label = f"{reader} frame" if name == order[0] else None
        ax.plot([row["low"], row["high"]], [y, y], color=READERS[reader], linewidth=1.6)
        ax.plot([row["weight"]], [y], "o", color=READERS[reader], markersize=5, label=label)
    ax.set_yticks([-k for k in range(len(order))], order)
    ax.set_ylim(-len(order) + 0.5, 0.6)
    ax.set_xlabel("weight in the log-odds between the two places")
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return ax
