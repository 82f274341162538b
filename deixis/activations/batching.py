"""Which items of a shard run together, and how many: like lengths with like, and as many as memory allows.

Everything here follows from the items, the model and the machine, never from what happened before, so that a resumed run, or
another rank, makes the batches of an undisturbed one.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from deixis.hooks import Watch
from deixis.models import VLM

AUTO_BATCH = 16
"""Items per forward pass to begin with, where the user leaves it to us."""
WORTHWHILE = 0.05
"""The share of a shard's padded tokens that another order must save to be taken."""
WORKING_SHARE, KEPT_SHARE = 1 / 32, 1 / 8
"""Of the machine's memory: what a batch that has grown may work with on the CPU, and what may be kept of any batch."""


def running_order(lengths: Sequence[int], pictures: Sequence[int], size: int, *, mixes_counts: bool) -> list[int]:
    """The order in which a shard's items run.

    The longest first, so that memory that does not suffice shows at once and no later batch needs more; in the items' own order
    where that costs less than :data:`WORTHWHILE` in padding. Items that may not share a batch are apart in any case.

    Args:
        lengths: Tokens of each item's prompt.
        pictures: Pictures of each item.
        size: Items in a batch.
        mixes_counts: Whether items with different numbers of pictures may share a batch.
    """
    apart = [0 if mixes_counts else count for count in pictures]
    own = sorted(range(len(lengths)), key=lambda item: apart[item])
    by_length = sorted(own, key=lambda item: (apart[item], -lengths[item]))
    padded, least = (padded_tokens([lengths[item] for item in order], size) for order in (own, by_length))
    return by_length if padded - least > WORTHWHILE * padded else own


def padded_tokens(lengths: Sequence[int], size: int) -> int:
    """Tokens that batches of ``size`` come to when each item is filled up to the longest of its batch."""
    batches = [lengths[at : at + size] for at in range(0, len(lengths), size)]
    return sum(len(batch) * max(batch) for batch in batches)


@dataclass(frozen=True)
class MemoryRule:
    """How many items a batch may have that nobody chose.

    A prompt of T tokens in a decoder of L blocks of width d needs at most 2 L d T for keys and values, and at any time about
    20 d T for one block's work (an MLP of width 4 d with its gate, what goes into attention, norms, the residual stream), all in
    the model's dtype; eager attention adds 2 H T^2 in float32. A batch of more than :data:`AUTO_BATCH` items may take
    :data:`WORKING_SHARE` of the machine's memory so; on a GPU, where running out is an error that can be caught, no more is
    asked. What is kept of a batch (every watched layer of every token, for ``pool=None``) may take :data:`KEPT_SHARE`, whatever
    its size: two batches are there at a time.
    """

    per_token: int
    per_square: int
    kept_per_token: int
    memory: int
    growth_is_safe: bool
    """Whether memory that runs out is an error, and not the end of the process."""

    @classmethod
    def of(cls, vlm: VLM, watch: Watch) -> "MemoryRule":
        """For this model on this machine."""
        itemsize = vlm.model.dtype.itemsize
        eager = getattr(vlm.model.config, "_attn_implementation", None) == "eager"
        return cls(
            per_token=itemsize * vlm.d_model * (2 * vlm.n_layers + 20),
            per_square=8 * vlm.n_heads if eager else 0,
            kept_per_token=0 if watch.pool is not None else len(watch.points) * vlm.d_model * itemsize,
            memory=machine_memory(),
            growth_is_safe=vlm.device.type == "cuda",
        )

    def allows(self, size: int, tokens: int) -> bool:
        """Whether a batch of so many items of so many tokens fits."""
        if size * tokens * self.kept_per_token > KEPT_SHARE * self.memory:
            return False
        if size <= AUTO_BATCH or self.growth_is_safe:
            return True
        return size * (tokens * self.per_token + tokens**2 * self.per_square) <= WORKING_SHARE * self.memory

    def largest(self, wanted: int, tokens: int) -> int:
        """The largest size up to ``wanted`` that fits, halving it; 1 in any case."""
        while wanted > 1 and not self.allows(wanted, tokens):
            wanted //= 2
        return max(1, wanted)


def grown(number: int, most: int) -> int:
    """The batch size that shard ``number`` begins with: twice that of the shard before, up to ``most``."""
    return min(most, AUTO_BATCH << min(number, 30))


def machine_memory() -> int:
    """Bytes of memory that the machine has."""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 8 << 30  # nobody to ask


def empty_cache(device: torch.device) -> None:
    """Give what a failed pass has left back to the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
