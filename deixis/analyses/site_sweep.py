"""One target on its way through the model: vision tower, merger, language model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deixis.analyses.layer_sweep import layer_sweep
from deixis.analyses.style import MUTED, SERIES, axes
from deixis.analyses.sweep_results import LayerSweep
from deixis.probes.scores import ERRORS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

WAY = ("vision", "merger_in", "merger_out", "resid")
"""The sites that a picture passes, in order."""
_NAMES = {"vision": "vision block", "merger_in": "merger", "merger_out": "merger", "resid": "decoder layer"}


@dataclass(frozen=True, kw_only=True)
class SiteSweep:
    """A probe's scores at every layer of several sites."""

    sweeps: tuple[LayerSweep, ...]
    """One per site, in the order in which a picture passes them."""

    def __repr__(self) -> str:
        first = self.sweeps[0]
        sites = ", ".join(sweep.site for sweep in self.sweeps)
        return f"SiteSweep({first.model!r}, {first.target}, role {first.role}, {sites}; .to_frame(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """The sites' :meth:`LayerSweep.to_frame` below each other; ``p_value`` is corrected for the layers of its own site."""
        import pandas as pd

        return pd.concat([sweep.to_frame() for sweep in self.sweeps], ignore_index=True)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_site_sweep`."""
        return plot_site_sweep(self.to_frame(), ax)


def site_sweep(run: "Run", target: str, role: str = "object", sites: Sequence[str] | None = None, **settings: Any) -> SiteSweep:
    """Decode a target from every layer of every site that a picture passes: is it lost, and where.

    The same folds, probe and controls at all sites. The merger changes the number of tokens and what they span; a vector is the
    mean over the role's tokens at each site, so that scores compare what a linear probe can read there, not what is there.

    Args:
        run: What :func:`deixis.record` returns, recorded with ``sites=`` these.
        target: As for :func:`deixis.layer_sweep`.
        role: ``object``, ``image`` or ``background``: the vision tower has no other tokens.
        sites: None for those of :data:`WAY` that were recorded.
        settings: Further arguments of :func:`deixis.layer_sweep`, such as ``controls``, ``untrained``, ``language``.

    Raises:
        ValueError: The run holds none of the sites; what ``layer_sweep`` refuses.
    """
    chosen = tuple(site for site in WAY if site in run.sites) if sites is None else tuple(sites)
    missing = [site for site in chosen if site not in run.sites]
    if missing or not chosen:
        raise ValueError(
            f"sites={list(chosen)} must be some of those recorded: {', '.join(map(repr, run.sites))}; "
            "record the run again with sites= all of them."
        )
    return SiteSweep(sweeps=tuple(layer_sweep(run, target, role=role, site=site, **settings) for site in chosen))


def plot_site_sweep(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """Scores along the way of a picture: one curve per model and language, a gap between sites.

    Args:
        frame: From :meth:`SiteSweep.to_frame`, or several of them below each other. Its first metric is drawn.
        ax: Where to draw; None makes a figure.

    Raises:
        ValueError: The frame is empty.
    """
    if not len(frame):
        raise ValueError("the frame has no rows to draw; pass a result's to_frame().")
    rows = frame[frame["metric"] == frame["metric"].iloc[0]]
    places = list(dict.fromkeys(zip(rows["site"], rows["layer"], strict=True)))
    ax = axes(ax, width=6.4, height=3.6)
    for number, ((model, language), curve) in enumerate(rows.groupby(["model", "language"], sort=False)):
        colour = SERIES[number % len(SERIES)]
        for part, (site, own) in enumerate(curve.groupby("site", sort=False)):
            x = [places.index((str(site), layer)) for layer in own["layer"]]
            name = str(model) if rows["language"].nunique() == 1 else f"{model}, {language}"
            label = name if part == 0 else None
            ax.plot(x, own["score"], color=colour, marker="o", markersize=4, linewidth=2, label=label)
            if own["low"].notna().any():
                ax.vlines(x, own["low"], own["high"], color=colour, linewidth=1)
            if own["untrained"].notna().any():
                named = "untrained model" if number == part == 0 else None
                ax.plot(x, own["untrained"], color=MUTED, linestyle="--", marker=".", linewidth=1.2, label=named)
    metric, chance = str(rows["metric"].iloc[0]), float(rows["chance"].iloc[0])
    ax.axhline(chance, color=MUTED, linestyle=":", linewidth=1.2, label="training mean" if metric in ERRORS else "chance")
    _name_sites(ax, places)
    ax.set_ylabel(f"{metric.replace('_', ' ').replace('r2', '$R^2$')}, {rows['target'].iloc[0]}")
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def _name_sites(ax: "Axes", places: list[tuple[str, int]]) -> None:
    """Layers' numbers on the axis, the sites' names below them; the two ends of the merger share a name."""
    names = [_NAMES.get(site, site) for site, _ in places]
    ends = {"merger_in": "in", "merger_out": "out"}
    ax.set_xticks(range(len(places)), [ends.get(site, str(layer)) for site, layer in places])
    for name in dict.fromkeys(names):
        first, count = names.index(name), names.count(name)
        middle = first + (count - 1) / 2
        ax.annotate(
            name, (middle, 0), (0, -18), ("data", "axes fraction"), "offset points", ha="center", va="top", fontsize="small"
        )
        if first:
            ax.axvline(first - 0.5, color="#DDDDDD", linewidth=0.8, zorder=0)
