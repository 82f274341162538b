"""Token roles: which positions of a batch are the answer, the picture, the object, the text. The one place that decides."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from deixis.benchmarks import Item
from deixis.models.layout import Layout


def token_roles(
    inputs: Mapping[str, Tensor], items: Sequence[Item], image_token_id: int | None, layout: Layout
) -> dict[str, Bool[Tensor, "batch position"]]:
    """Masks by role, on the device of the inputs.

    ``answer``: the last position, which predicts the answer's first token. ``bos``: the first position that is no padding.
    ``image``: every image token. ``object``: image tokens whose patch overlaps an object's box in the picture it was marked in;
    ``anchor_a`` and ``anchor_b``: the same for boxes of these names, which are no ``object``; ``background``: image tokens that
    overlap no box. ``text``: the rest. ``image:0``, ``object:0``, ``anchor_a:0`` and so on are those of one picture of an item.

    Args:
        inputs: A left-padded batch with ``input_ids`` and ``attention_mask``.
        items: The items of the batch, in order.
        image_token_id: The token that stands for a piece of a picture; None where pictures enter by cross-attention: then no
            position is an image token, and the roles of pictures are empty.
        layout: The image tokens of the batch; see ``VLM.layout``.

    Raises:
        ValueError: The batch is padded on the right, or image tokens and layout do not fit together.
    """
    real = inputs["attention_mask"].bool()
    if not bool(real[:, -1].all()):
        raise ValueError("the batch is padded on the right; pad on the left, so that the last position predicts the answer.")
    image = (inputs["input_ids"] == image_token_id) & real if image_token_id is not None else torch.zeros_like(real)
    if image_token_id is not None:
        for item, has, makes in zip(items, image.sum(dim=1).tolist(), layout.tokens_per_item, strict=True):
            if has != makes:
                raise ValueError(f"item {item.id!r} has {has} image tokens, but its pictures' layout holds {makes}.")
    answer, bos = torch.zeros_like(real), torch.zeros_like(real)
    answer[:, -1] = True
    bos[torch.arange(len(real)), real.int().argmax(dim=1)] = True
    roles = {"answer": answer, "text": real & ~image, "bos": bos}
    rows, columns = image.nonzero(as_tuple=True)  # row by row, as the layout counts its tokens
    for role, tokens in layout.token_roles(items).items():
        roles[role] = torch.zeros_like(real)
        if image_token_id is not None:
            roles[role][rows, columns] = tokens.to(real.device)
    return roles
