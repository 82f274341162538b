"""What follows from one or more runs: the gap and the report."""

from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.app import app
from deixis.cli.options import Reference, RunFolders, Written
from deixis.cli.output import answered
from deixis.console import Outcome, command, records, table


@command(app, "gap")
def gap(
    runs: RunFolders,
    patches: Annotated[int, typer.Option(min=0, help="Figures to patch as evidence of use; 0 observes only.")] = 0,
    out: Written = None,
) -> Outcome:
    """Say for each target whether it is encoded and whether the answer uses it."""
    import deixis as dx
    from deixis.analyses.patch_sweep import patches_for
    from deixis.probes.power import told_of_few

    opened = [dx.open_run(run) for run in runs]
    sweeps = [patches_for(run, dx.load(run.info["model"]), patches) for run in opened] if patches else None
    with told_of_few() as few:
        found = dx.encoding_gap(opened, patches=sweeps)
    frame = found.to_frame()
    conclusions = {name: found.conclusion(name) for name in dict.fromkeys(frame["model"])}
    headings = {name: name for name in ("model", "task", "language", "encoded", "used", "prior", "case")}
    data = {"rows": records(frame), "conclusions": conclusions, "warnings": few}
    return answered(found, out, (table(frame, headings), "", *conclusions.values(), *(f"Note: {one}" for one in few)), data)


@command(app, "report")
def report(
    runs: RunFolders,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("report.html"),
    reference: Reference = None,
) -> Outcome:
    """Write everything about the runs into one HTML file."""
    import deixis as dx

    path = dx.report([dx.open_run(run) for run in runs], out, reference=reference)
    return Outcome({"report": str(path)}, (f"{path}",))
