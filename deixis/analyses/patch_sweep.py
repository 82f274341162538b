"""Activation patching (Vig et al. 2020; Meng et al. 2022): what one scene's activations do to the answer about another.

The donor's activations at one site, layer and role are put into the receiver's pass. What is then restored of the difference
between the two answers is the effect of that place (the normalised logit difference of Wang et al. 2023).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from deixis.analyses.distributions import js_distance
from deixis.analyses.patch_pairs import Pair
from deixis.analyses.style import axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.analyses.patch_passes import Cell, Patched
    from deixis.models import VLM

COLUMNS = (
    "model",
    "layer",
    "role",
    "site",
    "metric",
    "effect",
    "low",
    "high",
    "n_pairs",
    "task",
    "language",
    "contrast",
    "control",
)
NOTHING = 0.2
"""Logits (about 5 percentage points at even odds): where donor and receiver differ by less there is nothing to restore."""


@dataclass(frozen=True)
class PatchEvidence:
    """What the encoding gap takes from a sweep: one task and language at the layer that the other pairs chose."""

    role: str
    layer: int
    """Chosen by most pairs."""
    moved: float
    """Mean Jensen-Shannon distance (base 2) between a receiver's answers before and after."""
    low: float
    high: float
    restored: float
    """Share of the donor's difference; NaN where there is none."""
    control: float
    """``moved`` by donors of another colour at the same distance, at the same layer; NaN without such pairs."""
    n_pairs: int


@dataclass(frozen=True)
class PatchSweep:
    """The effect of every patch, with its controls."""

    model: str
    pairs: tuple[Pair, ...]
    cells: "tuple[Cell, ...]"
    logits: "Patched"
    n_boot: int
    seed: int

    def __repr__(self) -> str:
        return f"PatchSweep({self.model!r}, {len(self.cells) - 1} places, {len(self.pairs)} pairs; .to_frame(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per place, task, language, contrast and metric; ``low`` and ``high`` are 95 % bootstrap bounds over figures.

        ``metric``: ``restored`` is the share of the donor's logit difference (:attr:`Pair.options`) that the receiver gains, a
        ratio of sums over pairs; NaN where donor and receiver hardly differ. ``logit_difference`` is that gain in logits,
        ``js_distance`` the mean distance (base 2) between the receiver's option distributions before and after, and
        ``logit:this`` and so on the change of one option's logit.

        ``contrast`` ``distance`` are the near and far pictures. ``colour`` pairs are the negative control: their ``restored`` and
        ``logit_difference`` are of absolute changes, the former over the distance pairs' difference, so that changes of either
        sign do not cancel. ``control`` is ``positive`` in the rows of the whole image block at all layers (``layer`` is missing
        there), ``negative`` in those of colour pairs.
        """
        import pandas as pd

        rows = [row for key in self._groups() for row in self._rows(*key)]
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"layer": "Int64"})

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_patch_sweep`."""
        return plot_patch_sweep(self.to_frame(), ax)

    def evidence(self, task: str, language: str, role: str = "object") -> PatchEvidence | None:
        """How far patches of ``role`` move the answers, at the layer that the other figures choose; None if not swept.

        Each figure's layer is the one at which the other figures' answers move most, so that the choice does not flatter it.
        """
        rows = self._members(task, language, "distance")
        places = [k for k, cell in enumerate(self.cells) if (cell.site, cell.role) == ("resid", role) and cell.layer is not None]
        if not len(rows) or not places:
            return None
        moved = self._moved(places, rows)
        names = np.array([self.pairs[k].name for k in rows])
        chosen = [int(moved[:, names != name].mean(axis=1).argmax()) if (names != name).any() else 0 for name in names]
        kept = moved[chosen, np.arange(len(rows))]
        best = max(sorted(set(chosen)), key=chosen.count)
        restored = self._difference(self.logits.edited[places[best]], rows) - self._difference(self.logits.receiver, rows)
        whole = self._difference(self.logits.donor, rows) - self._difference(self.logits.receiver, rows)
        controls = self._members(task, language, "colour")
        [(_, low, high)] = _estimates(kept[None], None, self._draws(names))
        return PatchEvidence(
            role=role,
            layer=int(self.cells[places[best]].layer or 0),
            moved=float(kept.mean()),
            low=low,
            high=high,
            restored=float(restored.sum() / whole.sum()) if abs(whole.mean()) >= NOTHING else float("nan"),
            control=float(self._moved([places[best]], controls).mean()) if len(controls) else float("nan"),
            n_pairs=len(rows),
        )

    def _groups(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys((pair.receiver.task, pair.receiver.language) for pair in self.pairs))

    def _members(self, task: str, language: str, contrast: str) -> np.ndarray:
        return np.array(
            [
                k
                for k, pair in enumerate(self.pairs)
                if (pair.receiver.task, pair.receiver.language, pair.contrast) == (task, language, contrast)
            ],
            dtype=int,
        )

    def _difference(self, logits: Float[np.ndarray, "every option"], rows: np.ndarray) -> Float[np.ndarray, " pair"]:
        """The donor's option less the receiver's."""
        return np.array([logits[k, self.pairs[k].options[0]] - logits[k, self.pairs[k].options[1]] for k in rows])

    def _moved(self, places: Sequence[int], rows: np.ndarray) -> Float[np.ndarray, "place pair"]:
        before = np.broadcast_to(_shares(self.logits.receiver[rows]), self.logits.edited[places][:, rows].shape)
        return js_distance(_shares(self.logits.edited[places][:, rows]), before)

    def _draws(self, names: np.ndarray) -> Float[np.ndarray, "draw pair"] | None:
        """How much each pair counts in each bootstrap draw of figures; None for a single figure, which has no interval."""
        distinct, index = np.unique(names, return_inverse=True)
        if len(distinct) < 2:
            return None
        even = np.full(len(distinct), 1 / len(distinct))
        times = np.random.default_rng((self.seed, 5)).multinomial(len(distinct), even, size=self.n_boot)[:, index]
        return times / times.sum(axis=1, keepdims=True)

    def _rows(self, task: str, language: str) -> list[tuple[Any, ...]]:
        main = self._members(task, language, "distance")
        whole = self._difference(self.logits.donor, main) - self._difference(self.logits.receiver, main)
        whole = whole if len(whole) and abs(whole.mean()) >= NOTHING else np.full(len(whole), np.nan)
        found = []
        for contrast in ("distance", "colour"):
            rows = self._members(task, language, contrast)
            if not len(rows):
                continue
            draws = self._draws(np.array([self.pairs[k].name for k in rows]))
            before = self._difference(self.logits.receiver, rows)
            gain = np.stack([self._difference(edited, rows) - before for edited in self.logits.edited])
            gain = np.abs(gain) if contrast == "colour" else gain
            over = whole if contrast == "distance" else np.full(len(rows), whole.mean() if len(whole) else np.nan)
            metrics = {
                "restored": _estimates(gain, over, draws),
                "logit_difference": _estimates(gain, None, draws),
                "js_distance": _estimates(self._moved(range(len(self.cells)), rows), None, draws),
            }
            change = self.logits.edited[:, rows] - self.logits.receiver[rows]
            for place, option in enumerate(self.pairs[rows[0]].receiver.options):
                metrics[f"logit:{option.label}"] = _estimates(change[:, :, place], None, draws)
            for number, cell in enumerate(self.cells):
                control = "negative" if contrast == "colour" else "positive" if cell.layer is None else ""
                place = (self.model, cell.layer, cell.role, cell.site)
                found += [
                    (*place, metric, *values[number], len(rows), task, language, contrast, control)
                    for metric, values in metrics.items()
                ]
        return found


