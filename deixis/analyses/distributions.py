"""A run's options as distributions, and how far two distributions lie apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int, Shaped

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations import Run
    from deixis.benchmarks import Item, Items


def option_table(run: "Run") -> "pd.DataFrame":
    """One row per item and option, in the run's order.

    Returns:
        ``item task language condition scene region figure option term logit prob``: ``prob`` is the softmax over the item's own
        options; ``region`` is NaN where the item has none; an item in no scene is a scene of its own, and ``figure`` is the scene
        where items are of no figure.

    Raises:
        ValueError: A logit is NaN or infinite, or a region no whole number; the message names the item.
    """
    import pandas as pd

    check_regions(run.items)
    items = pd.DataFrame(
        [(i.id, i.task, i.language, i.condition, scene_of(i), i.targets.get("region", np.nan), figure_of(i)) for i in run.items],
        columns=["item", "task", "language", "condition", "scene", "region", "figure"],
    )
    options = run.options[["item", "option", "term", "logit"]]
    bad = options[~np.isfinite(options["logit"].to_numpy(float))]
    if len(bad):
        raise ValueError(
            f"item {bad['item'].iloc[0]!r} has the logit {bad['logit'].iloc[0]} for {bad['option'].iloc[0]!r}; "
            "record the run again in another dtype."
        )
    table = items.merge(options, on="item", how="right", validate="one_to_many")
    groups, _ = pd.factorize(table["item"])
    return table.assign(prob=softmax_within(groups, table["logit"].to_numpy(float)))


def scene_of(item: "Item") -> str:
    """The item's scene; its own id where it is in none."""
    return item.groups.get("scene", item.id)


def figure_of(item: "Item") -> str:
    """What is drawn again in a bootstrap: the figure (a shape in a colour) recurs at every distance; else the scene."""
    return item.groups.get("figure", scene_of(item))


def check_regions(items: "Items") -> None:
    """Refuse a region that is no whole number: it would be counted in another one's cell."""
    for item in items:
        region = item.targets.get("region", 0.0)
        if not float(region).is_integer():
            raise ValueError(f"item {item.id!r} has the region {region}; regions are whole numbers, 1 near to 3 far.")


def softmax_within(groups: Int[np.ndarray, " row"], logits: Float[np.ndarray, " row"]) -> Float[np.ndarray, " row"]:
    """Softmax over the rows that have the same number in ``groups`` (0, 1, ...); a NaN makes its group NaN."""
    highest = np.full(groups.max(initial=-1) + 1, -np.inf)
    with np.errstate(invalid="ignore"):
        np.maximum.at(highest, groups, logits)
    weights = np.exp(logits - highest[groups])
    return weights / np.bincount(groups, weights)[groups]


def js_distance(
    p: Float[np.ndarray, "*batch option"], q: Float[np.ndarray, "*batch option"], base: float = 2.0
) -> Float[np.ndarray, "*batch"]:
    """Jensen-Shannon distance over the last axis: the root of the divergence, so a metric (Endres and Schindelin 2003).

    ``sqrt((KL(p || m) + KL(q || m)) / 2)`` with ``m = (p + q) / 2``; 0 for equal distributions, 1 for disjoint ones in base 2.
    """
    middle = (p + q) / 2
    divergence = (_kl(p, middle) + _kl(q, middle)) / 2 / np.log(base)
    return np.asarray(np.sqrt(np.maximum(divergence, 0)))  # rounding can leave -1e-17


def _kl(p: Float[np.ndarray, "*batch option"], q: Float[np.ndarray, "*batch option"]) -> Float[np.ndarray, "*batch"]:
    ratio = np.divide(p, q, out=np.ones_like(p), where=p > 0)
    return np.asarray((p * np.log(ratio)).sum(axis=-1))


def sampling_noise(
    reference: Float[np.ndarray, " option"], n: float, base: float, rng: np.random.Generator, draws: int = 4000
) -> float:
    """Mean distance from ``reference`` of the shares among ``n`` answers drawn from exactly ``reference``; NaN without an n."""
    if not np.isfinite(n) or n < 1:
        return float("nan")
    shares = rng.multinomial(round(n), reference / reference.sum(), size=draws) / round(n)
    return float(js_distance(shares, np.broadcast_to(reference, shares.shape), base).mean())


def scene_sums(
    values: Float[np.ndarray, "item option"], scenes: Shaped[np.ndarray, " item"]
) -> tuple[Float[np.ndarray, "scene option"], Int[np.ndarray, " scene"]]:
    """Sum over each scene's items, and how many there are: items of a scene move together in every bootstrap."""
    _, index = np.unique(scenes.astype(str), return_inverse=True)
    sums = np.zeros((index.max() + 1, values.shape[1]))
    np.add.at(sums, index, values)
    return sums, np.bincount(index)


