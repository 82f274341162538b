"""Reading a model's written answer: what it says, and whether that is right.

The demonstrative task asks for three words, "[demonstrative] [colour] [shape]" (in some languages the shape before the colour).
Its answers fall into five classes:

==============  ==================================================================================================
recognised      the three words in order, colour and shape as in the picture (any synonym of the language's table)
wrong_colour    the three words, another colour (also where the shape is wrong as well)
wrong_shape     the three words, another shape
wrong_format    some word of the template, but not the three in order and nothing else
unreadable      no word of the template: empty, another language, signs only; never right
==============  ==================================================================================================

Case, full-width signs, punctuation, emoji and missing spaces are forgiven: they leave no doubt about the words. A word that the
tables do not know, in the place of the colour or the shape, is a wrong colour or shape.

Items with a truth are read by their options' forms: ``correct``, ``wrong`` or ``unreadable``; where the options are letters, as
:mod:`deixis.benchmarks.judge_letters` says.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from deixis.benchmarks.items import Item, Option
from deixis.benchmarks.judge_letters import is_lettered, read_letter
from deixis.benchmarks.languages import language
from deixis.benchmarks.words import plain as plain

TEMPLATE_OUTCOMES = ("recognised", "wrong_colour", "wrong_shape", "wrong_format", "unreadable")
OPTION_OUTCOMES = ("correct", "wrong", "unreadable")
# An unknown word in a language without spaces: longer than this it is no word but a sentence.
_LONGEST_UNKNOWN = 8


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an answer says; None for what it doesn't say, or says in two ways."""

    outcome: str
    """One of :data:`TEMPLATE_OUTCOMES` or :data:`OPTION_OUTCOMES`."""
    option: str | None = None
    """Label of the option that the answer names."""
    term: str | None = None
    colour: str | None = None
    """Key of the language's table, such as ``"red"`` in every language."""
    shape: str | None = None

    @property
    def right(self) -> bool:
        """Whether the answer counts."""
        return self.outcome in ("recognised", "correct")


def can_judge(item: Item) -> bool:
    """Whether ``item`` says what a right answer is."""
    return item.truth is not None or _has_template(item)


def judge(answer: str, item: Item) -> Verdict:
    """Read ``answer``, which a model wrote to ``item``.

    Raises:
        ValueError: The item has neither a truth nor the figure that the template asks for.
    """
    if item.truth is not None:
        return _judge_option(answer, item)
    if _has_template(item):
        return _judge_template(answer, item)
    raise ValueError(
        f"item {item.id!r} has no truth, and no colour and shape among its groups; without them no answer can be judged."
    )


def _has_template(item: Item) -> bool:
    return item.task == "demonstrative" and {"colour", "shape"} <= set(item.groups)


@dataclass(frozen=True)
class _Words:
    """One language's words in their plain spelling, each with what it means; slots are demonstrative, colour, shape."""

    spaced: bool
    slots: tuple[Mapping[str, str], Mapping[str, str], Mapping[str, str]]
    template: tuple[int, int, int]
    """The slots in the order in which the template has them."""
    pattern: re.Pattern[str]

    def placed(self) -> tuple[Mapping[str, str], ...]:
        """The slots as the template has them."""
        return tuple(self.slots[slot] for slot in self.template)

    def said(self, meanings: Sequence[str | None]) -> list[str | None]:
        """Demonstrative, colour and shape of meanings in the template's order."""
        return [meanings[self.template.index(slot)] for slot in range(3)]

    def known(self, text: str) -> bool:
        return any(self.found(text, slot) for slot in range(3))

    def found(self, text: str, slot: int) -> set[str]:
        """Meanings of one slot that occur anywhere in ``text``."""
        words = self.slots[slot]
        if self.spaced:
            return {words[word] for word in text.split() if word in words}
        return {meaning for word, meaning in words.items() if word in text}


