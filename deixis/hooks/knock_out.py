"""Cutting attention edges: the mask that an attention receives, with some of its entries closed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from deixis.hooks.edit_sites import attention_place
from deixis.hooks.errors import EditError, NeverFiredError, NoSuchSiteError
from deixis.hooks.tracing import Step
from deixis.models import VLM

_MASKED = ("sdpa", "eager")
"""Implementations that take a mask of single entries."""


def cut_step(
    vlm: VLM,
    layer: int,
    queries: Bool[Tensor, "batch position"],
    keys: Bool[Tensor, "batch position"],
    heads: Sequence[int] | None,
    name: str,
) -> Step:
    """A step that closes the edges from ``queries`` to ``keys`` in one block's attention.

    Raises:
        NoSuchSiteError: The block's attention has no edges between positions of the sequence, or no such head.
        EditError: The attention's implementation takes no such mask.
    """
    called, module = vlm.attention_of(layer)
    if "linear" in called or "cross" in called or vlm.out_proj_of(layer) is None:
        raise NoSuchSiteError(f"block {layer} of {vlm.name} has {called}, which has no edges between the prompt's tokens to cut.")
    chosen = getattr(vlm.text_config, "_attn_implementation", None) or "eager"
    if chosen not in _MASKED:
        raise EditError(
            f"attention edges can't be cut under {chosen!r}, which takes no mask of single edges; "
            "load the model with attn_implementation='sdpa'."
        )
    wrong = [head for head in heads or () if not 0 <= head < vlm.n_heads]
    if wrong or (heads is not None and not len(heads)):
        raise NoSuchSiteError(f"heads={list(heads or ())} must be some of 0 to {vlm.n_heads - 1}.")
    close = partial(
        closed,
        edges=queries[:, :, None] & keys[:, None, :] & ~torch.eye(queries.shape[1], dtype=torch.bool),
        heads=None if heads is None else tuple(heads),
        n_heads=vlm.n_heads,
        causal=bool(getattr(module, "is_causal", True)),
        additive=chosen == "eager",
        name=f"{name} at block {layer}",
        dtype=next(module.parameters()).dtype,
    )
    return Step(name=f"attention {layer}", module=module, place=attention_place(layer), act=partial(_with_mask, cuts=(close,)))


def joined_cuts(steps: Sequence[Step]) -> list[Step]:
    """The same steps, with those that cut edges at one block made one, at the place of the first.

    Each cut is then held against the mask that the model gave, not against what another edit of the pass has left of it.
    """
    joined: list[Step] = []
    at: dict[nn.Module, int] = {}
    for step in steps:
        if not isinstance(step.act, partial) or step.act.func is not _with_mask:
            joined.append(step)
        elif step.module in at:
            first = joined[at[step.module]]
            cuts = (*cast("partial[None]", first.act).keywords["cuts"], *step.act.keywords["cuts"])
            joined[at[step.module]] = replace(first, act=partial(_with_mask, cuts=cuts))
        else:
            at[step.module] = len(joined)
            joined.append(step)
    return joined


def _with_mask(envoy: Any, cuts: Sequence[Callable[..., Tensor]]) -> None:
    args, kwargs = envoy.inputs
    hidden = args[0] if args else kwargs["hidden_states"]
    given = kwargs.get("attention_mask")
    mask = given
    for cut in cuts:
        mask = cut(mask, hidden.device, given=given)
    envoy.inputs = (args, {**kwargs, "attention_mask": mask})


def closed(
    mask: Tensor | None,
    device: torch.device,
    *,
    given: Tensor | None,
    edges: Bool[Tensor, "batch query key"],
    heads: tuple[int, ...] | None,
    n_heads: int,
    causal: bool,
    additive: bool,
    name: str,
    dtype: torch.dtype,
) -> Tensor:
    """The mask without some edges, in the form in which it came; None is a causal mask (or none) without padding.

    ``given`` is the mask before other edits of the same pass.

    Raises:
        NeverFiredError: None of the edges was open in ``given``.
        EditError: A query has no key left.
    """
    batch, length, _ = edges.shape
    edges = edges.to(device)
    seen = _seen(mask, batch, length, causal, device)
    if not bool((_seen(given, batch, length, causal, device) & edges[:, None]).any()):
        raise NeverFiredError(
            f"there is no edge from {name}: the attention is causal or local there; swap or choose other roles."
        )
    kept = seen.expand(batch, n_heads, length, length).clone() if heads is not None else seen.clone()
    rows = list(heads) if heads is not None else slice(None)
    kept[:, rows] &= ~edges[:, None]
    if bool((seen.any(dim=-1) & ~kept.any(dim=-1)).any()):
        raise EditError(f"without the edges from {name} a token would see nothing at all; leave it some key.")
    if (mask is None and not additive) or (mask is not None and mask.dtype == torch.bool):
        return kept
    form = torch.zeros((), dtype=dtype, device=device) if mask is None else mask[..., :length]
    return torch.where(kept, form, torch.finfo(form.dtype).min)


def _seen(
    mask: Tensor | None, batch: int, length: int, causal: bool, device: torch.device
) -> Bool[Tensor, "batch head query key"]:
    """Which keys each query sees; one head for all where the mask has one."""
    if mask is None:
        seen = torch.ones(1, 1, length, length, dtype=torch.bool, device=device)
        seen = seen.tril() if causal else seen
    else:
        seen = mask[..., :length] if mask.dtype == torch.bool else mask[..., :length] > torch.finfo(mask.dtype).min / 2
    return seen.expand(batch, seen.shape[1], length, length)
