"""Reference distributions: the synthetic speaker, or people's proportions from a CSV file that the user supplies."""

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deixis.benchmarks.languages import TERMS
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER

COLUMNS = ("language", "region", "term", "proportion", "n")
REGIONS = (1, 2, 3)
_TOLERANCE = 1e-3


class ReferenceFileError(ValueError):
    """A reference that cannot be used; the message names the cell."""


@dataclass(frozen=True)
class Cell:
    """One language and region: the share of each term, and the number of answers behind them (NaN where it is not known)."""

    shares: Mapping[str, float]
    n: float


Reference = Mapping[tuple[str, int], Cell]


def synthetic_reference(terms: Mapping[str, tuple[str, ...]], counts: Mapping[tuple[str, int], int]) -> Reference:
    """The synthetic speaker for these languages, which is not human data; ``counts`` gives each cell's n.

    Raises:
        ReferenceFileError: The speaker does not speak a language.
    """
    for language in terms:
        if language not in SYNTHETIC_SPEAKER:
            listed = ", ".join(SYNTHETIC_SPEAKER)
            raise ReferenceFileError(f"the synthetic speaker has no {language!r}, only: {listed}; give a CSV file instead.")
    return {
        (language, region): Cell(SYNTHETIC_SPEAKER[language][region], float(counts.get((language, region), math.nan)))
        for language in terms
        for region in REGIONS
    }


def read_reference(path: str | Path, terms: Mapping[str, tuple[str, ...]], regions: tuple[int, ...] = REGIONS) -> Reference:
    """Proportions from a CSV file with the columns ``language,region,term,proportion,n``.

    Args:
        path: The file, UTF-8.
        terms: The terms of each language that is needed; other languages in the file are checked and left out.
        regions: The regions that are needed.

    Raises:
        ReferenceFileError: The file or one of its cells cannot be used; the message says which.
    """
    found: dict[tuple[str, int], dict[str, float]] = {}
    n: dict[tuple[str, int], float] = {}
    for where, row in _rows(Path(path)):
        language, region, term = row["language"].strip(), _region(row["region"], where), row["term"].strip()
        allowed = terms.get(language, TERMS)
        if term not in allowed:
            raise ReferenceFileError(
                f"{where}: the term {term!r} is not known in {language!r}; allowed are {', '.join(allowed)}."
            )
        key = (language, region)
        if term in found.setdefault(key, {}):
            raise ReferenceFileError(f"{where}: {_cell(key)}, {term} comes twice; keep one line.")
        found[key][term] = _proportion(row["proportion"], f"{where}: {_cell(key)}, {term}")
        count = _count(row["n"], f"{where}: {_cell(key)}, {term}")
        if not np.array_equal(n.setdefault(key, count), count, equal_nan=True):
            raise ReferenceFileError(
                f"{where}: n is {count:g} and was {n[key]:g} above for {_cell(key)}; give one n for all terms of a cell."
            )
    for key, shares in found.items():
        if abs(sum(shares.values()) - 1) > _TOLERANCE:
            raise ReferenceFileError(
                f"{path}: the proportions of {_cell(key)} sum to {sum(shares.values()):.4g}; they must sum to 1."
            )
    wanted = [(language, region) for language in terms for region in regions]
    for language, region in wanted:
        for term in terms[language]:
            if term not in found.get((language, region), {}):
                raise ReferenceFileError(f"{path} has no line for {_cell((language, region))}, {term}; add it.")
    return {key: Cell(found[key], n[key]) for key in wanted}


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ReferenceFileError(f"the reference {path} can't be read ({error}); give 'synthetic' or a CSV file.") from error
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        if ";" in (reader.fieldnames or [""])[0]:
            raise ReferenceFileError(f"{path} has semicolons between its columns; commas are needed: {','.join(COLUMNS)}.")
        raise ReferenceFileError(f"{path} has no column {missing[0]!r}; needed are: {', '.join(COLUMNS)}.")
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        if None in row or None in row.values():
            raise ReferenceFileError(f"{where} has another number of fields than the first line; correct it.")
        yield where, row


def _cell(key: tuple[str, int]) -> str:
    return f"{key[0]}, region {key[1]}"


def _region(text: str, where: str) -> int:
    if text.strip() not in {str(region) for region in REGIONS}:
        raise ReferenceFileError(f"{where}: the region is {text!r}; allowed are 1, 2 and 3.")
    return int(text)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ReferenceFileError(f"{where}: {text!r} is no number; write 0.25, not 25% or a quarter.") from None


def _proportion(text: str, where: str) -> float:
    value = _number(text, where)
    if not value >= 0:
        raise ReferenceFileError(f"{where}: the proportion is {text}; it must be between 0 and 1.")
    if value > 1 + _TOLERANCE:
        raise ReferenceFileError(f"{where}: the proportion is {text}, which looks like a percentage; divide by 100.")
    return value


def _count(text: str, where: str) -> float:
    if not text.strip():
        return math.nan
    value = _number(text, f"{where}, n")
    if not value >= 1 or math.isinf(value):
        raise ReferenceFileError(f"{where}: n is {text}; it must be at least 1, or empty where it is not known.")
    return value
