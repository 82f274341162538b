"""One set of items at several layers, and probes whose layer other folds chose: what geometry and coordinates start from."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from deixis.analyses.probe_data import choose_items, probe_data
from deixis.probes import ALPHAS
from deixis.probes.nested import METHODS
from deixis.probes.procedure import Procedure

if TYPE_CHECKING:
    from deixis.activations import Run


@dataclass(frozen=True, kw_only=True)
class Layers:
    """Vectors by layer, and what belongs to their items."""

    model: str
    X: tuple[Float[np.ndarray, "item feature"], ...]
    layers: tuple[int, ...]
    targets: Float[np.ndarray, "target item"]
    group: Int[np.ndarray, " item"]
    nuisances: Float[np.ndarray, "item nuisance"] | None


def layers_of(
    run: "Run",
    targets: Sequence[str],
    *,
    role: str,
    site: str,
    layers: Sequence[int] | None,
    groups: str,
    condition: str,
    task: str | None,
    language: str | None,
    where: Mapping[str, str] | None = None,
) -> Layers:
    """The items with every target, their vectors at every layer; the items are those that are distinct at the last layer."""
    asked = {"groups": groups, "types": "figure", "condition": condition, "task": task, "where": where}
    chosen = [choose_items(run, t, **asked) for t in targets]
    numbers = tuple(layer for layer in run.layers(site) if layers is None or layer in layers)
    if not numbers:
        raise ValueError(f"layers={layers} holds none of those recorded at {site}: {run.layers(site)}.")
    place = {"site": site, "role": role, "language": language}
    last = probe_data(run, chosen[0], layer=numbers[-1], **place)
    rows = chosen[0].index[last.kept]
    return Layers(
        model=str(run.info["model"]),
        X=tuple(np.asarray(run.activations(site, layer, role), dtype=np.float64)[rows] for layer in numbers),
        layers=numbers,
        targets=np.stack([one.target[last.kept] for one in chosen]),
        group=np.unique(np.asarray(last.groups), return_inverse=True)[1],
        nuisances=last.nuisances,
    )


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """Held-out values of several targets, each fold's from the layer that the other folds chose."""

    layer: int
    """Chosen by most folds; the earliest of several."""
    predicted: Float[np.ndarray, "target item"]
    fold: Int[np.ndarray, " item"]
    alphas: Float[np.ndarray, " target"]
    """Median penalty at that layer."""


def procedure(n_folds: int, seed: int) -> Procedure:
    """Nested ridge regression."""
    return Procedure(method=METHODS["ridge"], n_folds=n_folds, alphas=ALPHAS, seed=seed)


def decoded(held: Layers, work: Procedure) -> Decoded:
    """Decode all targets, the layer chosen for all of them together (by their mean R2 on the other folds)."""
    fold = work.fold(held.targets[0], held.group)
    weight = np.ones(len(fold))
    outcomes = [work.outcomes(X, list(held.targets), weight, fold) for X in held.X]
    inner = np.array([np.mean([target.inner[:, 0] for target in layer], axis=0) for layer in outcomes])
    chosen = inner.argmax(axis=0)
    times = Counter(chosen.tolist())
    place = min(times, key=lambda layer: (-times[layer], layer))
    predicted = np.stack([[target.predicted for target in layer] for layer in outcomes])  # layer target item
    return Decoded(
        layer=held.layers[place],
        predicted=predicted[chosen[fold], :, np.arange(len(fold))].T,
        fold=fold,
        alphas=np.array([np.median(target.alphas) for target in outcomes[place]]),
    )
