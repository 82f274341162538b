"""A run's options as distributions, and how far two distributions lie apart."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int, Shaped

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations import Run
    from deixis.benchmarks import Items


def option_table(run: "Run") -> "pd.DataFrame":
    """One row per item and option, in the run's order.

    Returns:
        ``item task language condition scene region option term logit prob``: ``prob`` is the softmax over the item's own options;
        ``region`` is NaN where the item has none; an item in no scene is a scene of its own.

    Raises:
        ValueError: A logit is NaN or infinite, or a region no whole number; the message names the item.
    """
    import pandas as pd

    check_regions(run.items)
    items = pd.DataFrame(
        [
            (i.id, i.task, i.language, i.condition, i.groups.get("scene", i.id), i.targets.get("region", np.nan))
            for i in run.items
        ],
        columns=["item", "task", "language", "condition", "scene", "region"],
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
    """Percentile interval, widened to hold the estimate: a distance near zero has bootstrap draws above it only."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return min(float(low), estimate), max(float(high), estimate)
