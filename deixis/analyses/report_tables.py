"""The report's tables: which columns of the frames are shown, under which headings, in how many digits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.analyses.style import language_name

if TYPE_CHECKING:
    import pandas as pd

_METRICS = {"r2": "R2", "mae": "MAE, m", "balanced_accuracy": "balanced accuracy"}


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    heading: str
    number: bool


@dataclass(frozen=True)
class Row:
    """Cells as text; a line is drawn above the first row of a model."""

    cells: tuple[str, ...]
    first_of_model: bool


@dataclass(frozen=True)
class Grid:
    """A table, ready to be written."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    caption: str


def grid(frame: "pd.DataFrame", headings: Mapping[str, str], caption: str, digits: int = 2) -> Grid:
    """The frame's columns named in ``headings``, those that it has, as text."""
    names = [name for name in headings if name in frame]
    columns = tuple(Column(headings[name], frame[name].dtype.kind in "fi") for name in names)
    models: Sequence[Any] = list(frame["model"]) if "model" in frame else [None] * len(frame)
    cells = frame[names].astype(object).where(frame[names].notna(), None).itertuples(index=False)
    texts = (tuple(_cell(name, value, digits) for name, value in zip(names, row, strict=True)) for row in cells)
    rows = (Row(row, number == 0 or models[number] != models[number - 1]) for number, row in enumerate(texts))
    return Grid(columns, tuple(rows), caption)


def _cell(name: str, value: object, digits: int) -> str:
    """As :func:`shown`; a p-value is never 0."""
    least = 10.0**-digits
    if name.endswith(("_p", "p_value")) and isinstance(value, float) and value < least / 2:
        return f"< {least:.{digits}f}"
    return shown(value, digits)


def shown(value: object, digits: int = 2) -> str:
    """A value as text; what was not measured is a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "\N{EN DASH}"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return str(value)


def percent(value: float) -> str:
    """A share in percent."""
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.0%}"


def spans(frame: "pd.DataFrame") -> list[str]:
    """The columns ``low`` and ``high`` as one text."""
    pairs = zip(frame["low"].astype(float), frame["high"].astype(float), strict=True)
    return ["\N{EN DASH}" if math.isnan(low) else f"{shown(low)} to {shown(high)}" for low, high in pairs]


SCORES_CAPTION = (
    "Jensen-Shannon distance (base 2; 0 equal, 1 disjoint) of the model's distribution from the reference, mean over the three "
    "regions, with its 95 % interval. Beside it the uniform distribution's distance, and the noise floor: how far answers drawn "
    "from exactly the reference would lie from it on average. Recognised counts answers with colour and shape right. The last "
    "column is the share of right answers to “near, middle or far?”."
)
BEST_CAPTION = (
    "The layer that most folds chose, its score and the 95 % interval. Held out is the score when each fold's layer is chosen on "
    "the other folds: the best of many layers looks better than it is. MAE is in metres: less is better. Selectivity is how far "
    "the score lies above the control task's: what the probe does not owe to its own capacity to memorise."
)
GAP_CAPTION = (
    "Encoded: a linear probe finds the region (its balanced accuracy at the answer position and at the object's image tokens) in "
    "scenes it has not seen. Used: the model's distribution over the options moves with the region, by a Jensen-Shannon distance "
    "(shift) that chance alone would not give; where a patch is shown, putting a near scene's object tokens into a far one "
    "must move the answers, too, by at least as much as counts. Prior: the answer is the one to a blank picture."
)
EVIDENCE_CAPTION = "The numbers behind each decision. A dash is evidence that was not recorded."


def scores_grid(scores: "pd.DataFrame") -> Grid:
    """The mean over regions of every model and language."""
    frame = scores[scores["region"] == "mean"]
    counts = zip(frame["recognised"].astype(float), frame["n"].astype(float), strict=True)
    frame = frame.assign(
        recognised=["\N{EN DASH}" if math.isnan(count) else f"{count:.0f} / {n:.0f}" for count, n in counts],
        interval=spans(frame),
        accuracy=[percent(share) for share in frame["accuracy"].astype(float)],
        language=[language_name(code) for code in frame["language"]],
    )
    headings = {"model": "model", "language": "language", "js_distance": "JS distance", "interval": "interval"}
    headings |= {"js_uniform": "uniform's", "noise_floor": "noise floor", "recognised": "recognised"}
    return grid(frame, headings | {"accuracy": "distance right"}, SCORES_CAPTION)


def best_grid(best: "pd.DataFrame") -> Grid:
    """The layers that were chosen on other folds."""
    if len(best):
        sizes = [f"{n} / {groups}" for n, groups in zip(best["n_items"], best["n_groups"], strict=True)]
        best = best.assign(interval=spans(best), metric=best["metric"].replace(_METRICS), n_items=sizes)
    headings = {"model": "model", "target": "target", "role": "tokens", "metric": "metric", "layer": "layer", "score": "score"}
    headings |= {"interval": "interval", "held_out": "held out", "chance": "chance", "control": "control"}
    headings |= {"selectivity": "selectivity", "n_items": "items / scenes"}
    return grid(best, headings, BEST_CAPTION)


def gap_grid(frame: "pd.DataFrame") -> Grid:
    """What was decided, and the main numbers."""
    headings = {"model": "model", "task": "question", "language": "language", "case": "verdict", "encoded": "encoded"}
    headings |= {"used": "used", "prior": "prior", "answer_score": "probe, answer", "object_score": "probe, object"}
    headings |= {"image_score": "probe, image"} if frame["image_score"].notna().any() else {}
    headings |= {"shift": "shift", "shift_null": "by chance"}
    headings |= {"patch_moved": "patch"} if frame["patch_moved"].notna().any() else {}
    headings |= {"borderline": "borderline"} if frame["borderline"].astype(bool).any() else {}
    return grid(frame.assign(language=[language_name(code) for code in frame["language"]]), headings, GAP_CAPTION)


def evidence_grid(frame: "pd.DataFrame") -> Grid:
    """Everything that was decided from."""
    return grid(frame, {name: name.replace("_", " ") for name in frame.columns}, EVIDENCE_CAPTION, digits=3)
