"""Dose and response: how answers change as activations are moved along a probe's direction, and along others as a control."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from deixis.analyses.style import MUTED, SERIES, axes
from deixis.hooks.direction import Direction

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.benchmarks import Item, Items
    from deixis.models import VLM

COLUMNS = (
    "model",
    "direction",
    "kind",
    "dose",
    "layer",
    "role",
    "site",
    "metric",
    "effect",
    "low",
    "high",
    "n_items",
    "task",
    "language",
)
SIDE_EFFECTS = ("colour_right", "shape_right")


@dataclass(frozen=True)
class SteerSweep:
    """Answers at every dose along every direction."""

    model: str
    items: "tuple[Item, ...]"
    directions: tuple[Direction, ...]
    """The probe's first, then the unrelated one, then the random ones, all of one length."""
    kinds: tuple[str, ...]
    """``target``, ``unrelated`` or ``random``, for each."""
    doses: tuple[float, ...]
    logits: Float[np.ndarray, "direction dose item option"]
    """Options that a language lacks are NaN."""
    right: Float[np.ndarray, "direction dose item 2"]
    """Whether the written answer names the right colour and shape; NaN where it was not asked or can't be judged."""
    n_boot: int
    seed: int

    def __repr__(self) -> str:
        return f"SteerSweep({self.model!r}, {self.directions[0].target}, doses {self.doses}; .to_frame(), .slopes(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per direction, dose, task, language and metric, with 95 % bootstrap bounds over scenes.

        ``dose`` is in the unit of the probe's target; a control at the same dose is moved equally far. ``metric``: ``prob:this``
        and so on, an option's mean probability; ``logit_difference``, the nearest option's logit less the farthest one's
        (proximal less distal); ``colour_right`` and ``shape_right``, the share of written answers that still name
        the figure rightly.
        """
        import pandas as pd

        rows = [row for task, language in self._groups() for row in self._rows(task, language)]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def slopes(self) -> "pd.DataFrame":
        """Change of the logit difference per unit of dose, by least squares, for each direction, task and language."""
        import pandas as pd

        found = []
        for task, language in self._groups():
            rows = self._members(task, language)
            draws = self._draws(rows)
            difference = self._difference(rows)
            centred = np.array(self.doses) - np.mean(self.doses)
            slope = np.einsum("kdi,d->ki", difference, centred) / (centred @ centred)
            for number, direction in enumerate(self.directions):
                effect, low, high = _estimate(slope[number], draws)
                found.append((self.model, direction.target, self.kinds[number], effect, low, high, len(rows), task, language))
        names = ["model", "direction", "kind", "slope", "low", "high", "n_items", "task", "language"]
        return pd.DataFrame(found, columns=names)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_steer_sweep`."""
        return plot_steer_sweep(self.to_frame(), ax)

    def _groups(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys((item.task, item.language) for item in self.items))

    def _members(self, task: str, language: str) -> np.ndarray:
        return np.array([n for n, item in enumerate(self.items) if (item.task, item.language) == (task, language)])

    def _difference(self, rows: np.ndarray) -> Float[np.ndarray, "direction dose member"]:
        near, far = ends(self.items[rows[0]])
        return self.logits[:, :, rows, near] - self.logits[:, :, rows, far]

    def _draws(self, rows: np.ndarray) -> Float[np.ndarray, "draw member"] | None:
        """How much each item counts in each draw of scenes; None for a single scene."""
        scenes = [self.items[n].groups.get("scene", self.items[n].id) for n in rows]
        distinct, index = np.unique(scenes, return_inverse=True)
        if len(distinct) < 2:
            return None
        even = np.full(len(distinct), 1 / len(distinct))
        times = np.random.default_rng((self.seed, 6)).multinomial(len(distinct), even, size=self.n_boot)[:, index]
        return times / times.sum(axis=1, keepdims=True)

    def _rows(self, task: str, language: str) -> list[tuple[Any, ...]]:
        rows = self._members(task, language)
        draws = self._draws(rows)
        options = self.items[rows[0]].options
        shown = self.logits[:, :, rows, : len(options)]
        shares = np.exp(shown - shown.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        values = {f"prob:{option.label}": shares[..., place] for place, option in enumerate(options)}
        values["logit_difference"] = self._difference(rows)
        values |= {name: self.right[:, :, rows, place] for place, name in enumerate(SIDE_EFFECTS)}
        found = []
        for number, direction in enumerate(self.directions):
            for place, dose in enumerate(self.doses):
                same = (self.model, direction.target, self.kinds[number], dose, direction.layer, direction.role, direction.site)
                for metric, value in values.items():
                    if not np.isnan(value[number, place]).any():
                        estimate = _estimate(value[number, place], draws)
                        found.append((*same, metric, *estimate, len(rows), task, language))
        return found


def ends(item: "Item") -> tuple[int, int]:
    """Places among an item's options of the nearest one and of the farthest.

    Raises:
        ValueError: The options carry neither terms nor values.
    """
    terms = [option.term for option in item.options]
    if "proximal" in terms and "distal" in terms:
        return terms.index("proximal"), terms.index("distal")
    values = [option.value for option in item.options]
    if None not in values and len(values) > 1:
        known = [float(value) for value in values if value is not None]
        return int(np.argmin(known)), int(np.argmax(known))
    raise ValueError(f"the options of item {item.id!r} have neither terms nor values, so that none of them is the nearest.")


def _estimate(values: Float[np.ndarray, " item"], draws: Float[np.ndarray, "draw item"] | None) -> tuple[float, float, float]:
    if draws is None:
        return float(values.mean()), float("nan"), float("nan")
    low, high = np.quantile(draws @ values, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def steer_sweep(
    vlm: "VLM",
    items: "Items | Sequence[Item]",
    direction: Direction,
    doses: Sequence[float] = (-2.0, -1.0, 0.0, 1.0, 2.0),
    *,
    unrelated: Direction | None = None,
    n_random: int = 3,
    side_effects: bool = True,
    batch_size: int = 16,
    max_new_tokens: int = 8,
    n_boot: int = 2000,
    seed: int = 0,
    remote: bool | str = False,
) -> SteerSweep:
    """Move every item along a probe's direction, an unrelated one and random ones, all equally far, and ask.

    Args:
        vlm: The model.
        items: What is asked; scenes between near and far show most.
        direction: From :func:`deixis.probe_direction`.
        doses: In the unit of its target: 1.0 is one metre for ``distance_m``.
        unrelated: Another target's, such as :func:`deixis.contrast_direction` of two colours at the same layer and role; it is
            brought to the length of ``direction``.
        n_random: Random directions of that length.
        side_effects: Also write the answers, and see whether colour and shape are still right.
        batch_size: Items a pass.
        max_new_tokens: Of written answers.
        n_boot: Bootstrap draws over scenes.
        seed: Of these and of the random directions.
        remote: Passed on to nnsight; without side effects.

    Raises:
        DirectionError: A direction of another model, revision, weights or width, or of another place than ``direction``.
        ValueError: No item, fewer than two doses, or options without a nearest one.
    """
    from deixis.analyses.run_edits import check_batch_size, check_weights
    from deixis.hooks.edit import Edit
    from deixis.hooks.errors import DirectionError

    asked = tuple(items)
    if not asked or len(set(doses)) < 2:
        raise ValueError("steer_sweep needs at least one item and two different doses.")
    check_batch_size(batch_size)
    for item in asked:
        ends(item)
    extra = []
    if unrelated is not None:
        if (unrelated.site, unrelated.layer, unrelated.role) != (direction.site, direction.layer, direction.role):
            raise DirectionError(
                f"the unrelated direction is one of {unrelated.site} {unrelated.layer}, role {unrelated.role!r}, and the probe's "
                f"of {direction.site} {direction.layer}, role {direction.role!r}; learn it at the same place."
            )
        extra = [replace(unrelated, vector=unrelated.vector * (direction.norm / unrelated.norm))]
    directions = (direction, *extra, *(direction.random(seed + number) for number in range(n_random)))
    check_weights([Edit.steer(each, 0.0) for each in directions[:2]], vlm)
    amounts = tuple(Edit.steer(direction, dose).amount for dose in doses)
    with vlm.undisturbed():
        logits, right = _responses(vlm, asked, directions, amounts, side_effects, batch_size, max_new_tokens, remote)
    kinds = ("target", *["unrelated"] * len(extra), *["random"] * n_random)
    return SteerSweep(vlm.name, asked, directions, kinds, amounts, logits, right, n_boot, seed)


def _responses(
    vlm: "VLM",
    items: "tuple[Item, ...]",
    directions: Sequence[Direction],
    doses: Sequence[float],
    side_effects: bool,
    batch_size: int,
    max_new_tokens: int,
    remote: bool | str,
) -> tuple[Float[np.ndarray, "direction dose item option"], Float[np.ndarray, "direction dose item 2"]]:
    """Each batch is prepared and run unedited once; a dose of 0 is that pass."""
    import torch

    from deixis.activations.options import option_logits
    from deixis.activations.passes import written_answers
    from deixis.analyses.run_edits import bare_pass
    from deixis.hooks.batches import Batch
    from deixis.hooks.edit import add_at
    from deixis.hooks.edit_sites import write_step
    from deixis.hooks.tracing import run_steps

    shape = (len(directions), len(doses), len(items))
    logits = np.full((*shape, max(len(item.options) for item in items)), np.nan)
    right = np.full((*shape, 2), np.nan)
    for start in range(0, len(items), batch_size):
        batch = Batch(vlm, items[start : start + batch_size])
        rows = slice(start, start + len(batch.items))
        plain = bare_pass(vlm, batch.inputs)
        where = batch.where(directions[0].role, directions[0].site)
        for number, dose in np.ndindex(shape[:2]):
            if doses[dose] == 0 and number:
                logits[number, dose, rows], right[number, dose, rows] = logits[0, dose, rows], right[0, dose, rows]
                continue
            vector = torch.from_numpy(directions[number].vector * doses[dose]).float()
            change = partial(add_at, where=where, vector=vector)
            step = write_step(vlm, directions[number].site, directions[number].layer, change)
            with torch.inference_mode():
                traced = run_steps(vlm, batch.inputs, [step], cache=remote is not True, remote=remote)
                state = replace(plain, logits=traced.logits, cache=traced.cache, mask=plain.mask.clone())
                for row, values in enumerate(option_logits(state, batch.items)):
                    logits[number, dose, start + row, : len(values)] = values
                if side_effects and remote is not True:
                    right[number, dose, rows] = _named_right(written_answers(state, max_new_tokens), batch.items)
    return logits, right


def _named_right(answers: Sequence[str], items: "Sequence[Item]") -> Float[np.ndarray, "item 2"]:
    """Whether each answer names the figure's colour and shape; NaN for other questions."""
    from deixis.benchmarks.judge import judge

    found = np.full((len(items), 2), np.nan)
    for row, (answer, item) in enumerate(zip(answers, items, strict=True)):
        if item.task == "demonstrative" and {"colour", "shape"} <= set(item.groups):
            said = judge(answer, item)
            found[row] = said.colour == item.groups["colour"], said.shape == item.groups["shape"]
    return found


def plot_steer_sweep(frame: "pd.DataFrame", ax: "Axes | None" = None, metric: str = "logit_difference") -> "Axes":
    """Response over dose, a line per direction: the probe's with its interval, the unrelated one dashed, random ones grey.

    Args:
        frame: From :meth:`SteerSweep.to_frame`, of one model; tasks and languages are averaged.
        ax: Where to draw; None makes a figure.
        metric: A metric of the frame.

    Raises:
        ValueError: The frame has no such metric.
    """
    rows = frame[frame["metric"] == metric]
    if not len(rows):
        raise ValueError(f"metric={metric!r} is not one of: {', '.join(map(repr, dict.fromkeys(frame['metric'])))}.")
    ax = axes(ax, 4.6, 3.2)
    looks: dict[str, dict[str, Any]] = {
        "target": {"color": SERIES[0], "marker": "o", "zorder": 3},
        "unrelated": {"color": SERIES[1], "linestyle": "--", "marker": "s", "zorder": 2},
        "random": {"color": MUTED, "linewidth": 1, "zorder": 1},
    }
    seen: set[str] = set()
    for (kind, name), part in rows.groupby(["kind", "direction"], sort=False):
        means = part.groupby("dose")[["effect", "low", "high"]].mean()
        label = "random, equally far" if kind == "random" else str(name)
        ax.plot(means.index, means["effect"], label="_" if label in seen else label, markersize=4, **looks[str(kind)])
        if kind == "target":
            ax.fill_between(means.index, means["low"], means["high"], color=SERIES[0], alpha=0.18, linewidth=0)
        seen.add(label)
    if metric == "logit_difference":  # what is nothing should look like nothing
        low, high = ax.get_ylim()
        ax.set_ylim(min(low, -1.0), max(high, 1.0))
    target = rows[rows["kind"] == "target"]["direction"].iloc[0]
    unit = " (m)" if str(target).endswith("_m") else ""
    ax.set_xlabel(f"dose: the probe's {target} moved by{unit}")
    ax.set_ylabel({"logit_difference": "logit, nearest less farthest option"}.get(metric, metric.replace("prob:", "P of ")))
    ax.legend(frameon=False, fontsize=8)
    return ax
