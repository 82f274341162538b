"""What the models answered."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from deixis.cli.app import app
from deixis.cli.choices import ChoiceRequest, scored_choices
from deixis.cli.options import Reference, RunFolder, RunFolders, Written
from deixis.cli.output import answered, filled
from deixis.console import Outcome, command, records, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.analyses import Comparison

SCORE_SCHEMA, COMPARE_SCHEMA = "deixis.score/1", "deixis.compare/1"
"""Of ``--json``; the number changes when a key is taken away or means something else, not when one is added."""


@command(app, "score")
def score(
    run: RunFolder,
    reference: Reference = None,
    answers: Annotated[str, typer.Option(help="all real items, or those whose answer was recognised.")] = "all",
    way: Annotated[
        str | None,
        typer.Option(
            help="Of multiple choice, how choices are read: logits, written, string, string_per_byte, sampled.",
            show_default="logits",
        ),
    ] = None,
    condition: Annotated[
        str | None, typer.Option(help="Of multiple choice, the condition of the table.", show_default="real")
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Of multiple choice, also score the options' texts; loads the model.")
    ] = False,
    draws: Annotated[
        int, typer.Option(min=0, help="Of multiple choice, also draw so many answers to each item; loads the model.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of the drawn answers and of the intervals.")] = 0,
    out: Written = None,
) -> Outcome:
    """Compare the answers with a reference and with the truth."""
    import deixis as dx
    from deixis.analyses.behaviour import Behaviour
    from deixis.benchmarks.judge_letters import is_lettered

    opened = dx.open_run(run)
    if opened.items and all(is_lettered(item) for item in opened.items):
        for name, given in (("--reference", reference is not None), ("--answers", answers != "all")):
            if given:
                raise ValueError(f"{name} changes nothing in a run of multiple-choice items; leave it out.")
        return scored_choices(opened, ChoiceRequest(way or "logits", condition or "real", texts, draws, seed), out)
    for name, given in (("--way", way), ("--condition", condition), ("--texts", texts), ("--draws", draws)):
        if given:
            raise ValueError(f"{name} is for runs of multiple-choice items, and this one has others; leave it out.")
    found = dx.behaviour(opened, reference=reference, answers=answers, seed=seed)
    if not isinstance(found, Behaviour):
        raise TypeError(f"behaviour gave {type(found).__name__} for a run without multiple choice.")
    scores = found.scores()
    headings = {"language": "language", "region": "region", "js_distance": "JS distance", "low": "low", "high": "high"}
    headings |= {"js_corrected": "corrected", "js_null": "two halves", "js_uniform": "JS uniform", "recognised": "recognised"}
    headings |= {"accuracy": "accuracy", "n": "n"}
    data = {
        "schema": SCORE_SCHEMA,
        "model": found.model,
        "reference": found.reference,
        "base": found.base,
        "answers": found.answers,
        "scores": records(scores),
        "distributions": records(found.to_frame()),
    }
    return answered(found, out, (table(scores, filled(scores, headings)),), data)


@command(app, "compare")
def compare(
    runs: RunFolders,
    reference: Reference = None,
    least: Annotated[int, typer.Option("--min-recognised", min=1, help="Cells of fewer recognised answers are missing.")] = 5,
    figure2: Annotated[
        bool, typer.Option("--figure2", help="Write Figure 2 (distributions) to --out, not the distances.")
    ] = False,
    palette: Annotated[str, typer.Option(help="Of Figure 2: paper, or ordered (dark to light).")] = "paper",
    out: Written = None,
) -> Outcome:
    """Put many models side by side: recognised answers, distances from a reference, and how the two go together."""
    import deixis as dx

    found = dx.compare([dx.open_run(run) for run in runs], reference=reference, min_recognised=least)
    one, two, together = found.table1(), found.table2(), found.correlation()
    data = {
        "schema": COMPARE_SCHEMA,
        "reference": found.reference,
        "min_recognised": found.min_recognised,
        "rows": records(found.to_frame()),
        "table1": records(one),
        "table2": records(two),
        "correlation": [records(found.correlation(which).to_frame())[0] for which in ("recognised", "all")],
    }
    shown: list[RenderableType] = [_wide(one, "Recognised answers", digits=0)]
    if reference is not None:
        distances = two[two["base"] == "2"].drop(columns="base")
        shown += ["", _wide(distances, "Jensen-Shannon distance (base 2), mean over regions", digits=2)]
        shown += ["", f"Recognised answers and distance: {together}."]
    return answered(_Figure2(found, palette) if figure2 else found, out, tuple(shown), data)


def _wide(frame: "pd.DataFrame", title: str, digits: int) -> RenderableType:
    """A table with a column per language."""
    from deixis.analyses.style import language_name

    return table(frame, {name: language_name(name) for name in map(str, frame.columns)}, digits=digits, title=title)


@dataclass(frozen=True)
class _Figure2:
    """A comparison whose picture is Figure 2."""

    found: "Comparison"
    palette: str

    def to_frame(self) -> "pd.DataFrame":
        return self.found.distributions()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        return self.found.figure2(ax, palette=self.palette)
