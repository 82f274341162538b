"""VLM families as data: one frozen record each, and nothing about a family anywhere else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from deixis.models import tilings
from deixis.models.any_resolution import anyres_layout
from deixis.models.inputs import plain_prompt
from deixis.models.layout import PictureLayout
from deixis.models.views import Inputs, Sizes

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

LayoutFunction = Callable[["VLM", Inputs, Sizes], list[PictureLayout]]
PromptFunction = Callable[["VLM", Sequence[Mapping[str, str]]], str]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Where the parts of one architecture are, as dotted paths from the model. A part that it lacks is None."""

    architecture: str
    """Entry of ``config.architectures`` that selects this record."""
    name: str = ""
    """The models that people know it by."""
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
    vision_blocks: str | tuple[str, ...] | None
    """The ``ModuleList`` of the vision tower's blocks. Several paths where towers differ: the first that exists."""
    more_vision_blocks: str | None = None
    """A second ``ModuleList`` of blocks that follow on those, with the same rows."""
    vision_attention: str | tuple[str, ...] | None = "attn"
    """Path within a vision block; several where towers differ."""
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
    soft_caps: bool = True
    """Whether the model caps its logits as the text config says; some classes do not, though their text class does."""
    vision_cache: bool = True
    """Whether the model takes ``mm_encoder_outputs`` in place of pixels."""
    pictures_apart: bool = True
    """Whether a picture has the same features alone as beside others of its item."""
    remote_code: bool = False
    """Whether the class comes with the model and needs ``trust_remote_code=True``."""
    prompt: PromptFunction | None = None
    """Writes the prompt where the processor has no chat template; None where a template is needed."""
    needs_picture: bool = False
    """Whether the processor takes no prompt without a picture."""
    mixes_counts: bool = True
    """Whether items with different numbers of pictures give the same in one batch as alone; if not, such a batch is refused."""
    first_position: int = 0
    """The position of the first token that is no padding, for families that are given ``position_ids``."""
    carried: tuple[str, ...] = ()
    """Inputs with an entry for each token whose last entry also holds for the tokens that follow."""
    checked_with: str = ""
    """Models for which the record has been used."""


def _usual(**parts: Any) -> dict[str, Any]:
    """Where most models of transformers keep their parts."""
    text = parts.pop("text", "model.language_model")
    return {
        "blocks": f"{text}.layers",
        "final_norm": f"{text}.norm",
        "head": "lm_head",
        "embeddings": f"{text}.embed_tokens",
        "merger": "model.multi_modal_projector",
        "vision_attention": "self_attn",
    } | parts


def _qwen(**parts: Any) -> dict[str, Any]:
    """Qwen and GLM: rotary positions in three axes, which the model works out and keeps."""
    tower = {"vision_blocks": "model.visual.blocks", "vision_attention": "attn", "merger": "model.visual.merger"}
    return _usual(**tower, keeps_positions="model", layout=tilings.qwen_layout) | parts


def _skipped_cross_attention(vlm: "VLM", inputs: Mapping[str, Tensor]) -> tuple[int, ...]:
    return () if "pixel_values" in inputs else tuple(vlm.text_config.cross_attention_layers)


_SIGLIP = "model.vision_tower.encoder.layers"
_PIXTRAL = "model.vision_tower.transformer.layers"
_EITHER_ATTENTION = ("self_attn", "linear_attn")

