"""Sections of the report beyond those that every report has: each is made by one function named in :data:`SECTIONS`."""

from collections.abc import Callable

from deixis.analyses.findings import Findings
from deixis.analyses.report_attention import attention_section
from deixis.analyses.report_choices import choices_section
from deixis.analyses.report_controls import controls_section
from deixis.analyses.report_demonstratives import demonstratives_section
from deixis.analyses.report_edits import edits_section
from deixis.analyses.report_parts import Figure as Figure
from deixis.analyses.report_parts import Section as Section
from deixis.analyses.report_spacenum import examples_section, frames_section, inside_section

SECTIONS: tuple[Callable[[Findings], Section | None], ...] = (
    choices_section,
    inside_section,
    frames_section,
    controls_section,
    attention_section,
    edits_section,
    demonstratives_section,
    examples_section,
)
"""Makers of sections, in the report's order. None where the runs hold nothing for it."""


def sections(findings: Findings) -> list[Section]:
    """Every section that these findings give."""
    made = (make(findings) for make in SECTIONS)
    return [section for section in made if section is not None]
