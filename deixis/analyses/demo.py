"""The demo: the whole library on the bundled models, whose truth is known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations import Run
    from deixis.analyses.findings import Beside, Findings
    from deixis.benchmarks import Items
    from deixis.models import VLM

DEMO_MODELS = ("pico", "pico-collapsed")
DEMO_DECOUPLED = 60
"""Scenes in which distance, image height and size are independent, drawn for the first model."""
DEMO_COLUMNS = {
    "model": "model",
    "layer": "best\nlayer",
    "r2": "distance\nR2",
    "control": "control\ntask",
    "accuracy": "said\nright",
    "js_distance": "JS to\nspeaker",
    "case": "demonstratives",
}
"""Columns of the demo's table, and what they are called when printed."""


@dataclass(frozen=True)
class Demo:
    """What the demo found."""

    runs: tuple["Run", ...]
    findings: "Findings"
    frame: "pd.DataFrame"
    """One row per model; the columns are those of :data:`DEMO_COLUMNS`."""
    conclusions: Mapping[str, str]
    in_words: str
    """Where distance is encoded, and whose demonstratives use it: from :func:`deixis.encoding_gap` alone."""
    report: Path


def demo_items() -> "Items":
    """The standard scenes with both tasks in four languages, and each question again with a blank picture."""
    from deixis.benchmarks import memory_game

    real = memory_game(tasks=("demonstrative", "distance"))
    return real + real.with_condition("blank")


def demo_decoupled() -> "Items":
    """Decoupled scenes, the demonstratives asked for in English, and again with a blank picture."""
    from deixis.benchmarks import memory_game

    real = memory_game(languages=("en",), decouple=True, n=DEMO_DECOUPLED)
    return real + real.with_condition("blank")


