"""The report: everything that was found about one or more runs, in one HTML file that needs nothing else."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deixis.analyses.findings import Findings, find
from deixis.analyses.report_tables import Grid, best_grid, evidence_grid, gap_grid, scores_grid
from deixis.analyses.style import language_name

if TYPE_CHECKING:
    from deixis.activations import Run
    from deixis.analyses.patch_sweep import PatchSweep
    from deixis.analyses.steer_sweep import SteerSweep
    from deixis.models import VLM

_NOTES = (
    "A probe's score says that a quantity can be decoded from a layer. It does not say that the model uses it; that is what the "
    "table at the top is about.",
    "Scenes are never split between training and test. Four languages of one picture are one scene.",
    "In the standard scenes a farther figure also stands higher in the picture and looks smaller. A probe of distance may read "
    "either.",
    "The lens reads early layers with a head that was made for the last one. A flat line there is no proof of absence.",
    "An answer counts as recognised if it keeps the template and names colour and shape rightly, in any known word for them.",
)
_OBSERVED = (
    "Used means that the model's own distribution over the answers on offer moves with the target. It is evidence from "
    "observation: no layer was edited."
)
_NUMBERS = (
    "A probe's score says that a quantity can be decoded from a layer. It does not say that the model uses it.",
    "Scenes are never split between training and test: all questions about a room or a layout are on one side.",
    "A constant letter is right as often as that letter is. An accuracy that is no higher says nothing about space.",
    "The anchors' frame lies at any angle to the camera, so that a place in one says next to nothing about that in the other.",
)
_PATCHED = (
    "Used means that the model's own distribution over the answers on offer moves with the target, and, for models that were "
    "patched, that a near scene's object tokens move a far scene's answer. Where the two disagree the verdict is undecided."
)
_SYNTHETIC = (
    "The reference is the synthetic speaker that pico was trained on: a table made up for deixis. It is not human data, and no "
    "distance from it says anything about people."
)


def report(
    runs: Sequence["Run"],
    path: str | Path,
    *,
    vlms: Mapping[str, "VLM"] | None = None,
    reference: str | Path | None = "auto",
    patches: "Sequence[PatchSweep]" = (),
    steers: "Sequence[SteerSweep]" = (),
) -> Path:
    """Analyse finished runs and write what was found to one HTML file.

    The file holds its figures and styles and loads nothing. It is written under a temporary name and renamed.

    Args:
        runs: One run of each model.
        path: The file, such as ``report.html``; one that is there is replaced.
        vlms: Models in memory, by name. The logit lens needs the model; it is loaded if it is bundled or a folder, never from
            a hub, and otherwise the section says what is missing.
        reference: As for :func:`deixis.behaviour`; ``"auto"`` is the synthetic speaker where every model is bundled, else none.
        patches: From :func:`deixis.patch_sweep`, one for each model that was patched: evidence of use for the table at the top.
        steers: From :func:`deixis.steer_sweep`, to be shown.

    Returns:
        The file's path.

    Raises:
        ValueError: No run, two runs of one model, or what an analysis refuses.
    """
    target = checked_path(path)
    return write_report(find(runs, vlms, reference, patches=patches, steers=steers), target)


def checked_path(path: str | Path) -> Path:
    """``path``, if a report can be written there: asked before the analyses, not after them."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file for the report, such as {path / 'report.html'}.")
    return path


def write_report(findings: Findings, path: str | Path) -> Path:
    """Write findings that were computed before; see :func:`report`."""
    from deixis.activations.disk import write_text

    path = checked_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, render(findings))
    return path


def render(findings: Findings) -> str:
    """The report's HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from deixis import __version__
    from deixis.analyses.report_figures import behaviour_panels, lens_panels, sweep_panels
    from deixis.analyses.report_scenes import example_scenes
    from deixis.analyses.report_sections import sections

    # Model names and answers come from outside: everything is escaped unless it is Markup.
    environment = Environment(loader=PackageLoader("deixis.analyses"), autoescape=True, undefined=StrictUndefined)
    css = environment.loader.get_source(environment, "report.css")[0] if environment.loader else ""
    terms = [run for run in findings.runs if run.settings["model"] not in findings.inside]
    grids: dict[str, Grid] = _grids(findings) if terms else {}
    return environment.get_template("report.html").render(
        css=Markup(css),  # noqa: S704 - a file of this package
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d"),
        models=findings.models,
        about_terms=bool(terms),
        conclusions=conclusions(findings),
        sweep_panels=sweep_panels(findings.sweeps),
        without_sweep=findings.without_sweep,
        lens_panels=lens_panels(findings.lens),
        without_lens=findings.without_lens,
        behaviour_panels=behaviour_panels(findings.distributions) if terms else [],
        reference=findings.reference,
        language_name=language_name,
        sections=sections(findings),
        scenes=example_scenes(terms) if terms else [],
        cards=[{"name": run.settings["model"], "facts": run_facts(run)} for run in findings.runs],
        notes=_notes(findings, bool(terms)),
        **grids,
    )


def _grids(findings: Findings) -> dict[str, Grid]:
    return {
        "gap": gap_grid(findings.gap.to_frame()),
        "evidence": evidence_grid(findings.gap.to_frame()),
        "best": best_grid(findings.best),
        "scores": scores_grid(findings.scores),
    }


def conclusions(findings: Findings) -> dict[str, str]:
    """Each model's main results in plain words."""
    from deixis.analyses.report_spacenum import conclusion

    told = {name: conclusion(inside) for name, inside in findings.inside.items()}
    return {name: told[name] if name in told else findings.gap.conclusion(name) for name in findings.models}


def _notes(findings: Findings, about_terms: bool) -> tuple[str, ...]:
    numbers = _NUMBERS if findings.inside else ()
    if not about_terms:
        return numbers
    synthetic = (_SYNTHETIC,) if findings.reference == "synthetic" else ()
    return tuple(dict.fromkeys((*synthetic, _PATCHED if findings.patches else _OBSERVED, *_NOTES, *numbers)))


def run_facts(run: "Run") -> dict[str, str]:
    """What was run, in words: model, items, settings, versions, date."""
    settings: Mapping[str, Any] = run.settings
    items = run.items
    conditions = [f"{len(items.filter(lambda i, c=c: i.condition == c))} {c}" for c in dict.fromkeys(i.condition for i in items)]
    scenes = len({item.groups.get("scene", item.id) for item in items})
    recorded = datetime.fromtimestamp((run.path / "run.json").stat().st_mtime, UTC)
    libraries = ", ".join(f"{name} {number}" for name, number in settings["libraries"].items())
    return {
        "model": " ".join(str(settings[k]) for k in ("family", "model", "revision") if settings.get(k)),
        "size": f"{settings['n_layers']} layers of width {settings['d_model']}, {settings['dtype']}",
        "weights": settings["weights"][:12],
        "items": f"{', '.join(conditions)}; {scenes} scenes; fingerprint {settings['items'][:12]}",
        "languages": ", ".join(dict.fromkeys(item.language for item in items)),
        "tasks": ", ".join(dict.fromkeys(item.task for item in items)),
        "kept": f"{', '.join(settings['sites'])} at {', '.join(settings['roles'])}",
        "attention": f"{settings['attention_implementation']} on {settings['device']}",
        "recorded": recorded.strftime("%Y-%m-%d %H:%M UTC"),
        "folder": str(run.path),
        "versions": libraries,
    }
