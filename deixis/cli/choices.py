"""What 'deixis score' says about a run of multiple-choice items."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from deixis.cli.output import answered
from deixis.console import Outcome, records, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.analyses import Choices, SpaceNumScores

CHOICES_SCHEMA = "deixis.score.choices/1"
"""Of ``--json``; the number changes when a key is taken away or means something else, not when one is added."""
_DIRECTIONS = {"num2space": "Num2Space", "space2num": "Space2Num"}
_COLUMN_HEADINGS = {"column": "", "right": "right, 95 %", "chance": "chance", "majority": "majority"}
_COLUMN_HEADINGS |= {"says": "says", "unread": "unread", "n": "n"}


@dataclass(frozen=True)
class ChoiceRequest:
    """What was asked for on the command line."""

    way: str
    condition: str
    texts: bool
    draws: int
    seed: int


def scored_choices(run: "Run", asked: ChoiceRequest, out: Path | None) -> Outcome:
    """The tables of a run of lettered items; those of SpaceNum in the paper's form."""
    from deixis.analyses.choices import choices
    from deixis.analyses.spacenum_columns import COLUMNS

    vlm, sampled = _extra(run, asked)
    found = choices(run, vlm=vlm, sampled=sampled, seed=asked.seed)
    _check(found, asked)
    known = {(column.direction, column.name) for column in COLUMNS}
    frame = found.to_frame()
    if any(pair in known for pair in zip(frame["direction"], frame["column"], strict=True)):
        return _spacenum(found, asked, out)
    scores = found.scores()
    shown = (_heading(found.model, asked), _columns(_chosen(scores, asked)), *_below(found, asked))
    return answered(_Shown(scores, asked, found.plot), out, shown, _data(found) | {"scores": records(scores)})


def _extra(run: "Run", asked: ChoiceRequest) -> tuple[Any, Any]:
    """The model and its drawn answers, where they are asked for."""
    if not asked.texts and not asked.draws:
        return None, None
    import deixis as dx

    vlm = dx.load(run.settings["model"], dtype=run.settings["dtype"])
    sampled = dx.sample_answers(vlm, run.items, asked.draws, seed=asked.seed) if asked.draws else None
    return (vlm if asked.texts else None), sampled


def _check(found: "Choices", asked: ChoiceRequest) -> None:
    conditions = tuple(dict.fromkeys(found.to_frame()["condition"]))
    for name, value, known in (("--way", asked.way, found.ways), ("--condition", asked.condition, conditions)):
        if value not in known:
            more = "; --texts and --draws add ways" if name == "--way" else ""
            raise ValueError(f"{name} {value} is not in this run, which has: {', '.join(known)}{more}.")


def _spacenum(found: "Choices", asked: ChoiceRequest, out: Path | None) -> Outcome:
    from deixis.analyses.spacenum_columns import AVERAGE
    from deixis.analyses.spacenum_scores import spacenum_scores, table_rows

    scores = spacenum_scores(found, seed=asked.seed)
    rows = table_rows(scores, asked.way, asked.condition)
    missing = scores.missing(asked.condition)
    shown: list[RenderableType] = [_heading(found.model, asked), _columns(rows[rows["n"] > 0])]
    if missing:
        asked_for = rows[(rows["n"] > 0) & (rows["key"] != AVERAGE)]
        mean = 100 * asked_for["accuracy"].mean()
        there = f"the mean of the other {len(asked_for)} is {mean:.1f}"
        shown.append(f"Avg is missing like {len(missing)} of the 20 columns; {there}.")
    shown += [*_errors(scores, asked), *_changes(scores, asked), *_below(found, asked)]
    data = _data(found) | {"scores": records(scores.to_frame()), "missing": list(missing)}
    data |= {"proximity": records(scores.proximity()), "error_shares": records(scores.error_shares())}
    data |= {"directions": records(scores.directions()), "interventions": records(scores.interventions())}

    def plot(ax: "Axes | None") -> "Axes":
        return scores.plot(ax, way=asked.way, condition=asked.condition)

    return answered(_Shown(scores.to_frame(), asked, plot), out, tuple(shown), data)


def _data(found: "Choices") -> dict[str, Any]:
    data = {"schema": CHOICES_SCHEMA, "model": found.model, "ways": list(found.ways)}
    frames = {"agreement": found.agreement(), "positions": found.positions(), "permutations": found.permutations()}
    return data | {name: records(frame) for name, frame in frames.items()}


_WAYS = {
    "logits": "the letters' logits",
    "string": "the likelihood of the options' texts",
    "string_per_byte": "the likelihood of the options' texts per byte",
    "written": "the letter that was written",
    "sampled": "the letters that were drawn",
}


def _heading(model: str, asked: ChoiceRequest) -> str:
    return f"{model}\ncondition {asked.condition}, by {_WAYS[asked.way]}; percent"


