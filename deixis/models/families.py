"""VLM families as data: one frozen record each, and nothing about a family anywhere else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from deixis.models.layout import PictureLayout
from deixis.models.tilings import qwen_layout

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

Sizes = Sequence[tuple[int, int]]
"""Width and height in pixels of every picture of a batch, in order."""
LayoutFunction = Callable[["VLM", Mapping[str, Tensor], Sizes], list[PictureLayout]]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Where the parts of one architecture are, as dotted paths from the model. A part that it lacks is None."""

    architecture: str
    """Entry of ``config.architectures`` that selects this record."""
    blocks: str
    """The ``ModuleList`` of decoder blocks."""
    final_norm: str
    head: str
    embeddings: str
    attention: tuple[str, ...] = ("self_attn",)
    """Names within a decoder block; the first that a block has is its attention."""
    out_proj: tuple[str, ...] = ("o_proj",)
    """Names within the attention of the projection whose input holds the heads' outputs side by side (site ``head``)."""
    mlp: str = "mlp"
    """Name within a decoder block."""
    vision_blocks: str | None
    """The ``ModuleList`` of the vision tower's blocks."""
    vision_attention: str | None = "attn"
    """Path within a vision block."""
    merger: str | None
    """The module that turns vision features into image tokens."""
    layout: LayoutFunction
    """The image tokens of every picture in a prepared batch, in order; see :class:`~deixis.models.layout.PictureLayout`."""
    image_tokens: Literal["sequence", "cross"] = "sequence"
    """``"cross"``: pictures enter by cross-attention and have no tokens in the sequence."""
    keeps_positions: str | None = None
    """The module whose ``rope_deltas`` outlives a forward pass and must be forgotten before the next."""
    optional_layers: "Callable[[VLM, Mapping[str, Tensor]], tuple[int, ...]] | None" = None
    """Decoder layers that do not run for a prepared batch; None where all always run."""
    vision_cache: bool = True
    """Whether the model takes ``mm_encoder_outputs`` in place of pixels."""
    remote_code: bool = False
    """Whether the class comes with the model and needs ``trust_remote_code=True``."""
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
        layout=qwen_layout,
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
