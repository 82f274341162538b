"""VLM families as data: one frozen record each, and nothing about a family anywhere else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

Grid = tuple[int, int]
"""Rows and columns of image tokens."""


def patch_grids(vlm: "VLM", inputs: Mapping[str, Tensor]) -> list[Grid]:
    """Grids of families whose processor gives ``image_grid_thw`` in patches, merged before the decoder (Qwen)."""
    merge = vlm.processor.image_processor.merge_size
    grids = inputs["image_grid_thw"].tolist() if "image_grid_thw" in inputs else []
    return [(frames * rows // merge, columns // merge) for frames, rows, columns in grids]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Where the parts of one architecture are, as dotted paths from the model."""

    architecture: str
    """Entry of ``config.architectures`` that selects this record."""
    blocks: str
    """The ``ModuleList`` of decoder blocks."""
    final_norm: str
    head: str
    embeddings: str
    vision_blocks: str
    merger: str
    """The module that turns vision features into image tokens."""
    grids: "Callable[[VLM, Mapping[str, Tensor]], list[Grid]]"
    """Grid of image tokens of every picture in a prepared batch, in order; pictures are resized whole, never cropped."""
    keeps_positions: str | None = None
    """The module whose ``rope_deltas`` outlives a forward pass and must be forgotten before the next."""
    checked_with: str = ""
    """Models for which the record has been used."""


_RECORDS = (
    Family(
        architecture="Qwen3VLForConditionalGeneration",
        blocks="model.language_model.layers",
        final_norm="model.language_model.norm",
        head="lm_head",
        embeddings="model.language_model.embed_tokens",
        vision_blocks="model.visual.blocks",
        merger="model.visual.merger",
        grids=patch_grids,
        keeps_positions="model",
        checked_with="pico, pico-collapsed",
    ),
)

FAMILIES: dict[str, Family] = {family.architecture: family for family in _RECORDS}
"""Every known family by its architecture. A new family is a new record above and nothing else."""


def family_of(config: Any) -> Family:
    """The record that a model's config selects.

    Raises:
        KeyError: No record has this architecture.
    """
    names = getattr(config, "architectures", None) or ["(none named)"]
    for name in names:
        if name in FAMILIES:
            return FAMILIES[name]
    raise KeyError(f"no family record for {names[0]!r}; known: {', '.join(FAMILIES)}. Add one in deixis/models/families.py.")
