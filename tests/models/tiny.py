"""Tiny random models of every family, with the families' real processors, for tests that run over the records themselves."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import transformers as hf

from deixis.models import FAMILIES, VLM
from tests.toys import CHAT, SPECIALS, filled, toy_tokenizer, toy_vlm

QWEN_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
TEXT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 4096,
}
"""The decoder of every tiny model."""
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "decoder_sparse_step": 1}
MROPE = {
    "rope_parameters": {
        "rope_type": "default",
        "mrope_section": [2, 1, 1],
        "rope_theta": 10000.0,
        "partial_rotary_factor": 1.0,
    }
}
VISION = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TOWER = VISION | {"image_size": 32, "patch_size": 8}
"""A vision tower of 4 x 4 patches."""
NORMAL = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}


def _tokenizer(image: str, *specials: str, placeholder: str | None = None, **named: str) -> Any:
    """A toy tokenizer whose chat template writes ``placeholder`` for a picture."""
    chat = CHAT.replace(QWEN_IMAGE, placeholder or image)
    return toy_tokenizer(dict.fromkeys((*SPECIALS, image, *specials, *named.values())), chat, **named)


def _text(tokenizer: Any, **changes: Any) -> dict[str, Any]:
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": tokenizer.bos_token_id}
    return TEXT | ids | {"vocab_size": len(tokenizer)} | changes


def _vlm(architecture: str, config: Any, processor: Any) -> VLM:
    model = filled(getattr(hf, architecture)(config), processor.tokenizer)
    model.config.architectures = [architecture]
    return VLM(model=model, processor=processor, family=FAMILIES[architecture], name=architecture)


def _id(tokenizer: Any, token: str) -> int:
    return tokenizer.convert_tokens_to_ids(token)


def _qwen_ids(tokenizer: Any) -> dict[str, int]:
    names = {"image_token_id": "image_pad", "video_token_id": "video_pad"}
    names |= {"vision_start_token_id": "vision_start", "vision_end_token_id": "vision_end"}
    return {field: _id(tokenizer, f"<|{name}|>") for field, name in names.items()}


def _patches(patch: int = 8) -> dict[str, Any]:
    return {"patch_size": patch, "merge_size": 2, "temporal_patch_size": 2}


def _qwen(architecture: str, config: Any, processor: Any, videos: Any, text: Mapping[str, Any], vision: Mapping[str, Any]) -> VLM:
    tokenizer = toy_tokenizer()
    images = hf.Qwen2VLImageProcessor(**_patches(), size={"shortest_edge": 16 * 16, "longest_edge": 64 * 64})
    made = processor(images, tokenizer, videos(**_patches()), chat_template=CHAT)
    heads = {"num_heads": 4, "depth": 2, "patch_size": 8}
    settings = config(text_config=_text(tokenizer, **MROPE, **text), vision_config=heads | dict(vision), **_qwen_ids(tokenizer))
    return _vlm(architecture, settings, made)


def qwen2_vl() -> VLM:
    vision = {"embed_dim": 32, "hidden_size": 32, "mlp_ratio": 2}
    return _qwen("Qwen2VLForConditionalGeneration", hf.Qwen2VLConfig, hf.Qwen2VLProcessor, hf.Qwen2VLVideoProcessor, {}, vision)


def qwen2_5_vl() -> VLM:
    vision = {"hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 32, "window_size": 32, "fullatt_block_indexes": [1]}
    names = ("Qwen2_5_VLForConditionalGeneration", hf.Qwen2_5_VLConfig, hf.Qwen2_5_VLProcessor, hf.Qwen2VLVideoProcessor)
    return _qwen(*names, {}, vision)


QWEN3_VISION = {"hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 32, "num_position_embeddings": 64}


def qwen3_vl_moe() -> VLM:
    names = ("Qwen3VLMoeForConditionalGeneration", hf.Qwen3VLMoeConfig, hf.Qwen3VLProcessor, hf.Qwen3VLVideoProcessor)
    return _qwen(*names, MOE, QWEN3_VISION | {"deepstack_visual_indexes": [0]})


LINEAR = {
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}


def qwen3_5() -> VLM:
    names = ("Qwen3_5ForConditionalGeneration", hf.Qwen3_5Config, hf.Qwen3VLProcessor, hf.Qwen3VLVideoProcessor)
    return _qwen(*names, LINEAR, QWEN3_VISION)


def qwen3_5_moe() -> VLM:
    names = ("Qwen3_5MoeForConditionalGeneration", hf.Qwen3_5MoeConfig, hf.Qwen3VLProcessor, hf.Qwen3VLVideoProcessor)
    return _qwen(*names, LINEAR | MOE | {"shared_expert_intermediate_size": 16}, QWEN3_VISION)


def _glm(architecture: str, config: Any, text: Mapping[str, Any], kind: str = "Glm4v") -> VLM:
    tokenizer = _tokenizer(
        "<|image|>",
        *(f"<|{edge}_of_{kind}|>" for edge in ("begin", "end") for kind in ("image", "video")),
        "<|video|>",
        placeholder="<|begin_of_image|><|image|><|end_of_image|>",
    )
    images = getattr(hf, f"{kind}ImageProcessor")(**_patches(), size={"shortest_edge": 16 * 16 * 2, "longest_edge": 64 * 64 * 2})
    videos = getattr(hf, f"{kind}VideoProcessor")(**_patches())
    processor = getattr(hf, f"{kind}Processor")(images, tokenizer, videos, chat_template=tokenizer.chat_template)
    vision = {"depth": 2, "num_heads": 4, "hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 32}
    ids = {f"{kind}_token_id": _id(tokenizer, f"<|{kind}|>") for kind in ("image", "video")}
    ids |= {
        f"{kind}_{edge}_token_id": _id(tokenizer, f"<|{word}_of_{kind}|>")
        for kind in ("image", "video")
        for edge, word in (("start", "begin"), ("end", "end"))
    }
    made = config(
        text_config=_text(tokenizer, **MROPE, **text),
        vision_config=vision | {"patch_size": 8, "image_size": 64, "spatial_merge_size": 2},
        **ids,
    )
    return _vlm(architecture, made, processor)


def glm4v() -> VLM:
    return _glm("Glm4vForConditionalGeneration", hf.Glm4vConfig, {})


def glm46v() -> VLM:
    return _glm("Glm46VForConditionalGeneration", hf.Glm46VConfig, {}, "Glm46V")


def glm4v_moe() -> VLM:
    experts = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_shared_experts": 1}
    return _glm("Glm4vMoeForConditionalGeneration", hf.Glm4vMoeConfig, experts | {"first_k_dense_replace": 1, "n_group": 1})


def internvl(tile: int = 32, patch: int = 8, most: int = 6) -> VLM:
    square, tokens = {"height": tile, "width": tile}, (tile // patch // 2) ** 2
    named = {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>"}
    tokenizer = _tokenizer("<IMG_CONTEXT>", **named, video_token="<video>")
    images = hf.GotOcr2ImageProcessor(size=square, min_patches=1, max_patches=most, **NORMAL)
    videos = hf.InternVLVideoProcessor(size=square)
    processor = hf.InternVLProcessor(images, tokenizer, videos, image_seq_length=tokens, chat_template=tokenizer.chat_template)
    config = hf.InternVLConfig(
        text_config=_text(tokenizer) | {"model_type": "qwen2"},
        vision_config=VISION | {"image_size": [tile, tile], "patch_size": [patch, patch], "use_qk_norm": True},
        image_token_id=_id(tokenizer, "<IMG_CONTEXT>"),
        image_seq_length=tokens,
    )
    return _vlm("InternVLForConditionalGeneration", config, processor)


def gemma3(side: int = 32, patch: int = 8, tokens: int = 4) -> VLM:
    named = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    tokenizer = _tokenizer("<image_soft_token>", placeholder="<start_of_image>", **named)
    images = hf.Gemma3ImageProcessor(size={"height": side, "width": side}, **NORMAL)
    processor = hf.Gemma3Processor(images, tokenizer, chat_template=tokenizer.chat_template, image_seq_length=tokens)
    config = hf.Gemma3Config(
        text_config=_text(tokenizer, sliding_window=32, query_pre_attn_scalar=8, final_logit_softcapping=20.0),
        vision_config=VISION | {"image_size": side, "patch_size": patch, "vision_use_head": False},
        mm_tokens_per_image=tokens,
        image_token_index=_id(tokenizer, "<image_soft_token>"),
        boi_token_index=_id(tokenizer, "<start_of_image>"),
        eoi_token_index=_id(tokenizer, "<end_of_image>"),
    )
    return _vlm("Gemma3ForConditionalGeneration", config, processor)


def ovis2(tile: int = 32, patch: int = 8, most: int = 4) -> VLM:
    marks = ("<IMG_START>", "<IMG_GRID>", "<IMG_COL>", "<IMG_ROW>", "<IMG_END>")
    tokenizer = _tokenizer("<image>", "<IMG_ATOM>", *marks)
    images = hf.Ovis2ImageProcessor(size={"height": tile, "width": tile}, crop_to_patches=True, max_patches=most, **NORMAL)
    processor = hf.Ovis2Processor(
        images, tokenizer, chat_template=tokenizer.chat_template, image_seq_length=(tile // patch // 2) ** 2
    )
    config = hf.Ovis2Config(
        text_config=_text(tokenizer) | {"model_type": "qwen2"},
        vision_config=VISION | {"image_size": tile, "patch_size": patch, "vocab_size": 64, "hidden_stride": 2},
        hidden_size=32,
        vocab_size=len(tokenizer),
        image_token_id=_id(tokenizer, "<IMG_ATOM>"),
        visual_indicator_token_ids=[_id(tokenizer, mark) for mark in marks],
    )
    return _vlm("Ovis2ForConditionalGeneration", config, processor)


CLIP = TOWER | {"model_type": "clip_vision_model", "projection_dim": 32}
SIGLIP = TOWER | {"model_type": "siglip_vision_model", "vision_use_head": False}
PIXTRAL = VISION | {"model_type": "pixtral", "image_size": 64, "patch_size": 8, "head_dim": 8}
PINPOINTS = [[32, 64], [64, 32], [64, 64], [32, 96]]


def llava(side: int = 32, patch: int = 8) -> VLM:
    tokenizer = _tokenizer("<image>")
    images = hf.CLIPImageProcessor(size={"shortest_edge": side}, crop_size={"height": side, "width": side})
    processor = hf.LlavaProcessor(
        images, tokenizer, patch, "default", chat_template=tokenizer.chat_template, num_additional_image_tokens=1
    )
    config = hf.LlavaConfig(
        text_config=_text(tokenizer) | {"model_type": "llama"},
        vision_config=CLIP | {"image_size": side, "patch_size": patch},
        image_token_index=_id(tokenizer, "<image>"),
    )
    return _vlm("LlavaForConditionalGeneration", config, processor)


def pixtral_processor(merge: int = 1) -> Any:
    tokenizer = _tokenizer("[IMG]", "[IMG_BREAK]", "[IMG_END]")
    images = hf.PixtralImageProcessor(size={"longest_edge": 64}, patch_size={"height": 8, "width": 8})
    return hf.PixtralProcessor(images, tokenizer, 8, merge, chat_template=tokenizer.chat_template)


def pixtral() -> VLM:
    processor = pixtral_processor()
    config = hf.LlavaConfig(
        text_config=_text(processor.tokenizer) | {"model_type": "mistral"},
        vision_config=PIXTRAL,
        image_token_index=_id(processor.tokenizer, "[IMG]"),
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
    )
    return _vlm("LlavaForConditionalGeneration", config, processor)


def mistral3() -> VLM:
    processor = pixtral_processor(2)
    config = hf.Mistral3Config(
        text_config=_text(processor.tokenizer) | {"model_type": "mistral"},
        vision_config=PIXTRAL,
        image_token_index=_id(processor.tokenizer, "[IMG]"),
        spatial_merge_size=2,
    )
    return _vlm("Mistral3ForConditionalGeneration", config, processor)


def llava_next(side: int = 32, patch: int = 8, pinpoints: Sequence[Sequence[int]] = PINPOINTS) -> VLM:
    tokenizer = _tokenizer("<image>")
    images = hf.LlavaNextImageProcessor(
        size={"shortest_edge": side}, crop_size={"height": side, "width": side}, image_grid_pinpoints=[*map(list, pinpoints)]
    )
    processor = hf.LlavaNextProcessor(
        images, tokenizer, patch, "default", chat_template=tokenizer.chat_template, num_additional_image_tokens=1
    )
    config = hf.LlavaNextConfig(
        text_config=_text(tokenizer) | {"model_type": "llama"},
        vision_config=CLIP | {"image_size": side, "patch_size": patch},
        image_token_index=_id(tokenizer, "<image>"),
        image_grid_pinpoints=[*map(list, pinpoints)],
    )
    return _vlm("LlavaNextForConditionalGeneration", config, processor)


def llava_onevision(side: int = 36, patch: int = 8, most: int = 4) -> VLM:
    tokenizer = _tokenizer("<image>", "<video>")
    # As in the real ones, patches do not cover the last pixels of a view: 36 = 4 x 8 + 4, 384 = 27 x 14 + 6.
    pinpoints = [[side * rows, side * columns] for rows, columns in ((1, 2), (2, 1), (2, 2), (1, 3), (3, 3), (4, 4))]
    images = hf.LlavaOnevisionImageProcessor(size={"height": side, "width": side}, image_grid_pinpoints=pinpoints)
    videos = hf.LlavaOnevisionVideoProcessor(size={"height": side, "width": side})
    processor = hf.LlavaOnevisionProcessor(
        images, tokenizer, videos, (side // patch) ** 2, "full", tokenizer.chat_template, vision_aspect_ratio=f"anyres_max_{most}"
    )
    config = hf.LlavaOnevisionConfig(
        text_config=_text(tokenizer) | {"model_type": "qwen2"},
        vision_config=SIGLIP | {"image_size": side, "patch_size": patch},
        image_token_index=_id(tokenizer, "<image>"),
        video_token_index=_id(tokenizer, "<video>"),
        image_grid_pinpoints=pinpoints,
        vision_aspect_ratio=f"anyres_max_{most}",
    )
    return _vlm("LlavaOnevisionForConditionalGeneration", config, processor)


def _idefics(architecture: str, config: Any, images: Any, processor: Callable[[Any, Any], Any], kind: str, *sizes: int) -> VLM:
    tags = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    tokenizer = _tokenizer("<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", "<video>", *tags)
    longest, tile, patch, merge = sizes
    made = processor(images(size={"longest_edge": longest}, max_image_size={"longest_edge": tile}, **NORMAL), tokenizer)
    made.image_seq_len = (tile // patch // merge) ** 2
    settings = config(
        text_config=_text(tokenizer) | {"model_type": "llama"},
        vision_config=VISION | {"image_size": tile, "patch_size": patch, "model_type": kind},
        image_token_id=_id(tokenizer, "<image>"),
        pad_token_id=tokenizer.pad_token_id,
        scale_factor=merge,
    )
    return _vlm(architecture, settings, made)


def idefics3(longest: int = 64, tile: int = 32, patch: int = 8, merge: int = 2) -> VLM:
    def processor(images: Any, tokenizer: Any) -> Any:
        return hf.Idefics3Processor(images, tokenizer, chat_template=tokenizer.chat_template)

    names = ("Idefics3ForConditionalGeneration", hf.Idefics3Config, hf.Idefics3ImageProcessor)
    return _idefics(*names, processor, "idefics3_vision", longest, tile, patch, merge)


def smolvlm(longest: int = 64, tile: int = 32, patch: int = 8, merge: int = 2) -> VLM:
    def processor(images: Any, tokenizer: Any) -> Any:
        videos = hf.SmolVLMVideoProcessor(
            size={"longest_edge": 64},
            max_image_size={"longest_edge": 32},
            num_frames=2,
            fps=1,
            video_sampling={"video_size": {"longest_edge": 32}, "fps": 1, "max_frames": 2},
        )
        return hf.SmolVLMProcessor(images, tokenizer, videos, chat_template=tokenizer.chat_template)

    names = ("SmolVLMForConditionalGeneration", hf.SmolVLMConfig, hf.SmolVLMImageProcessor)
    return _idefics(*names, processor, "smolvlm_vision", longest, tile, patch, merge)


def paligemma(side: int = 32, patch: int = 8) -> VLM:
    tokenizer = _tokenizer("<image>", "<bos>", image_token="<image>")
    tokenizer.bos_token = "<bos>"
    tokenizer.chat_template = None
    images = hf.SiglipImageProcessor(size={"height": side, "width": side}, **NORMAL)
    images.image_seq_length = (side // patch) ** 2
    processor = hf.PaliGemmaProcessor(images, tokenizer)
    config = hf.PaliGemmaConfig(
        text_config=_text(tokenizer) | {"model_type": "gemma2", "sliding_window": 64, "query_pre_attn_scalar": 8},
        vision_config=SIGLIP | {"image_size": side, "patch_size": patch, "projection_dim": 32},
        image_token_index=_id(tokenizer, "<image>"),
        projection_dim=32,
        hidden_size=32,
    )
    return _vlm("PaliGemmaForConditionalGeneration", config, processor)


def molmo2(side: int = 48, patch: int = 8, most: int = 4, margin: int = 1) -> VLM:
    marks = ("<im_patch>", "<im_col>", "<im_start>", "<low_res_im_start>", "<frame_start>", "<im_end>", "<frame_end>", "<im_low>")
    tokenizer = _tokenizer("<|image|>", *marks, "<|video|>")
    sizes = {"size": {"height": side, "width": side}, "patch_size": patch}
    images = hf.Molmo2ImageProcessor(**sizes, max_crops=most, overlap_margins=[margin, margin], pooling_size=[2, 2])
    videos = hf.Molmo2VideoProcessor(**sizes)
    processor = hf.Molmo2Processor(images, videos, tokenizer, chat_template=tokenizer.chat_template)
    vision = VISION | {"num_key_value_heads": 4, "head_dim": 8}
    config = hf.Molmo2Config(
        text_config=_text(tokenizer, additional_vocab_size=16),
        vision_config=vision | {"patch_size": patch, "image_size": [side, side]},
        adapter_config=vision | {"vision_feature_layer": [1, 0], "intermediate_size": 48, "text_hidden_size": 32},
        image_patch_id=_id(tokenizer, "<im_patch>"),
    )
    return _vlm("Molmo2ForConditionalGeneration", config, processor)


def _gemma4(architecture: str, kind: str, vision: Mapping[str, Any], **text: Any) -> VLM:
    named = {"boi_token": "<|image>", "eoi_token": "<image|>", "image_token": "<|image|>", "audio_token": "<|audio|>"}
    tokenizer = _tokenizer("<|image|>", boa_token="<|audio>", eoa_token="<audio|>", **named)
    sizes = {"patch_size": 4, "max_soft_tokens": 70, "pooling_kernel_size": 2}
    parts = [getattr(hf, f"{kind}{part}") for part in ("AudioFeatureExtractor", "ImageProcessor", "VideoProcessor", "Processor")]
    audio, images, videos, processor = parts
    chat = tokenizer.chat_template
    made = processor(audio(), images(**sizes), tokenizer, videos(**sizes), chat_template=chat, image_seq_length=70)
    layers = {"layer_types": ["sliding_attention", "full_attention", "full_attention"], "sliding_window": 32}
    config = getattr(hf, f"{kind}Config")(
        text_config=_text(tokenizer, **layers, global_head_dim=16, final_logit_softcapping=20.0, **text),
        vision_config={"patch_size": 4, "pooling_kernel_size": 2} | dict(vision),
        audio_config=None,
        image_token_id=_id(tokenizer, "<|image|>"),
        boi_token_id=_id(tokenizer, "<|image>"),
        eoi_token_id=_id(tokenizer, "<image|>"),
    )
    return _vlm(architecture, config, made)


def gemma4() -> VLM:
    vision = VISION | {"num_key_value_heads": 4, "head_dim": 8, "position_embedding_size": 512}
    layered = {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 480}
    return _gemma4("Gemma4ForConditionalGeneration", "Gemma4", vision, **layered)


def gemma4_unified() -> VLM:
    vision = {"mm_embed_dim": 32, "mm_posemb_size": 96, "output_proj_dims": 32}
    return _gemma4("Gemma4UnifiedForConditionalGeneration", "Gemma4Unified", vision)


def mllama(tile: int = 32, patch: int = 8) -> VLM:
    tokenizer = _tokenizer("<|image|>", "<|python_tag|>", "<bos>")
    tokenizer.bos_token = "<bos>"
    images = hf.MllamaImageProcessor(size={"height": tile, "width": tile}, max_image_tiles=4)
    processor = hf.MllamaProcessor(images, tokenizer, tokenizer.chat_template)
    config = hf.MllamaConfig(
        text_config=_text(tokenizer, cross_attention_layers=[1]),
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_global_layers": 1,
            "attention_heads": 4,
            "image_size": tile,
            "patch_size": patch,
            "max_num_tiles": 4,
            "intermediate_layers_indices": [0],
            "vision_output_dim": 64,
            "supported_aspect_ratios": [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]],
        },
        image_token_index=_id(tokenizer, "<|image|>"),
    )
    return _vlm("MllamaForConditionalGeneration", config, processor)


TINY: Mapping[str, Callable[[], VLM]] = {
    "Qwen2VLForConditionalGeneration": qwen2_vl,
    "Qwen2_5_VLForConditionalGeneration": qwen2_5_vl,
    "Qwen3VLForConditionalGeneration": toy_vlm,
    "Qwen3VLMoeForConditionalGeneration": qwen3_vl_moe,
    "Qwen3_5ForConditionalGeneration": qwen3_5,
    "Qwen3_5MoeForConditionalGeneration": qwen3_5_moe,
    "Glm4vForConditionalGeneration": glm4v,
    "Glm4vMoeForConditionalGeneration": glm4v_moe,
    "Glm46VForConditionalGeneration": glm46v,
    "InternVLForConditionalGeneration": internvl,
    "Gemma3ForConditionalGeneration": gemma3,
    "Gemma4ForConditionalGeneration": gemma4,
    "Gemma4UnifiedForConditionalGeneration": gemma4_unified,
    "Ovis2ForConditionalGeneration": ovis2,
    "LlavaForConditionalGeneration": llava,
    "LlavaNextForConditionalGeneration": llava_next,
    "LlavaOnevisionForConditionalGeneration": llava_onevision,
    "Mistral3ForConditionalGeneration": mistral3,
    "Idefics3ForConditionalGeneration": idefics3,
    "SmolVLMForConditionalGeneration": smolvlm,
    "PaliGemmaForConditionalGeneration": paligemma,
    "Molmo2ForConditionalGeneration": molmo2,
    "MllamaForConditionalGeneration": mllama,
}
"""Makes the tiny model of a record, by the record's architecture."""


@cache
def tiny_vlm(architecture: str) -> VLM:
    """The tiny model of a record; the same object for the whole session, so leave it as you find it."""
    return TINY[architecture]()
