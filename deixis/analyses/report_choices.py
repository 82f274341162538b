"""The report's section on multiple choice: SpaceNum's table with honest baselines, errors, asymmetries, interventions."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from deixis.analyses.choices import Choices, choices
from deixis.analyses.findings import Findings
from deixis.analyses.report_figures import plain, titled
from deixis.analyses.report_parts import Figure, Section
from deixis.analyses.report_tables import Grid, grid, shown
from deixis.analyses.spacenum_columns import AVERAGE, COLUMNS, DIRECTIONS
from deixis.analyses.spacenum_plot import plot_spacenum_scores
from deixis.analyses.spacenum_scores import SpaceNumScores, spacenum_scores
from deixis.analyses.svg import Panel, panel
from deixis.benchmarks.judge_letters import is_lettered

if TYPE_CHECKING:
    import pandas as pd

_N_BOOT = 500
_WAY = "logits"
_TABLE = (
    "Accuracy in percent by the letters' logits, a line for each column of the published table. Chance is that of a random "
    "letter; majority is the accuracy of always answering the letter that is right most often; says is the model's own most "
    "frequent letter and its share of the answers. Intervals are 95 % over scenes. Avg is the plain mean of the twenty columns."
)
_ERRORS = (
    "Points of the chosen magnitudes: 100, 70, 40, 0 by the rank of the error, ties shared, so that chance is 52.5; of wrong "
    "answers alone 36.7. Too large is the share of wrong magnitudes above the right one."
)
_SHARES = "What is wrong in wrongly chosen layouts of four options, as shares of the wrong answers; a third each by chance."
_DIRECTIONS = "Accuracy from numbers to pictures and back on the same scenes; the interval is that of the difference."
_CHANGES = (
    "Accuracy under each intervention against the real items, question by question, with the paired interval of the change over "
    "scenes. Same letter is the share of questions with the same answer in both."
)
_LETTERS = "How often each letter is chosen, in percent of readable answers, against a uniform choice."
_AGREEMENT = "Share of items on which two ways of reading a choice name the same letter, and Cohen's kappa."
_NOTES = (
    "An accuracy that is no higher than the majority letter's shows no understanding: a constant answer reaches it.",
    "Unreadable answers (two letters, none, reasoning without end) count as not right and have a share of their own.",
)


def choices_section(findings: Findings) -> Section | None:
    """How the models answer lettered items; None where no run consists of them."""
    runs = [run for run in findings.runs if len(run.items) and all(is_lettered(item) for item in run.items)]
    found = [choices(run, n_boot=_N_BOOT) for run in runs]
    mine = [one for one in found if _is_spacenum(one)]
    if not mine:
        return None
    scores = spacenum_scores(mine, n_boot=_N_BOOT)
    tables = (_table_grid, _direction_grid, _proximity_grid, _share_grid, _change_grid)
    grids = [made for make in tables if (made := make(scores)) is not None]
    return Section(
        heading="Numbers and space",
        lead=_lead(scores),
        figures=(Figure((_panel(scores),), "The published table's columns; each point with its 95 % interval over scenes."),),
        grids=(*grids, _letter_grid(mine), *_agreement_grids(mine)),
        notes=(*_NOTES, *_missing_notes(scores)),
    )


def _is_spacenum(found: Choices) -> bool:
    known = {(column.direction, column.name) for column in COLUMNS}
    frame = found.to_frame()
    return any(pair in known for pair in zip(frame["direction"], frame["column"], strict=True))


def _real(frame: "pd.DataFrame") -> "pd.DataFrame":
    frame = frame[frame["way"] == _WAY]
    return frame[frame["condition"] == "real"] if "condition" in frame else frame


def _lead(scores: SpaceNumScores) -> str:
    """Whether each model is above chance and above its best constant letter."""
    frame = _real(scores.to_frame())
    sentences = []
    for model in scores.models:
        own = frame[(frame["model"] == model) & frame["key"].isin([column.key for column in COLUMNS]) & (frame["n"] > 0)]
        above = own[own["low"] > own[["chance", "majority"]].max(axis=1)]
        average = frame[(frame["model"] == model) & (frame["key"] == AVERAGE)].iloc[0]
        told = f"{model} is above both chance and the best constant letter in {len(above)} of {len(own)} columns"
        if not math.isnan(average["accuracy"]):
            told += f"; its average is {100 * average['accuracy']:.1f} % ({_span(average)}) where chance is "
            told += f"{100 * average['chance']:.1f} % and constant letters reach {100 * average['majority']:.1f} %"
        sentences.append(told + ".")
    return " ".join(sentences)


def _span(row: "Mapping[Any, Any] | pd.Series[Any]") -> str:
    low, high = float(row["low"]), float(row["high"])
    return "\N{EN DASH}" if math.isnan(low) else f"{shown(100 * low, 1)} to {shown(100 * high, 1)}"


def _spans(frame: "pd.DataFrame") -> list[str]:
    return [_span(row) for row in frame.to_dict("records")]


def _in_percent(frame: "pd.DataFrame", *names: str) -> dict[str, Any]:
    return {name: 100 * frame[name].astype(float) for name in names}


def _table_grid(scores: SpaceNumScores) -> Grid:
    frame = _real(scores.to_frame())
    frame = frame[(frame["n"] > 0) & frame["key"].isin([*(column.key for column in COLUMNS), AVERAGE])]
    says = [
        f"{letter} {100 * share:.0f}" if isinstance(letter, str) else ""
        for letter, share in zip(frame["top_letter"], frame["top_share"], strict=True)
    ]
    frame = frame.assign(
        **_in_percent(frame, "accuracy", "chance", "majority", "unreadable"),
        interval=_spans(frame),
        direction=[DIRECTIONS.get(direction, "") for direction in frame["direction"]],
        says=says,
    )
    headings = {"model": "model", "direction": "direction", "column": "column", "accuracy": "right", "interval": "interval"}
    headings |= {"chance": "chance", "majority": "majority", "says": "says", "n": "items", "n_scenes": "scenes"}
    return grid(frame, headings, _TABLE, digits=1)


def _direction_grid(scores: SpaceNumScores) -> Grid | None:
    frame = _real(scores.directions())
    if not len(frame):
        return None
    frame = frame[frame["level"] != "column"]
    names = [row["kind"] if row["level"] == "all" else row["name"] for row in frame.to_dict("records")]
    frame = frame.assign(**_in_percent(frame, "num2space", "space2num", "difference"), interval=_spans(frame), name=names)
    headings = {"model": "model", "name": "action or half", **DIRECTIONS, "difference": "difference", "interval": "interval"}
    return grid(frame, headings, _DIRECTIONS, digits=1)


def _proximity_grid(scores: SpaceNumScores) -> Grid | None:
    frame = _real(scores.proximity())
    frame = frame[(frame["action"] == "all") & (frame["n"] > 0)]
    if not len(frame):
        return None
    spans = [f"{shown(low, 1)} to {shown(high, 1)}" for low, high in zip(frame["low"], frame["high"], strict=True)]
    frame = frame.assign(
        interval=spans,
        direction=[DIRECTIONS.get(direction, "both") for direction in frame["direction"]],
        **_in_percent(frame, "overshoot"),
    )
    headings = {"model": "model", "direction": "direction", "points": "points", "interval": "interval", "chance": "chance"}
    headings |= {"error_points": "of errors", "error_chance": "chance of errors", "overshoot": "too large, %", "n": "items"}
    return grid(frame, headings, _ERRORS, digits=1)


def _share_grid(scores: SpaceNumScores) -> Grid | None:
    frame = _real(scores.error_shares())
    if not len(frame):
        return None
    directions = [DIRECTIONS.get(direction, "both") for direction in frame["direction"]]
    frame = frame.assign(**_in_percent(frame, "share", "chance"), interval=_spans(frame), direction=directions)
    headings = {"model": "model", "direction": "direction", "error": "wrong in", "share": "share, %", "interval": "interval"}
    return grid(frame, headings | {"chance": "chance", "n": "wrong answers"}, _SHARES, digits=1)


def _change_grid(scores: SpaceNumScores) -> Grid | None:
    frame = scores.interventions()
    frame = frame[(frame["way"] == _WAY) & (frame["column"] == "all") & (frame["n"] > 0)]
    if not len(frame):
        return None
    directions = [DIRECTIONS.get(direction, "both") for direction in frame["direction"]]
    frame = frame.assign(
        **_in_percent(frame, "real", "changed", "delta", "same_choice"), interval=_spans(frame), direction=directions
    )
    headings = {"model": "model", "condition": "intervention", "kind": "half", "direction": "direction", "real": "real"}
    headings |= {"changed": "changed", "delta": "change", "interval": "interval", "same_choice": "same letter", "n": "items"}
    return grid(frame, headings, _CHANGES, digits=1)


def _letter_grid(found: list[Choices]) -> Grid:
    import pandas as pd

    frame = _real(pd.concat([one.positions() for one in found], ignore_index=True))
    frame = frame.assign(**_in_percent(frame, "share", "uniform", "right_share"), interval=_spans(frame))
    headings = {"model": "model", "n_options": "options", "letter": "letter", "share": "chosen, %", "interval": "interval"}
    return grid(frame, headings | {"uniform": "uniform", "right_share": "right"}, _LETTERS, digits=1)


def _agreement_grids(found: list[Choices]) -> list[Grid]:
    import pandas as pd

    frame = pd.concat([one.agreement() for one in found], ignore_index=True)
    frame = frame[frame["condition"] == "real"]
    if not len(frame):
        return []
    frame = frame.assign(**_in_percent(frame, "agreement"), interval=_spans(frame))
    headings = {"model": "model", "one": "one", "other": "other", "agreement": "agree, %", "interval": "interval"}
    return [grid(frame, headings | {"kappa": "kappa", "n": "items", "unread": "unread"}, _AGREEMENT, digits=1)]


def _missing_notes(scores: SpaceNumScores) -> list[str]:
    missing = scores.missing()
    if not missing:
        return []
    return [f"The average of the twenty columns is missing, because {len(missing)} of them were not asked: {', '.join(missing)}."]


def _panel(scores: SpaceNumScores) -> Panel:
    frame = _real(scores.to_frame())
    draw: Callable[..., Any] = plot_spacenum_scores
    alt = f"Accuracy of {', '.join(scores.models)} in the columns of the published table, with chance and the majority letter."
    return panel(titled(draw, plain(frame), None), alt, "choices", width=7.6, height=3.6)
