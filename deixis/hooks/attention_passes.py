"""One forward pass of attention: from calls of the attention function to statistics and maps per item."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from deixis.benchmarks import Item
from deixis.hooks.attention_calls import AttentionCall
from deixis.hooks.attention_stats import ImageTokens, ItemSums, statistics
from deixis.hooks.attention_sums import MaskPlans, row_sums
from deixis.models.layout import Layout

Kept = tuple[Tensor, Tensor]
"""Statistics (item head role statistic) and mean weights on image tokens (token head role) of one layer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DecoderPass:
    """A batch in the decoder, where a sequence is an item."""

    tokens: ImageTokens
    rows: Int[Tensor, " token"]
    """Sequence of every image token, and its position in it, among the keys."""
    columns: Int[Tensor, " token"]
    member: Float[Tensor, "item role position"]
    """1 where a position's query belongs to a role."""
    bos: Int[Tensor, " item"]
    text: Float[Tensor, "item position"]
    cross: bool = False
    """Whether the keys are not the sequence but the vision tower's output."""
    plans: MaskPlans = field(default_factory=MaskPlans)

    def on(self, device: torch.device) -> "DecoderPass":
        """The same on another device."""
        tensors = {name: getattr(self, name).to(device) for name in ("tokens", "rows", "columns", "member", "bos", "text")}
        return DecoderPass(**tensors, cross=self.cross)

    def seen(self, call: AttentionCall) -> Kept:
        """What one layer's call says of every item."""
        sums = row_sums(call, self.member, self.plans)
        shared = {name: getattr(sums, name) for name in _PER_SEQUENCE}
        on_token = sums.weights[self.rows, :, :, self.columns]
        uniform = sums.uniform[self.rows, :, self.columns]
        on_bos = on_text = uniform_on_text = None
        if not self.cross:
            on_bos = sums.weights[torch.arange(len(self.bos), device=self.bos.device), :, :, self.bos]
            on_text = torch.einsum("bhrk,bk->bhr", sums.weights, self.text)
            uniform_on_text = torch.einsum("brk,bk->br", sums.uniform, self.text)
        found = ItemSums(
            **shared, on_token=on_token, uniform_on_token=uniform, on_bos=on_bos, on_text=on_text, uniform_on_text=uniform_on_text
        )
        queries = sums.queries[self.tokens.item, None]
        return statistics(found, self.tokens), on_token / queries


_PER_SEQUENCE = ("entropy", "max_weight", "effective_keys", "learned_sink", "queries", "several", "keys")


