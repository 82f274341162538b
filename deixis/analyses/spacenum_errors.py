"""How near a model's numbers lie to the right ones, and what is wrong about the layouts that it takes for right."""

from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.analyses.choice_errors import CHANCE_POINTS, CHANCE_POINTS_OF_ERRORS, LAYOUT_ERRORS
from deixis.analyses.choice_scores import SceneDraws, grouped

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
_KEY = ("model", "condition", "way", "direction")
PROXIMITY_COLUMNS = (
    *_KEY, "action", "points", "low", "high", "chance", "error_points", "error_low", "error_high", "error_chance", "overshoot",
    "n", "n_errors", "unread",
)  # fmt: skip
ERROR_COLUMNS = (*_KEY, "error", "share", "low", "high", "chance", "n", "n_scenes")


def proximity_table(table: "pd.DataFrame", draws: SceneDraws) -> "pd.DataFrame":
    """The rows of :meth:`SpaceNumScores.proximity` from choices."""
    mine = table[table["kind"] == "transition"]
    return grouped(
        _with_totals(mine, "direction", "action"), (*_KEY, "action"), lambda part: _proximity(part, draws), PROXIMITY_COLUMNS
    )


def _proximity(part: "pd.DataFrame", draws: SceneDraws) -> dict[str, Any]:
    read = part[part["points"].notna()]
    wrong = read[read["outcome"] == "wrong"]
    row: dict[str, Any] = {"chance": CHANCE_POINTS, "error_chance": CHANCE_POINTS_OF_ERRORS}
    row |= {"n": len(read), "n_errors": len(wrong), "unread": len(part) - len(read)}
    for prefix, rows in (("", read), ("error_", wrong)):
        mean, low, high = _mean(rows, rows["points"].to_numpy(float), draws)
        row |= {f"{prefix}points": mean, f"{prefix}low": low, f"{prefix}high": high}
    too_much = wrong["chosen_value"] > wrong["true_value"]
    return row | {"overshoot": float(too_much.mean()) if len(wrong) and wrong["true_value"].notna().all() else float("nan")}


def error_table(table: "pd.DataFrame", draws: SceneDraws) -> "pd.DataFrame":
    """The rows of :meth:`SpaceNumScores.error_shares` from choices."""
    import pandas as pd

    wrong = table[(table["kind"] == "layout") & (table["outcome"] == "wrong") & (table["n_options"] == len(LAYOUT_ERRORS) + 1)]
    wrong = wrong[wrong["chosen_kind"].isin(LAYOUT_ERRORS)]
    tables = [
        grouped(_with_totals(wrong, "direction"), _KEY, lambda part, e=error: _share(part, e, draws), ERROR_COLUMNS)
        for error in LAYOUT_ERRORS
    ]
    found = pd.concat(tables, ignore_index=True)
    order = found.groupby(list(_KEY), sort=False).ngroup()
    return found.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def _share(part: "pd.DataFrame", error: str, draws: SceneDraws) -> dict[str, Any]:
    share, low, high = _mean(part, (part["chosen_kind"] == error).to_numpy(float), draws)
    row = {"error": error, "share": share, "low": low, "high": high, "chance": 1 / len(LAYOUT_ERRORS)}
    return row | {"n": len(part), "n_scenes": part["scene"].nunique()}


def _mean(rows: "pd.DataFrame", values: np.ndarray, draws: SceneDraws) -> tuple[float, float, float]:
    if not len(rows):
        return float("nan"), float("nan"), float("nan")
    mean = float(values.mean())
    return mean, *draws.span(draws.means(values, rows["scene"].to_numpy()), mean, rows["scene"].nunique())


def _with_totals(table: "pd.DataFrame", *names: str) -> "pd.DataFrame":
    """The rows and again all of them under the value ``all`` of each of these columns in turn, from the last to the first."""
    import pandas as pd

    parts = [table]
    for name in reversed(names):
        parts.append(parts[-1].assign(**{name: ALL}))
    return pd.concat(parts, ignore_index=True)
