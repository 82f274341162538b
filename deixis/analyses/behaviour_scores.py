"""The cells of a run's behaviour (language x condition x region), and their scores."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from deixis.analyses.distributions import bootstrap_means, interval, js_distance, sampling_noise
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
    """A stream of each cell's own: adding a language leaves the others' intervals as they were."""
    return np.random.default_rng((seed, zlib.crc32(repr(names).encode())))


@dataclass(frozen=True)
class Cell:
    """The items of one language, condition and region."""

    language: str
    condition: str
    region: int
    terms: tuple[str, ...]
    shares: Float[np.ndarray, "item term"]
    scenes: Any

    @property
    def mean(self) -> Float[np.ndarray, " term"]:
        """The cell's distribution."""
        return self.shares.mean(axis=0)

    def draws(self, n_boot: int, seed: int) -> Float[np.ndarray, "draw term"]:
        """The distribution when scenes are drawn again."""
        return bootstrap_means(self.shares, self.scenes, n_boot, rng_of(seed, self.language, self.condition, self.region))


def cells_of(table: "pd.DataFrame") -> Iterator[Cell]:
    """The cells of an option table (see :func:`option_table`) whose options all carry terms, in order of appearance."""
    for language, spoken in table.groupby("language", sort=False):
        terms = tuple(term for term in TERMS if term in set(spoken["term"]))
        for _, part in spoken.groupby(["condition", "region"], sort=False):
            wide = part.pivot_table(index="item", columns="term", values="prob", aggfunc="sum", fill_value=0.0, sort=False)
            scenes = part.drop_duplicates("item").set_index("item")["scene"]
            shares = wide.reindex(columns=list(terms), fill_value=0.0).to_numpy(float)
            condition, region = str(part["condition"].iloc[0]), int(part["region"].iloc[0])
            yield Cell(str(language), condition, region, terms, shares, scenes.loc[wide.index].to_numpy())


def expected_shares(cell: Cell, known: Reference) -> Float[np.ndarray, " term"]:
    """The reference's shares in the cell's order of terms; NaN where there is none, or nothing to compare with it."""
    found = known.get((cell.language, cell.region)) if cell.condition == "real" else None
    return np.array([found.shares[term] if found else np.nan for term in cell.terms])


def judged_answers(run: "Run") -> "pd.DataFrame":
    """Real items that say what is right: ``language region scene right template``; ``right`` is NaN where nothing was written."""
    import pandas as pd

    items = [(number, item) for number, item in enumerate(run.items) if item.condition == "real" and can_judge(item)]
    answers = run.answers if items and run.info.get("answers", True) else None
    rows = [
        (
            item.language,
            item.targets.get("region", np.nan),
            item.groups.get("scene", item.id),
            np.nan if answers is None else float(judge(answers[number], item).right),
            item.truth is None,
        )
        for number, item in items
    ]
    frame = pd.DataFrame(rows, columns=["language", "region", "scene", "right", "template"])
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
        counts = _counts(part, 0 if cell is None else len(cell.shares), how, language, region)
        rows.append({"language": language, "region": region} | distances | counts)
    compared = [row for row in rows if not np.isnan(row["js_distance"])]
    mean = {name: float(np.mean([row[name] for row in compared])) if compared else np.nan for name in _DISTANCES}
    if compared:
        # Regions have scenes of their own, so that their draws are independent.
        mean["low"], mean["high"] = interval(np.mean(draws, axis=0), mean["js_distance"])
    said = sum(len(cell.shares) for (code, _), cell in real.items() if code == language)
    return [*rows, {"language": language, "region": "mean"} | mean | _counts(mine, said, how, language, "mean")]


_DISTANCES = ("js_distance", "js_uniform", "noise_floor", "low", "high")


def _distances(cell: Cell, known: Reference, how: Drawing) -> tuple[dict[str, float], Float[np.ndarray, " draw"]]:
    expected = expected_shares(cell, known)
    distance = float(js_distance(cell.mean, expected, how.base))
    means = cell.draws(how.n_boot, how.seed)
    draws = js_distance(means, np.broadcast_to(expected, means.shape), how.base)
    low, high = interval(draws, distance)
    uniform = np.full(len(expected), 1 / len(expected))
    noise = sampling_noise(
        expected, known[cell.language, cell.region].n, how.base, rng_of(how.seed, "noise", cell.language, cell.region)
    )
    values = (distance, float(js_distance(uniform, expected, how.base)), noise, low, high)
    return dict(zip(_DISTANCES, values, strict=True)), draws


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
