"""One language's table: the record, and reading it from TOML with every fault named by its line."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

from deixis.benchmarks.items import Option
from deixis.benchmarks.render import SHAPES
from deixis.benchmarks.render.memory_scene import INKS
from deixis.benchmarks.words import plain

TERMS = ("proximal", "medial", "distal")
_PLACEHOLDER = "{terms}"
_WORDINGS = ("standard", "paraphrase-1", "paraphrase-2")
_ORDERS = tuple("".join(order) for order in permutations("pmd"))
PROMPTS = tuple(wording if order == "pmd" else f"{wording}:{order}" for wording in _WORDINGS for order in _ORDERS)
"""Wordings of a question, each with its options listed in every order: p, m and d are the proximal (nearest), the medial (middle)
and the distal (farthest); where nothing is said they stand in this order."""
_CODE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,16})*")


class LanguageError(ValueError):
    """A language's table that can't be used; the message names the file and the line."""


@dataclass(frozen=True)
class Listing:
    """How the options are named one after the other inside a prompt."""

    names: tuple[str, ...]
    each: str
    between: str
    last: str

    def text(self, order: Sequence[int]) -> str:
        """The names in this order."""
        said = [self.each.replace("{}", self.names[place]) for place in order]
        return self.between.join(said[:-1]) + self.last + said[-1]


@dataclass(frozen=True)
class Question:
    """The prompts of one task and the options they allow."""

    wordings: tuple[str, ...]
    """The standard wording, then the paraphrases, if the table has any; each has one ``{terms}`` where the options are listed."""
    listing: Listing
    options: tuple[Option, ...]

    @property
    def prompt(self) -> str:
        """The standard prompt."""
        return self.prompt_of("standard")

    def has(self, name: str) -> bool:
        """Whether the table holds the wording of this one of :data:`PROMPTS`."""
        return _WORDINGS.index(name.partition(":")[0]) < len(self.wordings)

    def prompt_of(self, name: str) -> str:
        """The prompt that one of :data:`PROMPTS` names; with two options the medial's letter says nothing."""
        wording, _, order = name.partition(":")
        letters = "pd" if len(self.options) == 2 else "pmd"
        places = [letters.index(letter) for letter in order or letters if letter in letters]
        return self.wordings[_WORDINGS.index(wording)].replace(_PLACEHOLDER, self.listing.text(places))


@dataclass(frozen=True)
class Language:
    """One language's table."""

    code: str
    name: str
    spaced: bool
    """Whether writing puts spaces between words."""
    colour_first: bool
    """Whether the template asks for the colour before the shape."""
    demonstrative: Question
    distance: Question
    """Options carry the region (1, 2, 3) as ``value``."""
    colours: dict[str, tuple[str, ...]]
    """Every word that names a colour, the commonest first."""
    shapes: dict[str, tuple[str, ...]]

    def question(self, task: str) -> Question:
        """The question of ``task``: ``"demonstrative"`` or ``"distance"``."""
        return {"demonstrative": self.demonstrative, "distance": self.distance}[task]

    def demonstrative_of(self, term: str) -> str | None:
        """The label of ``term``, or None where the language has no such term."""
        return next((o.label for o in self.demonstrative.options if o.term == term), None)


def forms_of(words: Iterable[str]) -> tuple[str, ...]:
    """Every surface form in which one of ``words`` may begin an answer: with a capital, and with a space before it."""
    forms = [form for word in words for form in (word[:1].upper() + word[1:], word)]
    return tuple(dict.fromkeys(spaced for form in forms for spaced in (form, f" {form}")))


def read_table(code: str, text: str, name: str) -> Language:
    """The table in ``text``, checked.

    Args:
        code: What items call the language.
        text: TOML.
        name: Of the file, for messages.

    Raises:
        LanguageError: Anything is missing, unknown, of the wrong type, or said by one form of two things.
    """
    if not _CODE.fullmatch(code):
        raise LanguageError(f"{name}: {code!r} is no language code; name the file like nl.toml or nl-be.toml.")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LanguageError(f"{name} is not TOML: {error}.") from error
    return _Reader(name, text).language(code, table)


