"""What the encoding gap is decided from: the probe's score, the shift of the answers, their distance from a blank picture's."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from deixis.analyses.distributions import js_distance, scene_sums

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations import Run


PERMUTATIONS = 100
"""Of scene labels, for the p-value of a probe: its smallest is 0.01."""


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """A probe for the region at one role, at the layer that other folds chose."""

    layer: int
    score: float
    """Balanced accuracy on folds that had no part in the choice of the layer."""
    low: float
    """Interval of the chosen layer's score."""
    high: float
    chance: float
    control: float
    """Score on random labels per figure: the probe's capacity, reported and deciding nothing (Hewitt and Liang 2019)."""
    p_value: float
    """Of the best of all layers: permuted labels of scenes, the maximum over layers."""
    by_place: bool = False
    """Whether the tokens were chosen by where the object is: then their places alone may tell the region."""
    blank: float = float("nan")
    """Where they were, the score on blank pictures at the same tokens and layer; NaN without blank items."""


@dataclass(frozen=True, kw_only=True)
class Shift:
    """How far the option distribution moves between regions: the mean over pairs of regions of their Jensen-Shannon distance."""

    size: float
    low: float
    high: float
    null: float
    """Mean of the same statistic when the regions are dealt out to the scenes at random: what sampling alone gives."""
    p_value: float
    n_scenes: int


@dataclass(frozen=True, kw_only=True)
class BlankDistance:
    """Mean over regions of the distance between the answers to real pictures and to a blank one."""

    size: float
    low: float
    high: float


def decoded(run: "Run", role: str, task: str, language: str | None, seed: int) -> Decoded:
    """Probe the region at every layer; ``language`` None pools all, each distinct vector counted once."""
    from deixis.analyses.layer_sweep import layer_sweep

    asked = {"role": role, "task": task, "language": language, "seed": seed}
    # Permuted over all layers at once, so that p is that of the best of them.
    sweep = layer_sweep(run, "region", controls=("permutation",), n_permutations=PERMUTATIONS, **asked)
    best = sweep.best()
    frame = sweep.to_frame()
    p_value = float(frame[(frame["metric"] == best.metric) & (frame["layer"] == best.layer)]["p_value"].iloc[0])
    # The other controls cost hundreds of fits; only those of the chosen layer are looked at.
    wanted = ("task", "interval") if _has_figures(run) else ("interval",)
    frame = layer_sweep(run, "region", layers=[best.layer], controls=wanted, **asked).to_frame()
    row = frame[frame["metric"] == best.metric].iloc[0]
    return Decoded(
        layer=best.layer,
        score=best.score,
        low=min(float(row["low"]), best.score),
        high=max(float(row["high"]), best.score),
        chance=float(row["chance"]),
        control=float(row["control"]),
        p_value=p_value,
        by_place=role.startswith("object"),
        blank=_blank_score(run, best.layer, asked) if role.startswith("object") else float("nan"),
    )


def _blank_score(run: "Run", layer: int, asked: dict[str, Any]) -> float:
    from deixis.analyses.layer_sweep import layer_sweep
    from deixis.probes import NotEnoughDataError

    if not any(item.condition == "blank" and item.task == asked["task"] for item in run.items):
        return float("nan")
    try:
        frame = layer_sweep(run, "region", layers=[layer], condition="blank", controls=(), **asked).to_frame()
    except NotEnoughDataError:
        return float("nan")
    return float(frame[frame["metric"] == "balanced_accuracy"]["score"].iloc[0])


def _has_figures(run: "Run") -> bool:
    """Whether random labels can recur: some figure is shown in several scenes."""
    shown = {(item.groups.get("figure"), item.groups.get("scene")) for item in run.items if item.condition == "real"}
    figures = [figure for figure, _ in shown if figure is not None]
    return len(set(figures)) > 1 and len(set(figures)) < len(figures) == len(shown)


