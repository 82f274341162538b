"""Reference distributions: the synthetic speaker, or people's proportions from a CSV file that the user supplies."""

import codecs
import csv
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deixis.analyses.distributions import js_distance
from deixis.benchmarks.languages import TERMS
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER

COLUMNS = ("language", "region", "term", "proportion", "n")
REGIONS = (1, 2, 3)
_TOLERANCE = 1e-3
_STUDIED = ("en", "zh", "ja", "ko")


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

    Warns:
        ReferenceWarning: The file contradicts what the human study reports in words (:func:`check_against_people`).
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
    reference = {key: Cell(found[key], n[key]) for key in wanted}
    for sentence in check_against_people(reference, path):
        warnings.warn(sentence, ReferenceWarning, stacklevel=2)
    return reference


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    text = _text(path)
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


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ReferenceFileError(f"the reference {path} can't be read ({error}); give 'synthetic' or a CSV file.") from error
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ReferenceFileError(f"{path} is in UTF-16; save it as CSV in UTF-8.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ReferenceFileError(
            f"{path}, line {line} is not in UTF-8 (the byte 0x{raw[error.start]:02x}); save the file as CSV in UTF-8."
        ) from error
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise ReferenceFileError(f"{path}, line {line} holds null characters, as UTF-16 does; save the file as CSV in UTF-8.")
    return text


class ReferenceWarning(UserWarning):
    """A reference is well formed and disagrees with what is known of people."""


def check_against_people(reference: Reference, path: str | Path) -> list[str]:
    """Where a reference contradicts what the human study reports in words, a sentence each.

    Of the four languages of arXiv 2607.07251 the study (Coventry et al. 2023, Nature Human Behaviour 7:2099-2110) is known to
    show that the proximal term's share falls and the distal's rises with distance, that Japanese goes from kono by sono to ano,
    and that English lies closer to uniform than Korean. Languages that the reference lacks are not looked at.
    """
    found = []
    for language in dict.fromkeys(code for code, _ in reference):
        if language not in _STUDIED or any((language, region) not in reference for region in REGIONS):
            continue
        cells = [reference[language, region].shares for region in REGIONS]
        for term, way, sign in (("proximal", "fall", -1), ("distal", "rise", 1)):
            shares = [cell[term] for cell in cells]
            if not (sign * np.diff(shares) > 0).all():
                said = ", ".join(f"{share:g}" for share in shares)
                found.append(f"the {term} term of {language} should {way} with the region and goes {said}")
        if language == "ja" and (modes := [max(cell, key=lambda term: cell[term]) for cell in cells]) != list(TERMS):
            found.append(f"the most frequent terms of ja should go {', '.join(TERMS)} and go {', '.join(modes)}")
    if all((language, region) in reference for language in ("en", "ko") for region in REGIONS):
        english, korean = (_from_uniform(reference, language) for language in ("en", "ko"))
        if english >= korean:
            found.append(f"en should be closer to uniform than ko and lies {english:.2f} from it where ko lies {korean:.2f}")
    return [f"{path}: {what}; the human study says so in words, so check the file." for what in found]


def _from_uniform(reference: Reference, language: str) -> float:
    """Mean Jensen-Shannon distance (base 2) of a language's regions from uniform."""
    rows = [np.array(list(reference[language, region].shares.values())) for region in REGIONS]
    return float(np.mean([js_distance(row, np.full(len(row), 1 / len(row))) for row in rows]))


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
