"""What the layers hold: probes and the lens."""

from typing import Annotated

import typer

from deixis.cli.app import app
from deixis.cli.options import RunFolder, Written
from deixis.cli.output import answered, filled, spread
from deixis.console import Outcome, command, records, table


@command(app, "probe")
def probe(
    run: RunFolder,
    target: Annotated[str, typer.Option(help="What to decode: distance_m, region, x_m, ...", show_default=False)],
    role: Annotated[str, typer.Option(help="At which token positions.")] = "answer",
    out: Written = None,
) -> Outcome:
    """Decode a target from every layer, with its control task and interval."""
    import deixis as dx

    sweep = dx.layer_sweep(dx.open_run(run), target=target, role=role)
    frame = sweep.to_frame()
    headings = {"metric": "metric", "layer": "layer", "score": "score", "low": "low", "high": "high", "chance": "chance"}
    headings |= {"control": "control", "selectivity": "selectivity", "p_value": "p"}
    best = sweep.best()
    return answered(
        sweep,
        out,
        (table(frame, filled(frame, headings)), "", f"{best}."),
        {"rows": records(frame), "best": records(best.to_frame())[0]},
    )


@command(app, "lens")
def lens(
    run: RunFolder,
    model: Annotated[str | None, typer.Option(help="Where the model is, if not where it was.", show_default=False)] = None,
    out: Written = None,
) -> Outcome:
    """Follow the options' logits through the layers."""
    import deixis as dx
    from deixis.analyses.findings import NO_TERMS, lens_of_terms, mean_by_region

    opened = dx.open_run(run)
    found = dx.logit_lens(opened, dx.load(model or opened.info["model"]))
    frame = found.to_frame()
    shares = mean_by_region(lens_of_terms(frame, opened.items))
    if not len(shares):
        return answered(found, out, (NO_TERMS,), {"rows": records(frame)})
    headings = {"language": "language", "term": "term", "layer": "layer"}
    headings |= {f"region {region}": f"region {region}" for region in sorted(set(shares["region"]))}
    shown = table(spread(shares, "region", "region {}"), headings)
    return answered(found, out, ("Mean probability of each term among the options:", shown), {"rows": records(frame)})
