"""A tiny random Qwen3-VL with a real processor, and items to show it: for tests of mechanism, not of meaning."""

from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

from deixis.benchmarks import Box, Item, Items, Option
from deixis.benchmarks.images import DrawnImage, UniformImage
from deixis.benchmarks.render import Figure

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
N_LAYERS, D_MODEL = 3, 32
SIDE = 64
"""Width and height of the toy pictures: 4 x 4 patches, 2 x 2 image tokens."""
WORDS = "This that This That this is near middle far red blue star cross disk the shape on what answer user assistant"
CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def toy_tokenizer(specials: Sequence[str] = SPECIALS, chat: str | None = CHAT, **named: str) -> PreTrainedTokenizerFast:
    """A byte-level BPE that knows a few words; whatever else falls apart into bytes.

    ``named`` are special tokens by the attribute under which processors look for them, such as ``image_token="<image>"``.
    """
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=480, special_tokens=list(specials), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    inner.train_from_iterator([WORDS, *WORDS.split()] * 4, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=chat,
        extra_special_tokens=named,
    )


def toy_processor() -> Qwen3VLProcessor:
    """The real processor class around the toy tokenizer; pictures keep their 64 x 64 pixels."""
    size: dict[str, Any] = {"shortest_edge": SIDE * SIDE, "longest_edge": 4 * SIDE * SIDE}
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(patch_size=16, merge_size=2, temporal_patch_size=2, size=size),
        tokenizer=toy_tokenizer(),
        video_processor=Qwen3VLVideoProcessor(patch_size=16, merge_size=2, temporal_patch_size=2),
        chat_template=CHAT,
    )


def toy_model(processor: Qwen3VLProcessor, dtype: torch.dtype = torch.float32, seed: int = 0) -> Qwen3VLForConditionalGeneration:
    """Random weights, none of them zero, large enough that picture and prompt move the logits."""
    ids = {name: processor.tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in ("image_pad", "video_pad")}
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": len(processor.tokenizer),
            "hidden_size": D_MODEL,
            "intermediate_size": 64,
            "num_hidden_layers": N_LAYERS,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "rope_parameters": {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0},
            "pad_token_id": processor.tokenizer.pad_token_id,
            "eos_token_id": processor.tokenizer.eos_token_id,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 4,
            "patch_size": 16,
            "out_hidden_size": D_MODEL,
            "deepstack_visual_indexes": [0],
            "num_position_embeddings": 64,
        },
        image_token_id=ids["image_pad"],
        video_token_id=ids["video_pad"],
        vision_start_token_id=processor.tokenizer.convert_tokens_to_ids("<|vision_start|>"),
        vision_end_token_id=processor.tokenizer.convert_tokens_to_ids("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    return filled(Qwen3VLForConditionalGeneration(config), processor.tokenizer, seed).to(dtype)


def filled(model: Any, tokenizer: Any, seed: int = 0) -> Any:
    """The model with random weights, none of them zero, in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            scale = 0.1 if name.endswith("bias") else 0.25
            # Around what leaves a norm as it is: 1, or 0 where the class adds 1 itself.
            mean = float(weight.mean()) if "norm" in name and name.endswith("weight") else 0.0
            weight.copy_(mean + scale * torch.randn(weight.shape, generator=generator))
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model.eval()


def toy_vlm(dtype: torch.dtype = torch.float32, seed: int = 0) -> Any:
    """The toy, wrapped as any model in memory is."""
    from deixis.models import wrap

    processor = toy_processor()
    return wrap(toy_model(processor, dtype, seed), processor)


def toy_image(number: int) -> DrawnImage:
    """A drawn picture; each number gives another."""
    shapes, colours = ("star", "cross", "circle"), ("red", "blue")
    figure = Figure(
        shape=shapes[number % 3], colour=colours[number % 2], distance_m=0.3 + 0.4 * (number % 6), x_m=0.0, brightness=1.0
    )
    return DrawnImage(figure=figure, pixels=SIDE)


THIS_THAT = (
    Option(label="this", forms=("This", " This", "this"), term="proximal"),
    Option(label="that", forms=("That", " that"), term="distal"),
)
SHARED_START = (
    Option(label="red star", forms=("red star", "red  star"), value=1.0),
    Option(label="red cross", forms=("red cross",), value=2.0),
    Option(label="far", forms=("far",), value=3.0),
)
"""Two of these begin with the same token, so that first tokens cannot tell them apart."""


def toy_item(number: int, **changes: Any) -> Item:
    """Items of different lengths; every third has no object box, every fourth options that share a first token."""
    values: dict[str, Any] = {
        "id": f"toy/{number}",
        "benchmark": "toy",
        "task": "demonstrative",
        "language": "en",
        "images": (toy_image(number),),
        "prompt": "what is on the disk" + " this that" * (number % 5),
        "options": SHARED_START if number % 4 == 3 else THIS_THAT,
        "targets": {"distance_m": 0.3 + 0.4 * (number % 6)},
        "groups": {"scene": f"scene-{number}"},
        "objects": () if number % 3 == 2 else (Box(name="disk", left=4.0, top=4.0, right=28.0, bottom=28.0),),
    }
    return Item(**(values | changes))


def toy_items(n: int = 6) -> Items:
    """The first ``n`` toy items."""
    return Items(toy_item(number) for number in range(n))


def grey(side: int = SIDE) -> UniformImage:
    """A picture without content."""
    return UniformImage(width=side, height=side)
