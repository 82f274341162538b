"""The report's section on demonstratives: recognition, distance, priors, and where the answer is decided."""

from typing import TYPE_CHECKING

from deixis.analyses.behaviour import term_behaviour
from deixis.analyses.findings import Findings
from deixis.analyses.prior import prior_correction
from deixis.analyses.report_figures import plain, titled
from deixis.analyses.report_parts import Figure, Section
from deixis.analyses.report_tables import Grid, grid
from deixis.analyses.sensitivity import distance_sensitivity, plot_distance_sensitivity
from deixis.analyses.style import language_name
from deixis.analyses.svg import Panel, panel

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations import Run

_N_BOOT = 300
_CAPTION = (
    "Slope: log-odds of the distal against the proximal term, in nats per metre, with its 95 % interval (figures drawn again). "
    "Ordered: how much of the information about the terms an ordinal fit on distance accounts for. The Jensen-Shannon distances "
    "are means over regions, of the recognised answers and of all; corrected: the bias of few items taken off; two halves: the "
    "distance between random halves of the same figures. Prior: how much of the answers' departure from uniform is that of the "
    "answers to a grey picture."
)
_NOTES = (
    "Which answers are recognised differs from model to model, so that distances of recognised answers compare models on "
    "different items; those of all answers stand beside them.",
    "The prior's share is a diagnostic and ranks nothing: a model that is right on average has a prior that is right on average.",
)


def demonstratives_section(findings: Findings) -> Section | None:
    """How the demonstratives of each model follow distance, and what of that a word prior explains; None without any."""
    import pandas as pd

    tables, points, reasons = [], [], []
    for run in findings.runs:
        try:
            found = distance_sensitivity(run, n_boot=_N_BOOT)
        except ValueError as refused:
            reasons.append(f"{run.settings['model']}: {refused}")
            continue
        points.append(found.points())
        tables.append(_with_prior(_with_distances(found.to_frame(), run, findings.reference, reasons), run))
    if not tables:
        return None
    table = pd.concat(tables, ignore_index=True)
    return Section(
        heading="Demonstratives and distance",
        lead=_lead(table),
        figures=(
            Figure(tuple(_panel(frame, number) for number, frame in enumerate(points)), "Each item, and the line through them."),
        ),
        grids=(_grid(table),),
        notes=(*_NOTES, *reasons),
    )


def _with_distances(table: "pd.DataFrame", run: "Run", reference: str | None, reasons: list[str]) -> "pd.DataFrame":
    """The table with the distances of recognised and of all answers."""
    for answers in ("recognised", "all"):
        try:
            scores = term_behaviour(run, reference, answers=answers, n_boot=_N_BOOT).scores()
        except ValueError as refused:
            reasons.append(f"{run.settings['model']}: {refused}")
            continue
        mean = scores[scores["region"] == "mean"].set_index("language")
        table[f"js_{answers}"] = table["language"].map(mean["js_distance"])
        if answers == "all":
            for name in ("js_corrected", "js_null"):
                table[name] = table["language"].map(mean[name])
            table["recognised"] = table["language"].map(mean["recognised"]).astype("Int64")
    return table


def _with_prior(table: "pd.DataFrame", run: "Run") -> "pd.DataFrame":
    if not any(item.condition == "blank" for item in run.items):
        return table
    explained = prior_correction(run, ("blank",), n_boot=20).explained().set_index("language")["explained"]
    return table.assign(prior=table["language"].map(explained))


def _lead(table: "pd.DataFrame") -> str:
    sentences = []
    for model, part in table.groupby("model", sort=False):
        rising = part[part["low"] > 0]
        codes = ", ".join(language_name(code) for code in rising["language"])
        if len(rising):
            span = (
                f"{rising['slope'].min():.2f} to {rising['slope'].max():.2f}"
                if len(rising) > 1
                else f"{rising['slope'].iloc[0]:.2f}"
            )
            sentences.append(f"In {model} the distal term gains with distance in {codes}: its log-odds rise by {span} per metre.")
        flat = part[(part["low"] <= 0) & (part["high"] >= 0)]
        if len(flat):
            codes = ", ".join(language_name(code) for code in flat["language"])
            sentences.append(f"In {model} no slope can be told from zero in {codes}.")
        falling = part[part["high"] < 0]
        if len(falling):
            codes = ", ".join(language_name(code) for code in falling["language"])
            sentences.append(f"In {model} the distal term loses with distance in {codes}.")
    return " ".join(sentences)


def _grid(table: "pd.DataFrame") -> Grid:
    spans = [
        f"{low:.2f} to {high:.2f}".replace("-", "\N{MINUS SIGN}") for low, high in zip(table["low"], table["high"], strict=True)
    ]
    shown = table.assign(language=[language_name(code) for code in table["language"]], interval=spans)
    headings = {"model": "model", "language": "language", "slope": "slope", "interval": "interval", "monotone": "monotone"}
    headings |= {
        "ordinal_explained": "ordered",
        "recognised": "recognised",
        "js_recognised": "JS, recognised",
        "js_all": "JS, all",
    }
    headings |= {"js_corrected": "corrected", "js_null": "two halves", "prior": "prior"}
    there = {name: heading for name, heading in headings.items() if name in shown and shown[name].notna().any()}
    return grid(shown, there, _CAPTION)


def _panel(points: "pd.DataFrame", number: int) -> Panel:
    model = str(points["model"].iloc[0])
    alt = f"{model}: log-odds of the distal against the proximal term over distance, a line for each language."

    return panel(titled(plot_distance_sensitivity, plain(points), model.replace("$", r"\$")), alt, f"sensitivity{number}")
