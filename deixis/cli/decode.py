"""What the layers hold: probes and the lens."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deixis.cli.app import app
from deixis.cli.options import RunFolder, Written, listed
from deixis.cli.output import answered, filled, spread
from deixis.console import Outcome, command, is_watched, records, table

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table


@command(app, "probe")
def probe(
    run: RunFolder,
    target: Annotated[str, typer.Option(help="What to decode: distance_m, region, x_m, ...", show_default=False)],
    role: Annotated[str, typer.Option(help="At which token positions.")] = "answer",
    site: Annotated[str, typer.Option(help="Where in the model: resid, merger_in, vision, ... as recorded.")] = "resid",
    controls: Annotated[
        str,
        typer.Option(
            help="'default': what the run allows; 'all': also an untrained model and a blank picture, recorded beside the run if "
            "they are missing; or names with commas between, such as task,permutation."
        ),
    ] = "default",
    language: Annotated[str | None, typer.Option(help="A language's code, or 'each'.", show_default=False)] = None,
    task: Annotated[str | None, typer.Option(help="Of the items, where there are several.", show_default=False)] = None,
    where: Annotated[
        str | None,
        typer.Option(help="Groups of the items: 'column=rotate U/D' or 'scale=desk,map=2D'.", show_default=False),
    ] = None,
    out: Written = None,
) -> Outcome:
    """Decode a target from every layer, beside everything that could have given the score as well."""
    import deixis as dx
    from deixis.cli.controls import recorded_controls
    from deixis.probes.power import told_of_few

    opened = dx.open_run(run)
    taken = {"task": task, "where": _groups(where)}
    beside: dict[str, Any] = recorded_controls(opened, role, target, **taken) if controls == "all" else {}
    asked = controls if controls in ("default", "all") else tuple(listed(controls))
    with told_of_few() as warned:
        sweep = dx.layer_sweep(
            opened, target, role=role, site=site, controls=asked, language=language, progress=is_watched(), **taken, **beside
        )
    frame = sweep.to_frame()
    best = [sweep.best(language=spoken) for spoken in dict.fromkeys(frame["language"])]
    return answered(
        sweep,
        out,
        (_curve(frame, best[0].metric), "", *(f"{one}." for one in best), *(f"Note: {one}" for one in warned)),
        {"rows": records(frame), "best": records(best[0].to_frame())[0], "warnings": warned},
    )


def _groups(text: str | None) -> dict[str, str]:
    """Names and values of ``name=value,name=value``."""
    pairs = [part.partition("=") for part in listed(text or "")]
    for name, mark, value in pairs:
        if not (name and mark and value):
            raise typer.BadParameter(f"--where has {name + mark + value!r}; write name=value, such as 'column=rotate U/D'.")
    return {name.strip(): value.strip() for name, _, value in pairs}


_WORDS = {"r2": "R2", "balanced_accuracy": "accuracy"}
_KEY = (
    "chance {chance:.2f}; control: a random label per figure; p: the scenes' labels exchanged, the best layer counts; nuis.: "
    "image height, size and brightness alone; resid.: with these taken out (-: not identifiable); untr.: random weights; blank: "
    "a grey picture; bits: code length in bits per item"
)


def _curve(frame: "pd.DataFrame", metric: str) -> "Table":
    """The layers' scores as a table that fits a narrow terminal, with a key to its columns."""
    from deixis.analyses.report_tables import spans

    rows = frame[frame["metric"] == metric]
    p = ["-" if math.isnan(value) else f"{value:.3f}" for value in rows["p_value"]]
    rows = rows.assign(interval=spans(rows), p=p)
    headings = {"language": ""} if frame["language"].nunique() > 1 else {}
    headings |= {"layer": "layer", "score": _WORDS.get(metric, metric), "interval": "95 % interval", "control": "control"}
    kept = filled(rows, headings | {"p_value": "p", "nuisance": "nuis.", "residual": "resid.", "untrained": "untr."})
    kept |= filled(rows, {"blank": "blank", "bits": "bits"})
    if rows["low"].isna().all():
        del kept["interval"]
    shown = table(rows, {"p" if name == "p_value" else name: heading for name, heading in kept.items()})
    shown.caption, shown.caption_justify = _KEY.format(chance=rows["chance"].iloc[0]), "left"
    return shown


_LENS = "Mean probability of each term among the options (95 % interval, figures drawn again):"


@command(app, "lens")
def lens(
    run: RunFolder,
    model: Annotated[str | None, typer.Option(help="Where the model is, if not where it was.", show_default=False)] = None,
    out: Written = None,
) -> Outcome:
    """Follow the options' logits through the layers."""
    import deixis as dx
    from deixis.analyses.decision import lens_by_region
    from deixis.analyses.findings import NO_TERMS, lens_of_terms
    from deixis.analyses.report_tables import spans

    opened = dx.open_run(run)
    found = dx.logit_lens(opened, dx.load(model or opened.info["model"]))
    frame = found.to_frame()
    if not len(lens_of_terms(frame, opened.items)):
        return answered(found, out, (NO_TERMS,), {"rows": records(frame)})
    means = lens_by_region(found, opened.items)
    written = [f"{mean:.2f} ({span})" for mean, span in zip(means["prob"], spans(means), strict=True)]
    shares = means.assign(prob=written)[["language", "term", "layer", "region", "prob"]]
    headings = {"language": "language", "term": "term", "layer": "layer"}
    headings |= {f"region {region}": f"region {region}" for region in sorted(set(shares["region"]))}
    shown = table(spread(shares, "region", "region {}"), headings)
    return answered(found, out, (_LENS, shown), {"rows": records(frame), "regions": records(means)})
