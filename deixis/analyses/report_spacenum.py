"""The report's sections on SpaceNum, inside: magnitudes, places on a map, frames, and questions with their options drawn."""

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from deixis.analyses.coordinates import plot_coordinates
from deixis.analyses.findings import Findings
from deixis.analyses.frames_plot import plot_answer_frame, plot_frames
from deixis.analyses.layer_sweep import plot_layer_sweep
from deixis.analyses.option_pictures import example_items, question_panel, replies
from deixis.analyses.report_figures import plain, titled
from deixis.analyses.report_parts import Figure, Section
from deixis.analyses.report_tables import Grid, grid, shown, spans
from deixis.analyses.spacenum_inside import MAGNITUDES, SpaceNumInside, is_spacenum
from deixis.analyses.svg import Panel, panel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NAMES = {
    "magnitude": "magnitude",
    "signed_magnitude": "signed magnitude",
    "x_m": "x, anchors' frame",
    "y_m": "y, anchors' frame",
    "size_m": "longest edge",
    "camera_x_m": "right of the camera",
    "camera_z_m": "depth",
}
_ROLES = {"answer": "answer token", "image:1": "tokens of image 2", "object": "the target's tokens"}
_MAGNITUDES = (
    "R2 of the magnitude by layer, on rooms that the probe has not seen; band: 95 % over rooms. At the tokens of the second "
    "picture it is signed (up, right and forward positive); at the answer token it is not, because the question names the "
    "action. Beside it the pictures taken away (blank), random weights (untrained), and how much of the second view shows "
    "objects (nuisances). Turns up and down begin near one pitch, so that one view alone says much of the magnitude: a score "
    "here does not show that two views were compared. The questions are those of Space2Num where they were asked: those of "
    "Num2Space name the magnitude."
)
_BEST = (
    "R2 at each sweep's best layer. Held out: every fold's layer is chosen on the other folds. p: the scenes' values exchanged, "
    "against the best of all layers. MAE is in the target's unit (degrees or metres)."
)
_MAPS = (
    "Seen from above, in the frame that the anchors define: where the target stands (hollow) and where a probe puts it, on "
    "scenes that it has not seen."
)
_FRAMES = (
    "R2 of the target's place by layer, in the anchors' frame (allocentric) and in the camera's (egocentric). Dashed: what "
    "is left when splines of the other frame's coordinates are taken out."
)
_FRAME_TABLE = (
    "Every fold's layer is chosen on the other folds; p: scenes exchanged, against the best of all layers. Unique: the other "
    "frame's coordinates taken out."
)
_ANSWERS = (
    "Weight, in the log-odds between the two places on offer, of the place that is right in the anchors' frame, and of the one "
    "that follows when the picture is laid over the map without turning it. Grey: too small to count. Agrees: how often the "
    "choice is the reader's where the two readers differ."
)
_LEAK = (
    "Which tokens show the target depends on where it is in the picture: a blank picture gives away at these tokens what "
    "follows from that place. There, only what lies above the blank score was read from the picture."
)
_EXAMPLES = "The right option has a tick. Below each question what the model chose, and its shares of the options."


def inside_section(findings: Findings) -> Section | None:
    """Magnitudes and coordinates by layer; None without SpaceNum runs or their targets."""
    inside = _with_sweeps(findings)
    if not inside:
        return None
    figures = [Figure(tuple(_magnitude_panels(inside)), _MAGNITUDES), Figure(tuple(_map_panels(inside)), _maps_told(inside))]
    return Section(
        heading="Where the numbers are, layer by layer",
        lead=" ".join(sentence for one in inside for sentence in magnitude_sentences(one)),
        figures=tuple(figure for figure in figures if figure.panels),
        grids=(_best_grid(inside),),
        notes=tuple(dict.fromkeys([*_leaks(inside), *(f"{one.model}: {why}" for one in inside for why in one.refused)])),
    )


def frames_section(findings: Findings) -> Section | None:
    """Which frame is decodable and which the answers follow; None without layouts."""
    inside = [one for one in findings.inside.values() if one.frames is not None or one.answers is not None]
    if not inside:
        return None
    panels = [panel_ for number, one in enumerate(inside) for panel_ in _frame_panels(one, number)]
    answers = _answer_frames(inside)
    figures = [Figure(tuple(panels), _FRAMES)] if panels else []
    if answers is not None:
        draw, height = titled(plot_answer_frame, plain(answers), None), 1.2 + 0.45 * answers["items"].nunique() * len(inside)
        alt = "; ".join(sentence for one in inside for sentence in answer_sentences(one))
        figures.append(Figure((panel(draw, alt, "answer-frame", height=height),), _ANSWERS))
    return Section(
        heading="In which frame: the anchors' or the camera's",
        lead=" ".join(sentence for one in inside for sentence in (*frame_sentences(one), *answer_sentences(one))),
        figures=tuple(figures),
        grids=tuple(made for made in (_frame_grid(inside), _answer_grid(answers)) if made is not None),
    )


