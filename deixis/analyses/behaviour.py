"""What a model says: distributions of its terms, their distance from a reference, and how many answers are right.

The distribution of a cell (language x region) is the mean over its items of the softmax over the item's own options, not the
counts of its choices (arXiv 2607.07251 scores the same way).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from deixis.analyses.behaviour_plot import plot_behaviour
from deixis.analyses.behaviour_scores import Cell, Drawing, cells_of, expected_shares, judged_answers, score_rows
from deixis.analyses.choices import Choices, choices
from deixis.analyses.distributions import interval, option_table
from deixis.analyses.reference import Reference, read_reference, synthetic_reference
from deixis.benchmarks.judge_letters import is_lettered

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.activations.sampling import SampledAnswers
    from deixis.models import VLM

PRIOR_FLOOR = 0.02
"""No blank share counts as less than this in the prior correction: dividing by 0.001 would make a distribution of noise."""
COLUMNS = ("model", "language", "condition", "region", "term", "proportion", "corrected", "reference", "low", "high", "n")
SCORE_COLUMNS = (
    "model",
    "language",
    "region",
    "js_distance",
    "js_uniform",
    "recognised",
    "accuracy",
    "low",
    "high",
    "n",
    "noise_floor",
    "accuracy_low",
    "accuracy_high",
    "js_corrected",
    "js_null",
    "js_null_high",
    "n_scored",
)
ANSWERS = ("all", "recognised")
MIN_RECOGNISED = 5
"""A cell with fewer recognised items than this is missing: its distance would be noise."""


@dataclass(frozen=True)
class Behaviour:
    """One model's answers, described and scored."""

    model: str
    reference: str | None
    """None, ``"synthetic"`` or the path of the CSV file."""
    base: float
    """Of the logarithm in the Jensen-Shannon distance."""
    answers: str
    """``all`` items, or the ``recognised`` alone."""
    _rows: "pd.DataFrame"
    _scores: "pd.DataFrame"

    def __repr__(self) -> str:
        return f"Behaviour({self.model!r}, reference {self.reference!r}; .to_frame(), .scores(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per language, condition, region and term.

        ``proportion`` with its interval ``low, high`` (95 %, figures drawn again); ``corrected``: divided by the blank
        condition's share of the term (at least :data:`PRIOR_FLOOR`) and made to sum to 1, a diagnostic of word priors and never
        ranked (NaN without blank items); ``reference``; ``n`` items. A cell of too few items has its ``n`` and NaN.
        """
        return self._rows.copy()

    def scores(self) -> "pd.DataFrame":
        """One row per language and region, and one with the region ``"mean"``.

        ``js_distance`` from the reference with its interval ``low, high``; ``js_uniform``, the uniform distribution's; and
        ``noise_floor``, the mean distance that as many answers as the reference rests on would have if they were drawn from
        exactly the reference (the synthetic speaker counts as resting on the run's own n). In the mean row the three are means
        over regions, and NaN if a region's is. ``js_corrected``: the bias that few items give a distance taken off
        (:func:`~deixis.analyses.distributions.debiased_js_distance`); ``js_null`` and ``js_null_high``: mean and 95th percentile
        of the distance between two random halves of the cell's figures, which is about twice what chance alone gives the whole
        cell. ``recognised`` counts answers in the template with the right colour and shape, out of ``n`` items (totals
        in the mean row), ``n_scored`` the items that the distances rest on. ``accuracy``, with its own interval, is the share of
        right answers among items that have a truth. What was not asked or not written is NaN.
        """
        return self._scores.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_behaviour`."""
        return plot_behaviour(self.to_frame(), ax)


def behaviour(
    run: "Run",
    reference: str | Path | None = None,
    *,
    base: float = 2.0,
    answers: str = "all",
    min_items: int | None = None,
    n_boot: int = 2000,
    seed: int = 0,
    vlm: "VLM | None" = None,
    sampled: "SampledAnswers | None" = None,
) -> "Behaviour | Choices":
    """Describe a run's answers and compare them with a reference, or with the truth.

    A run of multiple-choice items (options A, B, ... and one of them right) is scored by :func:`deixis.analyses.choices.choices`,
    which ``vlm`` and ``sampled`` are for; any other run by :func:`term_behaviour`, which the rest is for.

    Args:
        run: With items whose options carry terms, items with a truth, or both; or with multiple-choice items alone.
        reference: None; ``"synthetic"`` (the bundled models' made-up speaker, not human data); or a CSV file of people's
            proportions with the columns ``language,region,term,proportion,n``.
        base: Of the logarithm; the published distances do not name theirs.
        answers: ``"all"`` real items, or those alone whose written answer is ``"recognised"``, as published.
        min_items: Cells of fewer items are NaN; None for 1, or :data:`MIN_RECOGNISED` where only recognised items are taken.
        n_boot: Bootstrap draws.
        seed: Of the bootstrap, the noise floor and the halves.
        vlm: The run's model, to score the options' texts as whole strings too.
        sampled: What :func:`deixis.sample_answers` drew for the run's items.

    Raises:
        ValueError: What the two raise; a run that mixes multiple choice with other items; or an argument that is for the other
            kind of run.
    """
    lettered = [is_lettered(item) for item in run.items]
    if any(lettered) and not all(lettered):
        raise ValueError(
            f"{sum(lettered)} of the run's {len(lettered)} items are multiple choice and the others are not; record them apart, "
            "or score those alone with deixis.analyses.choices.choices(run)."
        )
    if any(lettered):
        _check_idle("a multiple-choice run", {"reference": reference is not None, "answers": answers != "all"})
        _check_idle("a multiple-choice run", {"min_items": min_items is not None, "base": base != 2.0})
        return choices(run, vlm=vlm, sampled=sampled, n_boot=n_boot, seed=seed)
    _check_idle("a run without multiple-choice items", {"vlm": vlm is not None, "sampled": sampled is not None})
    return term_behaviour(run, reference, base=base, answers=answers, min_items=min_items, n_boot=n_boot, seed=seed)


def _check_idle(what: str, given: dict[str, bool]) -> None:
    for name, is_given in given.items():
        if is_given:
            raise ValueError(f"{name} changes nothing in {what}; leave it out.")


def term_behaviour(
    run: "Run",
    reference: str | Path | None = None,
    *,
    base: float = 2.0,
    answers: str = "all",
    min_items: int | None = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> Behaviour:
    """Describe a run's answers and compare them with a reference; see :func:`behaviour`.

    Args:
        run: With items whose options carry terms, items with a truth, or both.
        reference: None; ``"synthetic"`` (the bundled models' made-up speaker, not human data); or a CSV file of people's
            proportions with the columns ``language,region,term,proportion,n``.
        base: Of the logarithm; the published distances do not name theirs.
        answers: ``"all"`` real items, or those alone whose written answer is ``"recognised"``, as published.
        min_items: Cells of fewer items are NaN; None for 1, or :data:`MIN_RECOGNISED` where only recognised items are taken.
        n_boot: Bootstrap draws.
        seed: Of the bootstrap, the noise floor and the halves.

    Raises:
        ReferenceFileError: The reference lacks a cell or holds one that is no proportion.
        ValueError: The run has neither options with terms nor items with a truth, a logit is not finite, a region is no whole
            number, an item has terms for some of its options only, or recognised answers are asked for that were not written.
    """
    _check_arguments(base, answers, min_items, n_boot)
    table = option_table(run)
    _check_terms(table)
    table = table[table["term"].notna() & table["region"].notna()]
    judged = judged_answers(run)
    if not len(table) and not len(judged):
        raise ValueError(
            "the run has neither options with a term and a region nor items with a truth; behaviour has nothing to score."
        )
    least = min_items or (MIN_RECOGNISED if answers == "recognised" else 1)
    cells = [_answering(cell, judged, answers, least) for cell in cells_of(table)]
    known = _reference(reference, cells)
    model = str(run.info["model"])
    rows = [row for cell in cells for row in _describe(cell, cells, known, n_boot, seed)]
    scores = score_rows(cells, known, judged, Drawing(base, n_boot, seed))
    return Behaviour(
        model,
        None if reference is None else str(reference),
        base,
        answers,
        _frame(model, rows, COLUMNS),
        _frame(model, scores, SCORE_COLUMNS),
    )


def _check_arguments(base: float, answers: str, min_items: int | None, n_boot: int) -> None:
    if base <= 1 or n_boot < 1:
        raise ValueError(f"base={base} must be above 1 and n_boot={n_boot} at least 1.")
    if answers not in ANSWERS:
        raise ValueError(f"answers={answers!r} is not one of: {', '.join(map(repr, ANSWERS))}.")
    if min_items is not None and min_items < 1:
        raise ValueError(f"min_items={min_items} must be at least 1, or None.")


def _answering(cell: Cell, judged: "pd.DataFrame", answers: str, least: int) -> Cell:
    """The cell with the items that count; only answers to real pictures can be recognised."""
    if answers == "all" or cell.condition != "real":
        return cell.among(frozenset(cell.items), least)
    mine = judged[judged["template"] & judged["item"].isin(cell.items)]
    if not len(mine) or mine["right"].isna().any():
        why = "holds no written answers" if len(mine) else f"has no colour and shape to judge {cell.items[0]!r} by"
        raise ValueError(f"answers='recognised' needs answers that can be judged, and the run {why}; use answers='all'.")
    return cell.among(frozenset(mine.loc[mine["right"] == 1.0, "item"]), least)


def _check_terms(table: "pd.DataFrame") -> None:
    """Refuse items of which some options have a term: the shares of the others would be lost, and the rest not sum to 1."""
    known = table["term"].notna().groupby(table["item"], sort=False)
    partly = known.any() & ~known.all()
    if partly.any():
        item = partly.index[partly][0]
        lacking = table.loc[(table["item"] == item) & table["term"].isna(), "option"].iloc[0]
        raise ValueError(f"item {item!r} has no term for its option {lacking!r}; give all of its options a term, or none.")


def _frame(model: str, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame([{"model": model} | row for row in rows], columns=list(columns))


def _reference(reference: str | Path | None, cells: list[Cell]) -> Reference:
    if reference is None:
        return {}
    terms = {cell.language: cell.terms for cell in cells}
    if reference == "synthetic":
        return synthetic_reference(terms, {(c.language, c.region): len(c.shares) for c in cells if c.condition == "real"})
    return read_reference(reference, terms, tuple(sorted({cell.region for cell in cells})))


def _describe(cell: Cell, cells: list[Cell], known: Reference, n_boot: int, seed: int) -> Iterator[dict[str, Any]]:
    draws, expected = cell.draws(n_boot, seed), expected_shares(cell, known)
    blank = [c.shares for c in cells if (c.language, c.condition) == (cell.language, "blank")]
    corrected = np.full(len(cell.terms), np.nan)
    if blank and cell.condition == "real":
        corrected = corrected_for_prior(cell.mean, np.concatenate(blank).mean(axis=0))
    for k, term in enumerate(cell.terms):
        low, high = interval(draws[:, k], float(cell.mean[k]))
        yield {
            "language": cell.language,
            "condition": cell.condition,
            "region": cell.region,
            "term": term,
            "proportion": cell.mean[k],
            "corrected": corrected[k],
            "reference": expected[k],
            "low": low,
            "high": high,
            "n": len(cell.shares),
        }


def corrected_for_prior(shares: Float[np.ndarray, " term"], prior: Float[np.ndarray, " term"]) -> Float[np.ndarray, " term"]:
    """``shares`` over ``prior``, made to sum to 1 (contextual calibration: Zhao et al. 2021), the prior floored."""
    weights = shares / np.maximum(prior, PRIOR_FLOOR)
    return weights / weights.sum()
