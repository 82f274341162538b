"""Where image tokens come from: boxes in the original picture's pixels, and the rows of the vision tower that feed them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from deixis.benchmarks import Box, Item

Grid = tuple[int, int]
"""Rows and columns of image tokens."""
Area = tuple[float | int, float | int, float | int, float | int]
"""Left, top, right and bottom in pixels."""
VISION_SITES = ("vision", "merger_in", "merger_out")
"""Sites whose rows a layout relates to image tokens."""
ANCHOR_ROLES = ("anchor_a", "anchor_b")
"""Roles that are named like the boxes they stand for: the two objects that define a layout's coordinate frame."""
PICTURE_ROLES = ("image", "object", "background", *ANCHOR_ROLES)
"""Roles of image tokens; each also of one picture (``image:0``)."""
_ANCHOR = "anchor_"
"""What begins the names of boxes that are no ``object``."""


@dataclass(frozen=True, kw_only=True)
class PictureLayout:
    """The image tokens of one picture, in the order in which the sequence holds them."""

    grids: tuple[Grid, ...]
    """Rows and columns of each view of the picture (the whole, a tile, a crop); their products add up to the tokens."""
    boxes: Float[np.ndarray, "token 4"]
    """Left, top, right, bottom in the picture's pixels; NaN for tokens that show no pixels (line ends, padding)."""
    rows: Mapping[str, Int[np.ndarray, " row"]]
    """By vision site: the token (from 0 within the picture) that each row of this picture feeds; -1 for none."""
    blended: Bool[np.ndarray, " token"] | None = None
    """Tokens that the model interpolates out of several merger rows (OneVision's large pictures); None for no token."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The image tokens of a prepared batch, in sequence order (in the order of the cross-attention's keys for Mllama)."""

    pictures: tuple[PictureLayout, ...]
    """Every picture of the batch, item by item."""
    images_per_item: tuple[int, ...]

    @property
    def grids(self) -> tuple[tuple[Grid, ...], ...]:
        """The views of every picture; see :attr:`PictureLayout.grids`."""
        return tuple(picture.grids for picture in self.pictures)

    @cached_property
    def boxes(self) -> Float[Tensor, "token 4"]:
        """Left, top, right, bottom of every image token in its picture's original pixels; NaN where it shows none."""
        parts = [torch.from_numpy(np.asarray(picture.boxes, dtype=np.float64)) for picture in self.pictures]
        return torch.cat(parts) if parts else torch.zeros(0, 4, dtype=torch.float64)

    @cached_property
    def blended(self) -> Bool[Tensor, " token"]:
        """Tokens that the model interpolates out of neighbouring merger rows, so that rows belong to them only roughly."""
        parts = [
            torch.zeros(len(p.boxes), dtype=torch.bool) if p.blended is None else torch.from_numpy(p.blended)
            for p in self.pictures
        ]
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.bool)

    @cached_property
    def picture(self) -> Int[Tensor, " token"]:
        """The picture, counted over the batch, that every image token shows."""
        counts = torch.tensor([len(picture.boxes) for picture in self.pictures], dtype=torch.long)
        return torch.arange(len(counts)).repeat_interleave(counts)

    @cached_property
    def item(self) -> Int[Tensor, " token"]:
        """The batch row that every image token belongs to."""
        return self._item_of_picture[self.picture]

    @property
    def tokens_per_item(self) -> tuple[int, ...]:
        """Image tokens of every item."""
        return tuple(torch.bincount(self.item, minlength=len(self.images_per_item)).tolist())

    @cached_property
    def number(self) -> Int[Tensor, " token"]:
        """The picture within its item, from 0, that every image token shows."""
        firsts = torch.tensor((0, *np.cumsum(self.images_per_item)), dtype=torch.long)
        return self.picture - firsts[self.item]

    @cached_property
    def _item_of_picture(self) -> Int[Tensor, " picture"]:
        counts = torch.tensor(self.images_per_item, dtype=torch.long)
        return torch.arange(len(counts)).repeat_interleave(counts)

    def token_of_row(self, site: str) -> Int[Tensor, " row"]:
        """For each row of a vision site's tensor (all but the last axis flattened, calls joined): the image token it feeds.

        Tokens count from 0 over the whole batch; -1 is a row that feeds none. Windows and other reorderings are undone.

        Raises:
            ValueError: ``site`` has no rows in this family.
        """
        parts, first = [], 0
        for picture in self.pictures:
            if site not in picture.rows:
                raise ValueError(f"site={site!r} is not one of this family's: {', '.join(map(repr, picture.rows))}.")
            rows = torch.from_numpy(np.asarray(picture.rows[site], dtype=np.int64))
            parts.append(torch.where(rows >= 0, rows + first, -1))
            first += len(picture.boxes)
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.long)

    def token_roles(self, items: Sequence[Item]) -> dict[str, Bool[Tensor, " token"]]:
        """:data:`PICTURE_ROLES` over the image tokens, of all pictures and of each (``image:0``, ...).

        ``object`` tokens show some of the area of one of the item's boxes, those of anchors left out; ``anchor_a`` and
        ``anchor_b`` are those of the boxes of these names, and ``background`` tokens show nothing of any box. A token may show
        both an object and an anchor.
        """
        boxes = [(row, box) for row, item in enumerate(items) for box in item.objects]
        under, names = self._under(boxes), [box.name for _, box in boxes]

        def any_of(chosen: list[bool]) -> Bool[Tensor, " token"]:
            return under[torch.tensor(chosen, dtype=torch.bool)].any(dim=0)

        roles = {
            "image": torch.ones(len(self.boxes), dtype=torch.bool),
            "object": any_of([not name.startswith(_ANCHOR) for name in names]),
            "background": ~under.any(dim=0),
        }
        roles |= {role: any_of([name == role for name in names]) for role in ANCHOR_ROLES}
        pictures = range(max(self.images_per_item, default=0))
        return roles | {f"{role}:{k}": roles[role] & (self.number == k) for k in pictures for role in PICTURE_ROLES}

    def _under(self, boxes: Sequence[tuple[int, Box]]) -> Bool[Tensor, "box token"]:
        """Which tokens show some of the area of each box; boxes with the batch rows of their items."""
        left, top, right, bottom = self.boxes.unbind(dim=1)  # comparisons with NaN are false
        corners = torch.tensor([(b.left, b.top, b.right, b.bottom) for _, b in boxes], dtype=torch.float64).reshape(-1, 4, 1)
        inside = (left < corners[:, 2]) & (right > corners[:, 0]) & (top < corners[:, 3]) & (bottom > corners[:, 1])
        place = torch.tensor([(row, box.image) for row, box in boxes], dtype=torch.long).reshape(-1, 2, 1)
        return inside & (self.item == place[:, 0]) & (self.number == place[:, 1])


