"""What all plots share: colours that colour-blind readers can tell apart (Okabe and Ito 2008), and plain axes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TERM_COLOURS = {"proximal": "#009E73", "medial": "#E69F00", "distal": "#56B4E9"}
"""Green, orange and light blue, as in Figure 2 of arXiv 2607.07251."""
REGION_COLOURS = {1: "#0072B2", 2: "#CC79A7", 3: "#D55E00"}
SERIES = ("#0072B2", "#D55E00", "#CC79A7", "#009E73", "#E69F00", "#56B4E9", "#7F7F7F")
"""For models or other series, in order; the last is grey."""
MUTED = "#7F7F7F"
"""Chance levels, controls, references."""
CASE_COLOURS = {
    "encoded and used": "#009E73",
    "encoded, unused": "#E69F00",
    "used, not decoded": "#CC79A7",
    "prior only": "#D55E00",
    "absent": "#7F7F7F",
    "undecided": "#C8C8C8",
}


def language_name(code: str) -> str:
    """English name of a language, or the code where no table has it."""
    from deixis.benchmarks.languages import languages

    return languages()[code].name if code in languages() else code


def axes(ax: "Axes | None", width: float = 5.2, height: float = 3.4) -> "Axes":
    """``ax``, or the axes of a new figure of this size in inches; the right and upper border are taken off."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
