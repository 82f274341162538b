"""Where attention goes: masses, lifts, evenness and the centre of attention, with sinks and without."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from deixis.analyses.attention_sinks import PHI, VisualSinks, find_sinks, mass_on
from deixis.analyses.distributions import bootstrap_means, interval, scene_of
from deixis.hooks.attention_stats import STATISTICS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.activations.attention import AttentionRecord

SINK_COLUMNS = ("sink_mass", "vision_sink_mass", "decoder_sink_mass")
WITHOUT = ("entropy_without_sinks", "image_mass_without_sinks", "object_mass_without_sinks", "object_lift_without_sinks")
_FIRST = (
    "entropy",
    "max_weight",
    "bos_mass",
    "sink_mass",
    "image_mass",
    "image_lift",
    "object_mass",
    "object_lift",
    "text_mass",
)
"""Columns that stand first."""


@dataclass(frozen=True, eq=False)
class AttentionSummary:
    """Statistics of every item, layer, head and role of queries."""

    model: str
    site: str
    items: tuple[str, ...]
    languages: tuple[str, ...]
    conditions: tuple[str, ...]
    scenes: tuple[str, ...]
    distances: tuple[float, ...]
    """The target ``distance_m``; NaN where an item has none."""
    layers: tuple[int, ...]
    queries: tuple[str, ...]
    sinks: VisualSinks | None
    """None where the run kept no maps or no peaks: the columns about sinks are NaN then."""
    names: tuple[str, ...]
    """Of the statistics, in the order of the last axis of ``values``."""
    values: Float[np.ndarray, "item layer head query statistic"]

    def __repr__(self) -> str:
        n = f"{len(self.items)} items, {len(self.layers)} layers, {self.values.shape[2]} heads, queries {', '.join(self.queries)}"
        return f"AttentionSummary({self.model!r}, {self.site}: {n}; .to_frame(), .mean(), .plot())"

    def statistic(self, name: str, query: str | None = None) -> Float[np.ndarray, "item layer head"]:
        """One column as an array, of one role's queries (None: the first that was recorded)."""
        place = 0 if query is None else self.queries.index(query)
        return self.values[:, :, :, place, self.names.index(name)]

    def to_frame(self) -> "pd.DataFrame":
        """One row per item, layer, head and query. Heads that a layer lacks, and layers without softmax attention, are left out.

        Beside the columns of every statistic: ``sink_mass`` on visual sinks, of which ``vision_sink_mass`` on those that come
        from the vision tower and ``decoder_sink_mass`` on those that the decoder makes; and ``..._without_sinks``, over the
        keys that are neither the first token nor a visual sink (for roles of one query per item).
        """
        import pandas as pd

        levels = [list(self.items), list(self.layers), range(self.values.shape[2]), list(self.queries)]
        index = pd.MultiIndex.from_product(levels, names=["item", "layer", "head", "query"])
        frame = pd.DataFrame(self.values.reshape(len(index), -1), index=index, columns=list(self.names)).reset_index()
        frame = frame.dropna(subset=["max_weight"]).reset_index(drop=True)
        frame.insert(0, "model", self.model)
        frame.insert(2, "site", self.site)
        first = ["model", "item", "site", "layer", "head", "query", *_FIRST]
        return frame[[*first, *(name for name in frame.columns if name not in first)]]

    def mean(self, by: Sequence[str] = ("layer", "head"), condition: str | None = "real") -> "pd.DataFrame":
        """Means over items, without the long frame in between.

        Args:
            by: Out of ``layer``, ``head``, ``language``, ``condition`` and ``query``.
            condition: Only items in this condition; None for all.

        Raises:
            ValueError: A name in ``by`` is not known, or no item is in this condition.
        """
        import pandas as pd

        known = ("layer", "head", "language", "condition", "query")
        wrong = [name for name in by if name not in known]
        if wrong or not by:
            raise ValueError(f"by={tuple(by)!r} must be names out of: {', '.join(known)}.")
        kept = [k for k, name in enumerate(self.conditions) if condition in (None, name)]
        if not kept:
            there = ", ".join(dict.fromkeys(self.conditions))
            raise ValueError(f"no item is in the condition {condition!r}; this run has: {there}.")
        groups = [(self.languages[k] if "language" in by else "", self.conditions[k] if "condition" in by else "") for k in kept]
        frames = []
        for group in dict.fromkeys(groups):
            chosen = [k for k, g in zip(kept, groups, strict=True) if g == group]
            index = pd.MultiIndex.from_product(
                [list(self.layers), range(self.values.shape[2]), list(self.queries)], names=["layer", "head", "query"]
            )
            means = _mean(self.values[chosen], axis=0)
            frame = pd.DataFrame(means.reshape(len(index), -1), index=index, columns=list(self.names)).reset_index()
            frames.append(frame.assign(language=group[0], condition=group[1]))
        joined = pd.concat(frames, ignore_index=True).dropna(subset=["max_weight"])
        result = joined.groupby(list(by), sort=False)[list(self.names)].mean().reset_index()
        result.insert(0, "model", self.model)
        return result

    def by_distance(
        self,
        statistic: str = "object_lift",
        layers: Sequence[int] | None = None,
        query: str | None = None,
        draws: int = 1000,
        seed: int = 0,
    ) -> "pd.DataFrame":
        """One statistic of real items against the object's distance, mean over heads.

        Returns:
            Columns ``model statistic layer distance_m mean low high n_scenes``; 95 % intervals over scenes.

        Raises:
            ValueError: No real item has a distance.
        """
        import pandas as pd

        values = _mean(self.statistic(statistic, query), axis=2)
        distances, rng = np.array(self.distances), np.random.default_rng(seed)
        rows = []
        for distance in np.unique(distances[np.isfinite(distances)]):
            chosen = [k for k in np.flatnonzero(distances == distance) if self.conditions[k] == "real"]
            if not chosen:
                continue
            scenes = np.array([self.scenes[k] for k in chosen])
            drawn = bootstrap_means(np.nan_to_num(values[chosen]), scenes, draws, rng)
            for place, layer in enumerate(self.layers):
                if layers is None or layer in layers:
                    mean = float(np.mean(values[chosen, place]))
                    rows.append(
                        (self.model, statistic, layer, distance, mean, *interval(drawn[:, place], mean), len(set(scenes)))
                    )
        if not rows:
            raise ValueError("no real item has the target distance_m, so that nothing can be set against it.")
        return pd.DataFrame(rows, columns=["model", "statistic", "layer", "distance_m", "mean", "low", "high", "n_scenes"])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """A heat map of the object lift; see :func:`deixis.analyses.plot_attention_heads` for other statistics."""
        from deixis.analyses.attention_plots import plot_attention_heads

        return plot_attention_heads(self.mean(), ax=ax)


