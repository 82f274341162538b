"""From the tokens of a role to what is kept of them, on the device where they are."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Positions:
    """Where a role's tokens lie in a batch, row by row and in order."""

    rows: Int[Tensor, " token"]
    columns: Int[Tensor, " token"]
    counts: Int[Tensor, " batch"]
    """Tokens of each row; 0 where the row has none."""
    widest: int
    """The largest of ``counts``."""

    @classmethod
    def of(cls, mask: Bool[Tensor, "batch position"]) -> "Positions":
        """The positions that ``mask`` marks."""
        rows, columns = mask.nonzero(as_tuple=True)
        counts = mask.sum(dim=1)
        return cls(rows=rows, columns=columns, counts=counts, widest=int(counts.max()) if len(counts) else 0)

    def to(self, device: torch.device) -> "Positions":
        """The same positions on another device."""
        return Positions(self.rows.to(device), self.columns.to(device), self.counts.to(device), self.widest)


def gather(hidden: Float[Tensor, "batch position width"], where: Positions) -> Float[Tensor, "token width"]:
    """Every token of the role, row by row, in the dtype of ``hidden``."""
    return hidden[where.rows, where.columns]


def mean_over(hidden: Float[Tensor, "batch position width"], where: Positions) -> Float[Tensor, "batch width"]:
    """Average over the role's tokens of each row.

    Returns:
        One float32 vector per row; NaN in rows without a token. The sum runs in float32 and in the order of the tokens: it does
        not use atomic additions, so that the same batch gives the same bits again.
    """
    within = torch.arange(len(where.rows), device=hidden.device)
    within = within - (where.counts.cumsum(0) - where.counts)[where.rows]
    columns = where.rows.new_zeros((len(hidden), where.widest))
    columns[where.rows, within] = where.columns
    taken = torch.arange(where.widest, device=hidden.device) < where.counts[:, None]
    picked = hidden[torch.arange(len(hidden), device=hidden.device)[:, None], columns].float()
    # Positions that only fill a row up may hold anything, infinities included: they are masked, not multiplied by zero.
    return picked.masked_fill(~taken[..., None], 0.0).sum(dim=1) / where.counts[:, None]