def run_demo(
    out: str | Path,
    models: Sequence[str] = DEMO_MODELS,
    items: "Items | None" = None,
    decoupled: "Items | None" = None,
    *,
    draw: "Callable[[Items], None]" = lambda _: None,
    progress: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> Demo:
    """Record the models, analyse the runs and write a report.

    Args:
        out: Folder for one run per model and ``report.html``; finished runs that lie there are used again.
        models: Names or folders.
        items: None for :func:`demo_items`.
        decoupled: For the first model, beside which its sweeps are shown; None for :func:`demo_decoupled` if ``items`` is None
            too, else for none.
        draw: Called with the items when the models are loaded: the place to draw the pictures in several processes.
        progress: Show a progress bar on stderr if that is a terminal.
        say: Told what is being done.

    Raises:
        ValueError: No model or an unknown one, items that are too few for its probes, or ``out`` holds runs of other settings.
    """
    from deixis.activations import record
    from deixis.analyses.demo_edits import demo_patches, demo_steers
    from deixis.analyses.findings import find
    from deixis.analyses.report import checked_path, write_report
    from deixis.models import load

    if not models:
        raise ValueError(f"no model was named; the demo's own are: {', '.join(DEMO_MODELS)}.")
    out = Path(out)
    path = checked_path(out / "report.html")
    asked = demo_items() if items is None else items
    apart = demo_decoupled() if items is None and decoupled is None else decoupled
    vlms = {vlm.name: vlm for vlm in map(load, models)}
    draw(asked if apart is None else asked + apart)
    runs = []
    for name, vlm in vlms.items():
        say(f"recording {name}")
        runs.append(record(vlm, asked, out / Path(name).name, attention=True, progress=progress))
    first, vlm = next(iter(vlms.items()))
    say(f"recording what {first} is read beside")
    beside = {first: _beside(vlm, asked, apart, out / Path(first).name, progress=progress)}
    say("patching and steering")
    edits = {"patches": demo_patches(runs, vlms), "steers": demo_steers(runs, vlms)}
    findings = find(runs, vlms, reference="synthetic", say=say, beside=beside, **edits)
    if findings.without_sweep:
        raise ValueError(findings.without_sweep[0])
    say("writing the report")
    write_report(findings, path)
    return Demo(
        runs=tuple(runs),
        findings=findings,
        frame=demo_frame(findings),
        conclusions={name: findings.gap.conclusion(name) for name in findings.models},
        in_words=in_words(findings.gap.to_frame()),
        report=path,
    )


def _beside(vlm: "VLM", asked: "Items", apart: "Items | None", folder: Path, *, progress: bool) -> "Beside":
    """The first model untrained, on the questions that are probed, and on decoupled scenes; without written answers."""
    from deixis.activations import record
    from deixis.analyses.findings import SWEEP_ROLES, Beside
    from deixis.models import untrained

    kept = {"roles": SWEEP_ROLES, "answers": False, "progress": progress}
    probed = asked.filter(lambda item: item.condition == "real" and item.task == "demonstrative")
    fresh = untrained(vlm)

    def kept_as(name: str, model: "VLM", items: "Items | None") -> "Run | None":
        return (
            record(model, items, folder.with_name(f"{folder.name}-{name}"), **kept) if items is not None and len(items) else None
        )

    real = None if apart is None else apart.filter(lambda item: item.condition == "real")
    return Beside(
        untrained=kept_as("untrained", fresh, probed),
        decoupled=kept_as("decoupled", vlm, apart),
        decoupled_untrained=kept_as("decoupled-untrained", fresh, real),
    )


def demo_frame(findings: "Findings") -> "pd.DataFrame":
    """The demo's table, one row per model: distance at the answer token, the spoken distance, the demonstratives."""
    import pandas as pd

    best, scores, gap = findings.best, findings.scores, findings.gap.to_frame()
    rows = []
    for name in findings.models:
        probe = best[(best["model"] == name) & (best["target"] == "distance_m") & (best["role"] == "answer")]
        probe = probe[probe["metric"] == "r2"].iloc[0]
        spoken = scores[(scores["model"] == name) & (scores["region"] == "mean")]
        cases = _cases(gap[gap["model"] == name])
        rows.append(
            {
                "model": name,
                "layer": int(probe["layer"]),
                "r2": float(probe["held_out"]),
                "control": float(probe["control"]),
                "accuracy": float(spoken["accuracy"].mean()),
                "js_distance": float(spoken["js_distance"].mean()),
                "case": " / ".join(dict.fromkeys(cases.values())),
            }
        )
    return pd.DataFrame(rows, columns=list(DEMO_COLUMNS))


def in_words(gap: "pd.DataFrame") -> str:
    """In which models distance is encoded, and whose demonstratives it drives.

    Args:
        gap: Of :func:`deixis.encoding_gap`; nothing else is looked at.
    """
    models = list(dict.fromkeys(gap["model"]))
    cases = {name: _cases(gap[gap["model"] == name]) for name in models}
    same = {name: next(iter(found.values())) for name, found in cases.items() if len(set(found.values())) == 1}
    encoded = [name for name in models if cases[name] and all(c.startswith("encoded") for c in cases[name].values())]
    used = [name for name in encoded if same.get(name) == "encoded and used"]
    unused = [name for name in encoded if same.get(name) == "encoded, unused"]
    sentences = [f"Distance is encoded in {_all_of(encoded, models)}."]
    if used:
        sentences.append(f"It drives the demonstratives of {_and(used)}.")
    if unused:
        sentences.append(f"The demonstratives of {_and(unused)} do not use it.")
    for name in models:
        if name not in (*used, *unused):
            by_case: dict[str, list[str]] = {}
            for language, case in cases[name].items():
                by_case.setdefault(case, []).append(language)
            told = "; ".join(f"{case} ({', '.join(languages)})" for case, languages in by_case.items()) or "not looked at"
            sentences.append(f"{name}: {told}.")
    return " ".join(sentences)


def _cases(rows: "pd.DataFrame") -> dict[str, str]:
    """The case of one model's demonstratives in each language."""
    asked = rows[rows["task"] == "demonstrative"]
    return dict(zip(asked["language"].astype(str), asked["case"].astype(str), strict=True))


def _all_of(names: Sequence[str], everyone: Sequence[str]) -> str:
    if len(names) == len(everyone) and len(everyone) > 1:
        return f"{'both' if len(everyone) == 2 else 'all'} models"
    return _and(names) if names else "none of the models" if len(everyone) > 1 else f"no layer of {everyone[0]}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
