"""Which layers hold a target: one probe per layer, with its controls."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from deixis.analyses.probe_data import Chosen, ProbeData, choose_items, probe_data
from deixis.analyses.progress import steps
from deixis.analyses.run_checks import (
    ARCHITECTURE,
    NETWORK,
    called,
    chosen_layers,
    first_difference,
    refuse_other_items,
    refuse_paths,
    refuse_shared_pictures,
)
from deixis.analyses.sweep_plot import plot_layer_sweep as plot_layer_sweep
from deixis.analyses.sweep_results import COLUMNS as COLUMNS
from deixis.analyses.sweep_results import BestLayer as BestLayer
from deixis.analyses.sweep_results import LayerScores, LayerSweep, among
from deixis.probes import ProbeScores
from deixis.probes.controls import recurring
from deixis.probes.cross_validation import Counts, cross_validated, p_values
from deixis.probes.power import warn_of_few
from deixis.probes.scores import ERRORS

if TYPE_CHECKING:
    from deixis.activations import Run

CONTROLS = ("task", "interval", "permutation", "nuisance", "residual", "untrained", "blank", "bits")
"""What a sweep can run beside its scores: the control task, the bootstrap interval, the permutation test, the score from
nuisances alone and without them, an untrained model, the blank picture, and the online code length."""
CLASS_TARGETS = frozenset({"region", "action"})
"""Targets that are classes, whatever their numbers."""


def layer_sweep(
    run: "Run",
    target: str,
    role: str = "answer",
    site: str = "resid",
    groups: str = "scene",
    condition: str = "real",
    controls: str | Sequence[str] = "default",
    *,
    untrained: "Run | None" = None,
    blank: "Run | None" = None,
    nuisances: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    language: str | None = None,
    task: str | None = None,
    where: Mapping[str, str] | None = None,
    types: str = "figure",
    kind: str | None = None,
    probe: str | None = None,
    n_folds: int = 5,
    n_controls: int = 20,
    n_permutations: int = 200,
    n_bootstrap: int = 200,
    n_orders: int = 5,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = False,
) -> LayerSweep:
    """Decode a target from every recorded layer, on scenes the probe has not seen, with everything it must be read beside.

    Each layer gets the nested, grouped cross-validation of :func:`deixis.probes.cross_validate_probe`, with the same folds and
    the same permutations. Vectors that are identical for several questions about a scene count once (``n_items`` is the number
    of distinct vectors). Layer 0 at ``resid`` is the input embedding.

    Args:
        run: What :func:`deixis.record` or :func:`deixis.open_run` returns.
        target: A key of the items' ``targets``. ``region`` and ``action`` are decoded as classes (balanced accuracy), others as
            values (R2, and the mean absolute error in the target's unit).
        role: At which token positions.
        site: Where in the model: ``resid``, ``merger_in``, ``merger_out``, ``vision``, ... as recorded.
        groups: The items' group that is never split between training and test.
        condition: Of the items.
        controls: ``"default"`` for all of :data:`CONTROLS` that the items allow; ``"all"`` for every one of them, where one that
            can't be run is an error which says what is missing; or a list of their names.
        untrained: The same items recorded with :func:`deixis.untrained`, for the score of random weights.
        blank: A run that holds the items in condition ``blank``; None for ``run`` itself, if it does.
        nuisances: Which of the items' nuisances travel with the target; None for :data:`PIXELS`, those that all items have.
        layers: Numbers of recorded layers; None for all of them.
        language: A language's code; None pools all languages (``all``); ``"each"`` sweeps them one by one.
        task: Of the items; None for ``demonstrative`` where there are several.
        where: Further groups and the value that an item must have in each: ``{"column": "rotate U/D"}`` for the turns up and
            down of SpaceNum, ``{"scale": "desk", "map": "2D"}``.
        types: The items' group whose members share a random label in the control task.
        kind: ``classification`` or ``regression``, where ``target`` is to be read otherwise.
        probe: As for ``cross_validate_probe``.
        n_folds: As there.
        n_controls: Draws of the control task.
        n_permutations: Exchanges of the scenes' labels.
        n_bootstrap: Draws of the bootstrap.
        n_orders: Orders of the scenes, for the code length.
        seed: Of folds, controls, permutations, bootstrap and orders.
        workers: Layers worked on at a time; None for one per core. The numbers do not depend on it.
        progress: Show a progress bar on stderr if that is a terminal.

    Warns:
        TooFewItemsWarning: Fewer than 20 groups; it names the smallest effect that could have been seen.

    Raises:
        NotEnoughDataError: The items are too few for ``cross_validate_probe``. A ValueError.
        TypeError: A path was given in place of a run.
        ValueError: The run does not hold what was asked for; the same picture in two groups; an untrained or blank run that does
            not belong to the run; a NaN or infinite vector or target; another refusal of
            ``cross_validate_probe``.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers={workers} must be at least 1, or None for one per core.")
    refuse_paths([run, untrained, blank])
    wanted = _controls(controls)
    asked = {"groups": groups, "types": types, "task": task, "nuisances": nuisances, "where": where}
    chosen = choose_items(run, target, condition=condition, **asked)
    refuse_shared_pictures((run.items[int(number)] for number in chosen.index), groups)
    spoken = _languages(chosen, language)
    numbers = chosen_layers(run, site, layers)
    beside = _beside(run, target, condition, untrained, blank, wanted, asked)
    if controls != "default":
        _refuse_missing(wanted, chosen, beside, types)
    plan = _Plan(
        controls=wanted,
        strict=controls != "default",
        kind=kind or ("classification" if target in CLASS_TARGETS else "regression"),
        settings={"probe": probe, "n_folds": n_folds, "seed": seed},
        counts=Counts(
            n_controls=n_controls if "task" in wanted else 0,
            n_permutations=n_permutations if "permutation" in wanted else 0,
            n_bootstrap=n_bootstrap if "interval" in wanted else 0,
            n_orders=n_orders if "bits" in wanted else 0,
        ),
    )
    where = {"site": site, "role": role}
    jobs: list[tuple[str, int, Future[_Cell]]] = []
    # One limit around all threads: each of them setting and resetting it would leave it wrong.
    with threadpool_limits(limits=1), ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
        for name in spoken:
            for layer in numbers:
                place: dict[str, Any] = where | {"layer": layer, "language": None if name == "all" else name}
                data = probe_data(run, chosen, **place)
                others = {key: probe_data(*source, **place) for key, source in beside.items()}
                jobs.append((name, layer, pool.submit(plan.cell, data, others)))
        done = [(name, layer, job.result()) for name, layer, job in steps(jobs, f"probing {target}", shown=progress)]
    cells = tuple(cell for name in spoken for cell in _corrected([job for job in done if job[0] == name]))
    warn_of_few(plan.kind, len(set(chosen.groups)), len(set(chosen.target.tolist())))
    return LayerSweep(model=str(run.info["model"]), target=target, role=role, site=site, condition=condition, cells=cells)


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """One layer, before its p-value is corrected for the others."""

    scores: ProbeScores
    beside: dict[str, Float[np.ndarray, " metric"]]
    n_missing: int


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What is done with the vectors of each layer."""

    controls: tuple[str, ...]
    strict: bool
    kind: str
    settings: dict[str, Any]
    counts: Counts
    none: Counts = field(default_factory=Counts)

    def cell(self, data: ProbeData, others: dict[str, ProbeData]) -> _Cell:
        taken = {"nuisance", "residual"} & set(self.controls)
        scores = cross_validated(
            data.X,
            data.target,
            data.groups,
            kind=self.kind,
            types=data.types if "task" in self.controls and (self.strict or _recur(data)) else None,
            nuisances=data.nuisances if taken else None,
            counts=self.counts,
            **self.settings,
        )
        beside = {key: self._score(other) for key, other in others.items()}
        return _Cell(scores=scores, beside=beside, n_missing=data.n_missing)

    def _score(self, data: ProbeData) -> Float[np.ndarray, " metric"]:
        return cross_validated(data.X, data.target, data.groups, kind=self.kind, counts=self.none, **self.settings).score


def _corrected(done: "Sequence[tuple[str, int, _Cell]]") -> list[LayerScores]:
    """The layers of one language, with p-values against the best layer of each permutation."""
    metrics = done[0][2].scores.metrics
    permuted = np.stack([cell.scores.permuted for _, _, cell in done])
    errors = np.array([metric in ERRORS for metric in metrics])
    best = np.where(errors, permuted.min(axis=0), permuted.max(axis=0))
    nothing = np.full(len(metrics), np.nan)
    return [
        LayerScores(
            layer=layer,
            language=language,
            scores=cell.scores,
            p_value=p_values(metrics, cell.scores.score, best),
            untrained=cell.beside.get("untrained", nothing),
            blank=cell.beside.get("blank", nothing),
            n_missing=cell.n_missing,
        )
        for language, layer, cell in done
    ]


def _beside(
    run: "Run",
    target: str,
    condition: str,
    untrained: "Run | None",
    blank: "Run | None",
    wanted: tuple[str, ...],
    asked: dict[str, Any],
) -> "dict[str, tuple[Run, Chosen]]":
    """The runs and items of the untrained model and of the blank picture, where they are wanted and there."""
    found = {}
    if untrained is not None and "untrained" in wanted:
        found["untrained"] = untrained, choose_items(untrained, target, condition=condition, **asked)
        _check_untrained(run, untrained)
        own = choose_items(run, target, condition=condition, **asked)
        pairs = ((run, own), found["untrained"])
        refuse_other_items(*([of.items[int(number)] for number in chosen.index] for of, chosen in pairs))
    source = run if blank is None else blank
    there = any(item.condition == "blank" for item in source.items)
    if "blank" in wanted and condition != "blank" and there:
        found["blank"] = source, choose_items(source, target, condition="blank", **asked)
        _check_blank(run, source, choose_items(run, target, condition=condition, **asked), found["blank"][1])
    return found


def _check_untrained(run: "Run", untrained: "Run") -> None:
    weights = run.info.get("weights")
    if untrained is run or (weights is not None and weights == untrained.info.get("weights")):
        raise ValueError(f"untrained={called(untrained)} holds the trained weights of {called(run)}; record dx.untrained(vlm).")
    name = first_difference(run, untrained, ARCHITECTURE)
    if name is not None:
        raise ValueError(
            f"untrained={called(untrained)} has the {name} {untrained.info.get(name)} and {called(run)} {run.info.get(name)}; "
            "record dx.untrained(vlm) of the run's own model."
        )


def _check_blank(run: "Run", blank: "Run", real: Chosen, grey: Chosen) -> None:
    if blank is run:
        return
    name = first_difference(run, blank, NETWORK)
    if name is not None:
        raise ValueError(
            f"blank={called(blank)} differs from {called(run)} in {name}; record the blank pictures with the same network."
        )
    if set(zip(real.groups, real.target.tolist(), strict=True)) != set(zip(grey.groups, grey.target.tolist(), strict=True)):
        raise ValueError(
            f"blank={called(blank)} holds other scenes than {called(run)}; record the run's own items.with_condition('blank')."
        )


def _refuse_missing(wanted: tuple[str, ...], chosen: Chosen, beside: dict[str, Any], types: str) -> None:
    """Say what a control that was asked for lacks."""
    lacks = {
        "task": chosen.types is None and f"types={types!r} is no group of these items, so there is no control task",
        "nuisance": chosen.nuisances is None and "these items have no nuisances",
        "residual": chosen.nuisances is None and "these items have no nuisances",
        "untrained": "untrained" not in beside and "no untrained run was given: record dx.untrained(vlm) and pass untrained=",
        "blank": "blank" not in beside and "there are no items in condition 'blank': record items.with_condition('blank') too",
    }
    for name, reason in lacks.items():
        if name in wanted and reason:
            raise ValueError(f"{reason}; or leave {name!r} out of controls.")


def _controls(controls: str | Sequence[str]) -> tuple[str, ...]:
    if controls in ("default", "all"):
        return CONTROLS
    unknown = [controls] if isinstance(controls, str) else [name for name in controls if name not in CONTROLS]
    if unknown:
        listed = ", ".join(map(repr, CONTROLS))
        raise ValueError(f"controls={controls!r} must be 'default', 'all' or a list of: {listed}.")
    return tuple(controls)


def _languages(chosen: Chosen, language: str | None) -> list[str]:
    spoken = list(dict.fromkeys(chosen.languages))
    if language is None:
        return ["all"]
    if language == "each":
        return spoken
    return [among("language", language, spoken)]


def _recur(data: ProbeData) -> bool:
    """Whether a control task makes sense: several types, some of them in several groups."""
    if data.types is None or len(set(data.types)) < 2:
        return False
    codes = [np.unique(np.asarray(names), return_inverse=True)[1] for names in (data.types, data.groups)]
    return recurring(codes[0], codes[1])
