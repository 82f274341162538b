"""Everything that the report and the demo show, computed once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from deixis.analyses.distributions import check_regions

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations import Run
    from deixis.analyses.encoding_gap import EncodingGap
    from deixis.analyses.layer_sweep import LayerSweep
    from deixis.analyses.patch_sweep import PatchSweep
    from deixis.analyses.spacenum_inside import SpaceNumInside
    from deixis.analyses.steer_sweep import SteerSweep
    from deixis.benchmarks import Items
    from deixis.models import VLM

SWEEP_TARGETS = ("distance_m", "region")
SWEEP_ROLES = ("answer", "object")
N_BOOTSTRAP = 70
"""Draws of each interval in a report: they are most of its work."""
NO_TERMS = "no demonstratives were asked for, or they begin with the same token, so that a lens can't tell them apart."


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Further runs of a model that its run is read beside."""

    untrained: "Run | None" = None
    """The same items through :func:`deixis.untrained`."""
    decoupled: "Run | None" = None
    """Scenes in which distance, image height and size are independent: ``memory_game(decouple=True)``."""
    decoupled_untrained: "Run | None" = None
    """These through the untrained model."""


@dataclass(frozen=True)
class Findings:
    """What the analyses found in the runs of one or more models; frames have the models below each other."""

    runs: tuple["Run", ...]
    sweeps: "pd.DataFrame"
    """Every layer sweep's frame."""
    best: "pd.DataFrame"
    """Rows of ``sweeps`` at each sweep's best layer, with ``held_out`` (its score on folds that had no part in the choice)."""
    without_sweep: tuple[str, ...]
    """Sweeps that were refused because the items are too few, and why, a sentence each."""
    lens: "pd.DataFrame"
    """The lens frames' rows of real items with terms, with the item's ``language`` and ``region``."""
    without_lens: Mapping[str, str]
    """Models whose lens could not be computed, and why."""
    distributions: "pd.DataFrame"
    """The frames of :func:`deixis.behaviour`."""
    scores: "pd.DataFrame"
    """Its scores."""
    reference: str | None
    gap: "EncodingGap"
    vlms: Mapping[str, "VLM"]
    """Models that are in memory, by name; what needs a model that is not among them says so."""
    beside: Mapping[str, Beside] = field(default_factory=dict)
    """Further runs, by model."""
    decoupled: "pd.DataFrame | None" = None
    """The frames of the sweeps over decoupled scenes, as ``sweeps``; None without such runs."""
    decoupled_best: "pd.DataFrame | None" = None
    """As ``best``."""
    warned: tuple[str, ...] = ()
    """What so few scenes could not have shown, a sentence each."""
    patches: "tuple[PatchSweep, ...]" = ()
    """Patch sweeps of these models, which the gap rests on too."""
    steers: "tuple[SteerSweep, ...]" = ()
    """Steering of these models."""
    inside: "Mapping[str, SpaceNumInside]" = field(default_factory=dict)
    """Of models with a run of SpaceNum's items, by model: no other analysis here is made of these runs."""

    @property
    def models(self) -> list[str]:
        """The models' names, in the order of the runs."""
        return [run.settings["model"] for run in self.runs]


def find(
    runs: Sequence["Run"],
    vlms: Mapping[str, "VLM"] | None = None,
    reference: str | Path | None = "auto",
    say: Callable[[str], None] = lambda _: None,
    *,
    beside: Mapping[str, Beside] | None = None,
    patches: "Sequence[PatchSweep]" = (),
    steers: "Sequence[SteerSweep]" = (),
) -> Findings:
    """Run every analysis of this version on finished runs.

    Args:
        runs: One run of each model.
        vlms: Models that are in memory, by name, for the logit lens. Others are loaded if they are bundled or a folder; never
            from a hub.
        reference: As for :func:`deixis.behaviour`; ``"auto"`` is the synthetic speaker where every model is bundled, else none.
        say: Told what is being computed.
        beside: Further runs, by model: an untrained model, decoupled scenes.
        patches: Patch sweeps of the models, as evidence of use.
        steers: Steering of the models, to be shown.

    Raises:
        ValueError: No run, or two runs of one model.
    """
    from deixis.analyses.behaviour import term_behaviour
    from deixis.analyses.encoding_gap import encoding_gap, no_gap
    from deixis.analyses.spacenum_inside import is_spacenum
    from deixis.probes.power import told_of_few

    _check_distinct(runs)
    everyone, others = runs, beside or {}
    numbers = [run for run in runs if is_spacenum(run)]
    runs = [run for run in runs if run not in numbers]
    reference = _reference(runs, reference) if runs else None
    with told_of_few() as warned:
        say("probing the layers")
        inside = _insides(numbers, others)
        swept = [_sweeps(run, others.get(run.settings["model"], Beside()).untrained) for run in runs]
        decoupled = [_sweeps(one.decoupled, one.decoupled_untrained) for one in others.values() if one.decoupled is not None]
        apart = [sweep for found, _ in decoupled for sweep in found]
        sweeps = [sweep for found, _ in swept for sweep in found]
        say("following the logits")
        lenses, without_lens = _lenses(runs, vlms or {})
        say("comparing the answers")
        behaviours = [term_behaviour(run, reference=reference) for run in runs]
        say("weighing encoding against use")
        gap = encoding_gap(list(runs), patches=list(patches) or None) if runs else no_gap()
    return Findings(
        runs=tuple(everyone),
        sweeps=_joined([sweep.to_frame() for sweep in sweeps]),
        best=_joined([best_rows(sweep) for sweep in sweeps]),
        without_sweep=tuple(reason for _, refused in swept + decoupled for reason in refused),
        lens=_joined(lenses),
        without_lens=without_lens,
        distributions=_joined([b.to_frame() for b in behaviours]),
        scores=_joined([b.scores() for b in behaviours]),
        reference=None if reference is None else str(reference),
        gap=gap,
        vlms=vlms or {},
        patches=tuple(patches),
        steers=tuple(steers),
        beside=others,
        decoupled=_joined([sweep.to_frame() for sweep in apart]) if apart else None,
        decoupled_best=_joined([best_rows(sweep) for sweep in apart]) if apart else None,
        warned=tuple(warned),
        inside=inside,
    )