def attention_summary(run: "Run", *, site: str = "attention", phi: float = PHI) -> AttentionSummary:
    """Statistics of a run's attention, with those about visual sinks, which are found first.

    High attention is no proof of use: what a head looks at need not reach the answer. To see whether it does, knock the head's
    edges out.

    Args:
        run: Recorded with ``attention=True`` or a plan.
        site: ``"attention"`` (the decoder) or ``"vision_attention"``.
        phi: From where a token's largest activation makes it a sink; see :mod:`deixis.analyses.attention_sinks`.

    Raises:
        RunError: The run was recorded without attention, or without this site.
    """
    record = run.attention(site)
    sinks = find_sinks(record, phi) if record.has_maps and record.has_spread else None
    values = record.values
    extra = np.full((*values.shape[:-1], len(SINK_COLUMNS) + len(WITHOUT)), np.nan, np.float32)
    if sinks is not None:
        for place, query in enumerate(record.queries):
            extra[:, :, :, place] = _about_sinks(record, sinks, query)
    items = list(run.items)
    return AttentionSummary(
        model=record.model,
        site=site,
        items=tuple(item.id for item in items),
        languages=tuple(item.language for item in items),
        conditions=tuple(item.condition for item in items),
        scenes=tuple(scene_of(item) for item in items),
        distances=tuple(float(item.targets.get("distance_m", np.nan)) for item in items),
        layers=record.layers,
        queries=record.queries,
        sinks=sinks,
        names=(*STATISTICS, *SINK_COLUMNS, *WITHOUT),
        values=np.concatenate([values, extra], axis=-1),
    )


