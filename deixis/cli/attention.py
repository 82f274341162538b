"""Where attention went, and whether it has collapsed."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deixis.cli.app import app
from deixis.cli.options import RunFolder, Written
from deixis.cli.output import answered
from deixis.console import Outcome, command, records, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.analyses.attention_summary import AttentionSummary

_LAYERS = {
    "layer": "layer",
    "entropy": "entropy",
    "bos_mass": "first token",
    "sink_mass": "sinks",
    "image_mass": "image",
    "object_mass": "object",
    "object_lift": "object lift",
    "collapsed": "collapsed heads",
}
_HEADS = {"layer": "layer", "head": "head", "kind": "kind", "index": "index", "low": "low", "high": "high"}
_HEADS |= {"matched_lift": "object / same places", "image_mass": "image", "image_mass_blank": "blank image"}
NO_PROOF = "High attention is no proof of use: what a head looks at need not reach the answer."


@command(app, "attention")
def attention(
    run: RunFolder,
    vision: Annotated[bool, typer.Option("--vision", help="The vision tower's attention, not the decoder's.")] = False,
    query: Annotated[str | None, typer.Option(help="Whose queries: answer, text, ...", show_default="first recorded")] = None,
    statistic: Annotated[str, typer.Option(help="Which one a figure shows, layer by head; 'kind' for the collapse.")] = "kind",
    heads: Annotated[bool, typer.Option("--heads", help="Every head, not only those that have collapsed.")] = False,
    out: Written = None,
) -> Outcome:
    """Say where attention went, layer by layer, and which heads have collapsed onto what."""
    import deixis as dx

    site = "vision_attention" if vision else "attention"
    opened = dx.open_run(run)
    summary = dx.attention_summary(opened, site=site)
    found = dx.attention_collapse(opened, site=site, query=query)
    frame = found.to_frame()
    means = _of_layers(summary, found.query, frame)
    listed = frame if heads else frame[frame["kind"] != "none"]
    counts = ", ".join(f"{n} {kind}" for kind, n in found.counts().items())
    shown: tuple[Any, ...] = (table(means, _there(means, _LAYERS)), "", f"{found.query} queries, {len(frame)} heads: {counts}.")
    shown += (table(listed, _there(listed, _HEADS)),) if len(listed) else ()
    sinks = str(summary.sinks)
    shown += (f"{sinks[0].upper()}{sinks[1:]}.",) if summary.sinks is not None else ()
    data = {"layers": records(means), "heads": records(frame), "likeness": records(found.likeness())}
    data |= {"counts": found.counts(), "query": found.query, "sinks": str(summary.sinks), "notes": list(found.notes)}
    return answered(_Shown(summary, frame, found.query, statistic), out, (*shown, *found.notes, NO_PROOF), data)


def _of_layers(summary: "AttentionSummary", query: str, heads: "pd.DataFrame") -> "pd.DataFrame":
    means = summary.mean(by=("layer", "query"))
    means = means[means["query"] == query]
    collapsed = heads[heads["kind"] != "none"].groupby("layer").size()
    total = heads.groupby("layer").size()
    return means.assign(collapsed=[f"{collapsed.get(layer, 0)} of {total.get(layer, 0)}" for layer in means["layer"]])


def _there(frame: "pd.DataFrame", headings: dict[str, str]) -> dict[str, str]:
    return {name: heading for name, heading in headings.items() if name in frame and frame[name].notna().any()}


class _Shown:
    """What ``--out`` writes: all means as a table, one statistic as a figure."""

    def __init__(self, summary: "AttentionSummary", heads: "pd.DataFrame", query: str, statistic: str) -> None:
        means = summary.mean(by=("layer", "head", "query"))
        self._means = means[means["query"] == query].merge(
            heads.drop(columns=[name for name in heads if name in means and name not in ("layer", "head")]), on=["layer", "head"]
        )
        self._heads, self._statistic = heads, statistic

    def to_frame(self) -> "pd.DataFrame":
        """One row per layer and head."""
        return self._means

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Layer by head."""
        from deixis.analyses import plot_attention_collapse, plot_attention_heads

        if self._statistic == "kind":
            return plot_attention_collapse(self._heads, ax=ax)
        return plot_attention_heads(self._means, self._statistic, ax=ax)
