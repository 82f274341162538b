"""SpaceNum's results table: twenty columns and their plain mean, with chance and the majority letter beside each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.analyses.choice_scores import CELL_COLUMNS, SceneDraws, cell_scores
from deixis.analyses.spacenum_columns import AVERAGE, COLUMNS, TableColumn

if TYPE_CHECKING:
    import pandas as pd

TABLE_COLUMNS = ("model", "condition", "way", "key", "kind", *CELL_COLUMNS)
HALVES = ("transition", "layout")
_AVERAGED = ("accuracy", "chance", "majority", "top_share", "unreadable", "tied")


def column_table(table: "pd.DataFrame", draws: SceneDraws) -> "pd.DataFrame":
    """The rows of :meth:`SpaceNumScores.to_frame` from choices."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for key, part in table.groupby(["model", "condition", "way"], sort=False):
        named = dict(zip(("model", "condition", "way"), key, strict=True))
        rows += [named | row for row in _rows(part, draws)]
    return pd.DataFrame(rows, columns=list(TABLE_COLUMNS))


def _rows(part: "pd.DataFrame", draws: SceneDraws) -> list[dict[str, Any]]:
    cells, drawn = [], []
    for column in COLUMNS:
        own = part[(part["direction"] == column.direction) & (part["column"] == column.name)]
        row, means = cell_scores(own, draws) if len(own) else (_missing(column), np.full(len(draws.times), np.nan))
        cells.append({"key": column.key, "kind": column.kind, "direction": column.direction, "column": column.name} | row)
        drawn.append(means)
    return [*cells, *(_half(part, cells, kind, draws) for kind in HALVES), _average(part, cells, np.array(drawn), draws)]


def _missing(column: TableColumn) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("accuracy", "low", "high", "majority", "top_share", "unreadable", "tied"), float("nan"))
    return row | {"chance": column.chance, "majority_letter": None, "top_letter": None, "n": 0, "n_scenes": 0}


def _average(part: "pd.DataFrame", cells: Sequence[dict[str, Any]], drawn: np.ndarray, draws: SceneDraws) -> dict[str, Any]:
    """The plain mean of all twenty columns; NaN if one is missing, because a mean of other columns is another number."""
    row: dict[str, Any] = {name: float(np.mean([cell[name] for cell in cells])) for name in _AVERAGED}
    n_scenes = part["scene"].nunique()
    row["low"], row["high"] = draws.span(drawn.mean(axis=0), row["accuracy"], n_scenes)
    return _whole(AVERAGE) | row | {"n": part["item"].nunique(), "n_scenes": n_scenes}


def _half(part: "pd.DataFrame", cells: Sequence[dict[str, Any]], kind: str, draws: SceneDraws) -> dict[str, Any]:
    """All items of one half alike, which is what the paper's blind test reports."""
    own = part[part["kind"] == kind]
    if not len(own):
        row = dict.fromkeys(_AVERAGED, float("nan")) | {"low": float("nan"), "high": float("nan"), "n": 0, "n_scenes": 0}
        return _whole(kind) | row
    row, _ = cell_scores(own, draws)
    there = [cell for cell in cells if cell["kind"] == kind and cell["n"]]
    weights = [cell["n"] for cell in there]
    # A majority letter is a column's own.
    row["majority"] = float(np.average([cell["majority"] for cell in there], weights=weights))
    return _whole(kind) | row | {"majority_letter": None}


def _whole(name: str) -> dict[str, Any]:
    return {"key": name, "kind": name, "direction": "", "column": name, "majority_letter": None, "top_letter": None}


def wide_table(rows: "pd.DataFrame") -> "pd.DataFrame":
    """One row per model in percent, columns as published, above them ``chance`` and ``majority letter``.

    Args:
        rows: Of :func:`column_table`, of one way and condition.

    Returns:
        ``model Avg`` and the keys of :data:`COLUMNS`. Models that were shown other items have their own majority row.
    """
    import pandas as pd

    keys = [AVERAGE, *(column.key for column in COLUMNS)]
    rows = rows[rows["key"].isin(keys)]

    def spread(part: "pd.DataFrame", name: str, label: str) -> "pd.DataFrame":
        wide = 100 * part.set_index("key")[name].reindex(keys).astype(float)
        return wide.to_frame().T.reset_index(drop=True).assign(model=label)[["model", *keys]]

    models = [(str(model), part) for model, part in rows.groupby("model", sort=False)]
    majorities = {
        tuple(part.set_index("key")["majority"].reindex(keys).round(9).fillna(-1)): (model, part) for model, part in models[::-1]
    }
    same = len(majorities) == 1
    above = [
        spread(part, "majority", "majority letter" if same else f"majority letter, {model}")
        for model, part in list(majorities.values())[::-1]
    ]
    found = [spread(models[0][1], "chance", "chance"), *above, *(spread(part, "accuracy", model) for model, part in models)]
    return pd.concat(found, ignore_index=True)
