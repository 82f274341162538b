import pandas as pd
import pytest

from deixis.analyses.findings import Findings
from deixis.analyses.report_sections import Section, sections
from deixis.analyses.report_tables import grid


def test_a_maker_that_finds_nothing_gives_no_section(monkeypatch: pytest.MonkeyPatch):
    made = Section(heading="Something", grids=(grid(pd.DataFrame({"model": ["m"]}), {"model": "model"}, "One."),))
    monkeypatch.setattr("deixis.analyses.report_sections.SECTIONS", (lambda _: None, lambda _: made))
    assert sections(object.__new__(Findings)) == [made]
