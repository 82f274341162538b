"""How strongly a model's demonstratives follow distance: slopes, monotonicity and the order of the terms."""

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Shaped

from deixis.analyses.behaviour_scores import rng_of
from deixis.analyses.distributions import ClusterSums, figure_of, interval, option_table
from deixis.analyses.ordinal import fit_ordinal, nominal_explained
from deixis.analyses.style import SERIES, axes, language_name
from deixis.benchmarks.languages import TERMS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

# fmt: off
COLUMNS = (
    "model", "language", "scenes", "slope", "low", "high", "slope_adjusted", "adjusted_low", "adjusted_high", "monotone",
    "monotone_share", "ordinal_slope", "ordinal_explained", "nominal_explained", "best_order", "n", "n_figures",
)
# fmt: on
ADJUSTED_FOR = ("object_row", "object_area")
"""What travels with distance in the standard scenes, and is held fixed in ``slope_adjusted``."""
_IDENTIFIED = 0.01
"""Distance must keep this share of its variance beyond the nuisances, or nothing of it is left to have a slope."""


@dataclass(frozen=True)
class DistanceSensitivity:
    """How the terms of one model move with distance, language by language."""

    model: str
    scenes: str
    """``standard`` or ``decoupled``."""
    _rows: "pd.DataFrame"
    _points: "pd.DataFrame"

    def __repr__(self) -> str:
        return f"DistanceSensitivity({self.model!r}, {self.scenes} scenes; .to_frame(), .points(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per language.

        ``slope``: least squares of the log-odds ``log p(distal) - log p(proximal)`` on distance, per metre, with ``low, high``
        (95 %, figures drawn again); ``slope_adjusted``: the same with image height and apparent size held fixed, NaN where they
        determine the distance, as in the standard scenes. ``monotone``: whether over regions 1, 2, 3 the mean share of the
        proximal term falls at each step and the distal's rises; ``monotone_share``: in how many bootstrap draws.
        ``ordinal_slope``: log-odds of a later term per metre in the cumulative logit fit, ``ordinal_explained`` the share of
        the information about the terms that it accounts for, ``nominal_explained`` what a fit without an order reaches;
        ``best_order``: the order of the terms (up to its reverse) whose ordinal fit is best. ``n`` items of ``n_figures``
        figures.
        """
        return self._rows.copy()

    def points(self) -> "pd.DataFrame":
        """One row per item: ``model language scenes item distance_m log_odds figure``."""
        return self._points.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_distance_sensitivity`."""
        return plot_distance_sensitivity(self.points(), ax)


def distance_sensitivity(run: "Run", *, n_boot: int = 1000, seed: int = 0) -> DistanceSensitivity:
    """Measure how a run's demonstratives follow distance, in each language.

    Args:
        run: With real demonstrative items that have the target ``distance_m``. Scenes count as decoupled if the items have
            the nuisance ``camera_pitch``, which only scenes of varied cameras have.
        n_boot: Bootstrap draws.
        seed: Of the bootstrap.

    Raises:
        ValueError: No such items; one distance only; standard and decoupled scenes in one run.
    """
    import pandas as pd

    table = _shares(run)
    kinds = set(table["scenes"])
    if len(kinds) > 1:
        raise ValueError("the run mixes standard and decoupled scenes; record them as two runs, or the slope is of neither.")
    rows, points = [], []
    for language, part in table.groupby("language", sort=False):
        terms = [term for term in TERMS if part[term].notna().any()]
        if not {"proximal", "distal"} <= set(terms):
            raise ValueError(f"the options of {language} lack a proximal or a distal term; a slope needs both.")
        found = _Language.of(part, terms)
        rows.append({"language": language} | found.measured(n_boot, rng_of(seed, language)))
        points.append(part[["language", "scenes", "item", "distance_m", "figure"]].assign(log_odds=found.log_odds))
    model, scenes = str(run.info["model"]), kinds.pop()
    frame = pd.DataFrame([{"model": model, "scenes": scenes} | row for row in rows], columns=list(COLUMNS))
    every = pd.concat(points, ignore_index=True).assign(model=model)
    columns = ["model", "language", "scenes", "item", "distance_m", "log_odds", "figure"]
    return DistanceSensitivity(model, scenes, frame, every[columns])


def _shares(run: "Run") -> "pd.DataFrame":
    """A row per real demonstrative item: its shares (a column a term), distance, region, nuisances and figure."""
    import pandas as pd

    items = {item.id: item for item in run.items if item.condition == "real" and "distance_m" in item.targets}
    table = option_table(run)
    table = table[table["term"].notna() & table["item"].isin(items.keys())]
    if not len(table):
        raise ValueError(
            "the run has no real items whose options carry terms and whose distance is known; record dx.memory_game()."
        )
    wide = table.pivot_table(index="item", columns="term", values="prob", aggfunc="sum", sort=False)
    facts = pd.DataFrame(
        [
            {
                "item": item.id,
                "language": item.language,
                "scenes": "decoupled" if "camera_pitch" in item.nuisances else "standard",
                "distance_m": float(item.targets["distance_m"]),
                "region": item.targets.get("region", float("nan")),
                "figure": figure_of(item),
            }
            | {name: float(item.nuisances.get(name, float("nan"))) for name in ADJUSTED_FOR}
            for item in items.values()
        ]
    )
    return facts.merge(wide.reindex(columns=list(TERMS)).reset_index(), on="item")


@dataclass(frozen=True)
class _Language:
    """The items of one language."""

    distance: Float[np.ndarray, " item"]
    shares: Float[np.ndarray, "item term"]
    terms: tuple[str, ...]
    regions: Float[np.ndarray, " item"]
    nuisances: Float[np.ndarray, "item nuisance"]
    figures: Shaped[np.ndarray, " item"]

    @classmethod
    def of(cls, part: "pd.DataFrame", terms: list[str]) -> "_Language":
        if part["distance_m"].nunique() < 2:
            raise ValueError(f"all items lie at {part['distance_m'].iloc[0]:g} m; a slope needs two distances or more.")
        return cls(
            distance=part["distance_m"].to_numpy(float),
            shares=part[terms].fillna(0.0).to_numpy(float),
            terms=tuple(terms),
            regions=part["region"].to_numpy(float),
            nuisances=part[list(ADJUSTED_FOR)].to_numpy(float),
            figures=part["figure"].to_numpy(),
        )

    @property
    def log_odds(self) -> Float[np.ndarray, " item"]:
        """Of distal against proximal, in nats."""
        tiny = np.finfo(float).tiny
        logs = np.log(np.maximum(self.shares, tiny))
        return logs[:, self.terms.index("distal")] - logs[:, self.terms.index("proximal")]

    def measured(self, n_boot: int, rng: np.random.Generator) -> dict[str, object]:
        names, figure = np.unique(self.figures.astype(str), return_inverse=True)
        times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=n_boot)
        weights = times[:, figure].astype(float)
        plain, adjusted = self._slopes(np.ones((1, len(figure)))), self._adjusted(np.ones((1, len(figure))))
        slope, held = float(plain[0]), float(adjusted[0])
        low, high = interval(self._slopes(weights), slope)
        held_low, held_high = interval(self._adjusted(weights), held)
        ordinal = fit_ordinal(self.distance, self.shares)
        return {
            "slope": slope, "low": low, "high": high,
            "slope_adjusted": held, "adjusted_low": held_low, "adjusted_high": held_high,
            "monotone": self._monotone(np.ones((1, len(names))), names)[0],
            "monotone_share": float(np.mean(self._monotone(times.astype(float), names))),
            "ordinal_slope": ordinal.slope, "ordinal_explained": ordinal.explained,
            "nominal_explained": nominal_explained(self.distance, self.shares),
            "best_order": self._best_order(),
            "n": len(figure), "n_figures": len(names),
        }  # fmt: skip

    def _slopes(self, weights: Float[np.ndarray, "draw item"]) -> Float[np.ndarray, " draw"]:
        """Weighted least squares of the log-odds on distance: covariance over variance."""
        total = weights.sum(axis=1)
        x, y = self.distance, self.log_odds
        mean_x, mean_y = weights @ x / total, weights @ y / total
        variance = weights @ x**2 / total - mean_x**2
        covariance = weights @ (x * y) / total - mean_x * mean_y
        return np.divide(covariance, variance, out=np.full(len(total), np.nan), where=variance > 1e-12)

    def _adjusted(self, weights: Float[np.ndarray, "draw item"]) -> Float[np.ndarray, " draw"]:
        """The slope beyond the nuisances: of the log-odds on what they leave of distance (Frisch and Waugh 1933)."""
        out = np.full(len(weights), np.nan)
        if not np.isfinite(self.nuisances).all():
            return out
        # Their second powers too: image height falls with distance along a curve.
        columns = np.concatenate([np.ones((len(self.distance), 1)), self.nuisances, self.nuisances**2], axis=1)
        scaled = columns / np.maximum(np.abs(columns).max(axis=0), 1e-12)
        for number, w in enumerate(weights):
            root = np.sqrt(w)[:, None]
            x = self.distance - scaled @ np.linalg.lstsq(root * scaled, root[:, 0] * self.distance, rcond=None)[0]
            mean = w @ self.distance / w.sum()
            if w @ x**2 < _IDENTIFIED * (w @ (self.distance - mean) ** 2):
                continue
            out[number] = (w @ (x * self.log_odds)) / (w @ x**2)
        return out

    def _monotone(self, times: Float[np.ndarray, "draw figure"], names: Shaped[np.ndarray, " figure"]) -> list[bool]:
        """Whether, region by region, the proximal share falls and the distal share rises."""
        ends = self.shares[:, [self.terms.index("proximal"), self.terms.index("distal")]]
        regions = sorted(set(self.regions[np.isfinite(self.regions)]))
        if len(regions) < 2:
            return [False] * len(times)
        means = np.stack(
            [ClusterSums.of(ends[self.regions == r], self.figures[self.regions == r], tuple(names)).means(times) for r in regions]
        )
        steps = np.diff(means, axis=0)
        falls, rises = (steps[:, :, 0] < 0).all(axis=0), (steps[:, :, 1] > 0).all(axis=0)
        return np.logical_and(falls, rises).tolist()

    def _best_order(self) -> str:
        """The order whose cumulative logit fits best; an order and its reverse are one, written with proximal before distal."""
        if len(self.terms) < 3:
            return " < ".join(self.terms)
        near, far = self.terms.index("proximal"), self.terms.index("distal")
        orders = [o for o in permutations(range(len(self.terms))) if o.index(near) < o.index(far)]
        best = min(orders, key=lambda order: fit_ordinal(self.distance, self.shares[:, list(order)]).deviance)
        return " < ".join(self.terms[k] for k in best)


def plot_distance_sensitivity(points: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """Log-odds of distal against proximal over distance: a point an item, a line a language (or model, or kind of scenes).

    Args:
        points: From :meth:`DistanceSensitivity.points`, or several of them concatenated.
        ax: Where to draw; None makes a figure.

    Raises:
        ValueError: The frame is empty.
    """
    if not len(points):
        raise ValueError("the frame has no rows to draw; pass a result's points().")
    ax = axes(ax)
    varying = [name for name in ("model", "scenes", "language") if points[name].nunique() > 1] or ["language"]
    for number, (_, part) in enumerate(points.groupby(["model", "scenes", "language"], sort=False)):
        first = part.iloc[0]
        label = ", ".join(language_name(first[name]) if name == "language" else str(first[name]) for name in varying)
        colour = SERIES[number % len(SERIES)]
        ax.plot(part["distance_m"], part["log_odds"], ".", color=colour, markersize=3, alpha=0.35)
        slope, base = np.polyfit(part["distance_m"], part["log_odds"], 1)
        ends = np.array([part["distance_m"].min(), part["distance_m"].max()])
        ax.plot(ends, slope * ends + base, color=colour, label=f"{label}: {slope:+.2f} a metre")
    ax.axhline(0, color="#9A9A9A", linewidth=0.8, linestyle=":")
    ax.set_xlabel("distance (m)")
    ax.set_ylabel("log-odds of distal against proximal (nats)")
    ax.legend(frameon=False, fontsize="small")
    return ax
