"""The models that deixis knows, and whether a model fits its record."""

from dataclasses import asdict
from typing import Annotated

import typer

from deixis.cli.app import app
from deixis.console import FAILED, Outcome, command, note, table


@command(app, "families")
def families() -> Outcome:
    """List the model families that deixis has a record of, those left out, and the bundled models."""
    import pandas as pd

    from deixis.models import BUNDLED
    from deixis.models.families import LEFT_OUT
    from deixis.models.table import HEADINGS, family_rows

    rows = [asdict(row) for row in family_rows()]
    data = {"families": rows, "left_out": LEFT_OUT, "bundled": list(BUNDLED)}
    missing = pd.DataFrame({"models": LEFT_OUT.keys(), "why": LEFT_OUT.values()})
    shown = (
        table(pd.DataFrame(rows), HEADINGS),
        "",
        table(missing, {"models": "Left out", "why": "Why"}),
        "",
        "Any other class of transformers is resolved by its structure, or refused with the record to write.",
        f"bundled: {', '.join(data['bundled']) or 'none'}",
    )
    return Outcome(data, shown)


@command(app, "doctor")
def doctor(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="pico, pico-collapsed, a folder, or a hub name.", show_default=False)
    ],
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16, float16.")] = "auto",
    revision: Annotated[str | None, typer.Option(help="Of a hub model.", show_default=False)] = None,
    trust_remote_code: Annotated[bool, typer.Option(help="Let code that comes with the model run.")] = False,
) -> Outcome:
    """Check by effect that a model is what its family's record says: every site, layer and image token. Exit code 1 if not."""
    import pandas as pd

    import deixis as dx
    from deixis.models.checking.comparing import tolerance
    from deixis.models.checks import check_vlm

    vlm = dx.load(model, device=device, dtype=dtype, revision=revision, trust_remote_code=trust_remote_code, check=False)
    note(f"checking {vlm.name}")
    done = check_vlm(vlm, full=True, stop=False)
    frame = pd.DataFrame([asdict(check) for check in done]).rename(columns={"said": "detail"})
    frame["result"] = [{True: "holds", False: "FAILS", None: "can't run"}[check.passed] for check in done]
    failed = [check.name for check in done if check.passed is False]
    open_ones = [check.name for check in done if check.passed is None]
    end = f"{len(failed)} of {len(done)} checks fail: {', '.join(failed)}." if failed else f"Nothing fails in {len(done)} checks."
    end += f" {len(open_ones)} can't run: {', '.join(open_ones)}." if open_ones else ""
    data = {
        "model": vlm.name,
        "family": vlm.family.architecture,
        "tolerance": tolerance(vlm),
        "checks": [asdict(check) for check in done],
        "failed": failed,
    }
    heading = f"{vlm.name}: {vlm.family.architecture}; equal means within {tolerance(vlm):g} of the spread"
    columns = {"name": "Check", "result": "Result", "seconds": "Seconds", "detail": "What it says"}
    return Outcome(data, (heading, "", table(frame, columns), "", end), code=FAILED if failed else 0)
