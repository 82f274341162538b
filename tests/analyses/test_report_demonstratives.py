"""The section on demonstratives, on runs whose numbers are known."""

import pandas as pd

from deixis.analyses.findings import Findings
from deixis.analyses.report_demonstratives import demonstratives_section
from deixis.benchmarks import memory_game
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER
from tests.analyses.fake_run import FakeRun, by_term, right_answer

ITEMS = memory_game(languages=("en",), size=64)
BOTH = ITEMS + ITEMS.with_condition("blank")


def speaker(item):
    region = 2 if item.condition == "blank" else int(item.targets["region"])
    return by_term(item, SYNTHETIC_SPEAKER[item.language][region])


def flat(item):
    return {option.label: 1 / len(item.options) for option in item.options}


def findings(*runs, reference="synthetic"):
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
        reference=reference,
        gap=None,  # pyright: ignore[reportArgumentType]
        vlms={},
    )


def made(*runs, **more):
    return demonstratives_section(findings(*runs, **more))


def test_the_table_and_the_words_say_what_the_analyses_found():
    run = FakeRun(BOTH, speaker, answers=[right_answer(item) for item in BOTH], model="looks")
    other = FakeRun(BOTH, flat, answers=[right_answer(item) for item in BOTH], model="blind")
    section = made(run, other)
    assert "In looks the distal term gains with distance in English: its log-odds rise by 0.78 per metre" in section.lead
    assert "In blind no slope can be told from zero in English" in section.lead
    (table,) = section.grids
    headings = [column.heading for column in table.columns]
    cells = dict(zip(headings, table.rows[0].cells, strict=True))
    assert cells["recognised"] == "60"
    assert cells["monotone"] == "yes"
    assert cells["JS, recognised"] == "0.00"
    assert cells["slope"] == "0.78"
    assert len(section.figures[0].panels) == 2
    assert "<svg" in section.figures[0].panels[0].svg


def test_without_answers_or_blank_items_their_columns_are_left_out_and_the_reason_is_said():
    section = made(FakeRun(ITEMS, speaker, model="looks"))
    headings = [column.heading for column in section.grids[0].columns]
    assert "JS, all" in headings
    assert not {"prior", "JS, recognised", "recognised"} & set(headings)
    assert any("holds no written answers" in note for note in section.notes)


def test_there_is_no_section_without_demonstratives():
    asked = memory_game(tasks=("distance",), languages=("en",), size=64)
    assert made(FakeRun(asked, flat, answers=["near"] * len(asked))) is None
