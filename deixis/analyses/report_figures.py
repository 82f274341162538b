"""The report's figures: small panels that stand side by side or below each other, as the page is wide."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from deixis.analyses.behaviour import plot_behaviour
from deixis.analyses.layer_sweep import plot_layer_sweep
from deixis.analyses.logit_lens import plot_logit_lens
from deixis.analyses.style import language_name
from deixis.analyses.svg import Panel, panel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_METRICS = {"r2": "R2", "balanced_accuracy": "balanced accuracy"}


def sweep_panels(frame: "pd.DataFrame") -> list[Panel]:
    """One panel for each target and role, all models in it; errors such as MAE are left to the table."""
    if not len(frame):
        return []
    shown = frame[frame["metric"].isin(_METRICS)]
    panels = []
    for number, ((target, role, metric), rows) in enumerate(shown.groupby(["target", "role", "metric"], sort=False)):
        tops = "; ".join(
            f"{model} reaches {top.score:.2f} at layer {top.layer}"
            for model, part in rows.groupby("model", sort=False)
            for top in part.nlargest(1, "score").itertuples()
        )
        title = f"{target} at the {role} token{'s' if role != 'answer' else ''}"
        draw = titled(plot_layer_sweep, plain(rows), title)
        panels.append(panel(draw, f"{title}, {_METRICS[str(metric)]} by layer: {tops}.", f"sweep{number}"))
    return panels


def lens_panels(frame: "pd.DataFrame") -> list[Panel]:
    """One panel for each model: the share of the proximal term by layer, a line for each region, over all languages."""
    panels = []
    proximal = frame[frame["term"] == "proximal"] if len(frame) else frame
    for number, (model, rows) in enumerate(proximal.groupby("model", sort=False) if len(frame) else ()):
        last = rows[rows["layer"] == rows["layer"].max()].groupby("region")["prob"].median()
        ends = ", ".join(f"{prob:.2f} in region {region}" for region, prob in last.items())
        alt = f"{model}: median share of the proximal term by layer, ending at {ends}."
        regions = dict(zip(rows["item"], rows["region"], strict=True))
        draw = titled(partial(plot_logit_lens, regions=regions), plain(rows), str(plain(rows)["model"].iloc[0]))
        panels.append(panel(draw, alt, f"lens{number}"))
    return panels


def behaviour_panels(frame: "pd.DataFrame") -> list[Panel]:
    """One panel for each language: the terms of every model by region, the reference at the bottom."""
    real = frame[frame["condition"] == "real"]
    models = real["model"].nunique() + real["reference"].notna().any()
    panels = []
    for number, (language, rows) in enumerate(real.groupby("language", sort=False)):
        proximal = rows[rows["term"] == "proximal"]
        said = "; ".join(
            f"{model} " + ", ".join(f"{share:.0%}" for share in part.sort_values("region")["proportion"])
            for model, part in proximal.groupby("model", sort=False)
        )
        alt = f"{language_name(str(language))}: share of the proximal term in regions 1, 2, 3: {said}."
        draw = titled(plot_behaviour, plain(rows), None)
        panels.append(panel(draw, alt, f"terms{number}", height=0.9 + 0.85 * models))
    return panels


def titled(plot: Callable[..., "Axes"], rows: "pd.DataFrame", title: str | None) -> Callable[["Axes"], None]:
    """What draws a plot with a title over it and its legend below."""

    def draw(ax: "Axes") -> None:
        plot(rows, ax=ax)
        if title is not None:
            ax.set_title(title)
        _legend_below(ax)

    return draw


def _legend_below(ax: "Axes") -> None:
    """Move the legend under the axis, where it hides no curve."""
    legend = ax.get_legend()
    if legend is None:
        return
    labels = [text.get_text() for text in legend.get_texts()]
    handles = legend.legend_handles
    # Three columns of long labels are wider than the panel.
    columns = 2 if max(map(len, labels), default=0) > 16 else 3
    place = {"loc": "outside lower center", "ncols": min(columns, len(labels)), "frameon": False}
    legend.remove()
    ax.figure.legend([h for h in handles if h is not None], labels, **place)


def plain(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Names as they are: matplotlib would take what stands between dollar signs for a formula."""
    return frame.assign(model=frame["model"].astype(str).str.replace("$", r"\$", regex=False))
