"""One call of a model's attention function: what it was given, and the exact weights that follow from it, block by block."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

MASKED = -1e30
"""Score of a key that a query may not see. Finite, so that nothing times zero is NaN."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionCall:
    """Queries and keys behind their rotary embedding, and the rules that turn their products into weights."""

    query: Float[Tensor, "sequence head query width"]
    key: Float[Tensor, "sequence group key width"]
    """Grouped-query attention: each group of keys serves the next ``head / group`` heads."""
    mask: Tensor | None
    """``sequence 1|head query key``, True or 0 where a query may see a key; None: see :attr:`causal`."""
    causal: bool
    """Whether, without a mask, a query sees only the keys up to its own position."""
    scale: float
    soft_cap: float | None = None
    """Scores are squeezed into this range, as in Gemma 2: cap * tanh(score / cap)."""
    sinks: Float[Tensor, " head"] | None = None
    """Learned scores that take part in the softmax and lead nowhere, as in gpt-oss."""

    @classmethod
    def of(
        cls, module: nn.Module, name: str, query: Tensor, key: Tensor, mask: Any, options: Mapping[str, Any]
    ) -> "AttentionCall":
        """What the implementation ``name`` does with these arguments."""
        flash = "flash" in name
        n_query, n_key = query.shape[2], key.shape[2]
        causal = options.get("is_causal")
        causal = bool(getattr(module, "is_causal", True) if causal is None else causal) and n_query > 1
        if options.get("position_bias") is not None:
            raise ValueError(f"{type(module).__name__} adds a position bias, which is not read; record with attention=False.")
        if flash:
            mask = flash_mask(mask, n_query, n_key, causal=causal, options=options, device=query.device)
        elif mask is None and causal and n_key > n_query:
            key = key[:, :, :n_query]
        scale = options.get("scaling")
        # SDPA has neither of the two; a model that needs them does not run under it.
        soft_cap = None if name == "sdpa" else options.get("softcap")
        sinks = options.get("s_aux") if flash else None if name == "sdpa" else getattr(module, "sinks", None)
        return cls(
            query=query,
            key=key,
            mask=mask,
            causal=causal,
            scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
            soft_cap=soft_cap,
            sinks=None if sinks is None else sinks.detach(),
        )

    @property
    def n_heads(self) -> int:
        """Query heads of this call."""
        return self.query.shape[1]

    def item(self, number: int) -> "AttentionCall":
        """The call as it is for one sequence alone."""
        rows = slice(number, number + 1)
        mask = self.mask if self.mask is None or self.mask.shape[0] == 1 else self.mask[rows]
        return replace(self, query=self.query[rows], key=self.key[rows], mask=mask)

    def scores(self, columns: Int[Tensor, " query"], low: int, high: int) -> Float[Tensor, "sequence head query key"]:
        """Masked scores of some queries against the keys from ``low`` to ``high``, in float32 (float64 for a model in it)."""
        exact = torch.promote_types(torch.float32, self.query.dtype)
        queries = _taken(self.query, columns).to(exact) * self.scale
        batch, heads, n, width = queries.shape
        groups = self.key.shape[1]
        keys = self.key[:, :, low:high].to(exact)
        # The heads of a group share its keys: they are rows of one product.
        scores = queries.reshape(batch, groups, heads // groups * n, width) @ keys.transpose(-1, -2)
        scores = scores.reshape(batch, heads, n, high - low)
        if self.soft_cap is not None:
            scores = (scores / self.soft_cap).tanh_().mul_(self.soft_cap)
        return self._masked(scores, columns, low, high)

    def _masked(
        self, scores: Float[Tensor, "sequence head query key"], columns: Int[Tensor, " query"], low: int, high: int
    ) -> Float[Tensor, "sequence head query key"]:
        if self.mask is not None and self.mask.dtype != torch.bool:
            return scores.add_(_taken(self.mask, columns)[..., low:high])
        allowed = self.allowed(columns, low, high)
        return scores if allowed is None else scores.masked_fill_(~allowed, MASKED)

    def allowed(self, columns: Int[Tensor, " query"], low: int, high: int) -> Bool[Tensor, "sequence head query key"] | None:
        """Which keys these queries may see; axes that do not matter have length 1; None if all may see all."""
        if self.mask is None:
            if not self.causal:
                return None
            return (torch.arange(low, high, device=columns.device) <= columns[:, None])[None, None]
        mask = _taken(self.mask, columns)[..., low:high]
        return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2

    def rows(self, columns: Int[Tensor, " query"]) -> Float[Tensor, "sequence head query key"]:
        """The exact attention weights of some queries over all keys; learned sinks take their part of the sum of one."""
        scores = self.scores(columns, 0, self.key.shape[2])
        if self.sinks is None:
            return scores.softmax(dim=-1)
        sinks = self.sinks.to(scores).reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        return torch.cat([scores, sinks], dim=-1).softmax(dim=-1)[..., :-1]


def _taken(values: Shaped[Tensor, "a b query last"], columns: Int[Tensor, " chosen"]) -> Shaped[Tensor, "a b chosen last"]:
    """Rows of the third axis; a view where they lie side by side."""
    first, n = int(columns[0]), len(columns)
    if values.shape[2] == 1:
        return values
    if int(columns[-1]) - first == n - 1:  # sorted and distinct, so there is no gap
        return values[:, :, first : first + n]
    return values[:, :, columns]


def flash_mask(
    mask: Tensor | None, n_query: int, n_key: int, *, causal: bool, options: Mapping[str, Any], device: torch.device
) -> Bool[Tensor, "sequence 1 query key"] | None:
    """The rules that flash attention follows, which it is told in other words, as a mask.

    It is given which keys are padding (``sequence key``), whether the rest is causal (aligned to the last key), a sliding
    window, or where sequences begin that are packed into one.
    """
    window, starts = options.get("sliding_window"), options.get("cu_seq_lens_q")
    if mask is None and starts is None and window is None and n_query == n_key:
        return None
    at_key = torch.arange(n_key, device=device)
    at_query = torch.arange(n_query, device=device)[:, None] + (n_key - n_query)
    allowed = (at_key <= at_query) if causal else torch.ones(n_query, n_key, dtype=torch.bool, device=device)
    if window is not None:
        allowed = allowed & (at_key > at_query - window)
        allowed = allowed if causal else allowed & (at_key < at_query + window)
    if starts is not None:
        part = torch.bucketize(at_key, starts.to(device).long(), right=True)
        allowed = allowed & (part[:, None] == part)
    allowed = allowed[None, None]
    return allowed if mask is None else allowed & mask.bool()[:, None, None, :]


def blocks_of(columns: Int[Tensor, " query"], size: int) -> Iterator[Int[Tensor, " block"]]:
    """The queries in blocks of at most ``size``."""
    yield from columns.split(max(1, size))
