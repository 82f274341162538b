"""The cells of a run's behaviour (language x condition x region), and their scores."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from deixis.analyses.distributions import (
    ClusterSums,
    bootstrap_means,
    debiased_js_distance,
    interval,
    js_distance,
    sampling_noise,
    split_half_distances,
)
from deixis.analyses.reference import Reference
from deixis.benchmarks.judge import can_judge, judge
from deixis.benchmarks.languages import TERMS

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations import Run


@dataclass(frozen=True)
class Drawing:
    """How distances and their intervals are drawn."""

    base: float
    n_boot: int
    seed: int


def rng_of(seed: int, *names: Any) -> np.random.Generator:
    """A stream of its own for each name: adding a language leaves the others' intervals as they were."""
    return np.random.default_rng((seed, zlib.crc32(repr(names).encode())))


@dataclass(frozen=True)
class Cell:
    """The items of one language, condition and region."""

    language: str
    condition: str
    region: int
    terms: tuple[str, ...]
    items: tuple[str, ...]
    """Their ids."""
    shares: Float[np.ndarray, "item term"]
    figures: Any
    """Of each item: what is drawn again."""
    names: tuple[str, ...]
    """All figures of the language and condition: its regions share them, and their draws."""
    asked: int
    """How many items there were before any were left out."""
    usable: bool = True
    """False where too few items are left to be described."""

    @property
    def mean(self) -> Float[np.ndarray, " term"]:
        """The cell's distribution; NaN where it is not usable."""
        return self.shares.mean(axis=0) if self.usable else np.full(len(self.terms), np.nan)

    @property
    def sums(self) -> ClusterSums:
        """Shares summed over figures."""
        return ClusterSums.of(self.shares, self.figures, self.names)

    def draws(self, n_boot: int, seed: int) -> Float[np.ndarray, "draw term"]:
        """The distribution when figures are drawn again, the same ones in every region; NaN in draws without an item."""
        if not self.usable:
            return np.full((n_boot, len(self.terms)), np.nan)
        n = len(self.names)
        times = rng_of(seed, self.language, self.condition).multinomial(n, np.full(n, 1 / n), size=n_boot)
        return self.sums.means(times.astype(float))

    def among(self, kept: frozenset[str], least: int) -> "Cell":
        """The cell with these items alone, usable if at least ``least`` are left."""
        mask = np.array([item in kept for item in self.items])
        return replace(
            self,
            items=tuple(np.array(self.items)[mask]),
            shares=self.shares[mask],
            figures=self.figures[mask],
            usable=int(mask.sum()) >= least,
        )


def cells_of(table: "pd.DataFrame") -> Iterator[Cell]:
    """The cells of an option table (see :func:`option_table`) whose options all carry terms, in order of appearance."""
    for language, spoken in table.groupby("language", sort=False):
        terms = tuple(term for term in TERMS if term in set(spoken["term"]))
        for (condition, _), part in spoken.groupby(["condition", "region"], sort=False):
            wide = part.pivot_table(index="item", columns="term", values="prob", aggfunc="sum", fill_value=0.0, sort=False)
            figures = part.drop_duplicates("item").set_index("item")["figure"]
            yield Cell(
                language=str(language),
                condition=str(condition),
                region=int(part["region"].iloc[0]),
                terms=terms,
                items=tuple(wide.index),
                shares=wide.reindex(columns=list(terms), fill_value=0.0).to_numpy(float),
                figures=figures.loc[wide.index].to_numpy(),
                asked=len(wide),
                names=tuple(sorted(set(spoken.loc[spoken["condition"] == condition, "figure"].astype(str)))),
            )


def expected_shares(cell: Cell, known: Reference) -> Float[np.ndarray, " term"]:
    """The reference's shares in the cell's order of terms; NaN where there is none, or nothing to compare with it."""
    found = known.get((cell.language, cell.region)) if cell.condition == "real" else None
    return np.array([found.shares[term] if found else np.nan for term in cell.terms])


def judged_answers(run: "Run") -> "pd.DataFrame":
    """Real items that say what is right: ``item language region scene right template``; ``right`` NaN if nothing was written."""
    import pandas as pd

    items = [(number, item) for number, item in enumerate(run.items) if item.condition == "real" and can_judge(item)]
    answers = run.answers if items and run.info.get("answers", True) else None
    rows = [
        (
            item.id,
            item.language,
            item.targets.get("region", np.nan),
            item.groups.get("scene", item.id),
            np.nan if answers is None else float(judge(answers[number], item).right),
            item.truth is None,
        )
        for number, item in items
    ]
    frame = pd.DataFrame(rows, columns=["item", "language", "region", "scene", "right", "template"])
    return frame.astype({"region": float, "right": float, "template": bool})  # an empty frame has no types of its own