def examples_section(findings: Findings) -> Section | None:
    """Questions as they were asked, with the models' choices; None without SpaceNum runs."""
    runs = [run for run in findings.runs if is_spacenum(run)]
    if not runs:
        return None
    items = example_items(runs[0])
    said = replies(runs, [item.id for item in items])
    panels = tuple(question_panel(item, said[item.id]) for item in items)
    return Section(heading="What it was asked and what it chose", figures=(Figure(panels, _EXAMPLES),))


def conclusion(inside: SpaceNumInside) -> str:
    """A model's main results on what is inside, a line each."""
    sentences = (*magnitude_sentences(inside), *frame_sentences(inside), *answer_sentences(inside))
    return "\n".join(sentences) or f"{inside.model}: {' '.join(inside.refused) or 'nothing was decoded.'}"


def magnitude_sentences(inside: SpaceNumInside) -> list[str]:
    """What is decoded of magnitudes: for each pair of actions and role, beside blank pictures and random weights."""
    if not len(inside.best):
        return []
    best = inside.best[inside.best["target"].isin(MAGNITUDES.values()) & (inside.best["metric"] == "r2")]
    return [f"{inside.model}, {row['items']}: {_decoded(row)}." for row in best.to_dict("records")]


def _decoded(row: Mapping[Any, Any]) -> str:
    """Decoded is what is significant, and above blank pictures and random weights."""
    beside = {"blank pictures": row["blank"], "random weights": row["untrained"]}
    known = {name: float(value) for name, value in beside.items() if not math.isnan(value)}
    is_decoded = row["p_value"] <= _ALPHA and row["held_out"] > max(0.0, *known.values(), 0.0)
    said = "is decoded from" if is_decoded else "is not decoded, beyond what it must be read beside, from"
    numbers = f"R2 {shown(float(row['held_out']))}, p = {row['p_value']:.3f}, {row['n_groups']} rooms"
    told = "".join(f"; {name} {shown(value)}" for name, value in known.items())
    return f"the {_NAMES[row['target']]} {said} the {_ROLES[row['role']]} (layer {row['layer']}, {numbers}{told})"


_ALPHA = 0.05


def frame_sentences(inside: SpaceNumInside) -> list[str]:
    """What is decoded of each frame beyond the other, at the role where most is."""
    if inside.frames is None:
        return []
    best = inside.frames.best()
    found = []
    for frame, rows in best[best["part"] == "unique"].groupby("frame", sort=False):
        row = rows.nlargest(1, "score").iloc[0]
        numbers = f"R2 {shown(float(row['score']))}, p = {row['p_value']:.3f}, {row['n_groups']} scenes"
        is_decoded = row["score"] > 0 and row["p_value"] <= _ALPHA / rows["role"].nunique()
        said = (
            f"is decoded beyond the other one, best at {row['role']}, layer {row['layer']}"
            if is_decoded
            else (f"is not decoded beyond the other one; the best role is {row['role']}")
        )
        found.append(f"{inside.model}, layouts: the {frame} frame {said} ({numbers}).")
    strongest = inside.frames.correlations()["r"].abs().max()
    return [*found, f"The two frames' coordinates are correlated by at most {shown(float(strongest))} in these scenes."]


def answer_sentences(inside: SpaceNumInside) -> list[str]:
    """Which frame the answers follow, with the weights."""
    if inside.answers is None:
        return []
    rows = inside.answers.to_frame()
    anchor, image = rows[rows["items"] == "all"].to_dict("records")
    told = {
        "anchor frame": "follow the anchors' frame",
        "image frame": "follow the picture's left, right, up and down instead of the anchors' frame",
        "both": "follow both the anchors' frame and the picture's",
        "neither": "follow neither the anchors' frame nor the picture's",
        "undecided": "can't be told to follow either frame with so few scenes",
    }[inside.answers.result]
    return [
        f"The answers of {inside.model} {told}: weights {_span(anchor)} and {_span(image)} nats over {anchor['n_scenes']} scenes."
    ]


def _span(row: Mapping[Any, Any]) -> str:
    return f"{shown(row['weight'])} ({shown(row['low'])} to {shown(row['high'])})"


def _with_sweeps(findings: Findings) -> list[SpaceNumInside]:
    return [inside for inside in findings.inside.values() if len(inside.sweeps)]


def _joined(frames: "list[pd.DataFrame]") -> "pd.DataFrame":
    import pandas as pd

    return pd.concat(frames, ignore_index=True)


def _magnitude_panels(inside: list[SpaceNumInside]) -> list[Panel]:
    sweeps = _joined([one.sweeps for one in inside])
    rows = sweeps[sweeps["target"].isin(MAGNITUDES.values()) & (sweeps["metric"] == "r2")]
    panels = []
    for number, ((items, role), part) in enumerate(rows.groupby(["items", "role"], sort=False)):
        title, top = f"{items}, {_ROLES[str(role)]}", part.nlargest(1, "score").iloc[0]
        alt = f"R2 of the magnitude by layer, {title}: at most {top['score']:.2f} at layer {top['layer']}."
        panels.append(panel(titled(plot_layer_sweep, plain(part), title), alt, f"magnitude{number}", height=3.4))
    return panels


