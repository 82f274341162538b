"""The report's section about attention: where it went, whether it has collapsed, and what that does not show."""

from functools import partial
from typing import TYPE_CHECKING, Any

from deixis.analyses.attention_map import AttentionMap, attention_map
from deixis.analyses.attention_plots import (
    plot_attention_collapse,
    plot_attention_distance,
    plot_attention_heads,
    plot_object_lift,
)
from deixis.analyses.attention_summary import AttentionSummary, attention_summary
from deixis.analyses.collapse import AttentionCollapse, attention_collapse
from deixis.analyses.findings import Findings
from deixis.analyses.report_figures import plain, titled
from deixis.analyses.report_parts import Figure, Section
from deixis.analyses.report_tables import Grid, grid, spans
from deixis.analyses.svg import Panel, panel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

NO_PROOF = (
    "High attention is no proof of use, and low attention none of disuse: what a head looks at need not reach the answer, and "
    "what reaches it may come by way of other tokens. Whether it matters is seen by knocking the head's edges out."
)
_HEADINGS = {
    "model": "model",
    "layer": "layer",
    "head": "head",
    "kind": "kind",
    "index": "index",
    "interval": "interval",
    "image_mass": "on the image",
    "image_mass_blank": "on a blank one",
    "matched_lift": "object / same places",
    "matched_span": "its interval",
    "image_p_value": "follows picture, p",
}
_CAPTION = (
    "Heads of the decoder, the answer position's weights: the collapsed ones, then those with the highest ratio of weight on the "
    "object to weight on the same places in scenes whose object lies elsewhere (1: the place is looked at, not the object). The "
    "index of a head that has not collapsed is that of the kind that comes nearest. The p-value asks whether maps of one picture "
    "under two questions are related."
)
_SHOWN = 12
"""Rows of the table."""


def attention_section(findings: Findings) -> Section | None:
    """Heat maps, the best head on a scene, lift by language and distance; None where no run kept attention."""
    runs = [run for run in findings.runs if isinstance(run.settings.get("attention"), dict)]
    if not runs:
        return None
    notes = [NO_PROOF]
    notes += [f"{r.settings['model']} was recorded without attention." for r in findings.runs if r not in runs]
    found: list[tuple[Run, AttentionSummary, AttentionCollapse]] = []
    for run in runs:
        try:
            found.append((run, attention_summary(run), attention_collapse(run)))
        except ValueError as error:  # too few scenes
            notes.append(f"No account of attention for {run.settings['model']}: {error}")
    if not found:
        return Section(heading="Attention", notes=tuple(notes))
    notes += [f"{collapse.model}: {note}" for _, _, collapse in found for note in collapse.notes]
    return Section(
        heading="Attention",
        lead="\n\n".join(_sentence(summary, collapse) for _, summary, collapse in found),
        figures=tuple(_figures(found)),
        grids=(_table([collapse for _, _, collapse in found]),),
        notes=tuple(notes),
    )


def _sentence(summary: AttentionSummary, collapse: AttentionCollapse) -> str:
    counts, total = collapse.counts(), sum(collapse.counts().values())
    fallen = [f"{n} as {kind}" for kind, n in counts.items() if n and kind != "none"]
    said = f"{', '.join(fallen)}" if fallen else "none"
    best = _best(collapse)
    sinks = f" Visual sinks: {summary.sinks}." if summary.sinks is not None else ""
    looks = (
        f" Head {best['head']} of layer {best['layer']} puts {best['matched_lift']:.1f} times as much weight on the object as on "
        "the same places in other scenes."
        if best is not None
        else ""
    )
    return f"{collapse.model}: of {total} heads, {said} collapsed at the {collapse.query} position.{looks}{sinks}"


def _best(collapse: AttentionCollapse) -> Any | None:
    """The head that favours the object most over the same places, by the lower end of its interval."""
    frame = collapse.to_frame()
    looks = frame[(frame["image_mass"] >= collapse.rule.image_mass) & frame["matched_low"].notna()]
    return None if not len(looks) else looks.sort_values("matched_low").iloc[-1]


def _table(collapses: list[AttentionCollapse]) -> Grid:
    import pandas as pd

    each = max(3, _SHOWN // len(collapses))
    parts = []
    for collapse in collapses:
        frame = collapse.to_frame()
        frame = frame.assign(fallen=frame["kind"] != "none").sort_values(["fallen", "matched_low"], ascending=False)
        parts.append(frame.head(each))
    rows = pd.concat(parts, ignore_index=True)
    matched = rows[["matched_low", "matched_high"]].set_axis(["low", "high"], axis=1)
    return grid(rows.assign(interval=spans(rows), matched_span=spans(matched)), _HEADINGS, _CAPTION)


def _figures(found: "list[tuple[Run, AttentionSummary, AttentionCollapse]]") -> list[Figure]:
    heads, kinds, maps, languages, distances = [], [], [], [], []
    for number, (run, summary, collapse) in enumerate(found):
        frame, model = collapse.to_frame(), collapse.model
        heads.append(_heads_panel(summary, model, number))
        if (frame["kind"] != "none").any():
            kinds.append(_kinds_panel(frame, model, number))
        maps += _map_panels(run, collapse, number)
        languages.append(_languages_panel(summary, model, number))
        distances += _distance_panels(summary, model, number)
    shown = (heads, kinds, maps, languages, distances)
    return [Figure(tuple(panels), caption) for panels, caption in zip(shown, _CAPTIONS, strict=True) if panels]


_CAPTIONS = (
    "The weight that the answer position puts on the object, over its share if it looked everywhere alike, by layer and head.",
    "Collapse of each head, with its index in hundredths.",
    "The head that favours the object most, on one scene; the object's box is drawn in.",
    "The object's lift by layer and language, mean over heads.",
    "The object's lift against its distance; bands are intervals over scenes.",
)


def escaped(name: str) -> str:
    """A title as it is: matplotlib would take what stands between dollar signs for a formula."""
    return name.replace("$", r"\$")


def _draw_map(found: AttentionMap, title: str, ax: "Axes") -> None:
    found.plot(ax)
    ax.set_title(escaped(title))


def _heads_panel(summary: AttentionSummary, model: str, number: int) -> Panel:
    means = summary.mean()
    tops = means.dropna(subset=["object_lift"]).nlargest(1, "object_lift")
    most = "".join(f"; the highest is {top.object_lift:.1f} at layer {top.layer}, head {top.head}" for top in tops.itertuples())
    alt = f"{model}: lift of the object by layer and head{most}."
    return panel(titled(plot_attention_heads, plain(means), escaped(model)), alt, f"attention-heads{number}")


def _kinds_panel(frame: "pd.DataFrame", model: str, number: int) -> Panel:
    counts = ", ".join(f"{n} {kind}" for kind, n in frame["kind"].value_counts().items())
    draw = titled(plot_attention_collapse, plain(frame), escaped(model))
    return panel(draw, f"{model}: kind of collapse by layer and head: {counts}.", f"attention-kinds{number}")


def _map_panels(run: "Run", collapse: AttentionCollapse, number: int) -> list[Panel]:
    best = _best(collapse)
    scene = next((item for item in run.items if item.condition == "real" and item.objects), None)
    if best is None or scene is None:
        return []
    found = attention_map(run, scene.id, int(best["layer"]), int(best["head"]), picture=scene.objects[0].image)
    inside = found.weights[found.marked].sum() / found.weights.sum()
    title = f"{collapse.model}, layer {found.layer}, head {found.head}"
    alt = f"{title}: {inside:.0%} of its weight on the picture lies on tokens of the object's box."
    return [panel(partial(_draw_map, found, title), alt, f"attention-map{number}")]


def _languages_panel(summary: AttentionSummary, model: str, number: int) -> Panel:
    means = summary.mean(by=("layer", "language"))
    tops = means.loc[means.groupby("language")["object_lift"].idxmax().dropna()]
    said = "; ".join(f"{row.language} {row.object_lift:.1f} at layer {row.layer}" for row in tops.itertuples())
    draw = titled(plot_object_lift, plain(means), escaped(model))
    return panel(draw, f"{model}: lift of the object by layer, highest in {said}.", f"attention-languages{number}")


def _distance_panels(summary: AttentionSummary, model: str, number: int) -> list[Panel]:
    try:
        frame = summary.by_distance()
    except ValueError:  # items without a distance
        return []
    ends = frame.groupby("distance_m")["mean"].mean()
    said = ", ".join(f"{mean:.1f} at {distance:g} m" for distance, mean in ends.items())
    draw = titled(plot_attention_distance, plain(frame), escaped(model))
    return [panel(draw, f"{model}: lift of the object over all layers: {said}.", f"attention-distance{number}")]
