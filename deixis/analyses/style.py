"""What all plots share: colours that colour-blind readers can tell apart (Okabe and Ito 2008), and plain axes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TERM_COLOURS = {"proximal": "#009E73", "medial": "#E69F00", "distal": "#56B4E9"}
"""Green, orange and light blue, as in Figure 2 of arXiv 2607.07251."""
PALETTES = {
    "paper": TERM_COLOURS,
    "ordered": {"proximal": "#00336F", "medial": "#8A8678", "distal": "#F9E162"},
}
"""Colours of the terms. ``ordered`` is read off the map cividis (Nunez et al. 2018), whose lightness rises evenly for readers
with and without colour vision: dark is near, light is far. The published green and light blue look alike without blue cones."""
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


def luminance(colour: str) -> float:
    """Relative luminance of a colour, 0 black to 1 white (WCAG 2.1)."""
    from matplotlib.colors import to_rgb

    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour))
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
