"""Editing a model: patches and steering."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deixis.cli.app import app
from deixis.cli.options import RunFolder, Written, listed
from deixis.cli.output import answered
from deixis.console import Outcome, command, records, table

if TYPE_CHECKING:
    from deixis.benchmarks import Item, Items

Figures = Annotated[int, typer.Option("--n", min=1, help="Figures, each near and far; at least 2 for intervals.")]


@command(app, "patch")
def patch(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="pico, a folder, or a hub name.", show_default=False)],
    roles: Annotated[str, typer.Option(help="Token groups to patch, commas between.")] = "object,background,text,answer",
    sites: Annotated[str, typer.Option(help="Places in a block, commas between.")] = "resid",
    layers: Annotated[str, typer.Option(help="Numbers with commas between, or all.")] = "all",
    languages: Annotated[str, typer.Option(help="Codes, separated by commas.")] = "en,zh,ja,ko",
    tasks: Annotated[str, typer.Option(help="demonstrative, distance, or both with a comma between.")] = "demonstrative",
    n: Figures = 4,
    size: Annotated[int, typer.Option(help="Width and height of the pictures in pixels.")] = 512,
    batch_size: Annotated[int, typer.Option(min=1, help="Pairs a pass.")] = 16,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    out: Written = None,
) -> Outcome:
    """Put a near scene's activations into a far one, place by place, and see which change the answer."""
    import deixis as dx

    numbers: list[int] | str = layers if layers == "all" else _numbers(layers)
    pairs = dx.near_far_pairs(listed(tasks), listed(languages), n, size=size)
    vlm = dx.load(model, device=device)
    found = dx.patch_sweep(vlm, pairs, listed(sites), numbers, listed(roles), batch_size=batch_size)
    frame = found.to_frame()
    restored = frame[(frame["metric"] == "restored") & (frame["contrast"] == "distance") & frame["layer"].notna()]
    wide = restored.groupby(["site", "role", "layer"], sort=False)["effect"].mean().unstack("layer").reset_index()
    wide.columns = [str(name) for name in wide.columns]
    controls = frame[(frame["metric"] == "restored") & (frame["control"] != "")]
    said = controls.groupby("control")["effect"].max()
    lines: list[Any] = [
        "Share of the difference between the two answers that a patch restores, by layer:",
        table(wide, {name: name for name in wide.columns}),
        f"Controls: the whole image {said.get('positive', float('nan')):.2f}, another colour at most "
        f"{said.get('negative', float('nan')):.2f}.",
    ]
    if restored["effect"].isna().all():
        lines = ["The answers about the near and the far scenes hardly differ: there is nothing to restore."]
    return answered(found, out, tuple(lines), {"rows": records(frame)})


@command(app, "steer")
def steer(
    run: RunFolder,
    layer: Annotated[int | None, typer.Option(help="Where; the last block's input if not given.", show_default=False)] = None,
    role: Annotated[str, typer.Option(help="At which token positions.")] = "answer",
    target: Annotated[str, typer.Option(help="Whose direction: distance_m, x_m, ...")] = "distance_m",
    doses: Annotated[str, typer.Option(help="In the target's unit, commas between.")] = "-2,-1,0,1,2",
    n: Annotated[int, typer.Option("--n", min=1, help="Scenes to steer, those in the middle first.")] = 8,
    model: Annotated[str | None, typer.Option(help="Where the model is, if not where it was.", show_default=False)] = None,
    out: Written = None,
) -> Outcome:
    """Move activations along a probe's direction and see how the answers follow."""
    import deixis as dx

    opened = dx.open_run(run)
    vlm = dx.load(model or opened.info["model"])
    place = vlm.n_layers - 1 if layer is None else layer
    way = dx.probe_direction(opened, target, layer=place, role=role)
    found = dx.steer_sweep(vlm, _middle(opened.items, target, n), way, [float(dose) for dose in listed(doses)])
    slopes = found.slopes()
    headings = {"task": "task", "language": "language", "direction": "direction", "slope": "logits per unit"}
    headings |= {"low": "low", "high": "high", "n_items": "items"}
    data = {"rows": records(found.to_frame()), "slopes": records(slopes)}
    lead = f"The nearest option's logit less the farthest one's, per {way.unit or 'unit'} of {target} at resid {place}:"
    return answered(found, out, (lead, table(slopes, headings)), data)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in listed(text)]
    except ValueError:
        raise ValueError(f"layers={text!r} is neither 'all' nor numbers with commas between.") from None


def _middle(items: "Items", target: str, n: int) -> "Sequence[Item]":
    """The real items of the ``n`` scenes whose target lies nearest to the middle of its span."""
    real = [item for item in items if item.condition == "real" and target in item.targets]
    if not real:
        raise ValueError(f"the run holds no real items with the target {target!r}.")
    values = [item.targets[target] for item in real]
    centre = (min(values) + max(values)) / 2
    scenes = {item.groups.get("scene", item.id): abs(item.targets[target] - centre) for item in real}
    kept = sorted(scenes, key=lambda scene: (scenes[scene], scene))[:n]
    return [item for item in real if item.groups.get("scene", item.id) in kept]
