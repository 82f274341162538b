"""The section on numbers and space, of models whose answers were planted."""

import pandas as pd

from deixis.analyses.findings import Findings
from deixis.analyses.report_choices import choices_section
from deixis.benchmarks import memory_game
from tests.analyses.fake_run import FakeRun
from tests.analyses.written_choices import always_a, needs_the_image, planted, small_set, with_conditions


def findings(*runs):
    """Findings of these runs, and nothing that the section does not read."""
    nothing = pd.DataFrame()
    return Findings(
        runs=runs,
        sweeps=nothing,
        best=nothing,
        without_sweep=(),
        lens=nothing,
        without_lens={},
        distributions=nothing,
        scores=nothing,
        reference=None,
        gap=None,  # pyright: ignore[reportArgumentType]
        vlms={},
    )


def test_the_section_says_which_model_is_above_its_constant_letter():
    items = with_conditions(small_set(6), "black")
    section = choices_section(findings(planted(items, needs_the_image, "sees"), planted(items, always_a, "constant")))
    assert section is not None
    assert "sees is above both chance and the best constant letter in 20 of 20 columns; its average is 100.0 %" in section.lead
    assert "constant is above both chance and the best constant letter in 0 of 20 columns" in section.lead
    table, directions, proximity, shares, changes, letters, agreement = section.grids
    assert [column.heading for column in table.columns][:4] == ["model", "direction", "column", "right"]
    assert len(table.rows) == 2 * 21
    last = dict(zip([c.heading for c in table.columns], table.rows[20].cells, strict=True))
    assert (last["column"], last["right"]) == ("Avg", "100.0")
    blind = [dict(zip([c.heading for c in changes.columns], row.cells, strict=True)) for row in changes.rows]
    told = {(row["model"], row["half"]): row["change"] for row in blind if row["direction"] == "both"}
    assert told == {
        ("sees", "transition"): "\N{MINUS SIGN}100.0",
        ("sees", "layout"): "\N{MINUS SIGN}100.0",
        ("constant", "transition"): "0.0",
        ("constant", "layout"): "0.0",
    }
    points = [dict(zip([c.heading for c in proximity.columns], row.cells, strict=True)) for row in proximity.rows]
    assert {row["points"] for row in points if row["model"] == "sees"} == {"100.0"}
    assert {row.cells[0] for row in shares.rows} == {"constant"}  # the other is never wrong
    assert len(directions.rows) == 2 * (8 + 2)
    assert letters.rows[0].cells[0] == "sees"
    assert agreement.rows[0].cells[3] == "100.0"
    assert "<svg" in section.figures[0].panels[0].svg


def test_missing_columns_are_named_and_other_runs_give_no_section():
    few = small_set(2).filter(lambda i: i.groups["kind"] == "transition")
    section = choices_section(findings(planted(few, always_a)))
    assert section is not None
    assert "missing, because 12 of them were not asked: num2space 1D D" in section.notes[-1]
    assert len(section.grids) == 5
    game = memory_game(languages=("en",), shapes=("star",), size=64)
    assert choices_section(findings(FakeRun(game, lambda _: {"this": 0.6, "that": 0.4}))) is None