class _Reader:
    """Checks a table and knows the lines of its text."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._lines = name, text.splitlines()

    def language(self, code: str, table: Mapping[str, Any]) -> Language:
        needed = {"name": str, "spaced": bool, "demonstrative": dict, "distance": dict, "colours": dict, "shapes": dict}
        self._check_keys(table, needed, {"template": list}, "")
        template = table.get("template", ["colour", "shape"])
        if sorted(map(str, template)) != ["colour", "shape"]:
            raise self._fault("", "template", f'template is {template!r}; write ["colour", "shape"] or ["shape", "colour"]')
        spaced = table["spaced"]
        terms = self._terms(table["demonstrative"])
        language = Language(
            code=code,
            name=table["name"],
            spaced=spaced,
            colour_first=template[0] == "colour",
            demonstrative=self._question("demonstrative", table["demonstrative"], terms),
            distance=self._question("distance", table["distance"], self._regions(table["distance"])),
            colours=self._words("colours", table["colours"], tuple(INKS)),
            shapes=self._words("shapes", table["shapes"], SHAPES),
        )
        self._check_distinct(language)
        self._check_readable_without_spaces(language)
        return language

    def _terms(self, part: Mapping[str, Any]) -> tuple[Option, ...]:
        options = tuple(
            self._option("demonstrative", entry, "term", TERMS, number) for number, entry in enumerate(part.get("options", []))
        )
        terms = [option.term for option in options]
        if terms not in (["proximal", "distal"], list(TERMS)):
            said = "proximal and distal, or proximal, medial and distal, in this order"
            raise self._fault("demonstrative", "term", f"[[demonstrative.options]] has the terms {terms}; give {said}")
        return options

    def _regions(self, part: Mapping[str, Any]) -> tuple[Option, ...]:
        options = tuple(
            self._option("distance", entry, "region", (1, 2, 3), number) for number, entry in enumerate(part.get("options", []))
        )
        regions = [option.value for option in options]
        if regions != [1.0, 2.0, 3.0]:
            raise self._fault("distance", "region", f"[[distance.options]] has the regions {regions}; give 1, 2 and 3")
        return options

    def _option(self, section: str, entry: Any, key: str, allowed: Sequence[object], number: int) -> Option:
        where = f"{section}.options"
        if not isinstance(entry, dict):
            raise self._fault(section, "options", f"{where} holds {entry!r}; write [[{where}]] before each option")
        self._check_keys(entry, {key: type(allowed[0]), "words": list}, {"listed": str}, where, number)
        if entry[key] not in allowed:
            listed = ", ".join(map(str, allowed))
            raise self._fault(where, str(entry[key]), f"{key} is {entry[key]!r}, which is not one of: {listed}", number)
        words = self._list(where, "words", entry["words"], number)
        if key == "term":
            return Option(label=words[0], forms=forms_of(words), term=entry[key])
        return Option(label=words[0], forms=forms_of(words), value=float(entry[key]))

    def _question(self, section: str, part: Mapping[str, Any], options: tuple[Option, ...]) -> Question:
        needed = {"prompt": str, "each": str, "between": str, "last": str, "options": list}
        self._check_keys(part, needed, {"paraphrases": list}, section)
        wordings = (part["prompt"], *part.get("paraphrases", []))
        wanted = len(_WORDINGS) if "paraphrases" in part else 1
        if len(wordings) != wanted or not all(isinstance(wording, str) for wording in wordings):
            raise self._fault(section, "paraphrases", f"[{section}] needs {len(_WORDINGS) - 1} paraphrases, each a string")
        for key, wording in zip(("prompt", *["paraphrases"] * len(wordings)), wordings, strict=False):
            if wording.count(_PLACEHOLDER) != 1:
                raise self._fault(
                    section, key, f"the {key} of [{section}] must hold {_PLACEHOLDER} once, where options are listed"
                )
        if "{}" not in part["each"]:
            raise self._fault(
                section, "each", f"each of [{section}] is {part['each']!r}; write {{}} where an option's name stands"
            )
        names = tuple(entry.get("listed", option.label) for entry, option in zip(part["options"], options, strict=True))
        return Question(wordings, Listing(names, part["each"], part["between"], part["last"]), options)

    def _words(self, section: str, part: Mapping[str, Any], needed: Sequence[str]) -> dict[str, tuple[str, ...]]:
        for key in needed:
            if key not in part:
                raise self._fault(section, "", f'[{section}] has no word for {key!r}; add the row {key} = ["..."]')
        self._check_keys(part, dict.fromkeys(needed, list), {}, section)
        return {key: self._list(section, key, part[key]) for key in needed}

    def _list(self, section: str, key: str, words: Sequence[Any], number: int = 0) -> tuple[str, ...]:
        if not words:
            raise self._fault(section, key, f"{key} of [{section}] holds no word; write at least one", number)
        for word in words:
            if not isinstance(word, str) or not plain(word):
                raise self._fault(section, key, f"{key} of [{section}] holds {word!r}, which no answer can be read as", number)
            if len(plain(word).split()) > 1 and section != "distance.options":
                raise self._fault(section, key, f"{key} of [{section}] holds {word!r}; the template takes one word only", number)
        return tuple(words)

    def _check_keys(
        self, part: Mapping[str, Any], needed: Mapping[str, type], more: Mapping[str, type], where: str, number: int = 0
    ) -> None:
        inside = f" of [{where}]" if where else ""
        for key in needed:
            if key not in part:
                raise self._fault(where, "", f"the field {key!r}{inside} is missing; needed are {', '.join(needed)}", number)
        for key, value in part.items():
            known = {**needed, **more}
            if key not in known:
                raise self._fault(where, key, f"the field {key!r}{inside} is not known; allowed are {', '.join(known)}", number)
            if type(value) is not known[key]:
                raise self._fault(where, key, f"the field {key!r}{inside} is {value!r}, not a {known[key].__name__}", number)

    def _check_distinct(self, language: Language) -> None:
        """One form, one meaning: within the options of a task, and among all that can fill the template."""
        # By term and region, not by label: two options may have the same first word.
        terms = {str(option.term): option.forms for option in language.demonstrative.options}
        template = [("demonstrative", terms), ("colours", language.colours), ("shapes", language.shapes)]
        regions = {f"region {option.value:g}": option.forms for option in language.distance.options}
        for group in (template, [("distance", regions)]):
            meaning: dict[str, tuple[str, str]] = {}
            for section, words in group:
                for key, forms in words.items():
                    for form in forms:
                        before = meaning.setdefault(plain(form), (section, key))
                        if before != (section, key):
                            said = f"the form {form.strip()!r} means {before[1]!r} and {key!r}; take it out of one of them"
                            raise self._fault(section, form.strip(), said, last=True)

    def _check_readable_without_spaces(self, language: Language) -> None:
        """Answers are read without their spaces too: no two fillings of the template may then look alike."""
        terms = {option.label: option.forms for option in language.demonstrative.options}
        slots = (
            (terms, language.colours, language.shapes) if language.colour_first else (terms, language.shapes, language.colours)
        )
        pairs = [[(label, plain(word)) for label, words in slot.items() for word in words] for slot in slots]
        seen: dict[str, tuple[tuple[str, str], ...]] = {}
        for filling in product(*pairs):
            before = seen.setdefault("".join(word for _, word in filling), filling)
            if [label for label, _ in before] != [label for label, _ in filling]:
                first, second = (" ".join(word for _, word in each) for each in (before, filling))
                raise self._fault("", "", f"{first!r} and {second!r} are alike without spaces; change one of the words")

    def _fault(self, section: str, needle: str, said: str, number: int = 0, last: bool = False) -> LanguageError:
        line = self._line(section, needle, number, last)
        return LanguageError(f"{self._name}{f', line {line}' if line else ''}: {said}.")

    def _line(self, section: str, needle: str, number: int, last: bool) -> int:
        """The line, from 1, where ``needle`` stands inside ``section`` (its ``number``-th table); else where that begins."""
        inside, tables, found, begins = section == "", -1, [], 0
        word = re.compile(rf"(?<!\w){re.escape(needle)}(?!\w)", re.IGNORECASE)
        for count, line in enumerate(self._lines, 1):
            if header := re.match(r"\s*\[\[?\s*([\w.]+)", line):
                here = header[1] == section
                tables += here
                inside = (here and tables == number) or header[1].startswith(f"{section}.")
                begins = count if inside and not begins else begins
            if inside and needle and word.search(line):
                found.append(count)
        return (found[-1] if last else found[0]) if found else begins