def _estimates(
    values: Float[np.ndarray, "cell pair"], over: Float[np.ndarray, " pair"] | None, draws: Float[np.ndarray, "draw pair"] | None
) -> list[tuple[float, float, float]]:
    """Mean over pairs (divided by the mean of ``over``) with its percentile interval, for each cell."""
    mean = values.mean(axis=1) / (1.0 if over is None else over.mean())
    if draws is None:
        return [(float(effect), float("nan"), float("nan")) for effect in mean]
    drawn = values @ draws.T / (1.0 if over is None else over @ draws.T)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
    return [(float(a), float(b), float(c)) for a, b, c in zip(mean, low, high, strict=True)]


def _shares(logits: Float[np.ndarray, "*batch option"]) -> Float[np.ndarray, "*batch option"]:
    """Softmax over an item's own options; those that it lacks (NaN) get 0."""
    known = np.where(np.isnan(logits), -np.inf, logits)
    highest = known.max(axis=-1, keepdims=True)
    weights = np.exp(known - np.where(np.isfinite(highest), highest, np.nan))  # all NaN: stays NaN
    return weights / weights.sum(axis=-1, keepdims=True)


def patch_sweep(
    vlm: "VLM",
    pairs: Sequence[Pair],
    sites: Sequence[str] = ("resid",),
    layers: Sequence[int] | str = "all",
    roles: Sequence[str] = ("object", "background", "text", "answer"),
    *,
    batch_size: int = 16,
    reuse: bool = True,
    n_boot: int = 2000,
    seed: int = 0,
    remote: bool | str = False,
) -> PatchSweep:
    """Patch every site, layer and role of every pair.

    Besides the places asked for, every result holds a positive control (the whole block of image tokens at all layers: in a
    causal decoder that reads the picture first it is the donor's picture, so that the effect is 1) and, from pairs that differ
    in colour only, a negative one.

    Args:
        vlm: The model.
        pairs: From :func:`deixis.near_far_pairs`, or your own.
        sites: Names out of :data:`deixis.hooks.SITES`.
        layers: Numbers, or ``"all"``; numbers that one of several sites lacks are left out there.
        roles: Groups of token positions; ``object`` and ``background`` are those of :func:`deixis.hooks.batches.laid_over`.
        batch_size: Pairs a pass.
        reuse: Start each pass at the first block that the patch can change, with what the unedited pass held there. Checked
            against the unedited logits, and given up where a model's blocks share state.
        n_boot: Bootstrap draws over figures.
        seed: Of these.
        remote: Passed on to nnsight.

    Raises:
        EditError: A site, layer or role that the model or the items lack; donors that can't be laid over their receivers.
        ValueError: No pair, something else than pairs, or a batch of none.
    """
    from deixis.analyses.patch_passes import cells_of, patched
    from deixis.analyses.run_edits import check_batch_size

    if not len(pairs):
        raise ValueError("there is no pair to patch; build some with deixis.near_far_pairs().")
    other = next((type(pair).__name__ for pair in pairs if not isinstance(pair, Pair)), None)
    if other is not None:
        raise ValueError(f"pairs holds an entry of type {other}; give pairs, such as those of deixis.near_far_pairs().")
    check_batch_size(batch_size)
    cells = cells_of(vlm, sites, layers, roles)
    with vlm.undisturbed():
        logits = patched(vlm, list(pairs), cells, batch_size, reuse, remote)
    return PatchSweep(model=vlm.name, pairs=tuple(pairs), cells=cells, logits=logits, n_boot=n_boot, seed=seed)


