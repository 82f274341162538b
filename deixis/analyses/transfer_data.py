"""The items of one or more runs of a model, put together and divided into parts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from deixis.analyses.probe_data import choose_items, distinct, whole_vectors
from deixis.analyses.run_checks import called, chosen_layers, refuse_other_networks, refuse_shared_pictures

if TYPE_CHECKING:
    from deixis.activations import Run
    from deixis.benchmarks import Item

FIELDS = ("language", "task", "condition", "benchmark")
"""What every part is trained on and tested against."""
DISTANCE = "distance"
THIRDS = ("near", "middle", "far")
FEWEST_DISTANCES = 8
"""Distinct values that interpolation, extrapolation and the shape of a code need."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Items of one model with what belongs to them, one row each."""

    model: str
    layers: Mapping[int, Float[np.ndarray, "item feature"]]
    target: Float[np.ndarray, " item"]
    groups: tuple[str, ...]
    parts: tuple[str, ...]


def leaves_out(by: str) -> bool:
    """Whether each part is left out in turn, rather than trained on alone."""
    return by not in FIELDS


def distances_apart(names: list[str]) -> list[str]:
    """Thirds in their own order, other names as they come."""
    return [name for name in THIRDS if name in names] if set(names) <= set(THIRDS) else names


def pooled(
    runs: "Sequence[Run]",
    target: str,
    by: str,
    *,
    site: str,
    role: str,
    layers: Sequence[int] | None,
    groups: str,
    condition: str,
    task: str | None,
    language: str | None,
) -> Iterator[Pool]:
    """The pool of each model, in the order of the runs.

    Raises:
        ValueError: See :func:`deixis.transfer`.
    """
    by_model: dict[str, list[Run]] = {}
    for run in runs:
        by_model.setdefault(str(run.info["model"]), []).append(run)
    for own in by_model.values():
        refuse_other_networks(own)
    for model, own in by_model.items():
        members = [
            (run, number, item)
            for run in own
            for number, item in _chosen(run, target, by, groups=groups, condition=condition, task=task)
            if language in (None, item.language)
        ]
        refuse_shared_pictures((item for _, _, item in members), groups)
        values = np.array([item.targets[target] for _, _, item in members], dtype=np.float64)
        parts = _parts([item for _, _, item in members], values, by)
        if len(set(parts)) < 2:
            raise ValueError(f"by={by!r} divides these items into one part only ({', '.join(set(parts)) or 'no item'}).")
        numbers = chosen_layers(own[0], site, layers)
        rows = {layer: _vectors(own, members, site, layer, role) for layer in numbers}
        scenes = [(item.groups[groups], value) for (_, _, item), value in zip(members, values, strict=True)]
        _refuse_trivial(rows[numbers[-1]], scenes, parts, by, role)
        # Vectors are compared at the last layer, where those of different questions differ most.
        within = [(f"{part} {scene}", value) for part, (scene, value) in zip(parts, scenes, strict=True)]
        kept = distinct(rows[numbers[-1]], within)
        yield Pool(
            model=model,
            layers={layer: vectors[kept] for layer, vectors in rows.items()},
            target=values[kept],
            groups=tuple(scenes[i][0] for i in kept),
            parts=tuple(parts[i] for i in kept),
        )


def _chosen(run: "Run", target: str, by: str, *, groups: str, condition: str, task: str | None) -> "Iterator[tuple[int, Item]]":
    """Numbers and items that the question is about: several conditions or tasks where these make the parts."""
    items = list(run.items)
    conditions = list(dict.fromkeys(item.condition for item in items)) if by == "condition" else [condition]
    for name in conditions:
        there = dict.fromkeys(item.task for item in items if item.condition == name)
        for asked in there if by == "task" else [task]:
            chosen = choose_items(run, target, groups=groups, types="figure", condition=name, task=asked, nuisances=())
            yield from ((int(number), items[number]) for number in chosen.index)


def _parts(items: "Sequence[Item]", values: Float[np.ndarray, " item"], by: str) -> list[str]:
    if by in FIELDS:
        return [getattr(item, by) for item in items]
    if by == DISTANCE:
        levels = np.unique(values)
        if len(levels) < FEWEST_DISTANCES:
            raise ValueError(
                f"by='distance' needs at least {FEWEST_DISTANCES} distances and these items have {len(levels)}; draw more with "
                "memory_game(n=...), or name them in distances=."
            )
        third = np.searchsorted(levels, values) * 3 // len(levels)
        return [THIRDS[number] for number in third]
    without = next((item for item in items if by not in item.groups), None)
    if without is not None:
        known = ", ".join(map(repr, (*FIELDS, DISTANCE, *sorted(without.groups))))
        raise ValueError(f"by={by!r} is not one of: {known}.")
    return [item.groups[by] for item in items]


def _vectors(
    runs: "Sequence[Run]", members: "Sequence[tuple[Run, int, Item]]", site: str, layer: int, role: str
) -> Float[np.ndarray, "item feature"]:
    held = {id(run): np.asarray(run.activations(site, layer, role), dtype=np.float64) for run in runs}
    for run in runs[1:]:
        widths = held[id(runs[0])].shape[1], held[id(run)].shape[1]
        if widths[0] != widths[1]:
            raise ValueError(
                f"the runs {called(runs[0])} and {called(run)} have vectors of {widths[0]} and {widths[1]} numbers at {site} "
                f"layer {layer}; pass runs of one network."
            )
    rows = np.stack([held[id(run)][number] for run, number, _ in members])
    return whole_vectors(rows, [item.id for _, _, item in members], site, layer, role)


def _refuse_trivial(
    rows: Float[np.ndarray, "item feature"], scenes: list[tuple[str, float]], parts: Sequence[str], by: str, role: str
) -> None:
    """Refuse parts that hold the very same vectors: what is learned on one of them holds on the others by construction."""
    if by not in ("language", "task"):
        return
    several = len(set(zip(scenes, parts, strict=True))) > len(set(scenes))
    if several and len(distinct(rows, scenes)) == len(set(scenes)):
        raise ValueError(
            f"the vectors at role {role!r} are the same for every {by}, because the picture precedes the text in a causal "
            f"decoder: transfer between {by}s is trivially perfect there and says nothing; use role='answer'."
        )
