"""In which coordinate frame a layout is held: the anchors' (allocentric) or the camera's (egocentric).

The anchors' frame lies at any angle to the camera, so that a place in one says next to nothing about the place in the other:
what is decoded of a frame beyond the other one's coordinates must have been worked out by the model.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from deixis.analyses.frame_scores import PARTS, Decoded, Design, joint_r2
from deixis.analyses.frames_plot import plot_frames
from deixis.analyses.probe_data import settled
from deixis.analyses.probe_layers import Layers, layers_of, procedure
from deixis.analyses.run_checks import refuse_paths
from deixis.probes.nuisances import n_knots, spline_basis
from deixis.probes.power import warn_of_few
from deixis.probes.procedure import Procedure, interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

FRAMES = {"allocentric": ("x_m", "y_m"), "egocentric": ("camera_x_m", "camera_z_m")}
"""Coordinates of the target's middle in the anchors' frame, and to the right of and away from the camera. Heights are left out:
everything stands on the ground, so that they are half a size, or follow from the camera's pitch."""
ROLES = ("answer", "image:0", "object", "anchor_a", "anchor_b")
"""Roles that are looked at where a run holds them."""
COLUMNS = (
    *("model", "role", "site", "layer", "frame", "score", "low", "high", "p_value"),
    *("unique", "unique_low", "unique_high", "unique_p", "from_other", "untrained", "blank", "n_items", "n_groups"),
)
"""Of the frame, in order."""
BEST_COLUMNS = ("model", "role", "site", "frame", "part", "layer", "score", "p_value", "n_items", "n_groups")


@dataclass(frozen=True, kw_only=True)
class FrameSweep:
    """Both frames at every layer and role."""

    model: str
    _rows: "pd.DataFrame"
    _best: "pd.DataFrame"
    _coordinates: "pd.DataFrame"

    def __repr__(self) -> str:
        roles = ", ".join(dict.fromkeys(self._rows["role"]))
        return f"FrameSweep({self.model!r}, {roles}; .to_frame(), .best(), .correlations(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per role, layer and frame; the columns are ``COLUMNS``.

        ``score``: R2 of the frame's two coordinates together, ``1 - sum of squared errors / sum of squared deviations``.
        ``unique``: the same for what splines of the other frame's coordinates leave of them (fitted on the training folds), NaN
        where they leave less than 1 % of the variance;
        ``from_other``: R2 that these splines reach alone. ``low, high``: 95 % over scenes, the probe fitted again in every draw.
        ``p_value``, ``unique_p``: scenes exchanged, against the best of all layers. ``untrained``, ``blank``: the score of random
        weights, and of blank pictures (at tokens that are chosen by where an object is, their place gives much of the egocentric
        frame away).
        """
        return self._rows.copy()

    def best(self) -> "pd.DataFrame":
        """One row per role, frame and part (``whole``, ``unique``): the score when every fold's layer is chosen on the others.

        ``layer`` is the one that most folds chose; ``p_value`` that of the layer with the highest score.
        """
        return self._best.copy()

    def correlations(self) -> "pd.DataFrame":
        """Pearson's r of every allocentric coordinate with every egocentric one, over scenes: ``allocentric egocentric r n``."""
        import pandas as pd

        rows = [
            (own, other, float(np.corrcoef(self._coordinates[own], self._coordinates[other])[0, 1]), len(self._coordinates))
            for own in FRAMES["allocentric"]
            for other in FRAMES["egocentric"]
        ]
        return pd.DataFrame(rows, columns=["allocentric", "egocentric", "r", "n"])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`deixis.analyses.frames_plot.plot_frames`."""
        return plot_frames(self.to_frame(), ax)


def frame_sweep(
    run: "Run",
    roles: Sequence[str] | None = None,
    site: str = "resid",
    *,
    layers: Sequence[int] | None = None,
    task: str | None = None,
    condition: str = "real",
    where: Mapping[str, str] | None = None,
    untrained: "Run | None" = None,
    n_folds: int = 5,
    n_permutations: int = 200,
    n_bootstrap: int = 50,
    level: float = 0.95,
    seed: int = 0,
    workers: int | None = None,
) -> FrameSweep:
    """Decode a layout's target in the anchors' frame and in the camera's from every layer, and what is unique to each.

    Args:
        run: With layout items of :func:`deixis.spacenum`.
        roles: At which token positions; None for those of :data:`ROLES` that the run holds.
        site: Where in the model.
        layers: Numbers of recorded layers; None for all of them.
        task: Of the items; None for ``layout-space2num``, or the run's only layout task.
        condition: Of the items.
        where: Further groups and the value that an item must have in each, such as ``{"scale": "desk"}``.
        untrained: The same items through :func:`deixis.untrained`.
        n_folds: At least 3.
        n_permutations: Exchanges of the scenes.
        n_bootstrap: Draws of the scenes; 0 for no intervals.
        level: Of the intervals.
        seed: Of folds, exchanges and draws.
        workers: Layers worked on at a time; None for one per core.

    Warns:
        TooFewItemsWarning: Fewer than 20 scenes.

    Raises:
        TypeError: A path was given in place of a run.
        ValueError: The run holds no layout items, or not what was asked for.
    """
    import pandas as pd

    refuse_paths([run, untrained])
    asked = {"groups": "scene", "task": task or layout_task(run), "language": None, "where": where}
    place = {"site": site, "layers": layers}
    work, rows, best, coordinates = procedure(n_folds, seed), [], [], None
    targets = [name for names in FRAMES.values() for name in names]
    for role in _roles(run, roles):
        held = layers_of(run, targets, role=role, condition=condition, **place, **asked)
        _check_groups(held, n_folds)
        beside = {
            name: layers_of(source, targets, role=role, condition=shown, **place, **asked)
            for name, source, shown in (("untrained", untrained, condition), ("blank", run, "blank"))
            if source is not None and any(item.condition == shown and "x_m" in item.targets for item in source.items)
        }
        with threadpool_limits(limits=1), ThreadPoolExecutor(max_workers=workers or cpu_count() or 1) as pool:
            for frame in FRAMES:
                made = _Frame(frame, held, work, (n_permutations, n_bootstrap))
                cells = list(pool.map(made.design.decoded, held.X))
                known = {"model": held.model, "role": role, "site": site, "frame": frame}
                known |= {"n_items": len(held.group), "n_groups": int(held.group.max()) + 1}
                rows += [known | row for row in made.rows(cells, beside, level)]
                best += [known | row for row in made.best(cells)]
        first = np.unique(held.group, return_index=True)[1]
        coordinates = coordinates or dict(zip(targets, held.targets[:, first], strict=True))
    warn_of_few("regression", len(next(iter((coordinates or {}).values()))))
    return FrameSweep(
        model=str(run.info["model"]),
        _rows=pd.DataFrame(rows, columns=list(COLUMNS)),
        _best=pd.DataFrame(best, columns=list(BEST_COLUMNS)),
        _coordinates=pd.DataFrame(coordinates),
    )


def layout_task(run: "Run") -> str:
    """The task of layout items to look at: ``layout-space2num`` if the run holds it, else its only one.

    Raises:
        ValueError: The run holds no layout items.
    """
    tasks = {item.task for item in run.items if item.task.startswith("layout-")}
    if not tasks:
        held = ", ".join(sorted({repr(item.task) for item in run.items}))
        raise ValueError(f"the run holds no layout items, only those of {held}; record dx.spacenum('layout').")
    return "layout-space2num" if "layout-space2num" in tasks else min(tasks)


def _roles(run: "Run", roles: Sequence[str] | None) -> list[str]:
    if isinstance(roles, str):
        raise ValueError(f"roles={roles!r} must be a sequence of names, such as [{roles!r}].")
    found = [role for role in ROLES if role in run.roles] if roles is None else list(roles)
    if not found:
        raise ValueError(f"the run holds none of the roles {', '.join(ROLES)}; it holds: {', '.join(run.roles)}.")
    return found


def _check_groups(held: Layers, n_folds: int) -> None:
    for number in range(int(held.group.max()) + 1):
        if np.ptp(held.targets[:, held.group == number], axis=1).max() > 0:
            raise ValueError("items of one scene have their target in different places; choose one task with task=.")
    if held.group.max() + 1 < n_folds:
        raise ValueError(f"there are {held.group.max() + 1} scenes for {n_folds} folds; record more layouts.")


class _Frame:
    """One frame at one role."""

    def __init__(self, name: str, held: Layers, work: Procedure, counts: tuple[int, int]) -> None:
        own, other = _split(name, held)
        self.name, self.held, self.work = name, held, work
        self.design = Design.of(work, own, other, held.group, *counts)

    def rows(self, cells: Sequence[dict[str, Decoded]], beside: Mapping[str, Layers], level: float) -> list[dict[str, Any]]:
        """One per layer."""
        knots = n_knots(int(self.held.group.max()) + 1)
        other = self.design.whole(spline_basis(self.design.other.T, self.design.other.T, knots))
        best = {part: np.max([cell[part].permuted for cell in cells], axis=0) for part in PARTS}
        controls = {name: self._scores(layers) for name, layers in beside.items()}
        found = []
        for number, (layer, cell) in enumerate(zip(self.held.layers, cells, strict=True)):
            row: dict[str, Any] = {"layer": layer, "from_other": other}
            for part, names in (("whole", ("score", "low", "high", "p_value")), ("unique", _UNIQUE)):
                low, high = interval(("r2",), np.array([cell[part].score]), cell[part].draws[:, None], level)
                values = (cell[part].score, float(low[0]), float(high[0]), _p_value(cell[part].score, best[part]))
                row |= dict(zip(names, values, strict=True))
            found.append(row | {name: scores[number] for name, scores in controls.items()})
        return found

    def best(self, cells: Sequence[dict[str, Decoded]]) -> list[dict[str, Any]]:
        """One per part."""
        found, fold = [], self.design.fold
        for part in PARTS:
            chosen = np.argmax([cell[part].inner for cell in cells], axis=0)
            predicted, wanted = (np.stack([getattr(cell[part], name) for cell in cells]) for name in ("predicted", "wanted"))
            items = np.arange(len(fold))
            held_out = (values[chosen[fold], :, items].T for values in (predicted, wanted))
            times = np.bincount(chosen, minlength=len(cells))
            exchanged = np.max([cell[part].permuted for cell in cells], axis=0)
            p_value = _p_value(max(cell[part].score for cell in cells), exchanged)
            found.append(
                {"part": part, "layer": self.held.layers[int(times.argmax())], "score": joint_r2(*held_out), "p_value": p_value}
            )
        return found

    def _scores(self, layers: Layers) -> list[float]:
        design = Design.of(self.work, *_split(self.name, layers), layers.group, 0, 0)
        return [design.whole(settled(X)) for X in layers.X]


_UNIQUE = ("unique", "unique_low", "unique_high", "unique_p")


def _split(name: str, held: Layers) -> tuple[Float[np.ndarray, "axis item"], Float[np.ndarray, "other_axis item"]]:
    """The coordinates of a frame, and those of the other one."""
    size = len(FRAMES["allocentric"])
    anchors, camera = held.targets[:size], held.targets[size:]
    return (anchors, camera) if name == "allocentric" else (camera, anchors)


def _p_value(score: float, exchanged: Float[np.ndarray, " exchange"]) -> float:
    """Share of exchanges that do as well, the data counted among them (Phipson and Smyth 2010); NaN without exchanges."""
    if not len(exchanged) or np.isnan(score):
        return float("nan")
    return float((np.sum(exchanged >= score - 1e-12) + 1) / (len(exchanged) + 1))