def _chosen(frame: "pd.DataFrame", asked: ChoiceRequest) -> "pd.DataFrame":
    return frame[(frame["way"] == asked.way) & (frame["condition"] == asked.condition)]


def _columns(rows: "pd.DataFrame") -> RenderableType:
    """One line for each column below a line for each direction, at most eighty signs wide."""
    import pandas as pd

    lines: list[dict[str, str]] = []
    block = ""
    for row in rows.to_dict("records"):
        title = _DIRECTIONS.get(str(row["direction"]), str(row["direction"]))
        if title and title != block:
            lines.append(dict.fromkeys(_COLUMN_HEADINGS, "") | {"column": title})
            block = title
        lines.append(_line(row))
    return table(pd.DataFrame(lines), _COLUMN_HEADINGS)


def _line(row: "dict[Hashable, Any]") -> dict[str, str]:
    letter, share = row["top_letter"], row["top_share"]
    says = f"{letter} {100 * share:3.0f}" if isinstance(letter, str) else ""
    span = "" if _is_nan(row["low"]) else f" ({_span(row['low'], row['high'])})"
    names = {"right": "accuracy", "chance": "chance", "majority": "majority", "unread": "unreadable"}
    numbers = {name: "    -" if _is_nan(row[column]) else f"{100 * row[column]:5.1f}" for name, column in names.items()}
    return {"column": f"  {row['column']}", **numbers, "right": numbers["right"] + span, "says": says, "n": f"{row['n']:4d}"}


def _percent(shares: "pd.Series[float]") -> "pd.Series[float]":
    return 100 * shares.astype(float)


def _span(low: float, high: float, sign: str = "") -> str:
    return "-" if _is_nan(low) else f"{100 * low:{sign}.0f} to {100 * high:{sign}.0f}"


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _errors(scores: "SpaceNumScores", asked: ChoiceRequest) -> list[str]:
    """A line on how near the numbers lie, and one on what is wrong in layouts."""
    near, wrong = _chosen(scores.proximity(), asked), _chosen(scores.error_shares(), asked)
    lines = []
    near = near[(near["direction"] == "all") & (near["action"] == "all") & (near["n"] > 0)]
    for row in near.to_dict("records"):
        span = "" if _is_nan(row["low"]) else f" ({row['low']:.1f} to {row['high']:.1f})"
        lines.append(f"Error proximity: {row['points']:.1f} points{span}; by chance {row['chance']:.1f}.")
    parts = [f"{row['error']} {100 * row['share']:.0f}" for row in wrong[wrong["direction"] == "all"].to_dict("records")]
    if parts:
        lines.append(f"Wrong layouts: {', '.join(parts)} percent; by chance 33 each.")
    return ["", *lines] if lines else []


def _changes(scores: "SpaceNumScores", asked: ChoiceRequest) -> list[RenderableType]:
    """What every other condition changes."""
    found = scores.interventions()
    found = found[(found["way"] == asked.way) & (found["direction"] == "all") & (found["n"] > 0)]
    if not len(found):
        return []
    shown = found.assign(
        real=_percent(found["real"]),
        changed=_percent(found["changed"]),
        delta=[f"{100 * delta:+.1f}" for delta in found["delta"]],
        interval=[_span(low, high, "+") for low, high in zip(found["low"], found["high"], strict=True)],
        same=_percent(found["same_choice"]),
    )
    headings = {"condition": "condition", "kind": "kind", "real": "real", "changed": "then", "delta": "change"}
    headings |= {"interval": "95 %", "same": "same", "n": "n"}
    return ["", "Against the real items, question by question; percent (same: of letters)", table(shown, headings, digits=1)]


def _below(found: "Choices", asked: ChoiceRequest) -> list[str]:
    """Which letters are preferred, whether the ways agree, and what permutations leave."""
    lines = []
    for k, part in _chosen(found.positions(), asked).groupby("n_options"):
        if part["share"].notna().any():
            shares = ", ".join(f"{row['letter']} {100 * row['share']:.0f}" for row in part.to_dict("records"))
            lines.append(f"Letters of {k} options: {shares} percent.")
    agreement = found.agreement()
    for row in agreement[agreement["condition"] == asked.condition].to_dict("records"):
        told = "none read by both" if not row["n"] else f"{100 * row['agreement']:.0f} % of {row['n']} agree"
        lines.append(f"{row['one']} and {row['other']}: {told}, {row['unread']} unread.")
    for row in _chosen(found.permutations(), asked).to_dict("records"):
        lines.append(
            f"Over {row['n_options']} permutations: {100 * row['accuracy']:.1f} % right ({_span(row['low'], row['high'])}), "
            f"{100 * row['consistent']:.0f} % alike in all."
        )
    return ["", *lines] if lines else []


@dataclass(frozen=True)
class _Shown:
    """Scores with the picture of the chosen way and condition."""

    scores: "pd.DataFrame"
    asked: ChoiceRequest
    draw: Any

    def to_frame(self) -> "pd.DataFrame":
        return self.scores

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        return self.draw(ax)