def object_boxes(item: Item) -> list[Box]:
    """The item's boxes without those of anchors: what the role ``object`` stands for."""
    return [box for box in item.objects if not box.name.startswith(_ANCHOR)]


def edges(n: int, merge: int = 1, before: int = 0) -> Int[np.ndarray, " edge"]:
    """Where tokens that each take ``merge`` of ``n`` patches begin and end; ``before`` of the first's are not there."""
    tokens = -(-(n + before) // merge)
    return (np.arange(tokens + 1) * merge - before).clip(0, n)


def grid_boxes(patches: Grid, area: Area, merge: int = 1) -> Float[np.ndarray, "token 4"]:
    """Boxes of tokens, row by row, that take squares of ``merge`` x ``merge`` patches, which divide an area evenly."""
    return edge_boxes(edges(patches[0], merge) / patches[0], edges(patches[1], merge) / patches[1], area)


def edge_boxes(
    down: Float[np.ndarray, " row_edge"], across: Float[np.ndarray, " column_edge"], area: Area
) -> Float[np.ndarray, "token 4"]:
    """Boxes of a grid of tokens, row by row, with edges as shares of the area's height and width."""
    left, top, right, bottom = area
    x, y = left + across * (right - left), top + down * (bottom - top)
    row, column = np.mgrid[: len(y) - 1, : len(x) - 1].reshape(2, -1)
    return np.stack([x[column], y[row], x[column + 1], y[row + 1]], axis=1)


def clipped(boxes: Float[np.ndarray, "token 4"], size: tuple[int, int]) -> Float[np.ndarray, "token 4"]:
    """What of each box lies within a picture of this width and height; NaN where nothing does."""
    inside = boxes.clip(0, [*size, *size])
    empty = ~((inside[:, 2] > inside[:, 0]) & (inside[:, 3] > inside[:, 1]))
    inside[empty] = np.nan
    return inside


def token_of_patch(patches: Grid, merge: int = 1) -> Int[np.ndarray, " patch"]:
    """The token of every patch, patches and tokens both row by row, where squares of patches become one token."""
    row, column = np.mgrid[: patches[0], : patches[1]].reshape(2, -1) // merge
    return row * -(-patches[1] // merge) + column