def _insides(runs: Sequence["Run"], beside: Mapping[str, Beside]) -> "dict[str, SpaceNumInside]":
    from deixis.analyses.spacenum_inside import spacenum_inside

    names = [str(run.settings["model"]) for run in runs]
    return {n: spacenum_inside(run, beside.get(n, Beside()).untrained) for n, run in zip(names, runs, strict=True)}


def lens_of_terms(frame: "pd.DataFrame", items: "Items") -> "pd.DataFrame":
    """The rows of real items whose options carry terms, with the items' ``language`` and ``region``.

    Args:
        frame: Of :func:`deixis.logit_lens`.
        items: The run's.
    """
    import pandas as pd

    check_regions(items)
    known = pd.DataFrame(
        [(i.id, i.language, i.targets["region"]) for i in items if i.condition == "real" and "region" in i.targets],
        columns=["item", "language", "region"],
    ).astype({"region": int})
    return frame[frame["term"].notna()].merge(known, on="item")


def mean_by_region(lens: "pd.DataFrame") -> "pd.DataFrame":
    """Mean probability of each term over the items of a region: ``model language term layer region prob``.

    Args:
        lens: Of :func:`lens_of_terms`.
    """
    return lens.groupby(["model", "language", "term", "layer", "region"], sort=False)["prob"].mean().reset_index()


def best_rows(sweep: "LayerSweep") -> "pd.DataFrame":
    """The sweep's rows at its best layer, and beside the score there the one that the choice has not flattered."""
    best = sweep.best()
    frame = sweep.to_frame()
    rows = frame[frame["layer"] == best.layer]
    return rows.assign(held_out=[best.score if metric == best.metric else float("nan") for metric in rows["metric"]])


def _check_distinct(runs: Sequence["Run"]) -> None:
    names = [run.settings["model"] for run in runs]
    if not names:
        raise ValueError("there is no run to report on; give at least one.")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two of the runs are of the model {name!r}; a report compares models, so give one run of each.")


def _reference(runs: Sequence["Run"], reference: str | Path | None) -> str | Path | None:
    if reference != "auto":
        return reference
    from deixis.models import BUNDLED

    return "synthetic" if all(run.settings["model"] in BUNDLED for run in runs) else None


def _sweeps(run: "Run", untrained: "Run | None" = None) -> tuple[list["LayerSweep"], list[str]]:
    """A sweep of every target that the real items have in two values or more, at every role that was recorded; and refusals."""
    from deixis.analyses.layer_sweep import layer_sweep
    from deixis.probes import NotEnoughDataError

    real = [item for item in run.items if item.condition == "real"]
    targets = [t for t in SWEEP_TARGETS if len({item.targets[t] for item in real if t in item.targets}) > 1]
    roles = [role for role in SWEEP_ROLES if role in run.settings["roles"]]
    found, refused = [], []
    for target, role in product(targets, roles):
        try:
            found.append(layer_sweep(run, target=target, role=role, untrained=untrained, n_bootstrap=N_BOOTSTRAP))
        except NotEnoughDataError as error:
            refused.append(f"No sweep of {target} at {role} for {run.settings['model']}: {error}")
    return found, refused


def _lenses(runs: Sequence["Run"], vlms: Mapping[str, "VLM"]) -> tuple[list["pd.DataFrame"], dict[str, str]]:
    """The lens of every model that is at hand, and why the others have none."""
    from deixis.analyses.logit_lens import logit_lens

    found, missing = [], {}
    for run in runs:
        name = run.settings["model"]
        vlm = vlms.get(name) or _local_model(name)
        if vlm is None:
            missing[name] = "the model is neither bundled nor a folder; pass it in vlms={name: vlm} to have one."
        else:
            lens = lens_of_terms(logit_lens(run, vlm).to_frame(), run.items)
            found.append(lens)
            if not len(lens):
                missing[name] = NO_TERMS
    return found, missing


def _local_model(name: str) -> "VLM | None":
    """The model, if it is here: a report must not start a download of many gigabytes."""
    from deixis.models import BUNDLED, load

    return load(name) if name in BUNDLED or Path(name).is_dir() else None


def _joined(frames: Sequence["pd.DataFrame"]) -> "pd.DataFrame":
    import pandas as pd

    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
