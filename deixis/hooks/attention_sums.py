"""Sums over many queries of what their attention rows look like, computed block by block.

A row of weights p over the keys that a query may see has the entropy H(p) = -sum p log p, in nats. With scores s and
log Z = logsumexp(s), H = log Z - sum p s: no logarithm of a weight is taken, and no row is kept. Divided by log(n), with n the
number of keys that the query may see, it lies between 0 (all on one key) and 1 (uniform). exp(H) is the effective number of keys
(the Hill number of order 1; Hill 1973).
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from deixis.hooks.attention_calls import AttentionCall, blocks_of

BLOCK_BYTES = 2 * 2**20
"""Memory that the scores of one block of queries may take: small enough to stay in a processor's cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowSums:
    """Sums over the queries of each role, for every sequence and head of one call."""

    entropy: Float[Tensor, "sequence head role"]
    """Of entropy over its maximum; queries that see one key only have none and are not counted."""
    max_weight: Float[Tensor, "sequence head role"]
    effective_keys: Float[Tensor, "sequence head role"]
    learned_sink: Float[Tensor, "sequence head role"]
    """Of the weight on learned sinks, which are no key."""
    weights: Float[Tensor, "sequence head role key"]
    """Of the rows themselves."""
    uniform: Float[Tensor, "sequence role key"]
    """Of the rows that uniform attention would have over the keys that each query may see."""
    queries: Float[Tensor, "sequence role"]
    """How many queries were summed."""
    several: Float[Tensor, "sequence role"]
    """How many of them see more than one key."""
    keys: Float[Tensor, "sequence role"]
    """Of the number of keys that a query may see."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some queries, the range of keys that any of them may see, and what follows from the mask alone."""

    columns: Int[Tensor, " query"]
    low: int
    high: int
    keys: Float[Tensor, "sequence query"]
    member: Float[Tensor, "sequence role query"]


@dataclass(eq=False)
class MaskPlans:
    """What follows from a mask and the chosen queries, shared by all layers that have the same mask."""

    _plans: dict[tuple[int, int, int, int, bool], tuple[object, "Plan"]] = field(default_factory=dict)

    def plan(self, call: AttentionCall, member: Float[Tensor, "sequence role query"]) -> "Plan":
        """The plan for this call's mask; made once."""
        shape = (call.query.shape[0], call.query.shape[2], call.key.shape[2])
        key = (id(call.mask), *shape, call.causal)
        known = self._plans.get(key)
        # The mask is kept beside its plan: an id is only unique as long as its owner lives.
        if known is None or known[1].member is not member:
            known = (call.mask, Plan.of(call, member))
            self._plans[key] = known
        return known[1]


@dataclass(frozen=True, eq=False)
class Plan:
    """Blocks of queries for calls with one mask."""

    member: Float[Tensor, "sequence role query"]
    blocks: tuple[Block, ...]
    uniform: Float[Tensor, "sequence role key"]
    keys: Float[Tensor, "sequence role"]
    several: Float[Tensor, "sequence role"]

    @classmethod
    def of(cls, call: AttentionCall, member: Float[Tensor, "sequence role query"]) -> "Plan":
        """Plan for the queries that belong to any role of any sequence."""
        sequences, _, n_key = call.query.shape[0], call.query.shape[2], call.key.shape[2]
        columns = member.any(dim=1).any(dim=0).nonzero()[:, 0]
        size = BLOCK_BYTES // (4 * sequences * call.n_heads * n_key)
        uniform = member.new_zeros((sequences, member.shape[1], n_key))
        keys, several = member.new_zeros(member.shape[:2]), member.new_zeros(member.shape[:2])
        blocks = []
        for part in blocks_of(columns, size) if len(columns) else ():
            mine = member[:, :, part]
            low, high, counts, rows = _seen_keys(call, part, sequences, n_key)
            uniform[:, :, low:high] += mine @ rows.to(mine)
            keys += (mine * counts[:, None]).sum(dim=-1)
            several += (mine * (counts > 1)[:, None]).sum(dim=-1)
            blocks.append(Block(part, low, high, counts, mine))
        return cls(member, tuple(blocks), uniform, keys, several)


