"""From sums over attention rows to statistics: where the weight went, and how evenly.

A mass is the mean, over a role's queries, of the weight on a group of keys. A lift is that mass over the mass that uniform
attention over the keys in sight would put there, a ratio of means: 1 is what a head gives that looks at nothing in particular.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from deixis.benchmarks import Item
from deixis.models.layout import Layout, object_boxes

STATISTICS = (
    "entropy",
    "max_weight",
    "effective_keys",
    "keys",
    "bos_mass",
    "image_mass",
    "image_lift",
    "object_mass",
    "object_lift",
    "background_mass",
    "background_lift",
    "text_mass",
    "text_lift",
    "learned_sink_mass",
    "centre_row",
    "centre_column",
    "centre_distance",
)
"""``text_mass`` includes ``bos_mass`` where the first token is text. ``centre_*``: the weight's centre on the picture that
holds the
object (the first picture where none does), from 0 to 1 of its height and width, and how far it lies from the centre of the
object's box, in diagonals of the picture."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageTokens:
    """The image tokens of a batch as keys: whose they are, what they show, where they lie in their picture."""

    item: Int[Tensor, " token"]
    marked: Bool[Tensor, " token"]
    """Whether the token shows part of an object's box."""
    background: Bool[Tensor, " token"]
    """Whether it shows nothing of any box, an anchor's neither."""
    focus: Bool[Tensor, " token"]
    """Whether it belongs to the picture in which centres are taken."""
    centre: Float[Tensor, "token 2"]
    """Row and column of its centre, from 0 to 1; 0 where it shows no pixels (it is not in ``focus`` then)."""
    object_centre: Float[Tensor, "item 2"]
    """Row and column of the centre of the item's first box that is no anchor's; NaN where it has none."""
    aspect: Float[Tensor, "item 2"]
    """Height and width of the focused picture in units of its diagonal."""

    @classmethod
    def of(cls, layout: Layout, items: Sequence[Item], device: torch.device) -> "ImageTokens":
        """The image tokens of a prepared batch."""
        firsts = [next(iter(object_boxes(item)), None) for item in items]
        focused = [0 if box is None else box.image for box in firsts]
        sizes = [item.images[n].size if n < len(item.images) else (1, 1) for item, n in zip(items, focused, strict=True)]
        size = torch.tensor([(height, width) for width, height in sizes], dtype=torch.float64)
        centres = [(torch.nan,) * 2 if box is None else (box.top + box.bottom, box.left + box.right) for box in firsts]
        roles = layout.token_roles(items)
        boxes, item = layout.boxes, layout.item
        middle = torch.stack([boxes[:, 1] + boxes[:, 3], boxes[:, 0] + boxes[:, 2]], dim=1) / 2
        seen = ~boxes.isnan().any(dim=1)
        return cls(
            item=item.to(device),
            marked=roles["object"].to(device),
            background=roles["background"].to(device),
            focus=(seen & (layout.number == torch.tensor(focused)[item])).to(device),
            centre=(middle / size[item]).nan_to_num(0).float().to(device),
            object_centre=(torch.tensor(centres, dtype=torch.float64).reshape(-1, 2) / 2 / size).float().to(device),
            aspect=(size / size.square().sum(dim=1, keepdim=True).sqrt()).float().to(device),
        )

    def none(self) -> "ImageTokens":
        """The same items without any token."""
        empty = {name: getattr(self, name)[:0] for name in ("item", "marked", "background", "focus", "centre")}
        return ImageTokens(**empty, object_centre=self.object_centre, aspect=self.aspect)

    def to(self, device: torch.device) -> "ImageTokens":
        """The same on another device."""
        return ImageTokens(**{name: getattr(self, name).to(device) for name in self.__dataclass_fields__})


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemSums:
    """Sums over each role's queries of every item, and where on the picture and the text their weight lay."""

    entropy: Float[Tensor, "item head role"]
    max_weight: Float[Tensor, "item head role"]
    effective_keys: Float[Tensor, "item head role"]
    learned_sink: Float[Tensor, "item head role"]
    queries: Float[Tensor, "item role"]
    several: Float[Tensor, "item role"]
    keys: Float[Tensor, "item role"]
    on_token: Float[Tensor, "token head role"]
    """Summed weight on every image token."""
    uniform_on_token: Float[Tensor, "token role"]
    on_bos: Float[Tensor, "item head role"] | None
    """None where there is no such token: in the vision tower, and in cross-attention."""
    on_text: Float[Tensor, "item head role"] | None
    uniform_on_text: Float[Tensor, "item role"] | None


def statistics(sums: ItemSums, tokens: ImageTokens) -> Float[Tensor, "item head role statistic"]:
    """Every statistic of :data:`STATISTICS`; NaN where a role has no query, or a group no key in sight."""
    queries = sums.queries[:, None]
    nothing = torch.full_like(sums.entropy, torch.nan)
    found = {
        "entropy": sums.entropy / sums.several[:, None],
        "max_weight": sums.max_weight / queries,
        "effective_keys": sums.effective_keys / queries,
        "keys": (sums.keys / sums.queries)[:, None].expand_as(nothing),
        "bos_mass": nothing if sums.on_bos is None else sums.on_bos / queries,
        "learned_sink_mass": sums.learned_sink / queries,
    }
    groups = {"image": torch.ones_like(tokens.marked), "object": tokens.marked, "background": tokens.background}
    for name, group in groups.items():
        mass = _by_item(sums.on_token * group[:, None, None], tokens.item, sums.entropy)
        uniform = _by_item(sums.uniform_on_token * group[:, None], tokens.item, sums.queries)
        found |= {f"{name}_mass": mass / queries, f"{name}_lift": mass / uniform[:, None]}
    if sums.on_text is None or sums.uniform_on_text is None:
        found |= {"text_mass": nothing, "text_lift": nothing}
    else:
        found |= {"text_mass": sums.on_text / queries, "text_lift": sums.on_text / sums.uniform_on_text[:, None]}
    found |= _centres(sums, tokens)
    return torch.stack([found[name] for name in STATISTICS], dim=-1)


def _by_item(values: Float[Tensor, "token ..."], item: Int[Tensor, " token"], like: Float[Tensor, "item ..."]) -> Tensor:
    return torch.zeros_like(like).index_add_(0, item, values)


def _centres(sums: ItemSums, tokens: ImageTokens) -> dict[str, Float[Tensor, "item head role"]]:
    on_focus = sums.on_token * tokens.focus[:, None, None]
    total = _by_item(on_focus, tokens.item, sums.entropy)
    row, column = (_by_item(on_focus * tokens.centre[:, i, None, None], tokens.item, total) / total for i in (0, 1))
    away = torch.stack([row, column], dim=-1) - tokens.object_centre[:, None, None]
    distance = (away * tokens.aspect[:, None, None]).square().sum(dim=-1).sqrt()
    return {"centre_row": row, "centre_column": column, "centre_distance": distance}
