"""The indices of collapse and their evidence: numbers per head, with intervals over scenes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from deixis.analyses.attention_summary import AttentionSummary
from deixis.analyses.collapse_rule import CollapseRule
from deixis.analyses.scene_maps import SceneMaps, follows_picture, likeness, mean_of_pairs, shuffled_pairs

if TYPE_CHECKING:
    from deixis.activations.attention import AttentionRecord
    from deixis.benchmarks import Item

Column = Float[np.ndarray, " column"]
"""A number for every layer and head, layer by layer."""


def by_scene(values: Float[np.ndarray, "item column"], scenes: Sequence[str]) -> Float[np.ndarray, "scene column"]:
    """Mean over each scene's items, scenes in the order in which they come."""
    names = {name: k for k, name in enumerate(dict.fromkeys(scenes))}
    place = np.array([names[scene] for scene in scenes])
    there = np.isfinite(values)
    total, n = np.zeros((len(names), values.shape[1])), np.zeros((len(names), values.shape[1]))
    np.add.at(total, place, np.where(there, values, 0))
    np.add.at(n, place, there)
    return np.divide(total, n, out=np.full_like(total, np.nan), where=n > 0)


def _times(n: int, draws: int, rng: np.random.Generator) -> Float[np.ndarray, "draw scene"]:
    return rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(float)


def mean_with_interval(
    per_scene: Float[np.ndarray, "scene column"], rule: CollapseRule, rng: np.random.Generator
) -> tuple[Column, Column, Column]:
    """Mean over scenes and its percentile interval."""
    there = np.isfinite(per_scene)
    times = _times(len(per_scene), rule.draws, rng)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = (times @ np.where(there, per_scene, 0)) / (times @ there)
        mean = np.where(there, per_scene, 0).sum(axis=0) / there.sum(axis=0)
    return mean, *_quantiles(drawn, rule.level)


def _quantiles(drawn: Float[np.ndarray, "draw column"], level: float) -> tuple[Column, Column]:
    ends = np.full((2, drawn.shape[1]), np.nan)
    whole = ~np.isnan(drawn).all(axis=0)
    if whole.any():
        # Not interpolated: between two infinities lies no number.
        at = [(1 - level) / 2, (1 + level) / 2]
        ends[:, whole] = np.nanquantile(drawn[:, whole], at, axis=0, method="inverted_cdf")
    return ends[0], ends[1]


def plain_indices(
    summary: AttentionSummary,
    real: Sequence[int],
    scenes: Sequence[str],
    query: str,
    rule: CollapseRule,
    rng: np.random.Generator,
) -> dict[str, Column]:
    """The indices that need no map, with their intervals."""
    get = {name: summary.statistic(name, query)[list(real)] for name in ("bos_mass", "sink_mass", "learned_sink_mass", "entropy")}
    fallen = np.nan_to_num(get["bos_mass"]) + np.nan_to_num(get["sink_mass"]) + get["learned_sink_mass"]
    found = {}
    for name, values in (("sink", fallen), ("uniform", get["entropy"])):
        flat = by_scene(values.reshape(len(real), -1).astype(float), scenes)
        found[name], found[f"{name}_low"], found[f"{name}_high"] = mean_with_interval(flat, rule, rng)
    mass = summary.statistic("image_mass", query)[list(real)].reshape(len(real), -1)
    return found | {"image_mass": _mean(mass), "there": np.isfinite(get["learned_sink_mass"]).any(axis=0).ravel()}


def _mean(values: Float[np.ndarray, "item column"]) -> Column:
    there = np.isfinite(values)
    return np.divide(
        np.where(there, values, 0).sum(axis=0), there.sum(axis=0), out=np.full(values.shape[1], np.nan), where=there.any(axis=0)
    )


def indices_of_maps(
    record: "AttentionRecord",
    real: Sequence[int],
    scenes: Sequence[str],
    query: str,
    rule: CollapseRule,
    rng: np.random.Generator,
) -> tuple[dict[str, Column], list[str]]:
    """How alike maps are over scenes, whether they follow the picture, and the object's lift; and what could not be computed."""
    found = SceneMaps.of(record, real, scenes, query)
    if found is None:
        return {}, ["No two scenes have pictures with the same grid of tokens, so that maps can't be compared."]
    notes = []
    if len(found.scenes) < len(set(scenes)):
        notes.append(f"Maps are compared over the {len(found.scenes)} scenes with the most frequent grid of tokens.")
    numbers = _fixed(found, rule, rng)
    own, other = found.matched()
    if np.isfinite(other).any():
        numbers |= _matched_lift(own, other, rule, rng)
    else:
        notes.append("The object lies at the same place in all scenes (or is not marked): no lift over matched places.")
    numbers |= _followed(record, real, scenes, query, rule, rng)
    return numbers, notes


