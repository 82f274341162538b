"""Where in the layers an answer is decided: the lens by region and term, and the layer from which the chosen term stays first."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int, Shaped

from deixis.analyses.behaviour_scores import rng_of
from deixis.analyses.distributions import ClusterSums, figure_of, interval
from deixis.analyses.style import REGION_COLOURS, axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.analyses.logit_lens import LogitLens
    from deixis.benchmarks import Items

LENS_COLUMNS = ("model", "language", "term", "region", "layer", "prob", "low", "high", "n")
ITEM_COLUMNS = ("model", "language", "region", "figure", "item", "chosen", "layer", "prob")
COLUMNS = ("model", "language", "region", "layer", "low", "high", "n", "prob", "difference", "p_value")


def lens_by_region(lens: "LogitLens", items: "Items", *, n_boot: int = 1000, seed: int = 0) -> "pd.DataFrame":
    """Mean probability of each term at each layer, by language and region, with intervals.

    Args:
        lens: Of :func:`deixis.logit_lens`.
        items: The run's.
        n_boot: Bootstrap draws, of figures.
        seed: Of the bootstrap; the same figures are drawn at every layer and region.

    Returns:
        ``model language term region layer prob low high n``; real items with terms only.

    Raises:
        ValueError: The lens holds no real items with terms and regions.
    """
    import pandas as pd

    frame = _known(lens, items)
    rows = []
    for language, spoken in frame.groupby("language", sort=False):
        names = tuple(sorted(set(spoken["figure"])))
        times = rng_of(seed, language).multinomial(len(names), np.full(len(names), 1 / len(names)), size=n_boot).astype(float)
        for (term, region, layer), part in spoken.groupby(["term", "region", "layer"], sort=False):
            probs = part["prob"].to_numpy(float)
            there = np.isfinite(probs)
            sums = ClusterSums.of(probs[there, None], part["figure"].to_numpy()[there], names)
            mean = float(probs[there].mean()) if there.any() else float("nan")
            low, high = interval(sums.means(times)[:, 0], mean)
            rows.append((lens.model, language, term, region, layer, mean, low, high, int(there.sum())))
    return pd.DataFrame(rows, columns=list(LENS_COLUMNS))


@dataclass(frozen=True)
class DecisionLayers:
    """From which layer on each answer is the one that the model gives."""

    model: str
    last: int
    """The last recorded layer, whose answer counts as chosen."""
    _items: "pd.DataFrame"
    _rows: "pd.DataFrame"

    def __repr__(self) -> str:
        return f"DecisionLayers({self.model!r}, up to layer {self.last}; .to_frame(), .items(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per language and region.

        ``layer``: mean decision layer, with ``low, high`` (95 %, figures drawn again), of ``n`` items. ``prob``: mean probability
        that the last layer gives the chosen term; where it is little more than one over the number of terms, ``layer`` is where
        a near tie last changed sides, and says little. ``difference``: the
        largest mean of a region less the smallest; ``p_value``: how often regions dealt out at random within each figure differ
        as much (at least 1 / (draws + 1)); both are the language's and the same in its rows, NaN where it has one region only.
        """
        return self._rows.copy()

    def items(self) -> "pd.DataFrame":
        """One row per item: ``model language region figure item chosen layer prob``."""
        return self._items.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_decision_layers`."""
        return plot_decision_layers(self.items(), ax)


def decision_layers(
    lens: "LogitLens", items: "Items", *, n_boot: int = 1000, n_permutations: int = 1000, seed: int = 0
) -> DecisionLayers:
    """Find where the chosen term becomes the answer, and whether that differs by region.

    An item's decision layer is the first recorded layer from which on the term that the last layer ranks first is first at
    every layer (the prediction depth of Baldock et al. 2021, with the lens in place of neighbours). What the lens can't read it
    can't see decided: the layer is the latest at which the answer had formed.

    A difference between regions says that distance moves what the lens reads on the way, which it does wherever distance is
    encoded; it doesn't say that the answer depends on distance (for that see :func:`deixis.distance_sensitivity`).

    Args:
        lens: Of :func:`deixis.logit_lens`, with several layers.
        items: The run's.
        n_boot: Bootstrap draws, of figures.
        n_permutations: Draws of the permutation test.
        seed: Of both.

    Raises:
        ValueError: The lens holds one layer only, or no real items with terms and regions.
    """
    import pandas as pd

    if len(lens.layers) < 2:
        raise ValueError(
            f"the lens holds layer {', '.join(map(str, lens.layers))} only; a decision layer needs two layers or more."
        )
    found = decided(_known(lens, items), lens.model)
    rows = []
    for language, spoken in found.groupby("language", sort=False):
        rng = rng_of(seed, language)
        layer, region = spoken["layer"].to_numpy(float), spoken["region"].to_numpy(int)
        names, figure = np.unique(spoken["figure"].to_numpy().astype(str), return_inverse=True)
        times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=n_boot).astype(float)
        difference, p = _difference(layer, region, figure, n_permutations, rng)
        for number in sorted(set(region)):
            mine = region == number
            draws = ClusterSums.of(layer[mine, None], names[figure[mine]], tuple(names)).means(times)[:, 0]
            mean = float(layer[mine].mean())
            prob = float(spoken["prob"].to_numpy(float)[mine].mean())
            rows.append((lens.model, language, number, mean, *interval(draws, mean), int(mine.sum()), prob, difference, p))
    return DecisionLayers(lens.model, max(lens.layers), found, pd.DataFrame(rows, columns=list(COLUMNS)))


def decided(frame: "pd.DataFrame", model: str) -> "pd.DataFrame":
    """The decision layer of each item of a lens frame; items with a NaN at any layer are left out."""
    import pandas as pd

    layers = np.sort(frame["layer"].unique())
    rows = []
    for item, part in frame.groupby("item", sort=False):
        logits = part.pivot(index="layer", columns="term", values="logit").loc[layers]
        if logits.isna().any(axis=None):
            continue
        first = logits.to_numpy(float).argmax(axis=1)
        other = np.flatnonzero(first != first[-1])
        layer = int(layers[0] if not len(other) else layers[other[-1] + 1])
        facts = part.iloc[0]
        chosen = str(logits.columns[first[-1]])
        last = logits.to_numpy(float)[-1]
        prob = float(np.exp(last.max() - np.logaddexp.reduce(last)))
        rows.append((model, facts["language"], int(facts["region"]), facts["figure"], item, chosen, layer, prob))
    return pd.DataFrame(rows, columns=list(ITEM_COLUMNS))


def _known(lens: "LogitLens", items: "Items") -> "pd.DataFrame":
    """The lens's rows of real items with terms and a region, with what the items say of themselves."""
    from deixis.analyses.findings import lens_of_terms

    frame = lens_of_terms(lens.to_frame(), items)
    if not len(frame):
        raise ValueError("the lens holds no real items whose options carry terms and whose region is known.")
    figures = {item.id: figure_of(item) for item in items}
    return frame.assign(figure=frame["item"].map(figures))


def _difference(
    layer: Float[np.ndarray, " item"],
    region: Int[np.ndarray, " item"],
    figure: Shaped[np.ndarray, " item"],
    draws: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """The largest regional mean less the smallest, and its permutation p-value: regions change places within a figure."""
    regions = np.unique(region)
    if len(regions) < 2:
        return float("nan"), float("nan")
    members = np.stack([region == r for r in regions]).astype(float)
    order = np.argsort(figure, kind="stable")
    keys = rng.random((draws, len(layer))) + figure[order]  # sorting these shuffles within each figure
    shuffled = layer[order][np.argsort(keys, axis=1)]
    sizes = members.sum(axis=1)
    drawn = np.ptp(shuffled @ members[:, order].T / sizes, axis=1)
    found = float(np.ptp(members @ layer / sizes))
    return found, float((1 + (drawn >= found - 1e-9).sum()) / (draws + 1))


def plot_decision_layers(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """How many of a region's answers are decided by each layer: a step line a region.

    Args:
        frame: From :meth:`DecisionLayers.items`.
        ax: Where to draw; None makes a figure.

    Raises:
        ValueError: The frame is empty.
    """
    from matplotlib.ticker import MaxNLocator

    if not len(frame):
        raise ValueError("the frame has no rows to draw; pass a result's items().")
    ax = axes(ax)
    end = int(frame["layer"].max())
    for region, part in frame.groupby("region"):
        values = np.sort(part["layer"].to_numpy(float))
        share = np.arange(1, len(values) + 1) / len(values)
        label = f"region {region} (mean {values.mean():.1f})"
        colour = REGION_COLOURS.get(int(str(region)), "#7F7F7F")
        ax.step([0, *values, end], [0, *share, 1], where="post", color=colour, label=label)
    ax.set_xlabel("layer (residual stream entering block)")
    ax.set_ylabel("share of answers decided")
    ax.set_ylim(0, 1.02)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax
