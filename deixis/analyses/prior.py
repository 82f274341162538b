"""How much of what a model says is the word's own prior: its answers to a real picture against a grey one and against none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from deixis.analyses.behaviour import PRIOR_FLOOR, corrected_for_prior
from deixis.analyses.behaviour_scores import Cell, cells_of, rng_of
from deixis.analyses.distributions import interval, option_table
from deixis.analyses.style import SERIES, axes, language_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

PRIORS = ("blank", "black", "text_only")
"""Conditions that show nothing of the scene, so that what is said there is the prior."""
COLUMNS = (
    "model",
    "language",
    "prior",
    "region",
    "term",
    "proportion",
    "prior_share",
    "corrected",
    "low",
    "high",
    "n",
    "n_prior",
)
SHARES_COLUMNS = ("model", "language", "prior", "explained", "low", "high", "between_regions", "spread", "n", "n_prior")


@dataclass(frozen=True)
class PriorCorrection:
    """A model's distributions beside those of its priors."""

    model: str
    priors: tuple[str, ...]
    """Conditions of the run that serve as priors."""
    _rows: "pd.DataFrame"
    _shares: "pd.DataFrame"

    def __repr__(self) -> str:
        return f"PriorCorrection({self.model!r}, priors {', '.join(self.priors)}; .to_frame(), .explained(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per language, prior, region and term.

        ``proportion`` of the real items; ``prior_share`` in the condition ``prior``, over all of its items; ``corrected``, with
        ``low, high`` (95 %, figures drawn again): the log-odds of the real answers less the log-odds of the prior, as a
        distribution, with no prior share below :data:`~deixis.analyses.behaviour.PRIOR_FLOOR`. A diagnostic and never ranked: a
        model that is exactly right is made wrong by it, since its prior is right on average.
        """
        return self._rows.copy()

    def explained(self) -> "pd.DataFrame":
        """One row per language and prior: how much of the answers' departure from uniform the prior accounts for.

        ``spread``: mean over items of ``KL(answer || uniform)``, in nats. ``explained``: ``1 - mean KL(answer || prior) /
        spread`` (the R2 of Cameron and Windmeijer 1997): 1 if every answer is the prior, 0 if the prior tells no more than
        uniform, negative if it misleads; with ``low, high`` (95 %, figures drawn again). ``between_regions``: the share of the
        spread that lies between the regions' mean distributions, which no prior can account for: the spread is exactly the
        overall mean's departure from uniform, plus this, plus what varies within regions.
        """
        return self._shares.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_prior_correction`."""
        return plot_prior_correction(self.explained(), ax)


def prior_correction(run: "Run", priors: Sequence[str] | None = None, *, n_boot: int = 1000, seed: int = 0) -> PriorCorrection:
    """Compare a run's real answers with its answers to nothing.

    Args:
        run: With demonstrative items in the condition ``real`` and in at least one of :data:`PRIORS`.
        priors: Conditions to take as priors; None for those of :data:`PRIORS` that the run holds.
        n_boot: Bootstrap draws.
        seed: Of the bootstrap.

    Raises:
        ValueError: No real items with terms, or no items of a prior.
    """
    import pandas as pd

    table = option_table(run)
    cells = list(cells_of(table[table["term"].notna() & table["region"].notna()]))
    held = {cell.condition for cell in cells}
    wanted = tuple(priors) if priors is not None else tuple(name for name in PRIORS if name in held)
    lacking = next((name for name in wanted if name not in held), None)
    if "real" not in held or not wanted or lacking:
        needed = repr(lacking) if lacking else f"one of {', '.join(PRIORS)}"
        raise ValueError(
            f"the run holds demonstrative items in the conditions: {', '.join(sorted(held)) or 'none'}; a prior correction needs "
            f"'real' and {needed}, such as items + items.with_condition('blank')."
        )
    rows, shares = [], []
    for language in dict.fromkeys(cell.language for cell in cells):
        real = [cell for cell in cells if cell.language == language and cell.condition == "real"]
        for name in wanted:
            nothing = [cell.shares for cell in cells if cell.language == language and cell.condition == name]
            if real and nothing:
                prior = np.concatenate(nothing)
                rows += _corrected(real, prior, language, name, n_boot, seed)
                shares.append(_explained(real, prior, language, name, n_boot, seed))
    model = str(run.info["model"])
    return PriorCorrection(
        model,
        wanted,
        pd.DataFrame([{"model": model} | row for row in rows], columns=list(COLUMNS)),
        pd.DataFrame([{"model": model} | row for row in shares], columns=list(SHARES_COLUMNS)),
    )


def _corrected(
    real: list[Cell], prior: Float[np.ndarray, "item term"], language: str, name: str, n_boot: int, seed: int
) -> list[dict[str, object]]:
    rows = []
    mean = prior.mean(axis=0)
    for cell in real:
        corrected = corrected_for_prior(cell.mean, mean)
        weights = cell.draws(n_boot, seed) / np.maximum(mean, PRIOR_FLOOR)
        draws = weights / weights.sum(axis=1, keepdims=True)
        for k, term in enumerate(cell.terms):
            low, high = interval(draws[:, k], float(corrected[k]))
            rows.append(
                {"language": language, "prior": name, "region": cell.region, "term": term, "proportion": cell.mean[k]}
                | {"prior_share": mean[k], "corrected": corrected[k], "low": low, "high": high}
                | {"n": len(cell.shares), "n_prior": len(prior)}
            )
    return rows


def _explained(
    real: list[Cell], prior: Float[np.ndarray, "item term"], language: str, name: str, n_boot: int, seed: int
) -> dict[str, object]:
    shares = np.concatenate([cell.shares for cell in real])
    region = np.concatenate([np.full(len(cell.shares), cell.region) for cell in real])
    names, figure = np.unique(np.concatenate([cell.figures for cell in real]).astype(str), return_inverse=True)
    k = shares.shape[1]
    floored = np.maximum(prior.mean(axis=0), PRIOR_FLOOR)
    uniform = np.full(k, 1 / k)
    spread, missed = divergence(shares, uniform), divergence(shares, floored / floored.sum())
    times = rng_of(seed, language, name).multinomial(len(names), np.full(len(names), 1 / len(names)), size=n_boot)[:, figure]
    if spread.mean() <= 1e-9:
        explained, between, low, high = (float("nan"),) * 4
    else:
        explained = float(1 - missed.mean() / spread.mean())
        low, high = interval(1 - (times @ missed) / np.maximum(times @ spread, 1e-300), explained)
        means = np.stack([shares[region == r].mean(axis=0) for r in region])
        between = float(divergence(means, shares.mean(axis=0)).mean() / spread.mean())
    return {
        "language": language, "prior": name, "explained": explained, "low": low, "high": high, "between_regions": between,
        "spread": float(spread.mean()), "n": len(shares), "n_prior": len(prior),
    }  # fmt: skip


def divergence(p: Float[np.ndarray, "item term"], q: Float[np.ndarray, " term"]) -> Float[np.ndarray, " item"]:
    """Kullback-Leibler divergence of each row from ``q``, in nats."""
    from scipy.special import rel_entr

    return np.asarray(rel_entr(p, q).sum(axis=1))


def plot_prior_correction(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """How much of each language's answers a prior explains, with intervals, beside what lies between regions.

    Args:
        frame: From :meth:`PriorCorrection.explained`, or several of them concatenated.
        ax: Where to draw; None makes a figure.

    Raises:
        ValueError: The frame is empty.
    """
    if not len(frame):
        raise ValueError("the frame has no rows to draw; pass a result's explained().")
    rows = list(frame.groupby(["model", "language"], sort=False))
    priors = list(dict.fromkeys(frame["prior"]))
    ax = axes(ax, 5.2, 0.9 + 0.28 * len(rows) * (len(priors) + 1) / 2)
    several = frame["model"].nunique() > 1
    for place, (_, part) in enumerate(rows):
        for number, name in enumerate(priors):
            found = part[part["prior"] == name]
            y = float(place + (number - (len(priors) - 1) / 2) * 0.22)
            for row in found.itertuples():
                ax.plot([row.low, row.high], [y, y], color=SERIES[number], linewidth=1.4)
                ax.plot([row.explained], [y], "o", color=SERIES[number], markersize=4, label=name if place == 0 else None)
        y = float(place + len(priors) / 2 * 0.22 + 0.08)
        ax.plot(
            [part["between_regions"].iloc[0]],
            [y],
            "D",
            color="#6A6A6A",
            markersize=3.5,
            label=None if place else "between regions",
        )
    labels = [f"{model}, {language_name(str(code))}" if several else language_name(str(code)) for (model, code), _ in rows]
    ax.set_yticks(range(len(rows)), labels)
    ax.invert_yaxis()
    ax.axvline(0, color="#9A9A9A", linewidth=0.8, linestyle=":")
    ax.set_xlim(right=1.04)
    ax.set_xlabel("share of the answers' departure from uniform")
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), title="explained by")
    return ax