def _fixed(found: SceneMaps, rule: CollapseRule, rng: np.random.Generator) -> dict[str, Column]:
    n, _, columns = found.maps.shape
    times = np.concatenate([np.ones((1, n)), _times(n, rule.draws, rng)])
    fixed, low, high, null = (np.full(columns, np.nan) for _ in range(4))
    for column in range(columns):
        alike = likeness(found.maps[:, :, [column]])[0]
        shaped = np.isfinite(np.diagonal(alike))
        if shaped.sum() < max(2, n / 2):
            continue  # flat in most scenes: no map that could be the same
        drawn = mean_of_pairs(alike[np.ix_(shaped, shaped)], times[:, shaped])
        fixed[column], (low[column], high[column]) = drawn[0], _ends(drawn[1:], rule.level)
        if low[column] >= rule.fixed:
            shuffled = shuffled_pairs(found.maps[shaped, :, column].astype(float), min(rule.draws, 199), rng)
            null[column] = np.quantile(shuffled, 0.95)
    return {"fixed": fixed, "fixed_low": low, "fixed_high": high, "fixed_null": null}


def _ends(drawn: Float[np.ndarray, " draw"], level: float) -> tuple[float, float]:
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _matched_lift(
    own: Float[np.ndarray, "scene column"], other: Float[np.ndarray, "scene column"], rule: CollapseRule, rng: np.random.Generator
) -> dict[str, Column]:
    """Mean weight on the object over the mean on the same places without it, a ratio of means."""
    usable = np.isfinite(own).all(axis=1) & np.isfinite(other).all(axis=1)
    own, other = own[usable], other[usable]
    if len(own) < 2:
        return {}
    times = _times(len(own), rule.draws, rng)
    with np.errstate(divide="ignore", invalid="ignore"):  # infinite where nothing lies on the same places elsewhere
        lift = own.sum(axis=0) / other.sum(axis=0)
        drawn = (times @ own) / (times @ other)
    low, high = _quantiles(drawn, rule.level)
    return {"matched_lift": lift, "matched_low": low, "matched_high": high}


def _followed(
    record: "AttentionRecord",
    real: Sequence[int],
    scenes: Sequence[str],
    query: str,
    rule: CollapseRule,
    rng: np.random.Generator,
) -> dict[str, Column]:
    """Whether maps follow the picture: every other question about a scene against the rest of them.

    Scenes that were shown with all questions (tasks and languages) count, at most 64 of them.
    """
    tokens = record.tokens
    by_name: dict[str, dict[tuple[str, str], int]] = {}
    asked = [(item.task, item.language) for item in record.run.items]
    questions = tuple(dict.fromkeys(asked[n] for n in real))
    for n, scene in zip(real, scenes, strict=True):
        by_name.setdefault(scene, {})[asked[n]] = n
    whole = [[numbers[q] for q in questions] for numbers in by_name.values() if len(numbers) == len(questions)][:64]
    size = int(tokens.counts[whole[0][0]]) if whole else 0
    whole = [numbers for numbers in whole if size > 1 and all(tokens.counts[n] == size for n in numbers)]
    if len(questions) < 2 or len(whole) < 3:
        return {}
    maps = record.maps(query)

    def mean(numbers: Sequence[int]) -> Float[np.ndarray, "token column"]:
        return np.mean([maps[tokens.of(n)].reshape(size, -1).astype(np.float32) for n in numbers], axis=0)

    ours, theirs = (np.stack([mean(numbers[start::2]) for numbers in whole]) for start in (0, 1))
    gain, p_value = follows_picture(ours, theirs, min(rule.draws, 999), rng)
    return {"image_gain": gain, "image_p_value": p_value}


def beside_blank(record: "AttentionRecord", items: "Sequence[Item]", query: str) -> dict[str, Column]:
    """Mass on a blank picture, and how alike a question's map is to that of the same question on a blank picture."""
    blank = {item.id.removesuffix("+blank"): k for k, item in enumerate(items) if item.condition == "blank"}
    tokens = record.tokens
    pairs = [(k, blank[item.id]) for k, item in enumerate(items) if item.condition == "real" and item.id in blank]
    pairs = [(a, b) for a, b in pairs if tokens.counts[a] == tokens.counts[b] > 1]
    if not pairs:
        return {}
    maps = record.maps(query)
    total = n = np.zeros(maps.shape[1] * maps.shape[2])
    for a, b in pairs:
        two = np.stack([maps[tokens.of(k)].reshape(tokens.counts[a], -1).astype(np.float32) for k in (a, b)])
        alike = likeness(two)[:, 0, 1]
        total, n = total + np.nan_to_num(alike), n + np.isfinite(alike)
    mass = record.statistic("image_mass", query)[[b for _, b in pairs]].reshape(len(pairs), -1)
    found = {"image_mass_blank": _mean(mass)}
    return found | {"blank_likeness": np.divide(total, n, out=np.full_like(total, np.nan), where=n > 0)}


def spread_over_scenes(
    values: Float[np.ndarray, "item layer"], scenes: Sequence[str], rule: CollapseRule, rng: np.random.Generator
) -> tuple[Column, Column, Column]:
    """Mean over scenes of what an item has at each layer, with its interval."""
    return mean_with_interval(by_scene(values.astype(float), scenes), rule, rng)
