"""What each language calls the terms, the distances, the colours and the shapes: one TOML file a language.

A new language is a new file here and nothing else.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from deixis.benchmarks.items import Option

TERMS = ("proximal", "medial", "distal")


@dataclass(frozen=True)
class Question:
    """A prompt and the options it allows."""

    prompt: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Language:
    """One language's table."""

    code: str
    name: str
    spaced: bool
    """Whether writing puts spaces between words."""
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


def _read(code: str, table: dict[str, Any]) -> Language:
    terms = tuple(Option(label=o["label"], forms=tuple(o["forms"]), term=o["term"]) for o in table["demonstrative"]["options"])
    regions = tuple(
        Option(label=o["label"], forms=tuple(o["forms"]), value=float(o["region"])) for o in table["distance"]["options"]
    )
    return Language(
        code=code,
        name=table["name"],
        spaced=table["spaced"],
        demonstrative=Question(table["demonstrative"]["prompt"], terms),
        distance=Question(table["distance"]["prompt"], regions),
        colours={key: tuple(words) for key, words in table["colours"].items()},
        shapes={key: tuple(words) for key, words in table["shapes"].items()},
    )


@cache
def languages() -> dict[str, Language]:
    """Every language by its code, in alphabetical order of the codes."""
    folder = resources.files(__name__)
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return {f.name[:-5]: _read(f.name[:-5], tomllib.loads(f.read_text("utf-8"))) for f in files}


def language(code: str) -> Language:
    """The language with this code.

    Raises:
        ValueError: No table has this code.
    """
    try:
        return languages()[code]
    except KeyError:
        listed = ", ".join(map(repr, languages()))
        raise ValueError(f"language={code!r} is not one of: {listed}; use one of these.") from None
