"""A toy whose heads' attention is set by hand, and runs made of chosen attention."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from deixis.activations.attention import AttentionRecord
from deixis.benchmarks import Box, Items
from deixis.benchmarks.images import FileImage
from deixis.hooks.attention_stats import STATISTICS
from deixis.models import VLM, wrap
from tests.toys import CHAT, D_MODEL, toy_item, toy_model, toy_processor

GRID = 4
"""Image tokens in a row of a planted picture, each of 32 x 32 pixels."""
LAYER = 1
"""The layer in which heads are planted; the one before it adds nothing."""
HEADS = {"sink": 0, "object": 1, "fixed": 2, "uniform": 3}
PLACE = (2, 1)
"""Row and column of the token that the ``fixed`` head looks at."""
ONE, BOS, DARK, HERE = 3, 0, 1, 2
FEATURES = torch.linalg.qr(torch.randn(D_MODEL, D_MODEL, generator=torch.Generator().manual_seed(0)))[0][:4]
"""Orthogonal directions of the residual stream, none of them along one dimension.

In this order: the first token; a dark image token; the image token at :data:`PLACE`; 1 everywhere."""


def planted_items(folder: Path, n: int = 12) -> Items:
    """White pictures with a dark square that fills one image token, which moves from scene to scene; two prompts to each."""
    items = []
    for number in range(n):
        row, column = divmod((5 * number) % (GRID * GRID), GRID)
        pixels = np.full((32 * GRID, 32 * GRID, 3), 255, np.uint8)
        pixels[32 * row : 32 * row + 32, 32 * column : 32 * column + 32] = 0
        path = folder / f"{number}.png"
        Image.fromarray(pixels).save(path)
        box = Box(name="square", left=32.0 * column, top=32.0 * row, right=32.0 * column + 32, bottom=32.0 * row + 32)
        for task in ("demonstrative", "distance"):
            items.append(
                toy_item(
                    0,
                    id=f"planted/{number}/{task}",
                    task=task,
                    images=(FileImage(path=path),),
                    objects=(box,),
                    groups={"scene": f"scene-{number}"},
                    prompt="what is on the disk" if task == "demonstrative" else "near this far",
                )
            )
    return Items(items)


def planted_vlm() -> VLM:
    """A toy in whose layer :data:`LAYER` each head of :data:`HEADS` looks where its name says, by weights set by hand."""
    processor = toy_processor()
    processor.tokenizer.chat_template = processor.chat_template = "^" + CHAT  # a first token that comes only once
    model = toy_model(processor)
    with torch.no_grad():
        _plant_embeddings(model, processor)
        _plant_vision(model.model.visual)
        before = model.model.language_model.layers[LAYER - 1]
        before.self_attn.o_proj.weight.zero_()
        before.mlp.down_proj.weight.zero_()
        _plant_heads(model.model.language_model.layers[LAYER])
    return wrap(model, processor)


def _plant_embeddings(model: Any, processor: Any) -> None:
    weight = model.model.language_model.embed_tokens.weight
    weight.copy_(FEATURES[ONE].expand_as(weight))
    first = processor.tokenizer("^", add_special_tokens=False).input_ids
    weight[first[0]] += FEATURES[BOS]


def _plant_vision(visual: Any) -> None:
    """Image tokens hold 1, whether their patches are dark, and whether they lie at :data:`PLACE`."""
    width = visual.patch_embed.proj.weight.shape[0]
    visual.patch_embed.proj.weight.zero_()
    visual.patch_embed.proj.weight[0] = -1 / visual.patch_embed.proj.weight[0].numel()  # white is 1, black -1
    # As large as what is told apart, so that no single dimension stands out like a massive activation.
    visual.patch_embed.proj.bias.copy_(torch.tensor([1.0, -1.0]).repeat(width // 2))
    visual.patch_embed.proj.bias[:2] = 0
    visual.pos_embed.weight.zero_()
    place = visual.pos_embed.weight.reshape(2 * GRID, 2 * GRID, width)
    place[2 * PLACE[0] : 2 * PLACE[0] + 2, 2 * PLACE[1] : 2 * PLACE[1] + 2, 1] = 1
    for block in visual.blocks:
        for silent in (block.attn.proj, block.mlp.linear_fc2):
            silent.weight.zero_()
            silent.bias.zero_()
    for merger in (visual.merger, *visual.deepstack_merger_list):
        merger.norm.weight.fill_(1)
        merger.norm.bias.zero_()
        for part in (merger.linear_fc1, merger.linear_fc2):
            part.weight.zero_()
            part.bias.zero_()
    one, two = visual.merger.linear_fc1, visual.merger.linear_fc2
    for patch in range(4):
        one.weight[0, patch * width] = 1
        one.weight[1, patch * width + 1] = 1
    one.bias[1] = -2
    two.weight[:, 0], two.weight[:, 1] = FEATURES[DARK], FEATURES[HERE]
    two.bias.copy_(FEATURES[ONE])


def _plant_heads(block: Any) -> None:
    """Keys hold a feature where their rotary frequency is lowest; each query reads one of them, or one that no key holds."""
    block.input_layernorm.weight.fill_(1)
    attention = block.self_attn
    for weight in (attention.q_proj.weight, attention.k_proj.weight):
        weight.zero_()
    attention.q_norm.weight.fill_(3)
    attention.k_norm.weight.fill_(3)
    width = attention.head_dim
    for group in (0, 1):  # what keeps the norm of the keys from making much of nothing
        attention.k_proj.weight[group * width] = FEATURES[ONE]
    slow, slower, empty = 2, 3, 1
    attention.k_proj.weight[slower] = 8 * FEATURES[BOS]
    attention.k_proj.weight[slow] = 8 * FEATURES[DARK]
    attention.k_proj.weight[width + slower] = 8 * FEATURES[HERE]
    for head, place in ((0, slower), (1, slow), (2, slower), (3, empty)):
        attention.q_proj.weight[head * width + place] = FEATURES[ONE]


@dataclass(frozen=True)
class MadeRun:
    """A run of chosen attention: what an analysis of attention reads of one."""

    items: Items
    arrays: Mapping[str, np.ndarray]
    layers: tuple[int, ...]
    queries: tuple[str, ...] = ("answer",)
    settings: dict[str, Any] = field(default_factory=dict)

    def array(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def attention(self, site: str = "attention") -> AttentionRecord:
        return AttentionRecord(self, site, self.layers, self.queries)  # pyright: ignore[reportArgumentType]


def made_run(items: Items, maps: np.ndarray, bos: np.ndarray, marked: np.ndarray, side: int) -> MadeRun:
    """A run of the answer's attention over one picture an item: the rest of the weight lies on text.

    Args:
        items: Each with one picture.
        maps: Weights (item token layer head).
        bos: Weight on the first token (item layer head).
        marked: Which tokens show the object (item token).
        side: Image tokens in a row.
    """
    n, tokens, layers, heads = maps.shape
    image, on_object = maps.sum(axis=1), (maps * marked[:, :, None, None]).sum(axis=1)
    keys = tokens + 20
    rest = (1 - image - bos) / 19
    plogp = -(maps * np.log(maps + 1e-30)).sum(axis=1) - bos * np.log(bos + 1e-30) - 19 * rest * np.log(rest + 1e-30)
    values = np.full((n, layers, heads, 1, len(STATISTICS)), np.nan, np.float32)
    shares = {"object": marked.sum(axis=1)[:, None, None] / keys, "image": tokens / keys}
    found = {
        "entropy": plogp / np.log(keys),
        "max_weight": np.maximum(maps.max(axis=1), bos),
        "effective_keys": np.exp(plogp),
        "keys": np.full_like(bos, keys),
        "bos_mass": bos,
        "image_mass": image,
        "image_lift": image / shares["image"],
        "object_mass": on_object,
        "object_lift": on_object / shares["object"],
        "learned_sink_mass": np.zeros_like(bos),
    }
    for name, value in found.items():
        values[..., 0, STATISTICS.index(name)] = value
    edges = np.arange(side) * 8.0
    boxes = np.array([[x, y, x + 8, y + 8] for y in edges for x in edges])
    arrays = {
        "attention/values": values,
        "attention/maps": maps.reshape(n * tokens, layers, heads, 1).astype(np.float16),
        "image_tokens/count": np.full(n, tokens),
        "image_tokens/box": np.tile(boxes, (n, 1)),
        "image_tokens/picture": np.zeros(n * tokens, int),
        "image_tokens/object": marked.reshape(-1).astype(np.uint8),
    }
    attention = {"maps": True, "spread": False, "sites": {"attention": {"layers": list(range(layers)), "queries": ["answer"]}}}
    return MadeRun(items, arrays, tuple(range(layers)), settings={"model": "made", "attention": attention})