def _map_panels(inside: list[SpaceNumInside]) -> list[Panel]:
    panels = []
    for number, one in enumerate(inside):
        for place in one.places:
            title = f"{one.model}, {_ROLES[place.role]}, layer {place.layer}"
            draw = partial(_map, points=plain(place.points()), title=title.replace("$", r"\$"))
            alt = f"{title}: decoded positions are {place.score[-1, 1]:.2f} m off, the mean place {place.chance[-1, 1]:.2f} m."
            panels.append(panel(draw, alt, f"map{number}-{place.role}", height=4.0))
    return panels


def _map(ax: "Axes", points: "pd.DataFrame", title: str) -> None:
    """Positions from above with the anchors' origin and x axis."""
    directions = ("towards the second anchor", "to the left of it")
    titled(partial(plot_coordinates, where=directions), points, title)(ax)
    ax.axhline(0, color="#7F7F7F", linewidth=0.6, zorder=0)
    ax.axvline(0, color="#7F7F7F", linewidth=0.6, zorder=0)
    ax.set_aspect("equal", adjustable="datalim")


def _maps_told(inside: list[SpaceNumInside]) -> str:
    told = [
        f"{one.model} at {_ROLES[place.role]}: joint R2 {shown(float(place.score[-1, 0]))}, {place.score[-1, 1]:.2f} m off on "
        f"average, where answering the mean place is {place.chance[-1, 1]:.2f} m off."
        for one in inside
        for place in one.places
    ]
    return " ".join((_MAPS, *told))


def _best_grid(inside: list[SpaceNumInside]) -> Grid:
    best = _joined([one.best for one in inside])
    first = best[best["metric"] == "r2"]
    key = ["model", "items", "target", "role"]
    errors = best[best["metric"] == "mae"].set_index(key)["score"]
    table = first.assign(
        interval=spans(first),
        error=[float(errors.loc[tuple(row)]) for row in first[key].itertuples(index=False)],
        what=[_NAMES[target] for target in first["target"]],
        p=[f"{value:.3f}" if value == value else "\N{EN DASH}" for value in first["p_value"]],
    )
    headings = {"model": "model", "items": "items", "what": "target", "role": "tokens", "layer": "layer", "held_out": "held out"}
    headings |= {"score": "R2", "interval": "interval", "p": "p", "error": "MAE", "nuisance": "nuisances alone"}
    headings |= {"residual": "nuisances taken out", "untrained": "untrained", "blank": "blank", "n_groups": "scenes"}
    return grid(table, headings, _BEST)


def _leaks(inside: list[SpaceNumInside]) -> list[str]:
    best = _joined([one.best for one in inside])
    return [_LEAK] if ((best["role"] == "object") & (best["metric"] == "r2") & (best["blank"] > 0.2)).any() else []


def _frame_panels(one: SpaceNumInside, number: int) -> list[Panel]:
    if one.frames is None:
        return []
    rows = one.frames.to_frame()
    panels = []
    for role, part in rows.groupby("role", sort=False):
        tops = {frame: top["unique"].max() for frame, top in part.groupby("frame", sort=False)}
        title = f"{one.model}, {role}"
        alt = f"{title}: unique R2 at most {', '.join(f'{value:.2f} {frame}' for frame, value in tops.items())}."
        draw = titled(plot_frames, plain(part), title.replace("$", r"\$"))
        panels.append(panel(draw, alt, f"frames{number}-{str(role).replace(':', '-').replace('_', '-')}"))
    return panels


def _frame_grid(inside: list[SpaceNumInside]) -> Grid | None:
    tables = [one.frames.best() for one in inside if one.frames is not None]
    if not tables:
        return None
    key = ["model", "role", "frame"]
    table = _joined(tables)
    table = table.assign(p=[f"{value:.3f}" if value == value else "\N{EN DASH}" for value in table["p_value"]])
    whole, unique = (table[table["part"] == part].reset_index(drop=True) for part in ("whole", "unique"))
    beside = unique[["layer", "score", "p"]].add_prefix("unique_")
    headings = {name: {"role": "tokens"}.get(name, name) for name in key}
    headings |= {
        "layer": "layer",
        "score": "R2, held out",
        "p": "p",
        "unique_layer": "layer, unique",
        "unique_score": "unique R2",
    }
    return grid(whole.join(beside), headings | {"unique_p": "p, unique", "n_groups": "scenes"}, _FRAME_TABLE)


def _answer_frames(inside: list[SpaceNumInside]) -> "pd.DataFrame | None":
    frames = [one.answers.to_frame() for one in inside if one.answers is not None]
    return _joined(frames) if frames else None


def _answer_grid(frame: "pd.DataFrame | None") -> Grid | None:
    if frame is None:
        return None
    frame = frame.assign(interval=spans(frame), agreement=[f"{100 * share:.0f}" for share in frame["agreement"]])
    headings = {"model": "model", "items": "items", "frame": "reader", "weight": "weight", "interval": "interval"}
    headings |= {"followed": "followed", "agreement": "agrees, %", "correlation": "readers' correlation", "result": "result"}
    return grid(frame, headings | {"n_items": "questions", "n_scenes": "scenes"}, _ANSWERS)
