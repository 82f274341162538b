"""Whether ways of reading agree, which letters a model prefers, and what is left of its choices when letters are permuted."""

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.analyses.choice_scores import SceneDraws, grouped
from deixis.analyses.choice_table import ways_of

if TYPE_CHECKING:
    import pandas as pd

AGREEMENT_COLUMNS = ("model", "condition", "one", "other", "agreement", "low", "high", "kappa", "n", "unread")
POSITION_COLUMNS = (
    "model",
    "condition",
    "way",
    "n_options",
    "letter",
    "share",
    "low",
    "high",
    "uniform",
    "right_share",
    "n",
    "unread",
)
PERMUTATION_COLUMNS = (
    "model", "condition", "way", "n_options", "accuracy", "low", "high", "worst", "best", "consistent", "consistent_low",
    "consistent_high", "always_right", "by_chance", "n", "n_scenes", "incomplete",
)  # fmt: skip


def agreement_table(table: "pd.DataFrame", draws: SceneDraws) -> "pd.DataFrame":
    """The rows of :meth:`Choices.agreement`."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for (model, condition), part in table.groupby(["model", "condition"], sort=False):
        by_way = {way: part[part["way"] == way] for way in ways_of(part)}
        for one, other in combinations(by_way, 2):
            both = by_way[one][["item", "scene", "letter"]].merge(
                by_way[other][["item", "letter"]], on="item", suffixes=("", "_other")
            )
            read = both.dropna(subset=["letter", "letter_other"])
            found = _agreement(read, draws) | {"n": len(read), "unread": len(both) - len(read)}
            rows.append({"model": model, "condition": condition, "one": one, "other": other} | found)
    return pd.DataFrame(rows, columns=list(AGREEMENT_COLUMNS))


def _agreement(read: "pd.DataFrame", draws: SceneDraws) -> dict[str, float]:
    if not len(read):
        return dict.fromkeys(("agreement", "low", "high", "kappa"), float("nan"))
    same = (read["letter"] == read["letter_other"]).to_numpy(float)
    share = float(same.mean())
    low, high = draws.span(draws.means(same, read["scene"].to_numpy()), share, read["scene"].nunique())
    kappa = cohens_kappa(read["letter"].tolist(), read["letter_other"].tolist())
    return {"agreement": share, "low": low, "high": high, "kappa": kappa}


def cohens_kappa(one: "list[Any]", other: "list[Any]") -> float:
    """Agreement beyond chance of two lists of labels (Cohen 1960); NaN where both have one and the same label only."""
    first, second = np.array(one, dtype=object), np.array(other, dtype=object)
    observed = float(np.mean(first == second))
    by_chance = sum(float(np.mean(first == label) * np.mean(second == label)) for label in {*one, *other})
    return float("nan") if by_chance == 1 else (observed - by_chance) / (1 - by_chance)


def position_table(table: "pd.DataFrame", draws: SceneDraws) -> "pd.DataFrame":
    """The rows of :meth:`Choices.positions`."""
    import pandas as pd

    def rows_of(part: "pd.DataFrame") -> "list[dict[str, Any]]":
        read = part[part["letter"].notna()]
        letters = [chr(ord("A") + place) for place in range(int(part["n_options"].iloc[0]))]
        return [_position(letter, part, read, draws) | {"uniform": 1 / len(letters)} for letter in letters]

    rows = []
    for key, part in table.groupby(["model", "condition", "way", "n_options"], sort=False):
        named = dict(zip(("model", "condition", "way", "n_options"), key, strict=True))
        rows += [named | row for row in rows_of(part)]
    return pd.DataFrame(rows, columns=list(POSITION_COLUMNS))


def _position(letter: str, part: "pd.DataFrame", read: "pd.DataFrame", draws: SceneDraws) -> dict[str, Any]:
    row: dict[str, Any] = {"letter": letter, "share": float("nan"), "low": float("nan"), "high": float("nan")}
    if len(read):
        named = (read["letter"] == letter).to_numpy(float)
        row["share"] = float(named.mean())
        row["low"], row["high"] = draws.span(draws.means(named, read["scene"].to_numpy()), row["share"], read["scene"].nunique())
    right_share = float((part.drop_duplicates("item")["truth"] == letter).mean())
    return row | {"right_share": right_share, "n": len(read), "unread": len(part) - len(read)}


def permutation_table(table: "pd.DataFrame", draws: SceneDraws) -> "pd.DataFrame":
    """The rows of :meth:`Choices.permutations`; empty where no question has all its permutations."""
    by = ["model", "condition", "way", "n_options"]
    return grouped(table, by, lambda part: _permuted(part, draws), PERMUTATION_COLUMNS)


def _permuted(part: "pd.DataFrame", draws: SceneDraws) -> dict[str, Any] | None:
    k = int(part["n_options"].iloc[0])
    questions = part.assign(
        content=[_content(letter, truth, k) for letter, truth in zip(part["letter"], part["truth"], strict=True)]
    )
    # Several draws of one answer are questions of their own.
    groups = questions.groupby(["question", "draw"], sort=False)
    complete = groups["permutation"].transform("nunique") == k
    whole = questions[complete]
    if not len(whole):
        return None
    groups = whole.groupby(["question", "draw"], sort=False)
    scenes = groups["scene"].first().to_numpy()
    means, n_scenes = groups["right"].mean().to_numpy(float), len(set(scenes))
    by_permutation = whole.groupby("permutation")["right"].mean()
    # An answer that could not be read is no content, and not consistent with anything.
    consistent = ((groups["content"].nunique() == 1) & (groups["content"].count() == k)).to_numpy(float)
    row: dict[str, Any] = {"accuracy": float(means.mean()), "consistent": float(consistent.mean())}
    row["low"], row["high"] = draws.span(draws.means(means, scenes), row["accuracy"], n_scenes)
    span = draws.span(draws.means(consistent, scenes), row["consistent"], n_scenes)
    row |= {"consistent_low": span[0], "consistent_high": span[1]}
    row |= {"worst": float(by_permutation.min()), "best": float(by_permutation.max())}
    row |= {"always_right": float((means == 1).mean()), "by_chance": float(k) ** (1 - k)}
    incomplete = questions.loc[~complete, "question"].nunique()
    return row | {"n": whole["question"].nunique(), "n_scenes": n_scenes, "incomplete": incomplete}


def _content(letter: Any, truth: str, k: int) -> float:
    """How many places behind the right one (in a cycle) the chosen option stands: the same in all permutations of a question."""
    return float("nan") if not isinstance(letter, str) else float((ord(letter) - ord(truth)) % k)
