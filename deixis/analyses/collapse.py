"""Attention collapse: which heads look at nothing in particular, and onto what their attention has fallen.

A head is called collapsed only if the lower end of its index's interval over scenes is above the threshold, so that a head just
at the threshold is called so in at most one run of twenty. The kinds are looked for in this order:

``sink``
    Its weight has gone to the first token, to visual sinks or to learned sinks: the index is their mass.
``uniform``
    It looks everywhere alike: the index is its entropy over the maximum, and it does not favour the object over the same places
    in other scenes.
``fixed``
    Its map of the picture is the same whatever the picture shows: the index is the mean correlation between the maps of
    different scenes, which must also lie above what maps with shuffled tokens share by chance. Only heads that look at the
    picture at all have one.
``none``
    None of these. That is no proof that the head sees anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from deixis.analyses.attention_summary import attention_summary
from deixis.analyses.collapse_indices import Column, beside_blank, indices_of_maps, plain_indices, spread_over_scenes
from deixis.analyses.collapse_rule import CollapseRule
from deixis.analyses.distributions import scene_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.activations.attention import AttentionRecord
    from deixis.benchmarks import Item

KINDS = ("sink", "uniform", "fixed", "none")
COLUMNS = (
    "model",
    "site",
    "layer",
    "head",
    "kind",
    "index",
    "low",
    "high",
    "sink",
    "uniform",
    "fixed",
    "fixed_null",
    "image_gain",
    "image_p_value",
    "matched_lift",
    "matched_low",
    "matched_high",
    "image_mass",
    "image_mass_blank",
    "blank_likeness",
    "n_scenes",
)
MIN_SCENES = 8


@dataclass(frozen=True, eq=False)
class AttentionCollapse:
    """What every head's attention has fallen onto, if anything."""

    model: str
    site: str
    query: str
    rule: CollapseRule
    n_scenes: int
    notes: tuple[str, ...]
    """What could not be looked at, and why."""
    _rows: "pd.DataFrame" = field(repr=False)
    _likeness: "pd.DataFrame" = field(repr=False)
    _at_ends: Mapping[tuple[int, int], Mapping[str, str]] = field(repr=False)
    """What each head would be called by its indices as measured, by their lower ends (as it is), and by their upper ends."""

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {kind}" for kind, n in self.counts().items())
        return f"AttentionCollapse({self.model!r}, {self.site}, {self.query} queries: {counts}; .to_frame(), .layers(), .plot())"

    def counts(self) -> dict[str, int]:
        """How many heads are of each kind."""
        return {kind: int((self._rows["kind"] == kind).sum()) for kind in KINDS}

    def to_frame(self) -> "pd.DataFrame":
        """One row per layer and head.

        ``index``, ``low``, ``high``: of the kind; for ``none``, of the kind that comes nearest its threshold. Beside it every
        index, and the evidence: ``fixed_null`` (the 95 % quantile of the fixed index of shuffled maps; only where the index is
        high), ``image_gain`` (how much more alike two questions' maps of one picture are than maps of two pictures) with its
        permutation p-value, ``matched_lift`` (weight on the object over the weight on the same places in other scenes) with its
        interval, and the blank picture: the weight on it, and how alike its map is to the real one's.
        """
        return self._rows.copy()

    def layers(self) -> "pd.DataFrame":
        """One row per layer.

        ``kind`` is what more than half of its heads are (else ``none``). ``index`` is the share of heads that are of that kind
        (of any kind, for ``none``) by their indices as measured, ``low`` by the lower ends of these indices' intervals over
        scenes, which is how heads are called collapsed, and ``high`` by the upper ends. A layer's heads are all there are, not a
        sample of heads, so that scenes alone are what could have come out otherwise.
        """
        import pandas as pd

        rows = []
        for _, part in self._rows.groupby("layer", sort=True):
            layer = int(part["layer"].iloc[0])
            counts = part["kind"].value_counts()
            kind = next((k for k in KINDS[:3] if counts.get(k, 0) > len(part) / 2), "none")
            at = [[self._at_ends[layer, head][end] for head in part["head"]] for end in _ENDS]
            index, low, high = (float(np.mean([k == kind if kind != "none" else k != "none" for k in kinds])) for kinds in at)
            rows.append((self.model, self.site, layer, kind, index, low, high, len(part)))
        return pd.DataFrame(rows, columns=["model", "site", "layer", "kind", "index", "low", "high", "n_heads"])

    def likeness(self) -> "pd.DataFrame":
        """Rank collapse of the image tokens entering each block, by condition: mean pairwise cosine and effective rank.

        Columns ``model condition layer cosine low high rank rank_low rank_high``, intervals over scenes. Empty where the run kept
        none, and for the vision tower.
        """
        return self._likeness.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`deixis.analyses.plot_attention_collapse`."""
        from deixis.analyses.attention_plots import plot_attention_collapse

        return plot_attention_collapse(self.to_frame(), ax=ax)


def attention_collapse(
    run: "Run", *, site: str = "attention", query: str | None = None, rule: CollapseRule | None = None, seed: int = 0
) -> AttentionCollapse:
    """Say for every head whether its attention has collapsed, and onto what.

    Real items alone are classified. Items of one scene are averaged first; scenes are what is drawn again for the intervals.

    Args:
        run: Recorded with attention; with maps, without which no head can be called fixed.
        site: ``"attention"`` or ``"vision_attention"``.
        query: Whose queries; None for the first that was recorded.
        rule: Thresholds; None for :class:`CollapseRule` as it is.
        seed: Of the draws.

    Raises:
        RunError: The run was recorded without attention.
        ValueError: It has fewer than eight scenes with real pictures.
    """
    rule = rule or CollapseRule()
    record = run.attention(site)
    query = record.queries[0] if query is None else record.queries[record.place_of(query)]
    summary = attention_summary(run, site=site)
    rng = np.random.default_rng(seed)
    items = list(run.items)
    real = [k for k, item in enumerate(items) if item.condition == "real" and item.images]
    scenes = [scene_of(items[k]) for k in real]
    n_scenes = len(set(scenes))
    if n_scenes < MIN_SCENES:
        raise ValueError(f"the run has {n_scenes} scenes with real pictures; intervals over scenes need at least {MIN_SCENES}.")
    notes = list(_notes(record))
    found = plain_indices(summary, real, scenes, query, rule, rng)
    if record.has_maps:
        numbers, missing = indices_of_maps(record, real, scenes, query, rule, rng)
        found |= numbers | beside_blank(record, items, query)
        notes += missing
    rows, at_ends = _classified(record, found, rule, n_scenes)
    alike = _likeness(record, items, rule, rng) if site == "attention" and record.has_spread else []
    return AttentionCollapse(record.model, site, query, rule, n_scenes, tuple(notes), rows, _likeness_frame(alike), at_ends)


def _notes(record: "AttentionRecord") -> list[str]:
    notes = []
    if not record.has_maps:
        notes.append("The run kept no maps, so that no head can be called fixed, and no visual sink counts.")
    if not record.has_spread:
        notes.append("The run kept no peaks, so that no visual sink counts.")
    return notes


_ENDS = {"index": "", "low": "_low", "high": "_high"}


def _classified(
    record: "AttentionRecord", found: Mapping[str, Column], rule: CollapseRule, n_scenes: int
) -> "tuple[pd.DataFrame, dict[tuple[int, int], dict[str, str]]]":
    """A row for every head that is there, and its kind by each end of its indices."""
    import pandas as pd

    heads = record.values.shape[2]
    rows, at_ends = [], {}
    for column in np.flatnonzero(found["there"]):
        numbers = {name: float(values[column]) for name, values in found.items() if name != "there"}
        kinds = {end: _kind(numbers, rule, suffix) for end, suffix in _ENDS.items()}
        nearest = _nearest(numbers, rule) if kinds["low"] == "none" else kinds["low"]
        chosen = {end: numbers.get(f"{nearest}{suffix}", np.nan) for end, suffix in _ENDS.items()}
        known = {name: numbers[name] for name in COLUMNS if name in numbers}
        layer, head = record.layers[column // heads], int(column % heads)
        first = {"model": record.model, "site": record.site, "layer": layer, "head": head, "kind": kinds["low"]}
        rows.append(first | chosen | known | {"n_scenes": n_scenes})
        at_ends[layer, head] = kinds
    return pd.DataFrame(rows, columns=list(COLUMNS)), at_ends


def _limits(rule: CollapseRule) -> dict[str, float]:
    return {"sink": rule.sink, "uniform": rule.uniform, "fixed": rule.fixed}


def _kind(numbers: Mapping[str, float], rule: CollapseRule, suffix: str) -> str:
    """The head's kind, if its indices are those that are named with ``suffix``."""
    values = {name: numbers.get(f"{name}{suffix}", np.nan) for name in _limits(rule)}
    # Comparisons with NaN are false: without a lift no head can be said to favour the object.
    above = {name: values[name] >= limit for name, limit in _limits(rule).items()}
    favours = numbers.get("matched_lift", np.nan) >= rule.object_lift
    if above["sink"]:
        return "sink"
    if above["uniform"] and not favours:
        return "uniform"
    looks = numbers.get("image_mass", np.nan) >= rule.image_mass
    by_chance = numbers.get("fixed_null", np.nan)  # computed where the lower end reaches the threshold: elsewhere it is far below
    if above["fixed"] and looks and not values["fixed"] <= by_chance:
        return "fixed"
    return "none"


