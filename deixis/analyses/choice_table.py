"""What a model chose of lettered options, by each way of reading it: one row per item, way and draw."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.analyses.choice_errors import points_of
from deixis.analyses.distributions import option_table, scene_of
from deixis.benchmarks.judge_letters import is_lettered, read_letter

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations import Run
    from deixis.activations.sampling import SampledAnswers
    from deixis.benchmarks import Item
    from deixis.models import VLM

WAYS = ("logits", "string", "string_per_byte", "written", "sampled")
"""``logits``: of the letters' forms; ``string``: likelihood of what stands behind the letter, ``string_per_byte``: over its
length; ``written``: the run's greedy answer, parsed; ``sampled``: drawn answers, parsed."""
OUTCOMES = ("right", "wrong", "tied", "unreadable")
ITEM_COLUMNS = ("item", "question", "task", "language", "condition", "scene", "permutation", "truth", "true_value", "n_options")
GROUPS = ("kind", "direction", "column", "action", "map", "scale", "varied")
"""Groups of SpaceNum's items that the tables are made by; None where an item has them not."""
READ_COLUMNS = ("way", "draw", "letter", "outcome", "right", "prob_truth")
WORTH_COLUMNS = ("points", "chosen_kind", "chosen_value")
CHOICE_COLUMNS = ("model", *ITEM_COLUMNS, *GROUPS, *READ_COLUMNS, *WORTH_COLUMNS)


@dataclass(frozen=True)
class Choice:
    """One reading of an item: the letter, and what it is worth."""

    way: str
    draw: int
    letter: str | None
    outcome: str
    right: float
    """1 or 0; where several options are tied for the best, the chance that a random one of them is right."""
    prob_truth: float = float("nan")
    """The right option's share under a softmax over the item's options; NaN where the way gives no shares."""


def lettered_items(run: "Run") -> "dict[str, Item]":
    """The run's multiple-choice items, by id."""
    return {item.id: item for item in run.items if is_lettered(item)}


def question_of(item: "Item") -> str:
    """The item's id without its condition and its permutation: what stays the same when one of them changes."""
    name = item.id
    if item.condition != "real":
        name = name.replace(f"+{item.condition}", "", 1)
    return re.sub(rf"/p{re.escape(item.groups.get('permutation', '0'))}$", "", name)


def choice_table(
    run: "Run", vlm: "VLM | None" = None, sampled: "SampledAnswers | None" = None, batch_size: int = 16
) -> "pd.DataFrame":
    """Every choice in a run, in the run's order of items.

    Args:
        run: With lettered items.
        vlm: The run's model, for the likelihood of the options' texts; None leaves those ways out.
        sampled: Drawn answers to the run's items; None leaves that way out.
        batch_size: Items a forward pass, for the texts.

    Returns:
        The columns :data:`CHOICE_COLUMNS`.

    Raises:
        ValueError: No item is lettered, another model's weights or answers, or a logit is not finite.
    """
    import pandas as pd

    items = lettered_items(run)
    if not items:
        raise ValueError(
            "the run holds no item whose options are letters with a right one among them; there is nothing to score."
        )
    model = str(run.info["model"])
    read = [*_by_logits(run, items), *_by_writing(run, items)]
    if vlm is not None:
        from deixis.analyses.choice_strings import string_choices

        read += string_choices(run, vlm, list(items.values()), batch_size)
    if sampled is not None:
        read += _by_draws(model, items, sampled)
    ways = pd.DataFrame([(name, *_values(choice)) for name, choice in read], columns=["item", *READ_COLUMNS])
    known = pd.DataFrame([_described(item) for item in items.values()], columns=[*ITEM_COLUMNS, *GROUPS])
    worth = pd.DataFrame([row for item in items.values() for row in _worth(item)], columns=["item", "letter", *WORTH_COLUMNS])
    table = known.merge(ways, on="item", how="left", validate="one_to_many")
    table = table.merge(worth, on=["item", "letter"], how="left", validate="many_to_one")
    # pandas turns a column of nothing but None into NaN.
    unknown = {name: table[name].astype(object).where(table[name].notna(), None) for name in (*GROUPS, "letter", "chosen_kind")}
    return table.assign(model=model, **unknown)[list(CHOICE_COLUMNS)]


def _values(choice: Choice) -> tuple[Any, ...]:
    return choice.way, choice.draw, choice.letter, choice.outcome, choice.right, choice.prob_truth


def _described(item: "Item") -> tuple[Any, ...]:
    groups, right = item.groups, next(option for option in item.options if option.label == item.truth)
    plain = (item.id, question_of(item), item.task, item.language, item.condition, scene_of(item))
    asked = (int(groups.get("permutation", "0")), item.truth, _number(right.value), len(item.options))
    return (*plain, *asked, *(groups.get(name) for name in GROUPS))


def _worth(item: "Item") -> "Iterator[tuple[Any, ...]]":
    """Of each option: its points, what is wrong about it, and its number."""
    points = points_of(item)
    for option in item.options:
        yield item.id, option.label, points.get(option.label, np.nan), option.kind, _number(option.value)


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _by_logits(run: "Run", items: "Mapping[str, Item]") -> Iterator[tuple[str, Choice]]:
    table = option_table(run)
    table = table[table["item"].isin(items)]
    for name, part in table.groupby("item", sort=False):
        yield str(name), best_of(items[str(name)], "logits", part["logit"].to_numpy(float), part["prob"].to_numpy(float))


def best_of(item: "Item", way: str, scores: "np.ndarray", probs: "np.ndarray") -> Choice:
    """The option with the highest score; equal scores are a tie, for which no letter is named."""
    at = [option.label for option in item.options].index(str(item.truth))
    (best,) = np.nonzero(scores == scores.max())
    prob = float(probs[at])
    if len(best) > 1:
        return Choice(way, 0, None, "tied", float(at in best) / len(best), prob)
    return chosen(item, way, item.options[int(best[0])].label, prob_truth=prob)


def chosen(item: "Item", way: str, letter: str | None, draw: int = 0, prob_truth: float = float("nan")) -> Choice:
    """What a letter is worth; None is an answer that could not be read, and not right."""
    outcome = "unreadable" if letter is None else "right" if letter == item.truth else "wrong"
    return Choice(way, draw, letter, outcome, float(outcome == "right"), prob_truth)


def _by_writing(run: "Run", items: "Mapping[str, Item]") -> Iterator[tuple[str, Choice]]:
    if not run.settings["answers"]:
        return
    for item, answer in zip(run.items, run.answers, strict=True):
        if item.id in items:
            yield item.id, chosen(item, "written", read_letter(answer, item.options))


def _by_draws(model: str, items: "Mapping[str, Item]", sampled: "SampledAnswers") -> Iterator[tuple[str, Choice]]:
    if sampled.model != model:
        raise ValueError(
            f"the answers were drawn from {sampled.model!r} and the run is of {model!r}; draw them from the run's model."
        )
    lacking = sorted(set(items) - set(sampled.items))
    if lacking:
        raise ValueError(f"{len(lacking)} items have no drawn answer, the first is {lacking[0]!r}; draw from all of run.items.")
    for name, answers in zip(sampled.items, sampled.answers, strict=True):
        if name in items:
            for draw, answer in enumerate(answers):
                yield name, chosen(items[name], "sampled", read_letter(answer, items[name].options), draw)


def ways_of(table: "pd.DataFrame") -> Sequence[str]:
    """The ways that a table holds, in the order of :data:`WAYS`."""
    there = set(table["way"])
    return tuple(way for way in WAYS if way in there)
