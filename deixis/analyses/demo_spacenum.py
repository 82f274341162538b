"""The demo of SpaceNum: the whole path on a model that was taught one action, and what it makes of the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations import Run
    from deixis.analyses.findings import Findings
    from deixis.benchmarks import Items
    from deixis.models import VLM

SPACENUM_MODELS = ("pico-space",)
ROLES = ("answer", "image", "image:1", "object", "anchor_a", "anchor_b")
N_ROOMS, N_LAYOUTS, SIZE = 40, 60, 160
"""Rooms and layouts that are asked about, and the width of their pictures in pixels."""
TURNS = ("rotate up", "rotate down")
COLUMNS = {"direction": "direction", "column": "questions", "right": "right, %", "interval": "95 %", "chance": "chance, %",
           "majority": "best constant\nletter, %", "n": "items"}  # fmt: skip
"""Columns of the demo's table, and what they are called when printed."""
_DIRECTIONS = {"num2space": "number to picture", "space2num": "pictures to number"}


@dataclass(frozen=True)
class SpaceNumDemo:
    """What the demo found."""

    runs: tuple["Run", ...]
    findings: "Findings"
    frame: "pd.DataFrame"
    """Accuracy by model, direction and column, in percent; the columns are ``model`` and those of :data:`COLUMNS`."""
    in_words: str
    report: Path


def demo_spacenum_items() -> "Items":
    """Turns up and down in both directions, layouts on a desk from picture to numbers, and each again with blank pictures."""
    from deixis.benchmarks import spacenum

    turns = spacenum("transition", n=N_ROOMS, size=SIZE, actions=TURNS)
    layouts = spacenum("layout", n=N_LAYOUTS, size=SIZE, scales=("desk",), maps=("2D",), directions=("space2num",))
    real = turns + layouts
    return real + real.with_condition("blank")


def run_spacenum_demo(
    out: str | Path,
    models: Sequence[str] = SPACENUM_MODELS,
    items: "Items | None" = None,
    *,
    draw: "Callable[[Items], None]" = lambda _: None,
    progress: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> SpaceNumDemo:
    """Record the models on a small SpaceNum set, analyse the runs and write a report.

    Args:
        out: Folder for the runs and ``spacenum.html``; finished runs that lie there are used again.
        models: Names or folders.
        items: None for :func:`demo_spacenum_items`.
        draw: Called with the items when the models are loaded: the place to draw the pictures in several processes.
        progress: Show a progress bar on stderr if that is a terminal.
        say: Told what is being done.

    Raises:
        ValueError: No model or an unknown one, or ``out`` holds runs of other settings.
    """
    from deixis.activations import record
    from deixis.analyses.findings import Beside, find
    from deixis.analyses.report import checked_path, write_report
    from deixis.models import load, untrained

    if not models:
        raise ValueError(f"no model was named; the demo's own is {', '.join(SPACENUM_MODELS)}.")
    out = Path(out)
    path = checked_path(out / "spacenum.html")
    vlms: dict[str, VLM] = {vlm.name: vlm for vlm in map(load, models)}
    say("furnishing the rooms")
    asked = demo_spacenum_items() if items is None else items
    say("drawing the pictures")
    draw(asked)
    runs, beside = [], {}
    real = asked.filter(lambda item: item.condition == "real")
    for name, vlm in vlms.items():
        say(f"recording {name}")
        folder = out / f"{Path(name).name}-spacenum"
        runs.append(record(vlm, asked, folder, roles=ROLES, progress=progress))
        fresh = folder.with_name(f"{folder.name}-untrained")
        beside[name] = Beside(
            untrained=record(untrained(vlm), real, fresh, roles=ROLES, answers=False, options=False, progress=progress)
        )
    findings = find(runs, vlms, reference=None, say=say, beside=beside)
    say("writing the report")
    write_report(findings, path)
    frame = accuracy_table(runs)
    words = "\n".join((*accuracy_sentences(frame), *inside_sentences(findings)))
    return SpaceNumDemo(runs=tuple(runs), findings=findings, frame=frame, in_words=words, report=path)


def accuracy_table(runs: "Sequence[Run]") -> "pd.DataFrame":
    """Accuracy on real items by the letters' logits, in percent, beside chance and the best constant letter."""
    import pandas as pd

    from deixis.analyses.choices import choices

    scores = pd.concat([choices(run, n_boot=500).scores() for run in runs], ignore_index=True)
    rows = scores[(scores["condition"] == "real") & (scores["way"] == "logits") & (scores["direction"] != "")]
    spans = [f"{100 * low:.0f} to {100 * high:.0f}" for low, high in zip(rows["low"], rows["high"], strict=True)]
    rows = rows.assign(right=100 * rows["accuracy"], interval=spans, low=100 * rows["low"])
    rows = rows.assign(chance=100 * rows["chance"], majority=100 * rows["majority"])
    return rows[["model", *COLUMNS, "low"]].reset_index(drop=True)


def accuracy_sentences(frame: "pd.DataFrame") -> list[str]:
    """What each model can do, and where it does no better than a constant letter.

    Args:
        frame: Of :func:`accuracy_table`.
    """
    found = []
    for model, rows in frame.groupby("model", sort=False):
        able = [(row, row["low"] > max(row["chance"], row["majority"])) for row in rows.to_dict("records")]
        yes = [f"{row['column']}, {_DIRECTIONS[row['direction']]}: {row['right']:.0f} %" for row, is_able in able if is_able]
        no = [f"{row['column']}, {_DIRECTIONS[row['direction']]}: {row['right']:.0f} %" for row, is_able in able if not is_able]
        if yes:
            found.append(f"{model} answers better than chance and than any constant letter: {'; '.join(yes)}.")
        if no:
            found.append(f"{'It is' if yes else f'{model} is'} no better than that on: {'; '.join(no)}.")
    return found


def inside_sentences(findings: "Findings") -> list[str]:
    """What the layers hold, and which frame the answers follow."""
    from deixis.analyses.report_spacenum import answer_sentences, frame_sentences, magnitude_sentences

    tellers = (magnitude_sentences, frame_sentences, answer_sentences)
    return [sentence for inside in findings.inside.values() for tell in tellers for sentence in tell(inside)]
