"""Many models on one benchmark: Tables 1 and 2, Figure 2 and the correlation of arXiv 2607.07251, with intervals and counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from deixis.analyses.behaviour import ANSWERS, MIN_RECOGNISED, Behaviour, term_behaviour
from deixis.analyses.behaviour_plot import plot_behaviour
from deixis.analyses.style import SERIES, axes, language_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.benchmarks import Item

# fmt: off
COLUMNS = (
    "model", "language", "region", "answers", "js_distance", "low", "high", "js_corrected", "js_null", "js_uniform",
    "noise_floor", "recognised", "n", "n_scored", "js_distance_nats",
)
# fmt: on
NATS = float(np.sqrt(np.log(2)))
"""A Jensen-Shannon distance in base 2 times this is the distance in base e: the divergence changes by ln 2."""


class ComparisonError(ValueError):
    """Runs that cannot be compared; the message names the run and the first item that differs."""


@dataclass(frozen=True)
class Correlation:
    """Pearson's r of recognised answers and distance over the cells (model x language) that have both."""

    answers: str
    """Which answers the distances are of."""
    r: float
    low: float
    high: float
    """95 % interval by Fisher's transformation (Fisher 1915): ``tanh(atanh r +- 1.96 / sqrt(n - 3))``; NaN below four cells."""
    p_value: float
    """Of no correlation (Student's t, two-sided)."""
    n: int
    """Cells. Those of one model are not independent, so that the interval is the narrowest that can be defended."""
    left_out: tuple[str, ...]
    """Cells without a distance, as ``model language``."""

    def to_frame(self) -> "pd.DataFrame":
        """One row."""
        import pandas as pd

        return pd.DataFrame([vars(self) | {"left_out": ", ".join(self.left_out)}])

    def __str__(self) -> str:
        if np.isnan(self.r):
            return f"no correlation can be computed over {self.n} cells ({self.answers} answers)"
        return (
            f"r = {self.r:.2f} ({self.low:.2f} to {self.high:.2f}), p = {self.p_value:.2f}, over {self.n} cells "
            f"({self.answers} answers)"
        )