def _nearest(numbers: Mapping[str, float], rule: CollapseRule) -> str:
    """The kind whose index comes nearest its threshold."""
    ratios = {name: np.nan_to_num(numbers.get(name, np.nan) / limit, nan=-1.0) for name, limit in _limits(rule).items()}
    return max(ratios, key=lambda name: ratios[name])


_ALIKE = ("model", "condition", "layer", "cosine", "low", "high", "rank", "rank_low", "rank_high")


def _likeness(record: "AttentionRecord", items: "Sequence[Item]", rule: CollapseRule, rng: np.random.Generator) -> list[tuple]:
    """Rows of :meth:`AttentionCollapse.likeness`."""
    cosine, rank = record.likeness()
    rows = []
    for condition in dict.fromkeys(item.condition for item in items if item.images):
        chosen = [k for k, item in enumerate(items) if item.condition == condition and item.images]
        scenes = [scene_of(items[k]) for k in chosen]
        found = [spread_over_scenes(values[chosen], scenes, rule, rng) for values in (cosine, rank)]
        for layer in range(cosine.shape[1]):
            rows.append((record.model, condition, layer, *(float(part[layer]) for three in found for part in three)))
    return rows


def _likeness_frame(rows: list[tuple]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows, columns=list(_ALIKE))
