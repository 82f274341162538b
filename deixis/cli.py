"""The ``deixis`` command: each subcommand is a thin wrapper around a call of the library."""

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, runtime_checkable

import typer

from deixis.console import Outcome, command, is_watched, note, progress_bar, records, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.benchmarks import Items
    from deixis.benchmarks.images import ImageHandle

app = typer.Typer(
    name="deixis",
    help="Where inside a vision-language model does space live, and does its answer use it?",
    epilog="Start with: deixis demo",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_FIGURES = (".png", ".svg", ".pdf")


def _table_or_figure(path: Path | None) -> Path | None:
    if path is not None and path.suffix not in (".csv", *_FIGURES):
        raise typer.BadParameter(f"{path} must end in .csv, {', '.join(_FIGURES[:-1])} or {_FIGURES[-1]}.")
    # Asked before the work, not after it.
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"{path.parent} is no folder; make it first, or name another.")
    if path is not None and path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file.")
    return path


RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that 'deixis record' wrote.", show_default=False)]
RunFolders = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folders that 'deixis record' wrote.", show_default=False)
]
Written = Annotated[
    Path | None,
    typer.Option(help="Also write a table (.csv) or a figure (.png, .svg, .pdf).", show_default=False, callback=_table_or_figure),
]
_CHOICE = "For memory-game"
Languages = Annotated[str, typer.Option(help="Codes, separated by commas.", rich_help_panel=_CHOICE)]
Tasks = Annotated[str, typer.Option(help="demonstrative, distance, or both with a comma between.", rich_help_panel=_CHOICE)]
Count = Annotated[
    int | None,
    typer.Option("--n", min=1, help="Scenes drawn at random, not the standard 60.", show_default=False, rich_help_panel=_CHOICE),
]
Seed = Annotated[int, typer.Option(help="Of everything random.", rich_help_panel=_CHOICE)]
Size = Annotated[int, typer.Option(help="Width and height of the pictures in pixels.", rich_help_panel=_CHOICE)]
Workers = Annotated[int, typer.Option(min=1, help="Processes that draw pictures.")]
Reference = Annotated[
    str | None, typer.Option(help="'synthetic', or a CSV file: language,region,term,proportion,n.", show_default=False)
]


@runtime_checkable
class _Result(Protocol):
    """What every analysis returns."""

    def to_frame(self) -> "pd.DataFrame": ...
    def plot(self, ax: "Axes | None" = None) -> "Axes": ...


def _show_version(wanted: bool) -> bool:
    if wanted:
        from deixis import __version__

        typer.echo(__version__)
        raise typer.Exit
    return wanted


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Hold what stands before a subcommand."""


@command(app, "demo")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("deixis-demo"),
    models: Annotated[str, typer.Option(help="Models, separated by commas.")] = "pico,pico-collapsed",
    workers: Workers = 2,
) -> Outcome:
    """The main job on the bundled models: where distance is decoded, and whose demonstratives use it."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the demo's models are in the package
    from deixis.analyses.demo import DEMO_COLUMNS, run_demo

    draw = partial(_draw, workers=workers)
    result = run_demo(out, _listed(models), draw=draw, progress=is_watched(), say=note)
    data = {
        "models": records(result.frame),
        "conclusions": dict(result.conclusions),
        "in_words": result.in_words,
        "report": str(result.report),
    }
    shown = (table(result.frame, DEMO_COLUMNS), "", result.in_words, "", f"The whole report: {result.report}")
    return Outcome(data, shown)