def _about_sinks(record: "AttentionRecord", sinks: VisualSinks, query: str) -> Float[np.ndarray, "item layer head column"]:
    """The columns about sinks of one role's queries."""
    marked = record.tokens.marked[:, None]
    vision = np.broadcast_to(sinks.vision_born[:, None], sinks.decoder_born.shape)
    from_vision, from_decoder = mass_on(record, vision, query), mass_on(record, sinks.decoder_born, query)
    both = from_vision + from_decoder
    absent = np.isnan(record.statistic("max_weight", query))
    columns = [
        both,
        from_vision,
        from_decoder,
        *_without(record, sinks, both, mass_on(record, sinks.either & marked, query), query),
    ]
    return np.where(absent[..., None], np.nan, np.stack(columns, axis=-1))


def _without(
    record: "AttentionRecord",
    sinks: VisualSinks,
    mass: Float[np.ndarray, "item layer head"],
    on_object: Float[np.ndarray, "item layer head"],
    query: str,
) -> list[Float[np.ndarray, "item layer head"]]:
    """Entropy, masses and lift over the keys that are neither the first token nor a visual sink.

    With m the weight on the keys S taken out, the entropy of the rest is (H + sum over S of p log p) / (1 - m) + log(1 - m).
    """
    get = {name: record.statistic(name, query).astype(float) for name in STATISTICS}
    bos = np.nan_to_num(get["bos_mass"])
    rest = np.maximum(1 - bos - mass - get["learned_sink_mass"], 1e-12)
    taken = _plogp(record, sinks, query) + sum(p * np.log(np.maximum(p, 1e-30)) for p in (bos, get["learned_sink_mass"]))
    n_sinks, n_on_object = _counts(record, sinks.either), _counts(record, sinks.either & record.tokens.marked[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = (np.log(get["effective_keys"]) + taken) / rest + np.log(rest)
        keys = get["keys"] - n_sinks - np.isfinite(get["bos_mass"])
        share = get["object_mass"] / get["object_lift"] * get["keys"]  # object tokens in sight
        object_mass = (get["object_mass"] - on_object) / rest
        lift = object_mass / ((share - n_on_object) / keys)
        entropy = np.clip(entropy / np.log(keys), 0, 1)
    single = query in ("answer", "bos", "last_text")
    found = [entropy, (get["image_mass"] - mass) / rest, object_mass, np.where(share - n_on_object > 0.5, lift, np.nan)]
    # Less than a hundredth is left: its shape is what float16 leaves of it.
    return [np.where((rest > 0.01) & single, column, np.nan) for column in found]


def _plogp(record: "AttentionRecord", sinks: VisualSinks, query: str) -> Float[np.ndarray, "item layer head"]:
    maps, tokens = record.maps(query), record.tokens
    total = np.zeros((len(tokens.counts), *maps.shape[1:]))
    for item in np.unique(tokens.owners[sinks.either.any(axis=1)]):
        mine = tokens.of(int(item))
        p = maps[mine].astype(float) * sinks.either[mine, :, None]
        total[item] = np.where(p > 0, p * np.log(np.maximum(p, 1e-30)), 0).sum(axis=0)
    return total


def _counts(record: "AttentionRecord", flags: np.ndarray) -> Float[np.ndarray, "item layer 1"]:
    owners, n = record.tokens.owners, len(record.tokens.counts)
    return np.stack([np.bincount(owners, weights=flags[:, k], minlength=n) for k in range(flags.shape[1])], axis=1)[..., None]


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Mean of what is there; NaN where nothing is."""
    there = np.isfinite(values)
    return np.divide(
        np.where(there, values, 0).sum(axis=axis),
        there.sum(axis=axis),
        out=np.full(np.delete(values.shape, axis), np.nan),
        where=there.any(axis=axis),
    )