@dataclass(eq=False)
class VisionPass:
    """A batch in one block of the vision tower, which may be called once for each picture or window: the calls are joined."""

    tokens: ImageTokens
    token_of_row: Int[Tensor, " row"]
    """The image token that each row of the tower feeds; -1 for none."""
    member: Float[Tensor, "row role"]
    n_items: int
    _at: int = 0
    _sums: dict[str, Tensor] = field(default_factory=dict)
    _on_row: list[Tensor] = field(default_factory=list)
    _uniform: list[Tensor] = field(default_factory=list)

    @classmethod
    def of(cls, layout: Layout, items: Sequence[Item], tokens: ImageTokens, queries: Sequence[str]) -> "VisionPass":
        """For the tower's pass over a prepared batch."""
        device = tokens.item.device
        feeds = layout.token_of_row("vision").to(device)
        roles = layout.token_roles(items)
        per_token = torch.stack([roles[query] for query in queries], dim=1).float().to(device)
        member = per_token[feeds.clamp(min=0)] if len(per_token) else per_token.new_zeros((len(feeds), len(queries)))
        return cls(tokens, feeds, member * (feeds >= 0)[:, None], len(items))

    def add(self, call: AttentionCall) -> None:
        """Hear one call: the next rows of the tower."""
        sequences, _, n, _ = call.query.shape
        rows = slice(self._at, self._at + sequences * n)
        self._at = rows.stop
        if rows.stop > len(self.token_of_row):
            raise ValueError(f"the vision tower has more rows than the {len(self.token_of_row)} of the family's layout.")
        owner, mine = self._owners(rows, sequences)
        member = self.member[rows].reshape(sequences, n, -1).transpose(1, 2)
        # Every item of a sequence has roles of its own: Pixtral packs all pictures into one sequence, apart by its mask.
        split = member[:, None] * mine[:, :, None]
        sums = row_sums(call, split.flatten(1, 2).contiguous(), MaskPlans())
        for name in _PER_SEQUENCE:
            value = getattr(sums, name).unflatten(-1, split.shape[1:3]).movedim(-2, 1)  # sequence owner [head] role
            total = self._sums.setdefault(name, value.new_zeros((self.n_items + 1, *value.shape[2:])))
            total.index_add_(0, owner.flatten(), value.flatten(0, 1))
        # What one item's queries put on another's keys is nothing, so that the sum over items is the key's own item's.
        weights = sums.weights.unflatten(2, split.shape[1:3]).sum(dim=2)
        self._on_row.append(weights.permute(0, 3, 1, 2).flatten(0, 1))
        self._uniform.append(sums.uniform.unflatten(1, split.shape[1:3]).sum(dim=1).transpose(1, 2).flatten(0, 1))

    def _owners(self, rows: slice, sequences: int) -> tuple[Int[Tensor, "sequence owner"], Float[Tensor, "sequence owner row"]]:
        """The items in each sequence (one more than there are stands for none), and which rows are whose."""
        feeds = self.token_of_row[rows].reshape(sequences, -1)
        item = torch.full_like(feeds, self.n_items)
        item[feeds >= 0] = self.tokens.item[feeds[feeds >= 0]]
        present = [row[row < self.n_items].unique() for row in item]
        widest = max(1, *map(len, present))
        owner = torch.full((sequences, widest), self.n_items, device=feeds.device)
        for sequence, found in enumerate(present):
            owner[sequence, : len(found)] = found
        mine = (item[:, None] == owner[:, :, None]) & (owner < self.n_items)[:, :, None]
        return owner, mine.float()

    def seen(self) -> Kept:
        """What the joined calls say of every item."""
        if self._at != len(self.token_of_row):
            raise ValueError(f"the vision tower had {self._at} rows where the family's layout has {len(self.token_of_row)}.")
        feeds = self.token_of_row >= 0
        to = self.token_of_row[feeds]
        on_row, uniform = torch.cat(self._on_row)[feeds], torch.cat(self._uniform)[feeds]
        n = len(self.tokens.item)
        on_token = on_row.new_zeros((n, *on_row.shape[1:])).index_add_(0, to, on_row)
        uniform_on_token = uniform.new_zeros((n, *uniform.shape[1:])).index_add_(0, to, uniform)
        shared = {name: value[: self.n_items] for name, value in self._sums.items()}
        found = ItemSums(
            **shared, on_token=on_token, uniform_on_token=uniform_on_token, on_bos=None, on_text=None, uniform_on_text=None
        )
        return statistics(found, self.tokens), on_token / found.queries[self.tokens.item, None]


def moved(known: dict[torch.device, DecoderPass], device: torch.device) -> DecoderPass:
    """The pass on the device of a layer; layers of one model may lie on several."""
    if device not in known:
        known[device] = next(iter(known.values())).on(device)
    return known[device]


def padded(parts: Sequence[Tensor], axis: int, to: int) -> list[Float[Tensor, "..."]]:
    """Parts of equal length along ``axis``, filled with NaN: layers may differ in their number of heads."""
    filled = []
    for part in parts:
        shape = list(part.shape)
        shape[axis] = to - part.shape[axis]
        filled.append(torch.cat([part.float(), part.new_full(shape, torch.nan, dtype=torch.float32)], dim=axis))
    return filled


def image_tokens(layout: Layout, tokens: ImageTokens) -> Mapping[str, Tensor]:
    """What a map needs to be drawn: whose the tokens are, and where in which picture."""
    counts = torch.bincount(tokens.item.cpu(), minlength=len(layout.images_per_item))
    return {
        "image_tokens/count": counts.int(),
        "image_tokens/box": layout.boxes.float(),
        "image_tokens/picture": layout.number.int(),
        "image_tokens/object": tokens.marked.cpu().to(torch.uint8),
    }