def score_rows(cells: list[Cell], known: Reference, judged: "pd.DataFrame", how: Drawing) -> list[dict[str, Any]]:
    """One row per language and region, then the language's mean row."""
    real = {(cell.language, cell.region): cell for cell in cells if cell.condition == "real"}
    languages = dict.fromkeys([*(language for language, _ in real), *judged["language"]])
    return [row for language in languages for row in _language_rows(language, real, known, judged, how)]


def _language_rows(
    language: str, real: dict[tuple[str, int], Cell], known: Reference, judged: "pd.DataFrame", how: Drawing
) -> list[dict[str, Any]]:
    mine = judged[judged["language"] == language]
    regions = sorted({*(region for code, region in real if code == language), *(int(r) for r in mine["region"].dropna())})
    rows, draws = [], []
    for region in regions:
        cell, part = real.get((language, region)), mine[mine["region"] == region]
        distances = dict.fromkeys(_DISTANCES, np.nan)
        if cell is not None and (cell.language, cell.region) in known:
            distances, drawn = _distances(cell, known, how)
            draws.append(drawn)
        counts = _counts(part, 0 if cell is None else cell.asked, how, language, region)
        counts["n_scored"] = 0 if cell is None else len(cell.shares)
        rows.append({"language": language, "region": region} | distances | counts)
    compared = [row for row in rows if (language, row["region"]) in known and (language, row["region"]) in real]
    # A region without its distance leaves the mean without one: a mean over other regions is another quantity.
    mean = {name: float(np.mean([row[name] for row in compared])) if compared else np.nan for name in _DISTANCES}
    if compared:
        mean["low"], mean["high"] = interval(np.mean(draws, axis=0), mean["js_distance"])
    cells = [cell for (code, _), cell in real.items() if code == language]
    mean["js_null_high"] = np.nan
    said, scored = sum(cell.asked for cell in cells), sum(len(cell.shares) for cell in cells)
    return [
        *rows,
        {"language": language, "region": "mean"} | mean | _counts(mine, said, how, language, "mean") | {"n_scored": scored},
    ]


_DISTANCES = ("js_distance", "js_uniform", "noise_floor", "low", "high", "js_corrected", "js_null", "js_null_high")


def _distances(cell: Cell, known: Reference, how: Drawing) -> tuple[dict[str, float], Float[np.ndarray, " draw"]]:
    expected = expected_shares(cell, known)
    uniform = np.full(len(expected), 1 / len(expected))
    found: dict[str, float] = dict.fromkeys(_DISTANCES, np.nan)
    found["js_uniform"] = float(js_distance(uniform, expected, how.base))
    found["noise_floor"] = sampling_noise(
        expected, known[cell.language, cell.region].n, how.base, rng_of(how.seed, "noise", cell.language, cell.region)
    )
    if not cell.usable:
        return found, np.full(how.n_boot, np.nan)
    means = cell.draws(how.n_boot, how.seed)
    draws = js_distance(means, np.broadcast_to(expected, means.shape), how.base)
    found["js_distance"] = float(js_distance(cell.mean, expected, how.base))
    found["low"], found["high"] = interval(draws, found["js_distance"])
    found["js_corrected"] = debiased_js_distance(cell.sums, expected, how.base)
    halves = split_half_distances(cell.sums, how.base, rng_of(how.seed, "halves", cell.language, cell.region))
    if len(halves):
        found["js_null"], found["js_null_high"] = float(halves.mean()), float(np.quantile(halves, 0.95))
    return found, draws


def _counts(judged: "pd.DataFrame", said: int, how: Drawing, *names: Any) -> dict[str, float]:
    template, asked = judged[judged["template"]], judged[~judged["template"]]
    accuracy, low, high = np.nan, np.nan, np.nan
    if asked["right"].notna().any():
        accuracy = float(asked["right"].mean())
        values, scenes = asked[["right"]].to_numpy(float), asked["scene"].to_numpy()
        draws = bootstrap_means(values, scenes, how.n_boot, rng_of(how.seed, "accuracy", *names))
        low, high = interval(draws[:, 0], accuracy)
    return {
        "recognised": float(template["right"].sum(min_count=1)),
        "accuracy": accuracy,
        "accuracy_low": low,
        "accuracy_high": high,
        "n": said or len(judged),
    }
