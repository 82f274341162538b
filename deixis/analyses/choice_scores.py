"""Accuracy of multiple-choice answers by column, with chance, the majority letter and intervals over scenes."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Shaped

from deixis.analyses.behaviour_scores import rng_of
from deixis.analyses.distributions import ClusterSums, interval

if TYPE_CHECKING:
    import pandas as pd

CELL_COLUMNS = (
    "direction",
    "column",
    "accuracy",
    "low",
    "high",
    "chance",
    "majority",
    "majority_letter",
    "top_letter",
    "top_share",
    "unreadable",
    "tied",
    "n",
    "n_scenes",
)
"""What is said of one column, in one direction."""
SCORE_COLUMNS = ("model", "condition", "way", *CELL_COLUMNS)
MEAN = "mean"
"""The column's name in the row that is the plain mean of the others."""
_FEW = 5
"""Strata of fewer scenes are drawn together: one scene drawn from itself would look certain."""


@dataclass(frozen=True)
class SceneDraws:
    """How often each scene is taken in each draw of a bootstrap; what is compared uses the same draws."""

    names: tuple[str, ...]
    times: Float[np.ndarray, "draw scene"]

    @classmethod
    def of(cls, table: "pd.DataFrame", n_boot: int, seed: int) -> "SceneDraws":
        """Draw scenes again within strata: those of the same columns and scale, which a benchmark has in fixed numbers.

        Strata of fewer than five scenes are drawn together. So every column keeps about its number of scenes, and scenes that
        serve several columns (all maps and both directions of a layout) move in all of them at once.
        """
        columns = table.groupby("scene")["column"].agg(lambda found: "|".join(sorted({str(name) for name in found})))
        strata = columns.to_numpy(str)
        sizes = {name: int((strata == name).sum()) for name in set(strata)}
        strata = np.array([name if sizes[name] >= _FEW else "" for name in strata])
        times = np.zeros((n_boot, len(columns)))
        for name in sorted(set(strata)):
            (where,) = np.nonzero(strata == name)
            draws = rng_of(seed, "scenes", name).multinomial(len(where), np.full(len(where), 1 / len(where)), size=n_boot)
            times[:, where] = draws
        return cls(tuple(columns.index.astype(str)), times)

    def means(self, values: Float[np.ndarray, " row"], scenes: Shaped[np.ndarray, " row"]) -> Float[np.ndarray, " draw"]:
        """Mean of ``values`` in each draw; NaN in draws that hold no row."""
        return ClusterSums.of(values[:, None], scenes, self.names).means(self.times)[:, 0]

    def span(self, draws: Float[np.ndarray, " draw"], estimate: float, n_scenes: int) -> tuple[float, float]:
        """95 % interval; NaN for a single scene, which says nothing about others."""
        return interval(draws, estimate) if n_scenes > 1 else (float("nan"), float("nan"))


def column_of(table: "pd.DataFrame") -> "pd.Series[str]":
    """Each row's column: SpaceNum's own, or the task of items of other benchmarks."""
    return table["column"].fillna(table["task"])


def score_table(table: "pd.DataFrame", draws: SceneDraws) -> "pd.DataFrame":
    """The rows of :meth:`Choices.scores` from those of :meth:`Choices.to_frame`."""
    import pandas as pd

    table = table.assign(column=column_of(table), direction=table["direction"].fillna(""))
    rows: list[dict[str, Any]] = []
    for (model, condition, way), part in table.groupby(["model", "condition", "way"], sort=False):
        cells, drawn = [], []
        for (direction, column), cell in part.groupby(["direction", "column"], sort=False):
            row, means = cell_scores(cell, draws)
            cells.append({"direction": direction, "column": column} | row)
            drawn.append(means)
        if len(cells) > 1:
            cells.append({"direction": "", "column": MEAN} | _mean_of(cells, drawn, part, draws))
        rows += [{"model": model, "condition": condition, "way": way} | cell for cell in cells]
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS))


def cell_scores(cell: "pd.DataFrame", draws: SceneDraws) -> tuple[dict[str, Any], Float[np.ndarray, " draw"]]:
    """What the rows of one column say, and the accuracy of each draw of the scenes."""
    right, scenes = cell["right"].to_numpy(float), cell["scene"].to_numpy()
    means, n_scenes = draws.means(right, scenes), cell["scene"].nunique()
    accuracy = float(right.mean())
    low, high = exact_span(accuracy, n_scenes) if accuracy in (0.0, 1.0) else draws.span(means, accuracy, n_scenes)
    majority_letter, majority = most_common(cell.drop_duplicates("item")["truth"])
    top_letter, top_share = most_common(cell["letter"])
    row = {"accuracy": accuracy, "low": low, "high": high, "chance": float((1 / cell["n_options"]).mean())}
    row |= {"majority": majority, "majority_letter": majority_letter, "top_letter": top_letter, "top_share": top_share}
    row |= {name: float((cell["outcome"] == name).mean()) for name in ("unreadable", "tied")}
    return row | {"n": cell["item"].nunique(), "n_scenes": n_scenes}, means


def exact_span(share: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of Clopper and Pearson (1934) where none or all of ``n`` scenes are right: a bootstrap sees no spread there."""
    if n < 2:
        return float("nan"), float("nan")
    bound = ((1 - level) / 2) ** (1 / n)
    return (0.0, 1 - bound) if share == 0 else (bound, 1.0)


def _mean_of(
    cells: Sequence[dict[str, Any]], drawn: Sequence[Float[np.ndarray, " draw"]], part: "pd.DataFrame", draws: SceneDraws
) -> dict[str, Any]:
    """The plain mean over columns, each column counting alike whatever its number of items."""
    row: dict[str, Any] = {name: float(np.mean([cell[name] for cell in cells])) for name in _AVERAGED}
    n_scenes = part["scene"].nunique()
    row["low"], row["high"] = draws.span(np.mean(drawn, axis=0), row["accuracy"], n_scenes)
    return row | {"majority_letter": None, "top_letter": None, "n": part["item"].nunique(), "n_scenes": n_scenes}


_AVERAGED = ("accuracy", "chance", "majority", "top_share", "unreadable", "tied")


def most_common(letters: "pd.Series[Any]") -> tuple[str | None, float]:
    """The most frequent letter (the first of the alphabet where several are) and its share of all entries, None included."""
    counts = letters.value_counts().sort_index()
    if not len(counts):
        return None, float("nan")
    return str(counts.idxmax()), float(counts.max() / len(letters))


def grouped(
    table: "pd.DataFrame", by: Sequence[str], row: Callable[["pd.DataFrame"], dict[str, Any] | None], columns: Sequence[str]
) -> "pd.DataFrame":
    """One row for each group of ``table`` for which ``row`` gives one."""
    import pandas as pd

    rows = []
    for key, part in table.groupby(list(by), sort=False, dropna=False):
        found = row(part)
        if found is not None:
            names: tuple[Hashable, ...] = key if isinstance(key, tuple) else (key,)
            rows.append(dict(zip(by, names, strict=True)) | found)
    return pd.DataFrame(rows, columns=list(columns))
