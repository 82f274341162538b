"""Do probes read the same direction: cosines between layers, between languages, between targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from deixis.analyses.geometry_plot import plot_probe_geometry
from deixis.analyses.probe_layers import Layers, decoded, layers_of, procedure
from deixis.probes.checks import check_option
from deixis.probes.folds import deal_folds
from deixis.probes.ridge import RidgeProbe
from deixis.probes.row_space import FLAT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

BY = ("layer", "language", "target")
VECTORS = ("direction", "pattern")
COLUMNS = ("model", "role", "site", "by", "vectors", "a", "b", "layer_a", "layer_b", "cosine", "halves", "ceiling", "chance")
"""Of the frame, in order."""


@dataclass(frozen=True, kw_only=True)
class ProbeGeometry:
    """Cosines between the directions that probes read."""

    model: str
    role: str
    site: str
    by: str
    vectors: str
    names: tuple[str, ...]
    layers: tuple[int, ...]
    """Of each name."""
    cosine: Float[np.ndarray, "name name"]
    """Of directions learned from all items."""
    halves: Float[np.ndarray, "name name"]
    """Mean cosine of directions learned from two halves of the scenes; its diagonal says how well a direction is known at all."""
    width: int

    @property
    def ceiling(self) -> Float[np.ndarray, "name name"]:
        """The cosine of the halves that two equal directions would have: the root of the product of their own two halves'."""
        own = np.sqrt(np.clip(np.diag(self.halves), 0, None))
        return np.outer(own, own)

    def __repr__(self) -> str:
        return f"ProbeGeometry({self.model!r} by {self.by}: {', '.join(self.names)}; .to_frame(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per ordered pair; the columns are ``COLUMNS``.

        ``halves`` near ``ceiling``: the same direction, as far as the items can tell. ``chance`` is the standard deviation of the
        cosine of two random directions, ``1 / sqrt(width)``.
        """
        import pandas as pd

        same = {"model": self.model, "role": self.role, "site": self.site, "by": self.by, "vectors": self.vectors}
        rows = [
            same
            | {"a": a, "b": b, "layer_a": self.layers[i], "layer_b": self.layers[j], "cosine": self.cosine[i, j]}
            | {"halves": self.halves[i, j], "ceiling": self.ceiling[i, j], "chance": 1 / np.sqrt(self.width)}
            for i, a in enumerate(self.names)
            for j, b in enumerate(self.names)
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the cosines of halves: ``plot_probe_geometry(self.to_frame(), ax)``."""
        return plot_probe_geometry(self.to_frame(), ax)


