"""Making runs and checking them."""

import os
from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.app import app
from deixis.cli.choice import BenchmarkChoice, takes_benchmark
from deixis.cli.drawing import benchmark_items, draw
from deixis.cli.estimates import estimated
from deixis.cli.options import Condition, RunFolder, Workers, listed
from deixis.console import Outcome, command, is_watched


def _all_or_numbers(layers: str) -> str:
    if layers != "all" and not (listed(layers) and all(number.isdecimal() for number in listed(layers))):
        raise typer.BadParameter(f"{layers} is neither all nor numbers separated by commas, such as 0,3,6.")
    return layers


@command(app, "record")
@takes_benchmark
def record(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="pico, pico-collapsed, a folder, or a hub name.", show_default=False)
    ],
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="memory-game, spacenum, or a folder or file of items.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The run's folder; an interrupted run there goes on.", show_default=False)],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would take: tokens, disk, operations, hours. Loads no weights.")
    ] = False,
    tflops: Annotated[
        float, typer.Option(help="With --dry-run: what the device does in practice, in 10^12 operations a second.")
    ] = 100.0,
    condition: Condition = "real",
    roles: Annotated[str, typer.Option(help="Token positions to keep, separated by commas.")] = "answer,object,image",
    layers: Annotated[str, typer.Option(help="all, or numbers separated by commas.", callback=_all_or_numbers)] = "all",
    activations_only: Annotated[
        bool, typer.Option("--activations-only", help="No option logits, no answers: a pass ends behind the last layer kept.")
    ] = False,
    attention: Annotated[
        str | None,
        typer.Option(help="Also keep where these token positions look: answer, or several with commas.", show_default=False),
    ] = None,
    vision: Annotated[bool, typer.Option("--vision-attention", help="Also the vision tower's attention.")] = False,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Items a forward pass.", show_default="chosen")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16, float16.")] = "auto",
    revision: Annotated[str | None, typer.Option(help="Of a hub model.", show_default=False)] = None,
    workers: Workers = 2,
    *,
    choice: BenchmarkChoice,
) -> Outcome:
    """Run the items through the model once; keep activations, option logits and written answers."""
    import deixis as dx
    from deixis.activations.ranks import rank_in

    items = benchmark_items(benchmark, choice, listed(condition))
    watched = tuple(listed(attention)) if attention else ("answer",)
    plan = dx.AttentionPlan(queries=watched, vision=vision) if attention or vision else False
    kept = {"roles": tuple(listed(roles)), "attention": plan, "batch_size": batch_size or "auto"}
    kept |= {"layers": layers if layers == "all" else [int(number) for number in listed(layers)]}
    kept |= {"answers": False, "options": False} if activations_only else {}
    if dry_run:
        from deixis.models.outline import outline

        return estimated(dx.estimate(outline(model, dtype=dtype, revision=revision), items, out, **kept, tflops=tflops))
    vlm = dx.load(model, device=device, dtype=dtype, revision=revision)
    draw(items, workers)
    run = dx.record(vlm, items, out, **kept, progress=is_watched())
    data = {"run": str(run.path), "model": vlm.name, "items": len(run.items), "layers": vlm.n_layers}
    told = f"{len(run.items)} items, {vlm.n_layers} layers of {vlm.name}: {run.path}"
    return Outcome(data, (told,), silent=rank_in(os.environ).number > 0)


@command(app, "verify")
def verify(
    run: RunFolder,
    repair: Annotated[bool, typer.Option("--repair", help="Record again what is missing or damaged, and nothing else.")] = False,
    model: Annotated[str | None, typer.Option(help="Where the model is, if not where it was.", show_default=False)] = None,
) -> Outcome:
    """Compare everything that was recorded with its checksums."""
    import deixis as dx

    opened = dx.open_run(run)
    if not repair:
        shards = opened.verify()
        return Outcome({"run": str(run), "shards": shards, "sound": True}, (f"{shards} shards, all of them sound: {run}",))
    faults = opened.faults()
    if faults:
        from deixis.activations import repair as record_again

        record_again(dx.load(model or opened.settings["model"], dtype=opened.settings["dtype"]), opened, progress=is_watched())
    data = {"run": str(run), "shards": opened.verify(), "repaired": sorted(faults), "sound": True}
    return Outcome(
        data, (*faults.values(), f"{len(faults)} of {data['shards']} shards recorded again, all of them sound now: {run}")
    )
