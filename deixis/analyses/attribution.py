"""Direct logit attribution (Elhage et al. 2021; Wang et al. 2023): which parts wrote the difference between two options' logits.

The residual stream at the answer position is a sum: what the embedding put there and what every attention head and MLP added. Up
to the final norm's scale the logits are linear in it, so that each part's share can be read off. **The scale is frozen** at the
value that the norm had in this pass; a part that would have changed it is not charged for that, and what a part did through
later layers is counted there, not here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deixis.analyses.steer_sweep import ends
from deixis.analyses.style import SERIES, axes

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from matplotlib.axes import Axes

    from deixis.benchmarks import Item, Items
    from deixis.models import VLM

COLUMNS = ("model", "item", "task", "language", "part", "layer", "head", "effect", "difference")
TOLERANCE = 1e-3
"""How far attention and MLP may be from adding up to what a block adds, as a share of it."""


@dataclass(frozen=True)
class Attribution:
    """The difference of two options' logits, part by part."""

    model: str
    split: bool
    """Whether blocks could be split into attention, heads and MLP: not where a norm follows these before they are added."""
    _rows: "pd.DataFrame"

    def __repr__(self) -> str:
        return f"Attribution({self.model!r}, {self._rows['item'].nunique()} items; .to_frame(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per item and part; effects are in logits, of the nearest option less the farthest one (proximal less distal).

        ``part``: ``embedding``, ``attention``, ``mlp`` and ``bias`` (of the head), or ``block`` where one can't be split; these
        add up to ``difference``, the model's own, before any soft cap. ``head`` rows are parts of their layer's ``attention``. Of
        an option with several first tokens the one with the largest logit is taken.
        """
        return self._rows.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_attribution`."""
        return plot_attribution(self.to_frame(), ax)


def attribution(vlm: "VLM", items: "Items | Sequence[Item]", *, batch_size: int = 16) -> Attribution:
    """Divide each item's logit difference among the parts of the model.

    Args:
        vlm: Of a family whose final norm is an RMS norm.
        items: With options of which one is the nearest and one the farthest.
        batch_size: Items a pass.

    Raises:
        ValueError: No item, options without a nearest one or that share a first token, or a final norm that isn't an RMS norm.
    """
    import pandas as pd
    import torch

    from deixis.activations.options import need_whole_strings
    from deixis.hooks.batches import Batch

    asked = list(items)
    if not asked:
        raise ValueError("there is no item; give at least one.")
    for item in asked:
        ends(item)
        if need_whole_strings(vlm, item.options):
            raise ValueError(f"options of item {item.id!r} begin with the same token, so that no logit tells them apart.")
    frames, split = [], True
    with torch.inference_mode():
        for start in range(0, len(asked), batch_size):
            batch = Batch(vlm, tuple(asked[start : start + batch_size]))
            added, split = _added(vlm, batch)
            frames += _of_batch(vlm, batch, added)
    rows = pd.DataFrame(frames, columns=list(COLUMNS)).astype({"layer": "Int64", "head": "Int64"})
    return Attribution(vlm.name, split, rows)


Added = dict[tuple[str, int | None, int | None], Any]
"""What each part adds at the answer position (``item width``), by name, layer and head."""


def _added(vlm: "VLM", batch: Any) -> "tuple[Added, bool]":
    from deixis.hooks.edit_sites import read_step, site_layers
    from deixis.hooks.tracing import run_steps

    answer = batch.where("answer")
    skipped = vlm.family.optional_layers(vlm, batch.inputs) if vlm.family.optional_layers is not None else ()
    runs = [layer for layer in range(vlm.n_layers) if layer not in skipped]
    headed = [layer for layer in runs if vlm.out_proj_of(layer) is not None] and site_layers(vlm, "head")
    wanted = [("resid", layer) for layer in (*runs, vlm.n_layers)]
    wanted += [(site, layer) for site in ("attn_out", "mlp_out") for layer in runs]
    wanted += [("head", layer) for layer in headed if layer in runs]
    seen = run_steps(vlm, batch.inputs, [read_step(vlm, site, layer, answer.of) for site, layer in wanted]).seen
    held = {key: value.double().cpu() for key, value in zip(wanted, seen, strict=True)}
    after = dict(zip(runs, [*runs[1:], vlm.n_layers], strict=True))
    blocks = {layer: held["resid", after[layer]] - held["resid", layer] for layer in runs}
    rest = {layer: blocks[layer] - held["attn_out", layer] - held["mlp_out", layer] for layer in runs}
    split = all(bool(rest[n].norm() <= TOLERANCE * max(float(blocks[n].norm()), 1e-12)) for n in runs)
    added: Added = {("embedding", None, None): held["resid", runs[0]]}
    for layer in runs:
        if not split:
            added["block", layer, None] = blocks[layer]
            continue
        added["attention", layer, None] = held["attn_out", layer]
        added["mlp", layer, None] = blocks[layer] - held["attn_out", layer]
        if ("head", layer) in held:
            added |= {("head", layer, n): part for n, part in enumerate(_heads(vlm, layer, held["head", layer]))}
    added["final", None, None] = held["resid", vlm.n_layers]
    return added, split


