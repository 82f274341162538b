"""Sections of the report beyond those that every report has: each is made by one function named in :data:`SECTIONS`."""

from collections.abc import Callable
from dataclasses import dataclass

from deixis.analyses.findings import Findings
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


SECTIONS: tuple[Callable[[Findings], Section | None], ...] = ()
"""Makers of sections, in the report's order. None where the runs hold nothing for it."""


def sections(findings: Findings) -> list[Section]:
    """Every section that these findings give."""
    made = (make(findings) for make in SECTIONS)
    return [section for section in made if section is not None]