def probe_geometry(
    run: "Run",
    targets: str | Sequence[str] = "distance_m",
    by: str = "layer",
    role: str = "answer",
    site: str = "resid",
    groups: str = "scene",
    condition: str = "real",
    *,
    layer: int | None = None,
    layers: Sequence[int] | None = None,
    task: str | None = None,
    vectors: str = "direction",
    n_halves: int = 20,
    n_folds: int = 5,
    seed: int = 0,
) -> ProbeGeometry:
    """Compare the directions that linear probes of values read.

    A direction is that of a ridge probe, its penalty chosen by cross-validation, in the space of the activations as they are. Two
    directions learned from the same items share their noise, and their cosine is too high; beside it stands the mean cosine of
    directions learned from two random halves of the groups (``halves``), with the ceiling that noise leaves it.

    Args:
        run: What :func:`deixis.record` or :func:`deixis.open_run` returns.
        targets: A key of the items' ``targets``, read as values; several for ``by="target"``.
        by: ``layer``, ``language`` or ``target``.
        role: At which token positions.
        site: Where in the model.
        groups: The items' group that is never split between the halves.
        condition: Of the items.
        layer: For languages and targets; None for the layer that decodes best in cross-validation, all together.
        layers: For ``by="layer"``; None for all that were recorded.
        task: Of the items; None for ``demonstrative`` where there are several.
        vectors: ``direction``: what the probe weighs. ``pattern``: how the activations change with what it decodes,
            ``covariance times direction`` (Haufe et al. 2014, NeuroImage 87:96-110), which noise that the probe suppresses does
            not enter.
        n_halves: Random halves.
        n_folds: Of the cross-validation.
        seed: Of folds and halves.

    Raises:
        ValueError: Fewer than two layers, languages or targets, or what the run does not hold.
    """
    check_option("by", by, BY)
    check_option("vectors", vectors, VECTORS)
    names = [targets] if isinstance(targets, str) else list(targets)
    if by != "target" and len(names) > 1:
        raise ValueError(f"targets={names} are several; by={by!r} compares one target, by='target' compares them.")
    asked = {"role": role, "site": site, "groups": groups, "condition": condition, "task": task}
    chosen_layers = layers if by == "layer" else None if layer is None else [layer]
    work = procedure(n_folds, seed)
    spoken = list(dict.fromkeys(i.language for i in run.items if i.condition == condition)) if by == "language" else [None]
    with threadpool_limits(limits=1):
        held = [layers_of(run, names, layers=chosen_layers, language=language, **asked) for language in spoken]
        if by == "layer":
            labels, sets = [str(n) for n in held[0].layers], [(held[0], place, 0) for place in range(len(held[0].layers))]
        else:
            best = held[0].layers.index(decoded(held[0], work).layer)
            labels = [str(language) for language in spoken] if by == "language" else names
            sets = [(one, best, t) for one in held for t in range(len(names))]
        if len(sets) < 2:
            raise ValueError(f"there is one {by} only ({', '.join(labels)}); a comparison needs two.")
        sources = [_Source.of(one, place, number, n_folds, seed, vectors) for one, place, number in sets]
        whole = np.stack([source.direction(np.ones(len(source.y), dtype=bool)) for source in sources])
        halves = _halves(sources, n_halves, seed)
    return ProbeGeometry(
        model=held[0].model,
        role=role,
        site=site,
        by=by,
        vectors=vectors,
        names=tuple(labels),
        layers=tuple(one.layers[place] for one, place, _ in sets),
        cosine=_cosines(whole, whole),
        halves=halves,
        width=held[0].X[0].shape[1],
    )


@dataclass(frozen=True, kw_only=True)
class _Source:
    """What one direction is learned from."""

    X: Float[np.ndarray, "item feature"]
    y: Float[np.ndarray, " item"]
    group: Int[np.ndarray, " item"]
    alpha: float
    pattern: bool

    @classmethod
    def of(cls, held: Layers, place: int, target: int, n_folds: int, seed: int, vectors: str) -> "_Source":
        work, X, y = procedure(n_folds, seed), held.X[place], held.targets[target]
        outcome = work.outcomes(X, [y], np.ones(len(y)), work.fold(y, held.group))[0]
        return cls(X=X, y=y, group=held.group, alpha=float(np.median(outcome.alphas)), pattern=vectors == "pattern")

    def direction(self, rows: np.ndarray) -> Float[np.ndarray, " feature"]:
        """Learned from some items; the penalty, which weighs against a sum over items, shrinks with their number."""
        X, y = self.X[rows], self.y[rows]
        scale = X.std(axis=0)
        real = scale > FLAT * np.abs(X).max(axis=0)
        Z = (X - X.mean(axis=0)) / np.where(real, scale, np.inf)
        coef = np.asarray(RidgeProbe(self.alpha * len(y) / len(self.y)).fit(Z, y).coef_)
        if self.pattern:
            return (X - X.mean(axis=0)).T @ (Z @ coef)
        return np.where(real, coef / np.where(real, scale, 1.0), 0.0)


def _halves(sources: Sequence[_Source], n: int, seed: int) -> Float[np.ndarray, "name name"]:
    rng = np.random.default_rng((seed, 7))
    total = np.zeros((len(sources), len(sources)))
    for _ in range(n):
        state = int(rng.integers(2**31))
        first, second = [], []
        for source in sources:
            # Equal groups are halved alike in all sources: the same scenes on the same side.
            half = deal_folds(source.y, source.group, 2, np.random.default_rng(state))
            first.append(source.direction(half == 0))
            second.append(source.direction(half == 1))
        found = _cosines(np.stack(first), np.stack(second))
        total += (found + found.T) / 2
    return total / n


def _cosines(a: Float[np.ndarray, "name feature"], b: Float[np.ndarray, "name feature"]) -> Float[np.ndarray, "name name"]:
    sizes = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    return np.divide(a @ b.T, sizes, out=np.zeros_like(sizes), where=sizes > 0)
