"""Example questions with their options drawn: the pictures with their letters, what was right and what the model chose."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from deixis.analyses.distributions import option_table
from deixis.analyses.report_scenes import data_address
from deixis.analyses.svg import Panel
from deixis.benchmarks.items import IMAGE_MARK

if TYPE_CHECKING:
    from deixis.activations import Run
    from deixis.benchmarks import Item

_PIXELS = 256


@dataclass(frozen=True)
class Reply:
    """What one model made of a question."""

    model: str
    letter: str
    """Of the highest logit; several where they are tied."""
    shares: dict[str, float]
    """Softmax over the options."""


def example_items(run: "Run", n_each: int = 1) -> "list[Item]":
    """Real items to show: of each task and kind of action or map ``n_each``, from scenes as different as can be."""
    found: dict[tuple[str, str], list[Item]] = {}
    taken: set[str] = set()
    for item in run.items:
        scene = item.groups.get("scene", item.id)
        key = item.task, item.groups.get("column", "")
        if item.condition != "real" or item.groups.get("permutation", "0") != "0" or scene in taken:
            continue
        if len(found.setdefault(key, [])) < n_each:
            found[key].append(item)
            taken.add(scene)
    return [item for items in found.values() for item in items]


def replies(runs: "Sequence[Run]", ids: Sequence[str]) -> dict[str, list[Reply]]:
    """Every run's choice in these items, by the item's id."""
    found: dict[str, list[Reply]] = {name: [] for name in ids}
    for run in runs:
        table = option_table(run)
        for name, rows in table[table["item"].isin(found)].groupby("item", sort=False):
            shares = dict(zip(rows["option"].astype(str), rows["prob"].astype(float), strict=True))
            best = [label for label, logit in zip(shares, rows["logit"], strict=True) if logit == rows["logit"].max()]
            found[str(name)].append(Reply(str(run.settings["model"]), " or ".join(best), shares))
    return found


def question_panel(item: "Item", answers: Sequence[Reply], pixels: int = _PIXELS) -> Panel:
    """One question: its pictures in their order, the prompt's text, the options, and each model's choice.

    In the direction Num2Space the options are pictures: each bears its letter. The right option is marked with a tick and a
    frame, a model's choice is named below with its share.
    """
    letters = _letters(item)
    pictures = Markup("").join(
        _picture(data_address(image, pixels), number, letters.get(number), item.truth) for number, image in enumerate(item.images)
    )
    text = Markup('<p class="asked">{}</p>').format(question_text(item))
    listed = Markup("") if letters else _option_list(item)
    said = Markup("").join(_said(reply, item) for reply in answers)
    body = Markup('<div class="pictures">{}</div>{}{}{}').format(pictures, text, listed, said)
    chosen = "; ".join(f"{reply.model} chose {reply.letter}" for reply in answers)
    return Panel(Markup('<div class="question">{}</div>').format(body), f"{question_text(item)} Right: {item.truth}. {chosen}.")


def question_text(item: "Item") -> str:
    """The prompt without the marks of its pictures, and without the options, which are drawn."""
    options = {f"{option.label}. {option.text}" for option in item.options}
    lines = [line.strip() for line in item.prompt.splitlines() if IMAGE_MARK not in line]
    return " ".join(line for line in lines if line and line not in options)


def _letters(item: "Item") -> dict[int, str]:
    """Letters of the pictures that are options, by the picture's place among the item's images."""
    places = {f"Image {number + 1}": number for number in range(len(item.images))}
    named = [(places.get(option.text or ""), option.label) for option in item.options]
    return {place: label for place, label in named if place is not None}


def _picture(address: str, number: int, letter: str | None, truth: str | None) -> Markup:
    right = letter is not None and letter == truth
    said = f"Image {number + 1}" if letter is None else f"{letter}{_TICK if right else ''}"
    drawn = Markup('<img src="{}" alt="" loading="lazy"><span>{}</span>').format(address, said)
    return Markup('<div class="picture{}">{}</div>').format(" right" if right else "", drawn)


_TICK = "\N{NO-BREAK SPACE}\N{CHECK MARK}"


def _option_list(item: "Item") -> Markup:
    rows = Markup("").join(
        Markup("<li{}>{}. {}{}</li>").format(
            Markup(' class="right"') if option.label == item.truth else "",
            option.label,
            option.text or "",
            _TICK if option.label == item.truth else "",
        )
        for option in item.options
    )
    return Markup('<ul class="options">{}</ul>').format(rows)


def _said(reply: Reply, item: "Item") -> Markup:
    verdict = "right" if reply.letter == item.truth else "wrong"
    shares = ", ".join(f"{label} {share:.0%}" for label, share in reply.shares.items())
    return Markup('<p class="said"><b>{}</b> chose {} (<em>{}</em>): <span class="soft">{}</span></p>').format(
        reply.model, reply.letter, verdict, shares
    )
