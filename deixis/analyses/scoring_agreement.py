"""Whether three ways to read a model's choice agree: first tokens, whole strings, and what it writes."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from deixis.analyses.behaviour_scores import rng_of
from deixis.analyses.distributions import bootstrap_means, figure_of, interval
from deixis.benchmarks.judge import can_judge, judge

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.benchmarks import Item
    from deixis.models import VLM

WAYS = ("first_token", "whole_string", "written")
ITEM_COLUMNS = ("model", "language", "item", "figure", *WAYS)
COLUMNS = ("model", "language", "one", "other", "agreement", "low", "high", "n", "unread")


@dataclass(frozen=True)
class ScoringAgreement:
    """What each way of reading takes a model to choose."""

    model: str
    _items: "pd.DataFrame"
    _rows: "pd.DataFrame"

    def __repr__(self) -> str:
        return f"ScoringAgreement({self.model!r}; .to_frame(), .items(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per language and two of the ways (``one``, ``other``).

        ``agreement``: share of the ``n`` items that both could read on which they name the same option, with ``low, high`` (95 %,
        figures drawn again); ``unread``: items that one of them could not read (two options share a first token, or nothing was
        written that names an option).
        """
        return self._rows.copy()

    def items(self) -> "pd.DataFrame":
        """One row per item: the label of the option by ``first_token``, ``whole_string`` and ``written``; None if not read."""
        return self._items.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_scoring_agreement`."""
        return plot_scoring_agreement(self.to_frame(), ax)


def scoring_agreement(run: "Run", vlm: "VLM", *, batch_size: int = 16, n_boot: int = 1000, seed: int = 0) -> ScoringAgreement:
    """Score a run's real demonstrative items by first tokens and by whole strings, and compare with what was written.

    The run holds one of the two scores; both need another pass over the prompts, which this makes.

    Args:
        run: Recorded with ``answers=True``.
        vlm: The model of the run.
        batch_size: Items a forward pass.
        n_boot: Bootstrap draws.
        seed: Of the bootstrap.

    Raises:
        ValueError: Another model's weights; no real demonstrative items; no written answers.
    """
    import pandas as pd

    from deixis.activations.settings import weights_fingerprint

    recorded = run.info.get("weights")
    if recorded is not None and recorded != weights_fingerprint(vlm.model):
        raise ValueError(f"the run was recorded with other weights than those of {vlm.name}; pass the model that was recorded.")
    chosen = [
        (number, item)
        for number, item in enumerate(run.items)
        if item.condition == "real" and any(option.term for option in item.options)
    ]
    if not chosen:
        raise ValueError("the run holds no real demonstrative items; record dx.memory_game().")
    model, answers = str(run.info["model"]), run.answers
    rows = []
    for start in range(0, len(chosen), batch_size):
        part = chosen[start : start + batch_size]
        for (number, item), scores in zip(part, _scored(vlm, [item for _, item in part]), strict=True):
            first, whole = (None if values is None else item.options[int(np.argmax(values))].label for values in scores)
            said = judge(answers[number], item).option if can_judge(item) else None
            rows.append((model, item.language, item.id, figure_of(item), first, whole, said))
    items = pd.DataFrame(rows, columns=list(ITEM_COLUMNS))
    return ScoringAgreement(model, items, agreement_of(items, n_boot, seed))


def _scored(vlm: "VLM", items: list["Item"]) -> list[tuple[list[float] | None, list[float]]]:
    """For each item its options by first token (None where those cannot tell options apart) and by whole string."""
    import torch

    from deixis.activations.options import need_whole_strings, option_logits
    from deixis.activations.passes import PromptPass

    with torch.no_grad():
        try:
            state = PromptPass.run(vlm, vlm.prepare(items))
            whole = option_logits(state, items, whole=True)
            first = [None if need_whole_strings(vlm, item.options) else [] for item in items]
            readable = [number for number, found in enumerate(first) if found is not None]
            if readable:
                some = option_logits(state.rows(readable), [items[number] for number in readable], whole=False)
                for number, values in zip(readable, some, strict=True):
                    first[number] = values
        finally:
            vlm.reset()
    return list(zip(first, whole, strict=True))


def agreement_of(items: "pd.DataFrame", n_boot: int = 1000, seed: int = 0) -> "pd.DataFrame":
    """The rows of :meth:`ScoringAgreement.to_frame` from those of :meth:`ScoringAgreement.items`."""
    import pandas as pd

    rows = []
    for (model, language), part in items.groupby(["model", "language"], sort=False):
        for one, other in combinations(WAYS, 2):
            read = part[part[one].notna() & part[other].notna()]
            share, low, high = (float("nan"),) * 3
            if len(read):
                same = (read[one] == read[other]).to_numpy().astype(float)[:, None]
                share = float(same.mean())
                draws = bootstrap_means(same, read["figure"].to_numpy(), n_boot, rng_of(seed, language, one, other))
                low, high = interval(draws[:, 0], share)
            rows.append((model, language, one, other, share, low, high, len(read), len(part) - len(read)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def plot_scoring_agreement(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """Agreement of each two ways of reading, with intervals: a group of points per language.

    Args:
        frame: From :meth:`ScoringAgreement.to_frame`, or several of them concatenated.
        ax: Where to draw; None makes a figure.

    Raises:
        ValueError: The frame is empty.
    """
    from deixis.analyses.style import SERIES, axes, language_name

    if not len(frame):
        raise ValueError("the frame has no rows to draw; pass a result's to_frame().")
    groups = list(frame.groupby(["model", "language"], sort=False))
    several = frame["model"].nunique() > 1
    ax = axes(ax, 5.2, 0.9 + 0.35 * len(groups))
    for place, (_, part) in enumerate(groups):
        numbers = part[["agreement", "low", "high"]].to_numpy(float)
        for number, (one, other) in enumerate(zip(part["one"], part["other"], strict=True)):
            y = place + (number - 1) * 0.2
            label = f"{one} and {other}".replace("_", " ") if place == 0 else None
            ax.plot(numbers[number, 1:], [y, y], color=SERIES[number], linewidth=1.4)
            ax.plot(numbers[number, :1], [y], "o", color=SERIES[number], markersize=4, label=label)
    names = [f"{model}, {language_name(str(code))}" if several else language_name(str(code)) for (model, code), _ in groups]
    ax.set_yticks(range(len(groups)), names)
    ax.invert_yaxis()
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("share of items on which both name the same option")
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax
