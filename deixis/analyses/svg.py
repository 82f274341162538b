"""Matplotlib figures as inline SVG that follows the page: its font, its text colour, light or dark."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that no figure uses, drawn in place of the page's own and replaced in the finished SVG.
_INK, _RULE = "#010203", "#040506"
_REPLACED = {_INK: "currentColor", _RULE: "var(--rule)", "#000000": "currentColor"}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it takes the page's font and can be searched and read aloud
    "svg.hashsalt": "deixis",  # the same figure gives the same bytes
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


@dataclass(frozen=True)
class Panel:
    """One picture of a figure and what it shows, in words."""

    svg: Markup
    alt: str


def panel(draw: Callable[["Axes"], object], alt: str, name: str, width: float = 4.3, height: float = 3.0) -> Panel:
    """What ``draw`` puts on an axis, as SVG markup.

    Args:
        draw: Called with the axis.
        alt: What a reader sees, for readers who do not.
        name: Letters and hyphens; kept before every id, since ids of several figures in one page must differ.
        width: Inches at 72 points.
        height: Inches at 72 points.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.add_subplot())
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return Panel(Markup(_for_the_page(file.getvalue(), alt, name)), alt)  # noqa: S704 - matplotlib escapes the texts it draws


def _for_the_page(text: str, alt: str, name: str) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for drawn, wanted in _REPLACED.items():
        text = text.replace(drawn, wanted)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    # The size is the page's business: only the proportions (viewBox) stay.
    head, rest = text.split(">", 1)
    head = re.sub(r'\s(?:width|height|version)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(alt)}">{rest}'
