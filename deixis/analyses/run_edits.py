"""Items under an edit, beside the same items left alone: option logits, and what is written."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from deixis.analyses.distributions import softmax_within
from deixis.analyses.style import axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from torch import Tensor

    from deixis.activations.passes import PromptPass
    from deixis.benchmarks import Item, Items
    from deixis.hooks.edit import Edit
    from deixis.models import VLM

COLUMNS = ("model", "edit", "item", "task", "language", "option", "term", "unedited", "edited", "change", "prob", "edited_prob")


@dataclass(frozen=True)
class EditedRun:
    """What an edit changed."""

    model: str
    edit: str
    answers: tuple[str, ...]
    """Written under the edit, in item order; empty if they were not asked for."""
    unedited_answers: tuple[str, ...]
    _rows: "pd.DataFrame"

    def __repr__(self) -> str:
        return f"EditedRun({self.model!r}, {self.edit}, {self._rows['item'].nunique()} items; .to_frame(), .answers, .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per item and option: its logit ``unedited`` and ``edited``, their difference ``change``, and its probability.

        Probabilities are among the item's own options.
        """
        return self._rows.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_run_edits`."""
        return plot_run_edits(self.to_frame(), ax)


def run_edits(
    vlm: "VLM",
    items: "Items | Sequence[Item]",
    edits: "Edit | Sequence[Edit]",
    *,
    batch_size: int = 16,
    answers: bool = False,
    max_new_tokens: int = 16,
    remote: bool | str = False,
) -> EditedRun:
    """Run items as they are and once more with all ``edits`` in one pass.

    Args:
        vlm: The model; it is left with equal outputs, without hooks, and with the positions (``rope_deltas``) that it held.
        items: What is asked.
        edits: One edit, or several that act together.
        batch_size: Items a pass.
        answers: Also write the answers, from the edited prompt's keys and values.
        max_new_tokens: Of these.
        remote: Passed on to nnsight: True runs on its remote service, ``"local"`` rehearses that.

    Raises:
        EditError: An edit does not fit the model or the items; the sentence says how, and the way out.
        ValueError: No item, no edit, a batch of no items, or answers asked for remotely.
    """
    from deixis.hooks.edit import Edit, check_donors
    from deixis.hooks.tracing import check_unwatched

    chosen = [edits] if isinstance(edits, Edit) else list(edits)
    asked = list(items)
    if not asked or not chosen:
        raise ValueError("there is nothing to run; give at least one item and one edit.")
    if remote is True and answers:
        raise ValueError("answers are written here, token by token; leave out answers=True, or remote=True.")
    check_batch_size(batch_size)
    check_weights(chosen, vlm)
    check_donors(chosen, len(asked))
    check_unwatched(vlm)
    with vlm.undisturbed():
        return _edited_run(vlm, asked, chosen, batch_size, max_new_tokens if answers else None, remote)


def _edited_run(
    vlm: "VLM",
    asked: "list[Item]",
    chosen: "list[Edit]",
    batch_size: int,
    max_new_tokens: int | None,
    remote: bool | str,
) -> EditedRun:
    import torch

    from deixis.activations.options import option_logits
    from deixis.activations.passes import PromptPass, written_answers
    from deixis.hooks.batches import Batch
    from deixis.hooks.edit import edit_steps
    from deixis.hooks.tracing import run_steps

    unedited: list[list[float]] = []
    edited: list[list[float]] = []
    written: tuple[list[str], list[str]] = ([], [])
    for start in range(0, len(asked), batch_size):
        batch = Batch(vlm, tuple(asked[start : start + batch_size]))
        plain = bare_pass(vlm, batch.inputs)
        steps = edit_steps(chosen, batch, range(start, start + len(batch.items)), remote)
        traced = run_steps(vlm, batch.inputs, steps, cache=remote is not True, remote=remote)
        changed: PromptPass = replace(plain, logits=traced.logits, cache=traced.cache, mask=plain.mask.clone())
        with torch.inference_mode():
            unedited += option_logits(plain, batch.items)
            edited += option_logits(changed, batch.items)
            if max_new_tokens is not None:
                written[0].extend(written_answers(plain, max_new_tokens))
                written[1].extend(written_answers(changed, max_new_tokens))
    return EditedRun(
        model=vlm.name,
        edit=" + ".join(edit.kind for edit in chosen),
        answers=tuple(written[1]),
        unedited_answers=tuple(written[0]),
        _rows=_frame(vlm.name, " + ".join(edit.kind for edit in chosen), asked, unedited, edited),
    )


def bare_pass(vlm: "VLM", inputs: "dict[str, Tensor]") -> "PromptPass":
    """An unedited pass over a prepared batch, without gradients."""
    import torch

    from deixis.activations.passes import PromptPass

    with torch.inference_mode():
        return PromptPass.run(vlm, inputs)


def check_batch_size(batch_size: int) -> None:
    """Refuse what is no number of items.

    Raises:
        ValueError: It is no whole number from 1.
    """
    if type(batch_size) is not int or batch_size < 1:
        raise ValueError(f"batch_size={batch_size!r} is not a whole number from 1.")


def check_weights(edits: "Sequence[Edit]", vlm: "VLM") -> None:
    """Refuse a direction that was learned from other weights under the same name.

    Raises:
        DirectionError: The fingerprints differ.
    """
    from deixis.activations.settings import weights_fingerprint
    from deixis.hooks.errors import DirectionError

    directions = [found for edit in edits if (found := getattr(edit, "direction", None)) is not None]
    for direction in directions:
        direction.check_fits(vlm)
        if direction.weights is not None and direction.weights != weights_fingerprint(vlm.model):
            raise DirectionError(
                f"the direction of {direction.target} was learned from other weights than those of {vlm.name}; "
                "learn it from a run of this model."
            )


def _frame(
    model: str, edit: str, items: "Sequence[Item]", unedited: Sequence[Sequence[float]], edited: Sequence[Sequence[float]]
) -> "pd.DataFrame":
    import pandas as pd

    rows = [
        (model, edit, item.id, item.task, item.language, option.label, option.term, before, after)
        for item, befores, afters in zip(items, unedited, edited, strict=True)
        for option, before, after in zip(item.options, befores, afters, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS[:9])).assign(change=lambda f: f["edited"] - f["unedited"])
    groups = np.repeat(np.arange(len(items)), [len(item.options) for item in items])
    frame["prob"] = softmax_within(groups, frame["unedited"].to_numpy(float))
    frame["edited_prob"] = softmax_within(groups, frame["edited"].to_numpy(float))
    return frame[list(COLUMNS)]


def plot_run_edits(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """Each option's mean probability, left alone and edited.

    Args:
        frame: From :meth:`EditedRun.to_frame`.
        ax: Where to draw; None makes a figure.
    """
    means = frame.groupby(["language", "option"], sort=False)[["prob", "edited_prob"]].mean()
    ax = axes(ax, 5.2, 0.8 + 0.3 * len(means))
    places = np.arange(len(means))[::-1]
    ax.hlines(places, means["prob"], means["edited_prob"], color="#7F7F7F", linewidth=1)
    ax.plot(means["prob"], places, "o", color="#7F7F7F", label="left alone")
    ax.plot(means["edited_prob"], places, "o", color="#0072B2", label="edited")
    ax.set_yticks(places, [f"{option} ({language})" for language, option in means.index])
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("mean probability among the options")
    ax.legend(frameon=False, fontsize=8)
    return ax