@dataclass(frozen=True)
class Answers:
    """Option distributions of one task and language, summed by scene: scenes move together in every draw."""

    sums: Float[np.ndarray, "scene option"]
    sizes: Int[np.ndarray, " scene"]
    region: Int[np.ndarray, " scene"]
    """0, 1, ... in the order of the regions."""

    @classmethod
    def of(cls, table: "pd.DataFrame") -> "Answers":
        """From rows of an option table (see ``option_table``) that share their options."""
        wide = table.pivot(index="item", columns="option", values="prob")
        known = table.drop_duplicates("item").set_index("item").loc[wide.index]
        sums, sizes = scene_sums(wide.to_numpy(float), known["scene"].to_numpy())
        by_scene = known.groupby(known["scene"].astype(str))["region"]  # sorted by name, as scene_sums sorts
        if (by_scene.nunique() > 1).any():
            raise ValueError("a scene has items in two regions; a scene is one layout, so give them scenes of their own.")
        _, region = np.unique(by_scene.first().to_numpy(), return_inverse=True)
        return cls(sums, sizes, region)

    def means(
        self, times: Float[np.ndarray, "draw scene"], of: Int[np.ndarray, "*draw scene"]
    ) -> Float[np.ndarray, "region draw option"]:
        """Mean distribution of each region, scenes counted ``times`` times and belonging to the regions ``of``."""
        found = []
        for number in range(self.region.max() + 1):
            weight = times * (of == number)
            found.append((weight @ self.sums) / (weight @ self.sizes)[:, None])
        return np.stack(found)

    def redrawn(self, n_boot: int, rng: np.random.Generator) -> Float[np.ndarray, "draw scene"]:
        """How often each scene comes when the scenes of each region are drawn again."""
        times = np.zeros((n_boot, len(self.sizes)))
        for number in range(self.region.max() + 1):
            own = np.flatnonzero(self.region == number)
            times[:, own] = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), size=n_boot)
        return times


def shift_of(answers: Answers, n_boot: int, seed: int) -> Shift:
    """The shift, its bootstrap interval, and its permutation null; NaN where there is one region only.

    The permutations depend on the seed and the scenes only, so that all languages of a run are permuted together.
    """
    if answers.region.max() == 0:
        nothing = float("nan")
        return Shift(size=nothing, low=nothing, high=nothing, null=nothing, p_value=nothing, n_scenes=len(answers.sizes))
    once = np.ones((1, len(answers.sizes)))
    size = float(_spread(answers.means(once, answers.region))[0])
    permuted = np.random.default_rng((seed, 1)).permuted(np.tile(answers.region, (n_boot, 1)), axis=1)
    null = _spread(answers.means(np.ones(permuted.shape), permuted))
    draws = _spread(answers.means(answers.redrawn(n_boot, np.random.default_rng((seed, 2))), answers.region))
    low, high = _centred(draws, size)
    return Shift(
        size=size,
        low=low,
        high=high,
        null=float(null.mean()),
        p_value=float((1 + (null >= size - 1e-12).sum()) / (n_boot + 1)),
        n_scenes=len(answers.sizes),
    )


def blank_distance(answers: Answers, blank: Answers, n_boot: int, seed: int) -> BlankDistance:
    """How far the answers lie from those to a blank picture."""
    everywhere = np.zeros(len(blank.sizes), int)

    def distance(real_times: Any, blank_times: Any) -> Float[np.ndarray, " draw"]:
        prior = (blank_times @ blank.sums) / (blank_times @ blank.sizes)[:, None]
        means = answers.means(real_times, answers.region)
        return js_distance(means, np.broadcast_to(prior, means.shape)).mean(axis=0)

    size = float(distance(np.ones((1, len(answers.sizes))), np.ones((1, len(blank.sizes))))[0])
    redrawn = Answers(blank.sums, blank.sizes, everywhere).redrawn(n_boot, np.random.default_rng((seed, 4)))
    draws = distance(answers.redrawn(n_boot, np.random.default_rng((seed, 3))), redrawn)
    low, high = _centred(draws, size)
    return BlankDistance(size=size, low=low, high=high)


def _spread(means: Float[np.ndarray, "region draw option"]) -> Float[np.ndarray, " draw"]:
    pairs = combinations(range(len(means)), 2)
    return np.mean([js_distance(means[a], means[b]) for a, b in pairs], axis=0)


def _centred(draws: Float[np.ndarray, " draw"], size: float) -> tuple[float, float]:
    """Percentile interval moved back by the bootstrap's own bias: a distance grows when its distributions get noisier."""
    low, high = np.quantile(draws, [0.025, 0.975]) - (draws.mean() - size)
    return max(0.0, min(float(low), size)), max(float(high), size)