def _seen_keys(
    call: AttentionCall, columns: Int[Tensor, " query"], sequences: int, n_key: int
) -> tuple[int, int, Float[Tensor, "sequence query"], Float[Tensor, "sequence query key"]]:
    """The range of keys that these queries may see, their number, and the uniform rows within the range."""
    allowed = call.allowed(columns, 0, n_key)
    if allowed is None:
        rows = torch.full((sequences, len(columns), n_key), 1.0 / n_key, device=columns.device)
        return 0, n_key, rows.new_full(rows.shape[:2], float(n_key)), rows
    allowed = allowed.any(dim=1)  # a mask that differs between heads: the keys that some head may see
    seen = allowed.any(dim=0).any(dim=0).nonzero()[:, 0]
    low, high = (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, n_key)
    counts = allowed.sum(dim=-1, dtype=torch.float32).expand(sequences, -1)
    rows = allowed[..., low:high] / counts.clamp(min=1)[..., None]
    return low, high, counts, rows.expand(sequences, -1, -1)


_SUMMED = ("entropy", "max_weight", "effective_keys", "learned_sink")


def row_sums(call: AttentionCall, member: Float[Tensor, "sequence role query"], plans: MaskPlans) -> RowSums:
    """Sum the attention rows of each role's queries; memory grows with one block, never with queries times keys.

    Args:
        call: What the attention function was given.
        member: 1 where a query belongs to a role, else 0.
        plans: Shared by the calls of one forward pass.
    """
    plan = plans.plan(call, member)
    sequences, roles, _ = member.shape
    sums = call.query.new_zeros((len(_SUMMED), sequences, call.n_heads, roles), dtype=torch.float32)
    weights = sums.new_zeros((*sums.shape[1:], call.key.shape[2]))
    for block in plan.blocks:
        found, rows = _of_block(call, block)
        sums += found @ block.member.transpose(-1, -2)
        weights[..., block.low : block.high] += rows
    return RowSums(
        **dict(zip(_SUMMED, sums, strict=True)),
        weights=weights,
        uniform=plan.uniform,
        queries=member.sum(dim=-1),
        several=plan.several,
        keys=plan.keys,
    )


def _of_block(
    call: AttentionCall, block: Block
) -> tuple[Float[Tensor, "statistic sequence head query"], Float[Tensor, "sequence head role key"]]:
    """Those of :data:`_SUMMED` for each query of a block, and the summed rows of each role."""
    scores = call.scores(block.columns, block.low, block.high)
    top = scores.amax(dim=-1)
    shift = top if call.sinks is None else torch.maximum(top, call.sinks.to(top)[None, :, None])
    scores.sub_(shift[..., None])
    raised = scores.exp()
    total = raised.sum(dim=-1)
    products = scores.mul_(raised).sum(dim=-1)
    learned = torch.zeros_like(total)
    if call.sinks is not None:
        sink = call.sinks.to(top)[None, :, None] - shift
        learned = sink.exp()
        total, products = total + learned, products + learned * sink
        learned = learned / total
    entropy = (total.log() - products / total).clamp(min=0)
    most = (block.keys + (call.sinks is not None)).log()[:, None]
    # Without learned sinks the largest score is the shift itself.
    largest = 1 / total if call.sinks is None else (top - shift).exp() / total
    share = torch.where(block.keys[:, None] > 1, entropy / most.clamp(min=1e-12), 0.0)
    found = torch.stack([share, largest, entropy.exp(), learned]).float()
    rows = (block.member[:, None] / total[:, :, None].to(block.member)).to(raised) @ raised
    return found, rows.float()
