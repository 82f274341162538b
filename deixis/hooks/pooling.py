"""From the tokens of a role to what is kept of them, on the device where they are."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Positions:
    """Where a role's tokens lie, item by item and in order: in a batch of sequences, or in the vision tower's rows."""

    rows: Int[Tensor, " token"]
    """The item that each token belongs to."""
    columns: Int[Tensor, " token"]
    """Its position in the item's sequence; in the vision tower its number among the rows of the whole batch."""
    counts: Int[Tensor, " batch"]
    """Tokens of each item; 0 where the item has none."""
    widest: int
    """The largest of ``counts``."""

    @classmethod
    def of(cls, mask: Bool[Tensor, "batch position"]) -> "Positions":
        """The positions that ``mask`` marks."""
        rows, columns = mask.nonzero(as_tuple=True)
        return cls._of(rows, columns, mask.sum(dim=1))

    @classmethod
    def of_rows(
        cls, token_of_row: Int[Tensor, " row"], role: Bool[Tensor, " token"], item: Int[Tensor, " token"], n_items: int
    ) -> "Positions":
        """The rows of the vision tower that feed a role's image tokens, in the order of the tokens.

        Args:
            token_of_row: The image token that each row feeds, -1 for none.
            role: Whether an image token belongs to the role.
            item: The item of each image token.
            n_items: Items in the batch, some of them perhaps without a picture.
        """
        numbers = (token_of_row >= 0).nonzero()[:, 0]
        tokens = token_of_row[numbers]
        order = torch.argsort(tokens, stable=True)  # tokens count item by item
        numbers, tokens = numbers[order], tokens[order]
        mine = role[tokens]
        rows = item[tokens[mine]]
        return cls._of(rows, numbers[mine], torch.bincount(rows, minlength=n_items))

    @classmethod
    def _of(cls, rows: Tensor, columns: Tensor, counts: Tensor) -> "Positions":
        return cls(rows=rows, columns=columns, counts=counts, widest=int(counts.max()) if len(counts) else 0)

    def to(self, device: torch.device) -> "Positions":
        """The same positions on another device."""
        return Positions(self.rows.to(device), self.columns.to(device), self.counts.to(device), self.widest)

    @cached_property
    def padded(self) -> Int[Tensor, "batch widest"]:
        """``columns`` with a row per item; what fills a row up is 0."""
        within = torch.arange(len(self.rows), device=self.rows.device)
        within = within - (self.counts.cumsum(0) - self.counts)[self.rows]
        columns = self.rows.new_zeros((len(self.counts), self.widest))
        columns[self.rows, within] = self.columns
        return columns

    @cached_property
    def filling(self) -> Bool[Tensor, "batch widest"]:
        """Which entries of :attr:`padded` only fill a row up."""
        return torch.arange(self.widest, device=self.counts.device) >= self.counts[:, None]

    @cached_property
    def is_even(self) -> bool:
        """Whether every item has as many tokens, so that nothing fills up."""
        return not bool(self.filling.any())


def gather(
    hidden: Float[Tensor, "batch position width"], where: Positions, out: Float[Tensor, "token width"] | None = None
) -> Float[Tensor, "token width"]:
    """Every token of the role, row by row, in the dtype of ``hidden``; written to ``out`` if there is one."""
    if out is None:
        return hidden[where.rows, where.columns]
    flat = hidden.reshape(-1, hidden.shape[-1])
    return torch.index_select(flat, 0, where.rows * hidden.shape[1] + where.columns, out=out)


def gather_rows(
    rows: Float[Tensor, "row width"], where: Positions, out: Float[Tensor, "token width"] | None = None
) -> Float[Tensor, "token width"]:
    """Like :func:`gather`, of the vision tower's rows, where every item's rows lie in one tensor."""
    return torch.index_select(rows, 0, where.columns, out=out)


def mean_over(
    hidden: Float[Tensor, "batch position width"], where: Positions, out: Float[Tensor, "batch width"] | None = None
) -> Float[Tensor, "batch width"]:
    """Average over the role's tokens of each row.

    Returns:
        One float32 vector per row (``out``, if there is one); NaN in rows without a token. The sum runs in float32 and in the
        order of the tokens: it does not use atomic additions, so that the same batch gives the same bits again.
    """
    picked = hidden[torch.arange(len(hidden), device=hidden.device)[:, None], where.padded]
    return _mean(picked, where, out)


def mean_over_rows(
    rows: Float[Tensor, "row width"], where: Positions, out: Float[Tensor, "batch width"] | None = None
) -> Float[Tensor, "batch width"]:
    """Like :func:`mean_over`, of the vision tower's rows."""
    return _mean(rows[where.padded], where, out)


def _mean(picked: Float[Tensor, "batch widest width"], where: Positions, out: Tensor | None) -> Float[Tensor, "batch width"]:
    picked = picked.float()
    if not where.is_even:
        # Positions that only fill a row up may hold anything, infinities included: they are masked, not multiplied by zero.
        picked = picked.masked_fill(where.filling[..., None], 0.0)
    return torch.div(picked.sum(dim=1), where.counts[:, None], out=out)