def bootstrap_means(
    values: Float[np.ndarray, "item option"], scenes: Shaped[np.ndarray, " item"], n_boot: int, rng: np.random.Generator
) -> Float[np.ndarray, "draw option"]:
    """Means over items when the scenes are drawn again with replacement (cluster bootstrap)."""
    sums, sizes = scene_sums(values, scenes)
    times = rng.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=n_boot)
    return (times @ sums) / (times @ sizes)[:, None]


def interval(draws: Float[np.ndarray, " draw"], estimate: float, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval, widened to hold the estimate: a distance near zero has bootstrap draws above it only.

    Draws that are NaN, in which no item of a cell was drawn, are left out; NaN where nothing is left or the estimate is NaN.
    """
    drawn = draws[np.isfinite(draws)]
    if not len(drawn) or np.isnan(estimate):
        return float("nan"), float("nan")
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return min(float(low), estimate), max(float(high), estimate)


@dataclass(frozen=True)
class ClusterSums:
    """Values of items summed over each of their clusters: all that a bootstrap, a jackknife or a split needs."""

    sums: Float[np.ndarray, "cluster option"]
    sizes: Int[np.ndarray, " cluster"]

    @classmethod
    def of(
        cls, values: Float[np.ndarray, "item option"], clusters: Shaped[np.ndarray, " item"], names: Sequence[str] | None = None
    ) -> "ClusterSums":
        """Sum ``values`` over ``clusters``, in the order of ``names`` (None: sorted); a cluster may have no item."""
        known = np.unique(clusters.astype(str)) if names is None else np.asarray(names, dtype=str)
        order = np.argsort(known)
        index = order[np.searchsorted(known, clusters.astype(str), sorter=order)] if len(values) else np.zeros(0, dtype=int)
        sums = np.zeros((len(known), values.shape[1]))
        np.add.at(sums, index, values)
        return cls(sums, np.bincount(index, minlength=len(known)))

    def means(self, times: Float[np.ndarray, "draw cluster"]) -> Float[np.ndarray, "draw option"]:
        """Mean over items when each cluster is taken so many times; NaN where a draw holds no item."""
        size = times @ self.sizes
        return np.divide(
            times @ self.sums, size[:, None], out=np.full((len(times), self.sums.shape[1]), np.nan), where=size[:, None] > 0
        )

    @property
    def filled(self) -> "ClusterSums":
        """Without the clusters that have no item."""
        return ClusterSums(self.sums[self.sizes > 0], self.sizes[self.sizes > 0])


def debiased_js_distance(cells: ClusterSums, reference: Float[np.ndarray, " option"], base: float = 2.0) -> float:
    """Jensen-Shannon distance from ``reference`` with the bias of few items taken off; NaN for fewer than two clusters.

    The mean of a few items lies off the true distribution in a random direction, and most directions lead away from a reference
    that is near: the expected distance is too large by about ``trace(H S) / (2 n)``, with H the distance's second derivatives
    and S the covariance of items. The jackknife removes that term without a model of the items (Quenouille 1956; Efron and
    Tibshirani 1993, chapter 10): ``g d - (g - 1) mean(d without cluster j)`` over g clusters, and 0 where that is negative. It
    is taken of the distance and not of its square: the root of an unbiased divergence is too small where the distance is about
    as large as its noise. Where the true distance is 0 the distance has a kink, and about two thirds of the bias stay; compare
    with :func:`split_half_distances` there.
    """
    parts = cells.filled
    g = len(parts.sizes)
    if g < 2:
        return float("nan")
    total, size = parts.sums.sum(axis=0), parts.sizes.sum()
    whole = float(js_distance(total / size, reference, base))
    without = (total - parts.sums) / (size - parts.sizes)[:, None]
    left_out = js_distance(without, np.broadcast_to(reference, without.shape), base)
    return max(g * whole - (g - 1) * float(left_out.mean()), 0.0)


def split_half_distances(
    cells: ClusterSums, base: float, rng: np.random.Generator, splits: int = 500
) -> Float[np.ndarray, " split"]:
    """Jensen-Shannon distances between two random halves of the clusters; empty for fewer than two clusters.

    The distance that this many items have from themselves. Each half holds half of the items, so that the distances are about
    twice those of all items from their own true distribution.
    """
    parts = cells.filled
    g = len(parts.sizes)
    if g < 2:
        return np.zeros(0)
    # Each row a random order of the clusters; an odd one out is in neither half.
    first = rng.permuted(np.tile(np.repeat([1.0, 2.0, 0.0], [g // 2, g // 2, g % 2]), (splits, 1)), axis=1)
    return js_distance(parts.means((first == 1.0).astype(float)), parts.means((first == 2.0).astype(float)), base)
