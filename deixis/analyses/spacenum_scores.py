"""SpaceNum's scores (arXiv 2605.23898): its results table with honest baselines, errors, asymmetries, interventions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deixis.analyses.choice_scores import SceneDraws
from deixis.analyses.choices import Choices, choices
from deixis.analyses.spacenum_columns import AVERAGE, COLUMNS
from deixis.analyses.spacenum_errors import error_table, proximity_table
from deixis.analyses.spacenum_pairs import change_table, direction_table
from deixis.analyses.spacenum_plot import plot_spacenum_scores
from deixis.analyses.spacenum_table import column_table, wide_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

BLIND = ("black", "blank", "text_only")
"""Conditions in which nothing can be seen; the paper's is ``black``."""


@dataclass(frozen=True)
class SpaceNumScores:
    """Scores of one or more models; frames hold shares between 0 and 1 (points between 0 and 100), intervals 95 % over scenes."""

    models: tuple[str, ...]
    ways: tuple[str, ...]
    conditions: tuple[str, ...]
    _table: "pd.DataFrame"
    _draws: SceneDraws

    def __repr__(self) -> str:
        frames = ".to_frame(), .table(), .proximity(), .error_shares(), .directions(), .interventions(), .blind(), .plot()"
        return f"SpaceNumScores({', '.join(self.models)}; {frames})"

    def to_frame(self) -> "pd.DataFrame":
        """One row per model, condition, way and column of the table, all twenty of them, then the halves and ``Avg``.

        ``accuracy`` with ``low, high``, ``chance``, ``majority`` (the accuracy of always answering ``majority_letter``),
        ``top_letter`` and ``top_share`` (the model's own most frequent answer), shares of ``unreadable`` and ``tied`` answers,
        ``n`` items and ``n_scenes``. Columns without items are NaN, and so is ``Avg`` then (see :meth:`missing`). ``transition``
        and ``layout`` are means over items, not over columns, as in the paper's blind test.
        """
        return column_table(self._table, self._draws)

    def missing(self, condition: str = "real") -> tuple[str, ...]:
        """Keys of the columns without any item of this condition."""
        own = self._table[self._table["condition"] == condition]
        there = set(zip(own["direction"], own["column"], strict=True))
        return tuple(column.key for column in COLUMNS if (column.direction, column.name) not in there)

    def table(self, way: str = "logits", condition: str = "real") -> "pd.DataFrame":
        """The results table in the paper's form, in percent: ``chance``, ``majority letter``, then a row per model.

        Raises:
            ValueError: No choice was read in this way, or there is no item of this condition.
        """
        rows = self._rows(way, condition)
        return wide_table(rows)

    def proximity(self) -> "pd.DataFrame":
        """How near the chosen magnitudes lie to the right ones: a row per model, condition, way, direction and action.

        ``points``: mean over readable answers of 100, 70, 40 or 0 by the rank of the chosen option's error; equal errors share
        their ranks' mean, so that random letters get 52.5 whatever the options. ``error_points``: over wrong answers alone,
        beside their chance of 36.7; ``overshoot``: the share of wrong answers whose number is too large.
        """
        return proximity_table(self._table, self._draws)

    def error_shares(self) -> "pd.DataFrame":
        """What is wrong in the wrongly chosen layouts: a row per model, condition, way, direction and kind of error.

        ``share`` of the wrong answers to layouts of four options whose ``error`` is the ``position``, the ``size`` or ``both``;
        random wrong letters give a third each.
        """
        return error_table(self._table, self._draws)

    def directions(self) -> "pd.DataFrame":
        """Num2Space against Space2Num: a row per action, per column and for each half.

        ``difference`` is Space2Num's accuracy minus Num2Space's; in its interval a scene's questions of both directions move
        together.
        """
        return direction_table(self._table, self._draws)

    def interventions(self) -> "pd.DataFrame":
        """Every other condition against ``real``, question by question: a row per condition and column, halves first.

        ``delta`` is the change of accuracy over the questions that are there in both, with its paired interval;
        ``same_choice`` the share of them in which the same letter is chosen; ``without_partner`` rows have no real question.
        """
        return change_table(self._table, self._draws)

    def blind(self) -> "pd.DataFrame":
        """The blind test: :meth:`interventions` where nothing can be seen, over all items of each half."""
        found = self.interventions()
        return found[found["condition"].isin(BLIND) & (found["direction"] == "all")].reset_index(drop=True)

    def symmetry(self, condition: str = "rotational_equivalent") -> "pd.DataFrame":
        """Rotational symmetry: how answers change where "left by 20 degrees" is asked as "right by 340 degrees".

        :meth:`interventions` of that condition. A model with a consistent geometry has ``same_choice`` 1 and ``delta`` 0, because
        the options keep their letters.
        """
        found = self.interventions()
        return found[found["condition"] == condition].reset_index(drop=True)

    def plot(self, ax: "Axes | None" = None, *, way: str = "logits", condition: str = "real") -> "Axes":
        """See :func:`plot_spacenum_scores`."""
        return plot_spacenum_scores(self._rows(way, condition), ax)

    def _rows(self, way: str, condition: str) -> "pd.DataFrame":
        for name, value, known in (("way", way, self.ways), ("condition", condition, self.conditions)):
            if value not in known:
                raise ValueError(f"{name}={value!r} was not read here; these were: {', '.join(known)}.")
        frame = self.to_frame()
        return frame[(frame["way"] == way) & (frame["condition"] == condition)].reset_index(drop=True)