@cache  # a code means one table for the whole program
def _words(code: str) -> _Words:
    table = language(code)
    terms = {plain(form): option.term or option.label for option in table.demonstrative.options for form in option.forms}
    colours = {plain(word): key for key, words in table.colours.items() for word in words}
    shapes = {plain(word): key for key, words in table.shapes.items() for word in words}
    slots = (terms, colours, shapes)
    template = (0, 1, 2) if table.colour_first else (0, 2, 1)
    # The longest first; the end anchor makes the engine try the shorter ones where the longest leads nowhere.
    groups = ("|".join(sorted(map(re.escape, slots[slot]), key=len, reverse=True)) for slot in template)
    return _Words(table.spaced, slots, template, re.compile("".join(f"({group})" for group in groups)))


def _judge_template(answer: str, item: Item) -> Verdict:
    words, text = _words(item.language), plain(answer)
    said = _three_words(text, words)
    if said is None:
        term, colour, shape = (_only(words.found(text, slot)) for slot in range(3))
        outcome = "wrong_format" if words.known(text) else "unreadable"
    else:
        term, colour, shape = said
        outcome = "recognised"
        if colour != item.groups["colour"]:
            outcome = "wrong_colour"
        elif shape != item.groups["shape"]:
            outcome = "wrong_shape"
    label = next((o.label for o in item.options if term is not None and o.term == term), None)
    return Verdict(outcome=outcome, option=label, term=term, colour=colour, shape=shape)


def _three_words(text: str, words: _Words) -> tuple[str | None, str | None, str | None] | None:
    """Meanings of the template's three words, None for an unknown colour or shape; None where the form is not kept."""
    slots = words.placed()
    parts: Sequence[str] = text.split()
    if match := words.pattern.fullmatch(text.replace(" ", "")):
        parts = match.groups()
    elif len(parts) != 3 and not words.spaced:
        parts = _cut(text.replace(" ", ""), slots)
    if len(parts) != 3 or parts[0] not in slots[0]:
        return None
    # A colour in the shape's place (or two demonstratives) is another form, not another colour.
    if any(part not in own and words.known(part) for part, own in zip(parts[1:], slots[1:], strict=True)):
        return None
    term, colour, shape = words.said([slot.get(part) for slot, part in zip(slots, parts, strict=True)])
    return term, colour, shape


def _cut(text: str, slots: tuple[Mapping[str, str], ...]) -> list[str]:
    """Three words of a language without spaces, where the second or the third is unknown; else an empty list."""
    firsts, seconds, thirds = (sorted(slot, key=len, reverse=True) for slot in slots)
    first = next((word for word in firsts if text.startswith(word)), "")
    rest = text[len(first) :]
    if not first or not rest:
        return []
    if second := next((word for word in seconds if rest.startswith(word)), ""):
        parts = [first, second, rest[len(second) :]]
    else:
        third = next((word for word in thirds if rest.endswith(word)), "")
        parts = [first, rest[: len(rest) - len(third)], third]
    return parts if all(0 < len(part) <= _LONGEST_UNKNOWN for part in parts) else []


def _judge_option(answer: str, item: Item) -> Verdict:
    if is_lettered(item):
        letter = read_letter(answer, item.options)
        outcome = "unreadable" if letter is None else "correct" if letter == item.truth else "wrong"
        return Verdict(outcome=outcome, option=letter)
    text = plain(answer)
    named = [option for option in item.options if _occurs(text, option)]
    # One option only, and the answer begins with it: "far away" is read, "not far" and "near or far" are not.
    if len(named) != 1 or not _begins(text, named[0]):
        return Verdict(outcome="unreadable")
    option = named[0]
    return Verdict(outcome="correct" if option.label == item.truth else "wrong", option=option.label, term=option.term)


def _occurs(text: str, option: Option) -> bool:
    return any(f" {form} " in f" {text} " or (_takes_endings(form) and form in text) for form in _plain_forms(option))


def _begins(text: str, option: Option) -> bool:
    return any(f"{text} ".startswith(form if _takes_endings(form) else f"{form} ") for form in _plain_forms(option))


def _plain_forms(option: Option) -> list[str]:
    return [form for form in dict.fromkeys(map(plain, option.forms)) if form]


def _takes_endings(text: str) -> bool:
    """Whether the script has no capitals (Han, Kana, Hangul): there, endings are written onto a word without a space."""
    return any(unicodedata.category(sign) == "Lo" for sign in text)


def _only(found: set[str]) -> str | None:
    return next(iter(found)) if len(found) == 1 else None
