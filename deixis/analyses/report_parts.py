"""What a section of the report is made of."""

from dataclasses import dataclass

from deixis.analyses.report_tables import Grid
from deixis.analyses.svg import Panel


@dataclass(frozen=True)
class Figure:
    """Panels that stand side by side, and what they show."""

    panels: tuple[Panel, ...]
    caption: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading with what stands below it, in this order."""

    heading: str
    lead: str = ""
    """A paragraph in plain words, with the numbers that it rests on."""
    figures: tuple[Figure, ...] = ()
    grids: tuple[Grid, ...] = ()
    notes: tuple[str, ...] = ()
    """What was not computed and why, or what must not be concluded."""
