"""Token roles: which positions of a batch are the answer, the picture, the object, the text. The one place that decides."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from deixis.benchmarks import Item
from deixis.models.families import Grid


def token_roles(
    inputs: Mapping[str, Tensor], items: Sequence[Item], image_token_id: int, grids: Sequence[Grid]
) -> dict[str, Bool[Tensor, "batch position"]]:
    """Masks by role, on the device of the inputs.

    ``answer``: the last position, which predicts the answer's first token. ``bos``: the first position that is no padding.
    ``image``: every image token. ``object``: image tokens whose patch overlaps an object's box in the picture it was marked in;
    ``background``: the other image tokens. ``text``: the rest. ``image:0``, ``object:0``, ``background:0`` and so on are those of
    one picture of an item.

    Args:
        inputs: A left-padded batch with ``input_ids`` and ``attention_mask``.
        items: The items of the batch, in order.
        image_token_id: The token that stands for a piece of a picture.
        grids: Rows and columns of image tokens of every picture of the batch, in order.

    Raises:
        ValueError: The batch is padded on the right, or image tokens and grids do not fit together.
    """
    real = inputs["attention_mask"].bool()
    if not bool(real[:, -1].all()):
        raise ValueError("the batch is padded on the right; pad on the left, so that the last position predicts the answer.")
    image = (inputs["input_ids"] == image_token_id) & real
    answer, bos = torch.zeros_like(real), torch.zeros_like(real)
    answer[:, -1] = True
    bos[torch.arange(len(real)), real.int().argmax(dim=1)] = True
    most = max((len(item.images) for item in items), default=0)
    parts = {(kind, i): torch.zeros_like(real) for kind in ("image", "object") for i in range(most)}
    remaining = iter(grids)
    for row, item in enumerate(items):
        for number, (places, grid) in enumerate(_pictures(item, image[row], remaining)):
            parts["image", number][row, places] = True
            parts["object", number][row, places[overlapping(item, number, grid).to(places.device)]] = True
    objects = torch.zeros_like(real)
    for number in range(most):
        objects |= parts["object", number]
    roles = {
        "answer": answer,
        "image": image,
        "object": objects,
        "background": image & ~objects,
        "text": real & ~image,
        "bos": bos,
    }
    for number in range(most):
        seen, marked = parts["image", number], parts["object", number]
        roles |= {f"image:{number}": seen, f"object:{number}": marked, f"background:{number}": seen & ~marked}
    return roles


def _pictures(item: Item, image: Bool[Tensor, " position"], grids: Iterator[Grid]) -> Iterator[tuple[Tensor, Grid]]:
    """Positions and grid of each of the item's pictures."""
    places = image.nonzero()[:, 0]
    mine = [next(grids) for _ in item.images]
    sizes = [rows * columns for rows, columns in mine]
    if sum(sizes) != len(places):
        raise ValueError(f"item {item.id!r} has {len(places)} image tokens, but its pictures' grids hold {sum(sizes)}.")
    yield from zip(places.split(sizes), mine, strict=True)


def overlapping(item: Item, number: int, grid: Grid) -> Bool[Tensor, " token"]:
    """Tokens of picture ``number``, row by row, whose patch shares some area with one of the item's boxes there."""
    rows, columns = grid
    width, height = item.images[number].size
    mask = torch.zeros(rows, columns, dtype=torch.bool)
    left, top = torch.arange(columns) * (width / columns), torch.arange(rows) * (height / rows)
    for box in item.objects:
        if box.image == number:
            across = (left < box.right) & (left + width / columns > box.left)
            down = (top < box.bottom) & (top + height / rows > box.top)
            mask |= down[:, None] & across[None, :]
    return mask.reshape(-1)