@command(app, "render")
def render(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="memory-game.", show_default=False)],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for items and pictures.", show_default=False)],
    n: Count = None,
    size: Size = 512,
    seed: Seed = 0,
    languages: Languages = "en,zh,ja,ko",
    tasks: Tasks = "demonstrative",
    workers: Workers = 2,
) -> Outcome:
    """Draw a benchmark's items and write all that a model sees to DIR."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):  # said before the drawing, not after it
        raise FileExistsError(f"{folder} holds something already; nothing is overwritten, so name a new folder.")
    items = _benchmark(benchmark, languages, tasks, n, seed, size)
    _draw(items, workers)
    items.save(folder)
    scenes = len({item.groups["scene"] for item in items})
    data = {"folder": str(folder), "items": len(items), "scenes": scenes, "fingerprint": items.fingerprint}
    return Outcome(data, (f"{len(items)} items on {scenes} scenes: {folder}",))


@command(app, "record")
def record(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="pico, pico-collapsed, a folder, or a hub name.", show_default=False)
    ],
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="memory-game, or a folder of saved items.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The run's folder; an interrupted run there goes on.", show_default=False)],
    condition: Annotated[str, typer.Option(help="real, blank, or both with a comma between.")] = "real",
    roles: Annotated[str, typer.Option(help="Token positions to keep, separated by commas.")] = "answer,object,image",
    n: Count = None,
    size: Size = 512,
    seed: Seed = 0,
    languages: Languages = "en,zh,ja,ko",
    tasks: Tasks = "demonstrative",
    batch_size: Annotated[int | None, typer.Option(min=1, help="Items a forward pass.", show_default="chosen")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16, float16.")] = "auto",
    revision: Annotated[str | None, typer.Option(help="Of a hub model.", show_default=False)] = None,
    workers: Workers = 2,
) -> Outcome:
    """Run the items through the model once; keep activations, option logits and written answers."""
    import deixis as dx

    items = _conditions(_benchmark(benchmark, languages, tasks, n, seed, size), _listed(condition))
    vlm = dx.load(model, device=device, dtype=dtype, revision=revision)
    _draw(items, workers)
    run = dx.record(vlm, items, out, roles=tuple(_listed(roles)), batch_size=batch_size or "auto", progress=is_watched())
    data = {"run": str(run.path), "model": vlm.name, "items": len(run.items), "layers": vlm.n_layers}
    return Outcome(data, (f"{len(run.items)} items, {vlm.n_layers} layers of {vlm.name}: {run.path}",))


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
    return _answer(
        sweep,
        out,
        (table(frame, _filled(frame, headings)), "", f"{best}."),
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
        return _answer(found, out, (NO_TERMS,), {"rows": records(frame)})
    headings = {"language": "language", "term": "term", "layer": "layer"}
    headings |= {f"region {region}": f"region {region}" for region in sorted(set(shares["region"]))}
    shown = table(_spread(shares, "region", "region {}"), headings)
    return _answer(found, out, ("Mean probability of each term among the options:", shown), {"rows": records(frame)})


@command(app, "score")
def score(run: RunFolder, reference: Reference = None, out: Written = None) -> Outcome:
    """Compare the answers with a reference and with the truth."""
    import deixis as dx

    found = dx.behaviour(dx.open_run(run), reference=reference)
    scores = found.scores()
    headings = {"language": "language", "region": "region", "js_distance": "JS distance", "low": "low", "high": "high"}
    headings |= {"js_uniform": "JS uniform", "recognised": "recognised", "accuracy": "accuracy", "n": "n"}
    data = {"scores": records(scores), "distributions": records(found.to_frame())}
    return _answer(found, out, (table(scores, _filled(scores, headings)),), data)


@command(app, "gap")
def gap(runs: RunFolders, out: Written = None) -> Outcome:
    """Say for each target whether it is encoded and whether the answer uses it."""
    import deixis as dx

    opened = [dx.open_run(run) for run in runs]
    found = dx.encoding_gap(opened)
    frame = found.to_frame()
    conclusions = {name: found.conclusion(name) for name in dict.fromkeys(frame["model"])}
    headings = {name: name for name in ("model", "task", "language", "encoded", "used", "prior", "case")}
    data = {"rows": records(frame), "conclusions": conclusions}
    return _answer(found, out, (table(frame, headings), "", *conclusions.values()), data)


@command(app, "verify")
def verify(run: RunFolder) -> Outcome:
    """Compare everything that was recorded with its checksums."""
    import deixis as dx

    shards = dx.open_run(run).verify()
    return Outcome({"run": str(run), "shards": shards, "sound": True}, (f"{shards} shards, all of them sound: {run}",))


@command(app, "families")
def families() -> Outcome:
    """List the model families that deixis has a record of, and the bundled models."""
    from deixis.models import BUNDLED, FAMILIES

    data = {"families": list(FAMILIES), "bundled": list(BUNDLED)}
    return Outcome(data, (*data["families"], f"bundled: {', '.join(data['bundled']) or 'none'}"))


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


def main() -> None:
    """Run the command line."""
    app()


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _benchmark(name: str, languages: str, tasks: str, n: int | None, seed: int, size: int) -> "Items":
    from deixis.benchmarks import load_items, memory_game

    if name == "memory-game":
        return memory_game(tasks=_listed(tasks), languages=_listed(languages), n=n, seed=seed, size=size)
    if Path(name).exists():
        return load_items(name)
    raise ValueError(f"benchmark {name!r} is neither 'memory-game' nor a folder or .jsonl file of saved items.")


def _conditions(items: "Items", names: Sequence[str]) -> "Items":
    parts = [items if name == "real" else items.with_condition(name) for name in names]
    if not parts:
        raise ValueError("no condition was named; use real, blank, or real,blank.")
    return sum(parts[1:], start=parts[0])


def _draw(items: "Items", workers: int) -> None:
    """Put the items' pictures into the cache, in processes of their own."""
    from deixis.benchmarks.images import DrawnImage, cache_folder

    images = {image.key: image for item in items for image in item.images if isinstance(image, DrawnImage)}
    missing = [image for key, image in images.items() if not (cache_folder() / "images" / f"{key}.png").exists()]
    if not missing or workers == 1:
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for _ in progress_bar(pool.map(_load, missing, chunksize=2), len(missing), "drawing scenes"):
            pass


def _load(image: "ImageHandle") -> None:
    image.load()


def _answer(result: _Result, out: Path | None, shown: tuple[Any, ...], data: dict[str, Any]) -> Outcome:
    """The outcome of an analysis, written to ``out`` too if that is asked for."""
    if out is not None:
        _write(result, out)
        shown = (*shown, "", f"written: {out}")
    return Outcome(data, shown)


def _write(result: _Result, path: Path) -> None:
    if path.suffix == ".csv":
        result.to_frame().to_csv(path, index=False)
        return
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    result.plot(figure.add_subplot())
    figure.savefig(path, dpi=200)


def _filled(frame: "pd.DataFrame", headings: dict[str, str]) -> dict[str, str]:
    """The columns that hold anything: what was not asked for is no column of dashes."""
    return {name: heading for name, heading in headings.items() if frame[name].notna().any()}


def _spread(frame: "pd.DataFrame", column: str, heading: str) -> "pd.DataFrame":
    """One column for each value of ``column``."""
    rest = [name for name in frame.columns if name not in (column, "prob")]
    wide = frame.pivot(index=rest, columns=column, values="prob").reset_index()
    return wide.rename(columns=lambda name: heading.format(name) if isinstance(name, int) else name)
