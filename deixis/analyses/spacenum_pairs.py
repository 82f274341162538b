"""The same questions in two versions: another condition against the real one, one direction against the other."""

from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.analyses.choice_scores import SceneDraws, column_of, grouped, most_common

if TYPE_CHECKING:
    import pandas as pd

CHANGE_COLUMNS = (
    "model", "way", "condition", "kind", "direction", "column", "real", "changed", "delta", "low", "high", "chance", "majority",
    "same_choice", "n", "n_scenes", "without_partner",
)  # fmt: skip
DIRECTION_COLUMNS = (
    "model", "condition", "way", "kind", "level", "name", "num2space", "space2num", "difference", "low", "high", "n_num2space",
    "n_space2num", "n_scenes",
)  # fmt: skip
ALL = "all"
_PAIRED_BY = ["model", "way", "question", "permutation", "draw"]


def change_table(table: "pd.DataFrame", draws: SceneDraws) -> "pd.DataFrame":
    """The rows of :meth:`SpaceNumScores.interventions` from choices."""
    import pandas as pd

    table = table.assign(column=column_of(table), kind=table["kind"].fillna(""), direction=table["direction"].fillna(""))
    kept = [*_PAIRED_BY, "letter", "right"]
    real = table.loc[table["condition"] == "real", kept].rename(columns={"letter": "real_letter", "right": "real_right"})
    changed = table[table["condition"] != "real"].merge(real, on=_PAIRED_BY, how="left")
    # What an item counts for stays known where several columns are put together.
    changed = changed.assign(own=changed["direction"] + " " + changed["column"])
    levels = [changed, changed.assign(column=ALL), changed.assign(column=ALL, direction=ALL)]
    by = ["model", "way", "condition", "kind", "direction", "column"]
    rows = [grouped(level, by, lambda part: _change(part, draws), CHANGE_COLUMNS) for level in levels[::-1]]
    return pd.concat(rows, ignore_index=True)


def _change(part: "pd.DataFrame", draws: SceneDraws) -> dict[str, Any]:
    paired = part[part["real_right"].notna()]
    row: dict[str, Any] = dict.fromkeys(
        ("real", "changed", "delta", "low", "high", "chance", "majority", "same_choice"), float("nan")
    )
    row |= {"n": paired["item"].nunique(), "n_scenes": paired["scene"].nunique(), "without_partner": len(part) - len(paired)}
    if not len(paired):
        return row
    before, after = paired["real_right"].to_numpy(float), paired["right"].to_numpy(float)
    row |= {"real": float(before.mean()), "changed": float(after.mean()), "delta": float((after - before).mean())}
    span = draws.span(draws.means(after - before, paired["scene"].to_numpy()), row["delta"], row["n_scenes"])
    row |= {"low": span[0], "high": span[1], "chance": float((1 / paired["n_options"]).mean())}
    row["majority"] = _majority(paired)
    read = paired[paired["letter"].notna() & paired["real_letter"].notna()]
    row["same_choice"] = float((read["letter"] == read["real_letter"]).mean()) if len(read) else float("nan")
    return row


def _majority(paired: "pd.DataFrame") -> float:
    """Accuracy of answering each column's own most frequent letter."""
    items = paired.drop_duplicates("item")
    found = [(most_common(own["truth"])[1], len(own)) for _, own in items.groupby("own", sort=False)]
    return float(np.average([share for share, _ in found], weights=[n for _, n in found]))


def direction_table(table: "pd.DataFrame", draws: SceneDraws) -> "pd.DataFrame":
    """The rows of :meth:`SpaceNumScores.directions` from choices."""
    import pandas as pd

    by = ["model", "condition", "way", "kind", "level", "name"]
    known = table[table["kind"].notna() & table["direction"].notna()]
    levels = [known.assign(level=level, name=known.get(level, ALL)) for level in ("action", "column", ALL)]
    rows = [
        grouped(level[level["name"].notna()], by, lambda part: _directions(part, draws), DIRECTION_COLUMNS) for level in levels
    ]
    return pd.concat(rows, ignore_index=True)


def _directions(part: "pd.DataFrame", draws: SceneDraws) -> dict[str, Any] | None:
    found, drawn = {}, []
    for direction in ("num2space", "space2num"):
        own = part[part["direction"] == direction]
        if not len(own):
            return None
        right = own["right"].to_numpy(float)
        found |= {direction: float(right.mean()), f"n_{direction}": own["item"].nunique()}
        drawn.append(draws.means(right, own["scene"].to_numpy()))
    difference, n_scenes = found["space2num"] - found["num2space"], part["scene"].nunique()
    # Both directions ask about the same scenes, which the draws take together.
    low, high = draws.span(drawn[1] - drawn[0], difference, n_scenes)
    return found | {"difference": difference, "low": low, "high": high, "n_scenes": n_scenes}
