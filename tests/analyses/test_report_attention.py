"""The report's section about attention says what was found, what was not recorded, and what must not be concluded."""

from pathlib import Path
from typing import Any

import pytest

from deixis.activations import Run, record
from deixis.analyses.findings import Findings
from deixis.analyses.report_attention import NO_PROOF, attention_section
from tests.analyses.planted import planted_items, planted_vlm
from tests.toys import toy_items, toy_vlm


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("planted")
    items = planted_items(folder)
    both = items + items.with_condition("blank")
    return record(planted_vlm(), both, folder / "run", attention=True, answers=False, progress=False)


def section(*runs: Run) -> Any:
    findings = object.__new__(Findings)  # of which the section reads the runs alone
    object.__setattr__(findings, "runs", runs)
    return attention_section(findings)


def test_runs_without_attention_have_no_section(tmp_path: Path) -> None:
    plain = record(toy_vlm(), toy_items(2), tmp_path / "run", answers=False, progress=False)
    assert section(plain) is None


def test_the_section_names_what_has_collapsed_and_what_looks_at_the_object(run: Run) -> None:
    found = section(run)
    assert "1 as sink" in found.lead
    assert "1 as fixed" in found.lead
    assert "Head 1 of layer 1 puts" in found.lead
    assert found.notes[0] == NO_PROOF
    assert "no proof of use" in NO_PROOF
    assert len(found.figures) == 5
    by_name = [
        {c.heading: cell for c, cell in zip(found.grids[0].columns, row.cells, strict=True)} for row in found.grids[0].rows
    ]
    planted = {(row["layer"], row["head"]): row["kind"] for row in by_name}
    assert planted["1", "0"] == "sink"
    assert planted["1", "2"] == "fixed"
    assert all("<svg" in panel.svg and panel.alt for figure in found.figures for panel in figure.panels)
    map_alt = found.figures[2].panels[0].alt
    assert "layer 1, head 1: 100% of its weight on the picture lies on tokens of the object's box" in map_alt


def test_a_run_of_few_scenes_is_told_not_left_out(run: Run, tmp_path: Path) -> None:
    few = record(toy_vlm(), toy_items(4), tmp_path / "run", attention=True, answers=False, progress=False)
    assert any("scenes with real pictures; intervals over scenes need at least 8" in note for note in section(few).notes)
    plain = record(toy_vlm(), toy_items(2), tmp_path / "plain", answers=False, progress=False)
    assert any("was recorded without attention" in note for note in section(run, plain).notes)