def spacenum_scores(runs: "Run | Choices | Sequence[Run | Choices]", *, n_boot: int = 2000, seed: int = 0) -> SpaceNumScores:
    """Score runs of SpaceNum's items in the paper's tables.

    Args:
        runs: One or more. Several runs of one model are put together, such as one of the real items and one of an intervention.
            A :class:`Choices`, as :func:`deixis.behaviour` returns it, brings its further ways of reading with it.
        n_boot: Bootstrap draws of the scenes, the same ones for all models.
        seed: Of the bootstrap.

    Raises:
        ValueError: No run; a run without items of SpaceNum; two runs of one model that hold the same item.
    """
    import pandas as pd

    given = [runs] if not isinstance(runs, Sequence) else list(runs)
    if not given:
        raise ValueError("there is no run to score; give at least one.")
    tables = [_own(one if isinstance(one, Choices) else choices(one, n_boot=1, seed=seed)) for one in given]
    table = pd.concat(tables, ignore_index=True)
    twice = table[table.duplicated(["model", "item", "way", "draw"])]
    if len(twice):
        raise ValueError(f"two of the runs of {twice['model'].iloc[0]!r} hold the item {twice['item'].iloc[0]!r}; leave one out.")
    ways = tuple(dict.fromkeys(table["way"]))
    conditions = tuple(dict.fromkeys(table["condition"]))
    return SpaceNumScores(tuple(dict.fromkeys(table["model"])), ways, conditions, table, SceneDraws.of(table, n_boot, seed))


def _own(found: Choices) -> "pd.DataFrame":
    table = found.to_frame()
    known = {(column.direction, column.name) for column in COLUMNS}
    mine = [pair in known for pair in zip(table["direction"], table["column"], strict=True)]
    if not any(mine):
        raise ValueError(
            f"the run of {found.model!r} holds no item of SpaceNum's columns (groups direction and column); record "
            "dx.spacenum(), or use dx.behaviour for other multiple choice."
        )
    return table[mine]


def table_rows(scores: SpaceNumScores, way: str, condition: str) -> "pd.DataFrame":
    """The rows of the table as they are printed: halves left out, the average last."""
    rows = scores._rows(way, condition)
    return rows[rows["key"].isin([*(column.key for column in COLUMNS), AVERAGE])].reset_index(drop=True)