_RECORDS = (
    Family(architecture="Qwen2VLForConditionalGeneration", name="Qwen2-VL", **_qwen()),
    Family(architecture="Qwen2_5_VLForConditionalGeneration", name="Qwen2.5-VL", **_qwen(layout=tilings.windowed_qwen_layout)),
    Family(
        architecture="Qwen3VLForConditionalGeneration",
        name="Qwen3-VL (dense), Cosmos-Reason2, pico",
        checked_with="pico, pico-collapsed",
        **_qwen(),
    ),
    Family(architecture="Qwen3VLMoeForConditionalGeneration", name="Qwen3-VL (mixture of experts)", **_qwen()),
    Family(architecture="Qwen3_5ForConditionalGeneration", name="Qwen3.5 (dense)", attention=_EITHER_ATTENTION, **_qwen()),
    Family(
        architecture="Qwen3_5MoeForConditionalGeneration",
        name="Qwen3.5 (mixture of experts)",
        attention=_EITHER_ATTENTION,
        **_qwen(),
    ),
    Family(architecture="Glm4vForConditionalGeneration", name="GLM-4.1V", **_qwen(layout=tilings.glm_layout)),
    Family(architecture="Glm4vMoeForConditionalGeneration", name="GLM-4.5V", **_qwen(layout=tilings.glm_layout)),
    Family(architecture="Glm46VForConditionalGeneration", name="GLM-4.6V", **_qwen(layout=tilings.glm_layout)),
    Family(
        architecture="InternVLForConditionalGeneration",
        name="InternVL 3, InternVL 3.5",
        layout=tilings.internvl_layout,
        **_usual(vision_blocks="model.vision_tower.encoder.layer", vision_attention="attention"),
    ),
    Family(
        architecture="Gemma3ForConditionalGeneration",
        name="Gemma 3",
        layout=tilings.gemma3_layout,
        soft_caps=False,
        **_usual(vision_blocks=_SIGLIP),
    ),
    Family(
        architecture="Gemma4ForConditionalGeneration",
        name="Gemma 4",
        layout=tilings.gemma4_layout,
        **_usual(vision_blocks=_SIGLIP, merger="model.embed_vision"),
    ),
    Family(
        architecture="Gemma4UnifiedForConditionalGeneration",
        name="Gemma 4 12B (no vision tower)",
        layout=tilings.gemma4_unified_layout,
        **_usual(vision_blocks=None, vision_attention=None, merger="model.embed_vision.multimodal_embedder"),
    ),
    Family(
        architecture="Ovis2ForConditionalGeneration",
        name="Ovis2",
        layout=tilings.ovis_layout,
        **_usual(
            vision_blocks="model.vision_tower.transformer.encoder.layers",
            vision_attention="attention",
            merger="model.visual_embeddings_table",
        ),
    ),
    Family(
        architecture="LlavaForConditionalGeneration",
        name="LLaVA 1.5, Pixtral",
        layout=tilings.llava_layout,
        **_usual(vision_blocks=(_SIGLIP, _PIXTRAL), vision_attention=("self_attn", "attention")),
    ),
    Family(
        architecture="LlavaNextForConditionalGeneration",
        name="LLaVA-NeXT",
        layout=anyres_layout,
        **_usual(vision_blocks=_SIGLIP),
    ),
    Family(
        architecture="LlavaOnevisionForConditionalGeneration",
        name="LLaVA-OneVision",
        layout=anyres_layout,
        pictures_apart=False,  # one picture is tiled, several are not
        **_usual(vision_blocks=_SIGLIP),
    ),
    Family(
        architecture="Mistral3ForConditionalGeneration",
        name="Mistral Small 3.1 and later",
        layout=tilings.pixtral_layout,
        **_usual(vision_blocks=_PIXTRAL, vision_attention="attention"),
    ),
    Family(
        architecture="Idefics3ForConditionalGeneration",
        name="Idefics3",
        layout=tilings.idefics_layout,
        **_usual(text="model.text_model", vision_blocks="model.vision_model.encoder.layers", merger="model.connector"),
    ),
    Family(
        architecture="SmolVLMForConditionalGeneration",
        name="SmolVLM, SmolVLM2",
        layout=tilings.idefics_layout,
        **_usual(text="model.text_model", vision_blocks="model.vision_model.encoder.layers", merger="model.connector"),
    ),
    Family(
        architecture="PaliGemmaForConditionalGeneration",
        name="PaliGemma, PaliGemma 2",
        layout=tilings.single_layout,
        prompt=plain_prompt,
        needs_picture=True,
        first_position=1,
        **_usual(vision_blocks=_SIGLIP),
    ),
    Family(
        architecture="Molmo2ForConditionalGeneration",
        name="Molmo2",
        layout=tilings.molmo_layout,
        **_usual(vision_blocks="model.vision_tower.layers"),
    ),
    Family(
        architecture="MllamaForConditionalGeneration",
        name="Llama 3.2 Vision",
        layout=tilings.mllama_layout,
        attention=("self_attn", "cross_attn"),
        image_tokens="cross",
        mixes_counts=False,  # tokens that may see no picture are given the average of all slots, empty ones included
        optional_layers=_skipped_cross_attention,
        carried=("cross_attention_mask",),
        vision_cache=False,
        more_vision_blocks="model.vision_model.global_transformer.layers",
        **_usual(vision_blocks="model.vision_model.transformer.layers"),
    ),
)

FAMILIES: dict[str, Family] = {family.architecture: family for family in _RECORDS}
"""Every known family by its architecture. A new family is a new record above and nothing else."""

LEFT_OUT: dict[str, str] = {
    "Ovis2.5": (
        "its class is not in transformers: it comes with the model, runs only with trust_remote_code=True, and has no processor "
        "of transformers' kind, so that nothing about it could be checked"
    ),
    "InternVL checkpoints without -HF": "their class comes with the model; the same weights in the native class end in -HF",
    "Molmo (first version)": "its class comes with the model and is not in transformers; Molmo2 is",
}
"""Families without a record, and why."""
REMOTE_CODE: dict[str, str] = {
    "Ovis2_5": "Ovis2.5",
    "InternVLChatModel": "InternVL checkpoints without -HF",
    "MolmoForCausalLM": "Molmo (first version)",
}
"""Architectures whose classes come with the model, by the name under which they are left out."""


def reads_pictures(config: Any) -> bool:
    """Whether a model's config has a part for pictures."""
    return any(getattr(config, name, None) is not None for name in ("vision_config", "vit_config", "visual_tokenizer_config"))


def family_of(config: Any) -> Family:
    """The record that a model's config selects.

    Raises:
        KeyError: No record has this architecture; the message says why, for text-only models and classes that come with theirs.
    """
    names = getattr(config, "architectures", None) or ["(none named)"]
    for name in names:
        if name in FAMILIES:
            return FAMILIES[name]
        if name in REMOTE_CODE:
            raise KeyError(f"there is no family record for {name!r}: {LEFT_OUT[REMOTE_CODE[name]]}.")
    if not reads_pictures(config):
        raise KeyError(f"{names[0]!r} is a text-only model: its config has no vision part; use a vision-language model.")
    raise KeyError(f"no family record for {names[0]!r}; known: {', '.join(FAMILIES)}. Add one in deixis/models/families.py.")
