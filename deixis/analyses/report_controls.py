"""The report's section about what probes owe to their controls."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from deixis.analyses.findings import Findings
from deixis.analyses.report_figures import plain, titled
from deixis.analyses.report_parts import Figure, Section
from deixis.analyses.report_tables import Grid, grid, spans
from deixis.analyses.svg import Panel, panel
from deixis.probes.power import told_of_few

if TYPE_CHECKING:
    import pandas as pd


_FIRST = {"distance_m": "r2", "region": "balanced_accuracy"}
_STANDARD, _DECOUPLED = "standard", "decoupled"
_HEADINGS = {
    "model": "model", "scenes": "scenes", "target": "target", "role": "tokens", "layer": "layer", "score": "score",
    "interval": "interval", "held_out": "held out", "chance": "chance", "p_value": "p", "nuisance": "nuisances alone",
    "residual": "nuisances taken out", "untrained": "untrained", "blank": "blank", "control": "control task",
    "bits": "bits / item",
}  # fmt: skip
CAPTION = (
    "R2 of distance and balanced accuracy of region at each sweep's best layer. p: the scenes' labels exchanged, against the "
    "best of all layers. Nuisances: height, size and brightness of the object in the picture, as splines; a dash under “taken "
    "out” means not identifiable, because they leave under 1 % of the target's variance. Untrained: the same architecture with "
    "random weights. Blank: the same questions about a uniform grey picture. Bits: online code length; knowing nothing costs "
    "2.05 for distance and 1.58 for three regions."
)
_CURVES = (
    "R2 of distance by layer, on the standard scenes, where distance, image height and size go together, and on scenes in which "
    "the camera is chosen so that they are independent."
)
_PLACE = (
    "A blank picture gives the target away at the object's tokens: the tokens are chosen by the object's box, and their place in "
    "the picture is its height. There, only what lies above the blank score was read from the picture."
)
_TRANSFER = (
    "Correlation of decoded and true distance at the answer token, for a probe learned in one language and tested in another on "
    "scenes it has not seen: high off the diagonal means that the languages share a direction."
)


def controls_section(findings: Findings) -> Section | None:
    """Scores beside all controls, standard beside decoupled scenes, transfer, and decoded against true distances."""
    if not len(findings.sweeps):
        return None
    notes: list[str] = []
    figures = [Figure(tuple(_curves(findings)), _CURVES)] if _curves(findings) else []
    with told_of_few() as warned:
        made = [make(findings, notes) for make in (_transfers, _scatters)]
        lead = " ".join(_sentences(findings))
    figures += [figure for figure in made if figure is not None]
    table = _table(findings)
    blank = table[(table["role"] == "object") & (table["blank"] > table["chance"] + 0.2)]
    if len(blank):
        notes.insert(0, _PLACE)
    return Section(
        heading="What else could have given these scores",
        lead=lead,
        figures=tuple(figures),
        grids=(_grid(table),),
        notes=(*notes, *dict.fromkeys(f"{one[0].upper()}{one[1:]}" for one in (*findings.warned, *warned))),
    )


def _table(findings: Findings) -> "pd.DataFrame":
    import pandas as pd

    parts = [findings.best.assign(scenes=_STANDARD)]
    if findings.decoupled_best is not None:
        parts.append(findings.decoupled_best.assign(scenes=_DECOUPLED))
    rows = pd.concat(parts, ignore_index=True)
    return rows[rows["metric"] == rows["target"].map(_FIRST)]


def _grid(table: "pd.DataFrame") -> Grid:
    p = [f"{value:.3f}" if value == value else "\N{EN DASH}" for value in table["p_value"]]
    return grid(table.assign(interval=spans(table), p_value=p), _HEADINGS, CAPTION)


def _curves(findings: Findings) -> list[Panel]:
    """Distance by layer for models with decoupled scenes, or for the first model: standard and decoupled side by side."""
    from deixis.analyses.layer_sweep import plot_layer_sweep

    models = list(dict.fromkeys(findings.decoupled["model"])) if findings.decoupled is not None else findings.models[:1]
    panels = []
    for scenes, frame in ((_STANDARD, findings.sweeps), (_DECOUPLED, findings.decoupled)):
        if frame is None:
            continue
        rows = frame[frame["model"].isin(models) & (frame["metric"] == "r2") & (frame["target"] == "distance_m")]
        for role, part in rows.groupby("role", sort=False):
            title = f"{scenes} scenes, {role} token{'' if role == 'answer' else 's'}"
            top = part.nlargest(1, "score").iloc[0]
            alt = f"R2 of distance by layer, {title}: at most {top['score']:.2f}, nuisances alone {top['nuisance']:.2f}."
            panels.append(panel(titled(plot_layer_sweep, plain(part), title), alt, f"controls-{scenes}-{role}"))
    return panels


def _sentences(findings: Findings) -> list[str]:
    """How much of distance is image height, in numbers; one sentence or two for each model with decoupled scenes."""
    from deixis.analyses.height import height_reading

    found = []
    for model, beside in findings.beside.items():
        if beside.decoupled is None:
            continue
        run = next(run for run in findings.runs if run.settings["model"] == model)
        rows = _table(findings)
        rows = rows[(rows["model"] == model) & (rows["target"] == "distance_m") & (rows["role"] == "answer")].set_index("scenes")
        if not {_STANDARD, _DECOUPLED} <= set(rows.index):
            continue
        found.append(height_sentence(model, dict(rows.loc[_STANDARD]), dict(rows.loc[_DECOUPLED])))
        reading = height_reading(run, beside.decoupled)
        found.append(
            f"A probe that was learned on the standard scenes and is taken to the decoupled ones shares {reading.distance:.0%} "
            f"of its variance there with distance, {reading.object_row:.0%} with image height and {reading.object_area:.0%} "
            f"with size; its R2 as a distance in metres is {_signed(reading.r2)}."
        )
    return found


def height_sentence(model: str, standard: Mapping[Any, Any], decoupled: Mapping[Any, Any]) -> str:
    """How much of a decoded distance is image height: rows of the two kinds of scenes at their best layers."""
    kept, floor = decoupled["residual"], decoupled["untrained"]
    left = f"with both taken out {_signed(kept)} is left" if kept == kept else "what they leave of it is too little to decode"
    random = f", against {_signed(floor)} from random weights" if floor == floor else ""
    return (
        f"{model}, distance at the answer token: in the standard scenes image height and size alone give R2 "
        f"{_signed(standard['nuisance'])}, so the probe's {_signed(standard['held_out'])} can't be told from theirs; where they "
        f"are independent of distance (alone {_signed(decoupled['nuisance'])}, {int(decoupled['n_groups'])} scenes) it reaches "
        f"{_signed(decoupled['held_out'])} (interval at the chosen layer {_signed(decoupled['low'])} to "
        f"{_signed(decoupled['high'])}){random}; {left}. Up to {_signed(standard['held_out'] - decoupled['held_out'])} of the "
        "standard score is therefore owed to image height and size, or to a model that does worse under cameras it was not "
        "trained with."
    )


def _signed(value: float) -> str:
    # No score is minus nothing.
    return f"{value + 0.0 if abs(value) >= 0.005 else 0.0:.2f}".replace("-", "\N{MINUS SIGN}")


def _transfers(findings: Findings, notes: list[str]) -> Figure | None:
    """Distance between languages at the answer token, a heat map for each model."""
    from deixis.analyses.transfer import plot_transfer, transfer

    panels = []
    for number, run in enumerate(findings.runs):
        try:
            frame = transfer(run, "distance_m", by="language", n_bootstrap=0).to_frame()
        except ValueError as error:
            notes.append(f"No transfer between languages for {run.settings['model']}: {error}")
            continue
        rows = frame[frame["metric"] == "r"]
        away = rows[rows["train"] != rows["test"]]["score"]
        name = run.settings["model"]
        alt = f"{name}: correlation of decoded and true distance between languages, {away.min():.2f} to {away.max():.2f}."
        draw = titled(partial(plot_transfer, metric="r"), plain(frame), str(plain(frame)["model"].iloc[0]))
        panels.append(panel(draw, alt, f"transfer{number}", height=2.6))
    if not panels:
        return None
    return Figure(tuple(panels), _TRANSFER)


def _scatters(findings: Findings, notes: list[str]) -> Figure | None:
    """Decoded against true distance in the decoupled scenes, and decoded positions from above."""
    from deixis.analyses.coordinates import decode_coordinates, plot_coordinates
    from deixis.analyses.distance_code import distance_code, plot_distance_code

    panels: list[Panel] = []
    words: list[str] = []
    for number, (model, beside) in enumerate(findings.beside.items()):
        if beside.decoupled is None:
            continue
        try:
            code = distance_code(beside.decoupled, role="answer")
            place = decode_coordinates(beside.decoupled, role="object", n_bootstrap=0)
        except ValueError as error:
            notes.append(f"No decoded positions for {model}: {error}")
            continue
        slope, error_m = code.shrinkage.slope[0], place.score[-1, 1]
        words.append(
            f"{model}: {code.verdict}; slope {slope:.2f} (below 1, distances are drawn together); decoded values are "
            f"{code.shrinkage.near[0]:+.2f} m off in the nearest fifth and {code.shrinkage.far[0]:+.2f} m in the farthest; "
            f"positions are {error_m:.2f} m off."
        )
        panels.append(panel(titled(plot_distance_code, code.points(), "answer token"), words[-1], f"code{number}"))
        panels.append(panel(titled(plot_coordinates, place.points(), "object tokens, from above"), words[-1], f"above{number}"))
    if not panels:
        return None
    return Figure(
        tuple(panels),
        "Decoded against true distance, and decoded against true positions, in decoupled scenes. " + " ".join(words),
    )
