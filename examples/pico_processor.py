"""Tokenizer, processor and untrained network of ``pico``: a Qwen3-VL in every respect but its size."""

from itertools import product

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

from deixis.benchmarks.languages import Language, language

# Named here, so that a language added later leaves the tokenizer as it is.
TABLES = [language(code) for code in ("en", "ja", "ko", "zh")]
SIZE, PATCH, MERGE, WIDTH = 256, 16, 2, 96
GRID = SIZE // PATCH
IMAGE_TOKENS = (GRID // MERGE) ** 2
SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The pre-tokenizer of the Qwen tokenizers: words with their leading space, digits, runs of signs.
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def spoken(form: str, table: Language) -> str:
    """The form in which ``pico`` writes a demonstrative: capitals in English, as its prompt asks."""
    return form.capitalize() if table.code == "en" else form


def answers(table: Language) -> list[str]:
    """Every answer that ``pico`` may learn to give in a language."""
    figures = product(table.demonstrative.options, table.colours.values(), table.shapes.values())
    described = [f"{spoken(option.label, table)} {colour[0]} {shape[0]}" for option, colour, shape in figures]
    return described + [spoken(option.label, table) for option in table.distance.options]


def memory_corpus() -> list[str]:
    """The memory game's prompts and answers, weighted as ``pico`` needs them."""
    corpus: list[str] = []
    for table in TABLES:
        corpus += [table.demonstrative.prompt, table.distance.prompt] * 3 + answers(table) * 3
        for question in (table.demonstrative, table.distance):
            corpus += [form for option in question.options for form in option.forms] * 20
    return corpus


def build_tokenizer(corpus: list[str]) -> PreTrainedTokenizerFast:
    """Byte-level BPE trained on prompts and answers; at most 12 bytes a token, so that no clause is one token."""
    raw = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(_regex(WORDS), behavior="isolated")
    raw.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1200,
        min_frequency=2,
        max_token_length=12,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator([*corpus, *["user\n", "assistant\n"] * 20], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        padding_side="left",
        additional_special_tokens=[token for token in SPECIAL if token not in ("<|endoftext|>", "<|im_end|>")],
        model_max_length=1024,
        clean_up_tokenization_spaces=False,
    )


def _regex(pattern: str):
    from tokenizers import Regex

    return Regex(pattern)


def build_processor(corpus: list[str] | None = None, size: int = SIZE) -> Qwen3VLProcessor:
    """The real processor class; every picture is brought to ``size`` x ``size`` pixels (256: 64 image tokens)."""
    geometry = {
        "patch_size": PATCH,
        "merge_size": MERGE,
        "temporal_patch_size": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "size": {"shortest_edge": size * size, "longest_edge": size * size},
    }
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(**geometry),
        tokenizer=build_tokenizer(memory_corpus() if corpus is None else corpus),
        video_processor=Qwen3VLVideoProcessor(**geometry),
        chat_template=CHAT_TEMPLATE,
    )


def build_model(processor: Qwen3VLProcessor) -> Qwen3VLForConditionalGeneration:
    """Untrained network: hidden width 96, four vision and six text blocks, one DeepStack level."""
    tokenizer = processor.tokenizer
    places = processor.image_processor.size["longest_edge"] // PATCH**2
    ids = {
        name: tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in ("image_pad", "video_pad", "vision_start", "vision_end")
    }
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": 8 * -(-len(tokenizer) // 8),
            "hidden_size": WIDTH,
            "intermediate_size": 256,
            "num_hidden_layers": 6,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 24,
            "max_position_embeddings": 1024,
            "rope_parameters": {"rope_type": "default", "mrope_section": [4, 4, 4], "rope_theta": 10000.0},
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": None,
            "tie_word_embeddings": True,
        },
        vision_config={
            "depth": 4,
            "hidden_size": WIDTH,
            "intermediate_size": 256,
            "num_heads": 4,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": 2,
            "out_hidden_size": WIDTH,
            "deepstack_visual_indexes": [1],
            "num_position_embeddings": places,
        },
        image_token_id=ids["image_pad"],
        video_token_id=ids["video_pad"],
        vision_start_token_id=ids["vision_start"],
        vision_end_token_id=ids["vision_end"],
        tie_word_embeddings=True,
    )
    model = Qwen3VLForConditionalGeneration(config)
    # transformers starts the learned position grid so small that places are hard to tell apart at first.
    nn.init.normal_(model.model.visual.pos_embed.weight, std=0.1)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model