def _heads(vlm: "VLM", layer: int, values: "torch.Tensor") -> "list[torch.Tensor]":
    """What each head adds: its slice of the projection's input times its columns of the projection."""
    projection: Any = vlm.out_proj_of(layer)
    weight = projection.weight.double().cpu()
    pairs = zip(values.chunk(vlm.n_heads, dim=-1), weight.chunk(vlm.n_heads, dim=-1), strict=True)
    return [value @ columns.T for value, columns in pairs]


def _of_batch(vlm: "VLM", batch: Any, added: "Added") -> list[tuple[Any, ...]]:
    final = added.pop(("final", None, None))
    head: Any = vlm.head
    weight, bias = head.weight.double().cpu(), getattr(head, "bias", None)
    gain = _frozen_gain(vlm, final)
    rows = []
    for number, item in enumerate(batch.items):
        near, far = (_token(vlm, item.options[place], final[number : number + 1]) for place in ends(item))
        way = (weight[near] - weight[far]) * gain[number]
        offset = 0.0 if bias is None else float(bias[near] - bias[far])
        difference = float(final[number] @ way) + offset
        known = (vlm.name, item.id, item.task, item.language)
        rows += [
            (*known, part, layer, head, float(value[number] @ way), difference) for (part, layer, head), value in added.items()
        ]
        rows.append((*known, "bias", None, None, offset, difference))
    return rows


def _token(vlm: "VLM", option: Any, final: "torch.Tensor") -> int:
    """The option's first token with the largest logit."""
    tokens = vlm.first_tokens(option)
    return tokens[int(vlm.logits_of(final.float(), tokens)[0].argmax())]


def _frozen_gain(vlm: "VLM", final: "torch.Tensor") -> "torch.Tensor":
    """What the final norm multiplies each coordinate by, for each item, at the scale of this pass.

    Raises:
        ValueError: The norm does something else than multiply.
    """
    import torch

    norm = vlm.final_norm
    one = next(norm.parameters())
    normed = norm(final.to(one)).double().cpu()
    # On a vector of ones an RMS norm gives its weights, whatever form it keeps them in.
    weights = norm(torch.ones_like(final[:1]).to(one)).double().cpu()
    scale = (normed * weights * final).sum(dim=-1) / ((weights * final) ** 2).sum(dim=-1)
    gain = scale[:, None] * weights
    if not torch.allclose(gain * final, normed, rtol=1e-2, atol=1e-3 * float(normed.abs().max())):
        raise ValueError(
            f"the final norm of {vlm.name} is no RMS norm, so that the logits can't be divided with its scale frozen."
        )
    return gain


def plot_attribution(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """Mean effect of each layer's attention and MLP (or block) on the logit difference, as bars.

    Args:
        frame: From :meth:`Attribution.to_frame`, of one model.
        ax: Where to draw; None makes a figure.
    """
    from matplotlib.ticker import MaxNLocator

    ax = axes(ax)
    kinds = [part for part in ("attention", "mlp", "block") if (frame["part"] == part).any()]
    for number, part in enumerate(kinds):
        means: Any = frame[frame["part"] == part].groupby("layer")["effect"].mean()
        shift = (number - (len(kinds) - 1) / 2) * 0.38
        ax.bar(means.index.to_numpy(float) + shift, means, 0.36, color=SERIES[number], label=part)
    ax.axhline(0, color="#7F7F7F", linewidth=0.8)
    ax.set_xlabel("layer")
    ax.set_ylabel("mean effect (logits), nearest less farthest")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False)
    return ax