def patches_for(run: "Run", vlm: "VLM", n: int = 3, *, size: int = 512) -> PatchSweep:
    """The sweep that the encoding gap asks for: ``object`` and ``answer`` at every layer, for a run's tasks and languages.

    Args:
        run: Of the memory game.
        vlm: The model of the run.
        n: Figures, each near and far and in another colour.
        size: Width and height of the pictures in pixels.

    Raises:
        ValueError: The run has no items of the memory game.
    """
    from deixis.analyses.patch_pairs import near_far_pairs

    asked = [item for item in run.items if item.benchmark == "memory-game" and item.condition == "real"]
    if not asked:
        raise ValueError("the run holds no real items of the memory game, of which alone near and far pairs are drawn.")
    tasks, languages = (list(dict.fromkeys(getattr(item, name) for item in asked)) for name in ("task", "language"))
    return patch_sweep(vlm, near_far_pairs(tasks, languages, n, size=size), roles=("object", "answer"))


def plot_patch_sweep(frame: "pd.DataFrame", ax: "Axes | None" = None, metric: str = "restored", site: str = "resid") -> "Axes":
    """A heat map of a metric over layers and roles, mean over tasks and languages, with the two controls in the title.

    Args:
        frame: From :meth:`PatchSweep.to_frame`, of one model.
        ax: Where to draw; None makes a figure.
        metric: A metric of the frame.
        site: A site of the frame.

    Raises:
        ValueError: The frame has no such rows.
    """
    rows = frame[(frame["metric"] == metric) & (frame["site"] == site)]
    main = rows[(rows["contrast"] == "distance") & rows["layer"].notna()]
    if not len(main):
        raise ValueError(f"the frame has no rows of metric {metric!r} at {site}; it has: {sorted(set(frame['metric']))}.")
    table = main.pivot_table(index="role", columns="layer", values="effect", aggfunc="mean", sort=False, dropna=False)
    table = table.sort_index(axis=1)
    ax = axes(ax, 1.6 + 0.55 * table.shape[1], 1.3 + 0.42 * len(table))
    values = table.to_numpy(float)
    distance = metric == "js_distance"  # from 0 to 1 by its nature
    top = 1.0 if distance or metric == "restored" else max(1e-9, float(np.nanmax(np.abs(values), initial=0)))
    # Cells as shapes: an image would be pixels in a vector file.
    ax.pcolormesh(values, cmap="Blues" if distance else "RdBu_r", vmin=0.0 if distance else -top, vmax=top)
    ax.invert_yaxis()
    for (row, column), value in np.ndenumerate(values):
        ax.text(
            column + 0.5,
            row + 0.5,
            "–" if np.isnan(value) else f"{value:.2f}",
            ha="center",
            va="center",
            fontsize=8,
            color="white" if abs(value) > 0.6 * top else "black",
        )
    named = {"restored": "share restored", "js_distance": "JS distance moved"}.get(metric, metric)
    ax.set_xticks(np.arange(table.shape[1]) + 0.5, [str(layer) for layer in table.columns])
    ax.set_yticks(np.arange(len(table)) + 0.5, list(table.index))
    ax.set_xlabel(f"layer ({site}); in the cells: {named}")
    ax.set_ylabel("patched tokens")
    ax.spines[:].set_visible(False)
    ax.set_title(f"{frame['model'].iloc[0]}: {controls_said(rows)}", fontsize=9)
    return ax


def controls_said(rows: "pd.DataFrame") -> str:
    """The two controls in words, from the rows of one metric."""
    positive = rows[rows["control"] == "positive"]["effect"].mean()
    negative = rows[rows["control"] == "negative"]
    largest = negative[negative["layer"].notna()].groupby(["role", "layer"], observed=True)["effect"].mean().max()
    said = [
        f"{name} {value:.2f}" for name, value in (("whole image", positive), ("other colour at most", largest)) if value == value
    ]
    return ", ".join(said) or "nothing to restore"