@dataclass(frozen=True)
class Comparison:
    """The answers of several models to the same items."""

    models: tuple[str, ...]
    languages: tuple[str, ...]
    reference: str | None
    min_recognised: int
    """A cell (model x language x region) of fewer recognised items is missing."""
    _scores: "pd.DataFrame"
    _distributions: "pd.DataFrame"

    def __repr__(self) -> str:
        return (
            f"Comparison({', '.join(self.models)}; reference {self.reference!r}; .table1(), .table2(), .figure2(), "
            ".correlation(), .to_frame())"
        )

    def to_frame(self) -> "pd.DataFrame":
        """One row per model, language, region (and ``mean``) and choice of answers.

        ``answers`` is ``recognised`` (as published) or ``all``; ``js_distance`` with ``low, high`` (95 %, figures drawn again),
        ``js_corrected``, ``js_null``, ``js_uniform`` and ``noise_floor`` are in base 2 and explained at
        :meth:`Behaviour.scores`; ``js_distance_nats`` is the distance in base e. ``recognised`` of ``n`` answers; ``n_scored``
        items stand behind the distance.
        """
        return self._scores.copy()

    def distributions(self) -> "pd.DataFrame":
        """The frames of :func:`deixis.behaviour`, with ``answers`` as the last column."""
        return self._distributions.copy()

    def table1(self) -> "pd.DataFrame":
        """Recognised answers: a row per model, a column per language, and ``n``, of how many in each language."""
        rows = self._means("all")
        wide = rows.pivot(index="model", columns="language", values="recognised")
        wide = wide.reindex(index=list(self.models), columns=list(self.languages))
        asked = rows.groupby("model", sort=False)["n"].max()
        return wide.assign(n=asked).rename_axis(columns=None).reset_index()

    def table2(self) -> "pd.DataFrame":
        """Jensen-Shannon distances from the reference, means over regions: a column per language.

        Rows: each model, then ``uniform`` (the uniform distribution's distance); for ``recognised`` and for ``all`` answers; in
        base 2 and in base e (column ``base``), since the published distances do not name theirs. Missing cells are NaN.
        """
        import pandas as pd

        parts = []
        for answers in ANSWERS[::-1]:
            rows = self._means(answers)
            wide = rows.pivot(index="model", columns="language", values="js_distance")
            wide = wide.reindex(index=list(self.models), columns=list(self.languages))
            wide.loc["uniform"] = rows.groupby("language")["js_uniform"].first().reindex(list(self.languages))
            for base, factor in (("2", 1.0), ("e", NATS)):
                scaled = (wide * factor).rename_axis(columns=None).reset_index()
                scaled.insert(1, "answers", answers)
                scaled.insert(2, "base", base)
                parts.append(scaled)
        return pd.concat(parts, ignore_index=True)

    def correlation(self, answers: str = "recognised") -> Correlation:
        """Whether models that see the figure well speak more like the reference.

        Args:
            answers: Whose distances: of the ``"recognised"`` answers, as published, or of ``"all"``.
        """
        rows = self._means(_chosen(answers))
        there = rows["js_distance"].notna() & rows["recognised"].notna()
        left_out = tuple(f"{row.model} {row.language}" for row in rows[~there].itertuples())
        r, low, high, p = pearson(rows.loc[there, "recognised"].to_numpy(float), rows.loc[there, "js_distance"].to_numpy(float))
        return Correlation(answers, r, low, high, p, int(there.sum()), left_out)

    def figure2(
        self, ax: "Axes | None" = None, *, answers: str = "recognised", palette: str = "paper", native: bool = True
    ) -> "Axes":
        """The distributions of every model, language and region: :func:`plot_behaviour`."""
        rows = self._distributions
        return plot_behaviour(rows[rows["answers"] == _chosen(answers)], ax, palette=palette, native=native)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_comparison`."""
        return plot_comparison(self.to_frame(), ax)

    def _means(self, answers: str) -> "pd.DataFrame":
        return self._scores[(self._scores["region"] == "mean") & (self._scores["answers"] == answers)]


def _chosen(answers: str) -> str:
    if answers not in ANSWERS:
        raise ValueError(f"answers={answers!r} is not one of: {', '.join(map(repr, ANSWERS))}.")
    return answers


def pearson(x: Float[np.ndarray, " cell"], y: Float[np.ndarray, " cell"]) -> tuple[float, float, float, float]:
    """Pearson's r, its 95 % interval and its p-value; NaN where they are not defined (few cells, or no spread)."""
    from scipy.stats import norm, pearsonr

    nan = float("nan")
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return nan, nan, nan, nan
    r, p = np.asarray(tuple(pearsonr(x, y)), dtype=float).tolist()
    if len(x) < 4 or abs(r) >= 1:
        return r, nan, nan, p
    half = float(norm.ppf(0.975)) / np.sqrt(len(x) - 3)
    return r, float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half)), p


def compare(
    runs: Sequence["Run"],
    reference: str | Path | None = None,
    *,
    min_recognised: int = MIN_RECOGNISED,
    n_boot: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Compare what several models said to the same demonstrative items.

    Every distance is computed twice: over the recognised answers alone, as published, and over all of them. The choice matters,
    because which answers are recognised differs from model to model.

    Args:
        runs: One run of each model, recorded on the same items with ``answers=True``; other tasks and conditions may differ.
        reference: As for :func:`deixis.behaviour`.
        min_recognised: A cell (model x language x region) of fewer recognised items is missing, and so is its language's mean.
        n_boot: Bootstrap draws.
        seed: Of bootstrap, noise floor and halves.

    Raises:
        ComparisonError: No run; two runs of one model; runs of different benchmarks or items; a run without demonstratives or
            without written answers.
        ReferenceFileError: See :func:`deixis.behaviour`.
    """
    import pandas as pd

    _check_comparable(runs)
    found: list[tuple[str, Behaviour]] = []
    for run in runs:
        for answers in ANSWERS:
            least = min_recognised if answers == "recognised" else None
            found.append((answers, term_behaviour(run, reference, answers=answers, min_items=least, n_boot=n_boot, seed=seed)))
    spoken = frozenset(item.language for item in _demonstratives(runs[0]))
    scores = pd.concat([one.scores().assign(answers=answers) for answers, one in found], ignore_index=True)
    scores = scores[scores["language"].isin(spoken)].reset_index(drop=True)
    scores["js_distance_nats"] = scores["js_distance"] * NATS
    return Comparison(
        models=tuple(str(run.info["model"]) for run in runs),
        languages=tuple(dict.fromkeys(scores["language"])),
        reference=None if reference is None else str(reference),
        min_recognised=min_recognised,
        _scores=scores[list(COLUMNS)],
        _distributions=pd.concat([one.to_frame().assign(answers=answers) for answers, one in found], ignore_index=True),
    )


def _check_comparable(runs: Sequence["Run"]) -> None:
    if not len(runs):
        raise ComparisonError("no run was given; pass one run of each model.")
    names = [str(run.info["model"]) for run in runs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ComparisonError(f"two runs are of the model {twice[0]!r}; pass one run of each model.")
    first = _demonstratives(runs[0])
    for name, run in zip(names, runs, strict=True):
        mine = _demonstratives(run)
        if not mine:
            raise ComparisonError(f"the run of {name!r} holds no real demonstrative items; record dx.memory_game() with it.")
        if not run.info.get("answers", True):
            raise ComparisonError(f"the run of {name!r} was recorded with answers=False; record it again with answers=True.")
        _check_same_items(names[0], first, name, mine)


def _demonstratives(run: "Run") -> list["Item"]:
    return [item for item in run.items if item.condition == "real" and any(option.term for option in item.options)]


def _check_same_items(here: str, first: Sequence["Item"], there: str, other: Sequence["Item"]) -> None:
    """Refuse runs of other items: a distance depends on the scenes and on the wording."""
    kinds = [sorted({item.benchmark for item in items}) for items in (first, other)]
    if kinds[0] != kinds[1]:
        raise ComparisonError(
            f"{here!r} was run on {', '.join(kinds[0])} and {there!r} on {', '.join(kinds[1])}; record both on one benchmark."
        )
    known = {item.id: item for item in first}
    lacking = next((item.id for item in other if item.id not in known), None)
    if lacking is None and len(other) < len(first):
        have = {item.id for item in other}
        here, there, lacking = there, here, next(item.id for item in first if item.id not in have)
    if lacking is not None:
        raise ComparisonError(f"{there!r} was asked the item {lacking!r} and {here!r} was not; record both on the same items.")
    for item in other:
        mine, its = known[item.id].seen(), item.seen()
        if mine != its:
            field = next(name for name in its if mine[name] != its[name])
            raise ComparisonError(
                f"item {item.id!r} has another {field} in the run of {there!r} than in that of {here!r}; record both on the same "
                "items, with the same version of deixis."
            )


def plot_comparison(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """Distances of many models: a row per model, a point per language with its interval, hollow where all answers count.

    Args:
        frame: From :meth:`Comparison.to_frame`.
        ax: Where to draw; None makes a figure that fits.

    Raises:
        ValueError: The frame has no distance, because no reference was given or every cell is missing.
    """
    rows = frame[frame["region"] == "mean"]
    if not rows["js_distance"].notna().any():
        raise ValueError("the frame has no distance to draw; compare with a reference.")
    models, languages = list(dict.fromkeys(rows["model"])), list(dict.fromkeys(rows["language"]))
    ax = axes(ax, 5.2, 0.9 + 0.17 * len(models) * (len(languages) + 1))
    for number, language in enumerate(languages):
        colour = SERIES[number % len(SERIES)]
        for place, model in enumerate(models):
            y = float(place * (len(languages) + 1) + number)
            part = rows[(rows["language"] == language) & (rows["model"] == model)].set_index("answers")
            _points(ax, y, part, colour)
            ax.plot([part["js_uniform"].iloc[0]], [y], marker="|", color="#9A9A9A", markersize=7, linestyle="none")
        ax.plot([], [], color=colour, marker="o", markersize=4, label=language_name(language))
    ax.plot([], [], marker="o", markersize=4, color="#6A6A6A", markerfacecolor="white", linestyle="none", label="all answers")
    ax.plot([], [], marker="|", markersize=7, color="#9A9A9A", linestyle="none", label="uniform")
    ax.set_yticks([place * (len(languages) + 1) + (len(languages) - 1) / 2 for place in range(len(models))], models)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("Jensen-Shannon distance from the reference\n(base 2, mean over regions)")
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def _points(ax: "Axes", y: float, part: "pd.DataFrame", colour: str) -> None:
    """The recognised answers' distance with its interval, or their count where they are too few; all answers' hollow."""
    for answers, face in (("all", "white"), ("recognised", colour)):
        if answers not in part.index:
            continue
        row = part.loc[answers]
        if np.isnan(row["js_distance"]):
            ax.text(
                0.004, y, f"too few recognised: {row['n_scored']:.0f} of {row['n']:.0f}", fontsize=6, va="center", color="#6A6A6A"
            )
            continue
        if answers == "recognised":
            ax.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=1.4)
        ax.plot([row["js_distance"]], [y], marker="o", markersize=4, color=colour, markerfacecolor=face, linestyle="none")
