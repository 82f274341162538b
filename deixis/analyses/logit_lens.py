"""How an answer forms: the options' logits read from every layer with the model's own final norm and head.

The logit lens (nostalgebraist 2020) under-reads early layers, which were not made for that head: a flat line there is no proof of
absence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from deixis.analyses.distributions import softmax_within
from deixis.analyses.style import REGION_COLOURS, TERM_COLOURS, axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.benchmarks import Item
    from deixis.models import VLM

COLUMNS = ("model", "item", "layer", "role", "option", "term", "logit", "prob", "rank")
TOLERANCE = {"float64": 1e-3, "float32": 1e-3, "float16": 1e-2, "bfloat16": 4e-2}
"""How far the last layer may lie from the model's own logits, as a share of an item's largest logit (at least 1): a head in half
precision rounds what the lens computes in float32."""


@dataclass(frozen=True)
class LogitLens:
    """Logits of every item's options at every recorded layer."""

    model: str
    role: str
    layers: tuple[int, ...]
    regions: Mapping[str, int]
    """Region of each item that has one."""
    left_out: tuple[str, ...]
    """Items whose options are scored as whole strings: first tokens, all that a lens reads, do not tell them apart."""
    checked: bool
    """Whether the last layer was compared with the model's own logits: at role ``answer``, if it was recorded."""
    _rows: "pd.DataFrame"

    def __repr__(self) -> str:
        return (
            f"LogitLens({self.model!r}, role {self.role}, layers {min(self.layers)} to {max(self.layers)}; .to_frame(), .plot())"
        )

    def to_frame(self) -> "pd.DataFrame":
        """One row per item, layer and option; ``prob`` and ``rank`` (1 for the largest) are among the item's own options.

        An item without a token of the role has NaN.
        """
        return self._rows.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_logit_lens`; one line per region, where items have one."""
        return plot_logit_lens(self.to_frame(), ax, regions=self.regions or None)


def logit_lens(run: "Run", vlm: "VLM", *, role: str = "answer") -> LogitLens:
    """Read the options' logits from the residual stream at every recorded layer.

    An option's logit is the logsumexp over the first tokens of its forms, as in ``run.options``; only those tokens' rows of the
    head are used, in float32 and soft-capped where the model does it. At role ``answer`` the last layer must give the model's own
    logits, and is compared with them item by item.

    Args:
        run: Recorded with the site ``resid``.
        vlm: The model of the run.
        role: Whose vectors are read; for roles of several tokens the run holds their mean, which no model computes from.

    Raises:
        ValueError: The last layer does not give ``run.options`` (the message names the item); another model's width; or no item
            whose options can be read by their first tokens.
    """
    from deixis.activations.options import need_whole_strings
    from deixis.activations.settings import weights_fingerprint

    recorded = run.info.get("weights")
    if recorded is not None and recorded != weights_fingerprint(vlm.model):
        raise ValueError(f"the run was recorded with other weights than those of {vlm.name}; pass the model that was recorded.")
    items = list(run.items)
    whole: dict[tuple[str, ...], bool] = {}
    readable = []
    for number, item in enumerate(items):
        key = tuple(form for option in item.options for form in (option.label, *option.forms))
        if key not in whole:
            whole[key] = need_whole_strings(vlm, item.options)
        if not whole[key]:
            readable.append(number)
    if not readable:
        raise ValueError(
            "in every item two options begin with the same token, or one with a part of a character, so that no lens can tell "
            "them apart; probe the layers instead, with deixis.layer_sweep."
        )
    chosen = ChosenOptions.of([items[number] for number in readable], vlm)
    layers = tuple(run.layers("resid"))
    logits = np.stack([chosen.logits(_rows_of(run, layer, role, vlm)[readable], vlm) for layer in layers])
    checked = role == "answer" and vlm.n_layers in layers
    if checked:
        _check_last(logits[layers.index(vlm.n_layers)], chosen, run)
    return LogitLens(
        model=str(run.info["model"]),
        role=role,
        layers=layers,
        regions={item.id: int(item.targets["region"]) for item in items if "region" in item.targets},
        left_out=tuple(item.id for number, item in enumerate(items) if number not in set(readable)),
        checked=checked,
        _rows=_frame(str(run.info["model"]), role, layers, logits, chosen),
    )


@dataclass(frozen=True)
class ChosenOptions:
    """The options of the items that are read, end to end, and the tokens that they need of the head."""

    items: tuple[str, ...]
    owner: Int[np.ndarray, " option"]
    """Number of the item that an option belongs to."""
    labels: tuple[str, ...]
    terms: tuple[str | None, ...]
    tokens: tuple[int, ...]
    member: Bool[np.ndarray, "option token"]
    """Whether an option may begin with a token."""

    @classmethod
    def of(cls, items: "Sequence[Item]", vlm: "VLM") -> "ChosenOptions":
        """The options of ``items``, with their first tokens."""
        options = [(number, option) for number, item in enumerate(items) for option in item.options]
        firsts = {option: vlm.first_tokens(option) for option in dict.fromkeys(option for _, option in options)}
        tokens = tuple(sorted({token for group in firsts.values() for token in group}))
        place = {token: k for k, token in enumerate(tokens)}
        member = np.zeros((len(options), len(tokens)), bool)
        for row, (_, option) in enumerate(options):
            member[row, [place[token] for token in firsts[option]]] = True
        return cls(
            items=tuple(item.id for item in items),
            owner=np.array([number for number, _ in options]),
            labels=tuple(option.label for _, option in options),
            terms=tuple(option.term for _, option in options),
            tokens=tokens,
            member=member,
        )

    def logits(self, resid: Float[np.ndarray, "item width"], vlm: "VLM") -> Float[np.ndarray, " option"]:
        """Logsumexp over each option's first tokens."""
        import torch
        from scipy.special import logsumexp

        values = vlm.logits_of(torch.from_numpy(np.ascontiguousarray(resid)), self.tokens).double().cpu().numpy()
        return np.asarray(logsumexp(np.where(self.member, values[self.owner], -np.inf), axis=1))


def _rows_of(run: "Run", layer: int, role: str, vlm: "VLM") -> Float[np.ndarray, "item width"]:
    rows = run.resid(layer, role)
    if rows.shape[1] != vlm.d_model:
        raise ValueError(
            f"the run of {run.info['model']!r} holds vectors of width {rows.shape[1]} and {vlm.name!r} has width {vlm.d_model}; "
            "pass the model that was recorded."
        )
    return rows


def _check_last(logits: Float[np.ndarray, " option"], chosen: ChosenOptions, run: "Run") -> None:
    """Compare with the model's own logits; a wrong norm, a missing soft cap or another model shows here."""
    import pandas as pd

    own = run.options.set_index(["item", "option"])["logit"]
    keys = pd.MultiIndex.from_arrays([[chosen.items[k] for k in chosen.owner], list(chosen.labels)])
    expected = own.loc[keys].to_numpy(float)
    largest = np.ones(len(chosen.items))
    np.maximum.at(largest, chosen.owner, np.abs(expected))
    share = TOLERANCE.get(str(run.info.get("dtype", "float32")).removeprefix("torch."), TOLERANCE["bfloat16"])
    # Not "greater than": NaN must not pass.
    wrong = np.flatnonzero(~(np.abs(logits - expected) <= share * largest[chosen.owner]))
    if len(wrong):
        first = wrong[0]
        raise ValueError(
            f"at the last layer the lens reads {logits[first]:.4f} for {chosen.labels[first]!r} of item "
            f"{chosen.items[chosen.owner[first]]!r}, where the model's own logit is {expected[first]:.4f}; "
            "pass the model that was recorded, in the same revision."
        )


def _frame(
    model: str, role: str, layers: tuple[int, ...], logits: Float[np.ndarray, "layer option"], chosen: ChosenOptions
) -> "pd.DataFrame":
    import pandas as pd

    n = len(chosen.owner)
    frame = pd.DataFrame(
        {
            "model": model,
            "item": [chosen.items[k] for k in chosen.owner] * len(layers),
            "layer": np.repeat(layers, n),
            "role": role,
            "option": chosen.labels * len(layers),
            "term": chosen.terms * len(layers),
            "logit": logits.ravel(),
        }
    )
    groups = (np.arange(len(layers))[:, None] * len(chosen.items) + chosen.owner).ravel()
    frame["prob"] = softmax_within(groups, logits.ravel())
    frame["rank"] = frame.groupby(groups)["logit"].rank(ascending=False, method="min")
    return frame[list(COLUMNS)]


def plot_logit_lens(
    frame: "pd.DataFrame",
    ax: "Axes | None" = None,
    *,
    option: str = "proximal",
    regions: Mapping[str, int] | None = None,
) -> "Axes":
    """Median over items of an option's probability at each layer, with the band between its quartiles.

    Args:
        frame: From :meth:`LogitLens.to_frame`.
        ax: Where to draw; None makes a figure.
        option: A term or an option's label.
        regions: Region of each item, for one line per region; None draws one line over all items.

    Raises:
        ValueError: The frame has no such option.
    """
    from matplotlib.ticker import MaxNLocator

    rows = frame[(frame["term"] == option) | (frame["option"] == option)]
    if not len(rows):
        known = dict.fromkeys([*frame["term"].dropna(), *frame["option"]])
        raise ValueError(f"option={option!r} is not one of: {', '.join(map(repr, known))}.")
    ax = axes(ax)
    if regions is None:
        _line(ax, rows, TERM_COLOURS.get(option, REGION_COLOURS[1]), option)
    else:
        region = rows["item"].map(regions)
        for number in sorted(set(region.dropna())):
            _line(ax, rows[region == number], REGION_COLOURS[int(number)], f"region {int(number)}")
    ax.set_xlabel("layer (residual stream entering block)")
    ax.set_ylabel(f"P({option}), median and quartiles")
    ax.set_ylim(0, 1)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False)
    return ax


def _line(ax: "Axes", rows: "pd.DataFrame", colour: str, label: str) -> None:
    layers = rows.groupby("layer")["prob"]
    low, middle, high = (layers.quantile(q) for q in (0.25, 0.5, 0.75))
    x = middle.index.to_numpy()
    ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(x, middle, color=colour, marker="o", markersize=3, label=label)
