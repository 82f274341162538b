"""The report's section about edits: where a patch changes the answer, and how the answer follows a probe's direction."""

from typing import TYPE_CHECKING, Any

from deixis.analyses.findings import Findings
from deixis.analyses.patch_sweep import controls_said, plot_patch_sweep
from deixis.analyses.report_figures import titled
from deixis.analyses.report_parts import Figure, Section
from deixis.analyses.report_tables import grid, shown, spans
from deixis.analyses.steer_sweep import plot_steer_sweep
from deixis.analyses.style import language_name
from deixis.analyses.svg import Panel, panel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.analyses.patch_sweep import PatchSweep
    from deixis.analyses.steer_sweep import SteerSweep

_PATCHES = (
    "What a far scene's answer gains of a near scene's when the near one's activations are put in: 1 is the near "
    "scene's answer, 0 its own. The object's tokens are those that show it in either picture. Mean over languages. "
    "Below each title its "
    "controls: the whole block of image tokens at all layers, and patches of another colour at the same distance."
)
_STEERS = (
    "How the answer follows when activations are moved along the direction of a probe, in the probe's unit, beside "
    "random ones and the difference of two colours, all equally long. Band: 95 % over scenes."
)
_LIMITS = (
    "A patch shows that what it carries is enough to move the answer at that place, not that the model always goes that way.",
    "Where a direction moves nothing the model may hold the same quantity in another form than the probe reads.",
)


def edits_section(findings: Findings) -> Section | None:
    """Heat maps, dose and response, and the patches' numbers; None where no edits were made."""
    if not findings.patches and not findings.steers:
        return None
    figures = []
    if findings.patches:
        panels = tuple(p for number, sweep in enumerate(findings.patches) for p in _heat_maps(sweep, number))
        figures.append(Figure(panels, _PATCHES))
    if findings.steers:
        panels = tuple(_curve(sweep.to_frame(), number) for number, sweep in enumerate(findings.steers))
        figures.append(Figure(panels, _STEERS))
    grids = (_grid(findings),) if findings.patches else ()
    without = [name for name in findings.models if name not in {sweep.model for sweep in findings.patches}]
    notes = [*_LIMITS, *(f"{name} was not patched." for name in without)]
    return Section(heading="What edits do", lead=_lead(findings), figures=tuple(figures), grids=tuple(grids), notes=tuple(notes))


def _heat_maps(sweep: "PatchSweep", number: int) -> list[Panel]:
    """One map for each question that was asked."""
    frame = sweep.to_frame()
    panels = []
    for task, rows in frame.groupby("task", sort=False):
        metric = "restored" if rows[rows["metric"] == "restored"]["effect"].notna().any() else "js_distance"
        main = rows[(rows["metric"] == metric) & (rows["contrast"] == "distance") & rows["layer"].notna()]
        means = main.groupby(["role", "layer"], sort=False)["effect"].mean()
        role, layer = list(means.index)[int(means.to_numpy(float).argmax())]
        what = "restores most" if metric == "restored" else "moves the answer most"
        alt = f"{sweep.model}, {task}: a patch of the {role} tokens at layer {layer} {what}, {means.max():.2f}."

        def draw(ax: "Axes", rows: "pd.DataFrame" = rows, metric: str = metric, task: str = str(task)) -> None:
            plot_patch_sweep(rows, ax, metric)  # its title is one line too long for a panel
            title = f"{sweep.model}, {task} question\n{controls_said(rows[rows['metric'] == metric])}"
            ax.set_title(title.replace("$", r"\$"), fontsize=9)

        panels.append(panel(draw, alt, f"patch{number}{task}", height=2.4))
    return panels


def _curve(frame: "pd.DataFrame", number: int) -> Panel:
    rows = frame[(frame["kind"] == "target") & (frame["metric"] == "logit_difference")].groupby("dose")["effect"].mean()
    model = str(frame["model"].iloc[0])
    alt = f"{model}: logit of the nearest option less the farthest one's, {rows.iloc[0]:.2f} at {rows.index[0]:g} and "
    alt += f"{rows.iloc[-1]:.2f} at {rows.index[-1]:g}."
    return panel(titled(plot_steer_sweep, frame, model.replace("$", r"\$")), alt, f"steer{number}")


def _lead(findings: Findings) -> str:
    said = []
    for sweep in findings.patches:
        asked = list(dict.fromkeys((pair.receiver.task, pair.receiver.language) for pair in sweep.pairs))
        for task in dict.fromkeys(task for task, _ in asked):
            found = [sweep.evidence(*key) for key in asked if key[0] == task]
            moved = [one.moved for one in found if one is not None]
            if moved:
                said.append(f"{sweep.model}, {task}: {min(moved):.2f} to {max(moved):.2f}")
    patched = (
        f"Putting a near scene's object tokens into a far scene moves the answers by these Jensen-Shannon distances (base 2; "
        f"0 not at all, 1 wholly), the range over languages. {'; '.join(said)}."
    )
    return "\n\n".join([patched] * bool(said) + [_steered(sweep) for sweep in findings.steers])


def _steered(sweep: "SteerSweep") -> str:
    """The slopes of one model, the probe's beside the controls'."""
    slopes = sweep.slopes()
    means = slopes.groupby(["kind", "direction"], sort=False)[["slope", "low", "high"]].mean().reset_index()
    target = means[means["kind"] == "target"].iloc[0]
    unit = "metre" if str(target["direction"]).endswith("_m") else "unit"
    said = (
        f"{sweep.model}: along the probe's direction of {target['direction']} the logit of the nearest option less the farthest "
        f"one's changes by {shown(target['slope'])} a {unit} (95 % interval {shown(target['low'])} to {shown(target['high'])})"
    )
    others = [f"{shown(row.slope)} along {row.direction}" for row in means[means["kind"] == "unrelated"].itertuples()]
    random = slopes[slopes["kind"] == "random"]["slope"].abs()
    others += [f"up to {shown(float(random.max()))} either way along random directions"] if len(random) else []
    return f"{said}; moved as far, {' and '.join(others)}." if others else f"{said}."


def _grid(findings: Findings) -> Any:
    """The gap's patch evidence."""
    frame = findings.gap.to_frame()
    frame = frame[frame["patch_moved"].notna()]
    spread = spans(frame.rename(columns={"low": "_low", "high": "_high", "patch_low": "low", "patch_high": "high"}))
    frame = frame.assign(interval=spread, language=[language_name(code) for code in frame["language"]])
    headings = {"model": "model", "task": "question", "language": "language", "patch_role": "tokens", "patch_layer": "layer"}
    headings |= {"patch_moved": "moved", "interval": "interval", "patch_control": "other colour", "patch_restored": "restored"}
    caption = (
        "Patches of a near scene's tokens into a far one: how far the answers move (Jensen-Shannon distance) at the layer that "
        "other figures chose, with its 95 % interval over figures; the same by another colour at the same distance; and the "
        "share of the difference between the two scenes that is restored (a dash where there is none)."
    )
    return grid(frame.astype({"patch_layer": int}), headings | {"patch_pairs": "pairs"}, caption)
