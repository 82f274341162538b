"""What watching attention costs, as ratios to the bare forward pass under SDPA.

A random Qwen3-VL of width 512 with 12 layers and 8 heads (4 groups of keys), float32, one item of about 600 tokens of which 256
show a picture. Compared are: the answer position's rows at all layers; statistics over the queries of all tokens; both without
what sinks and rank collapse are seen by; and eager attention with ``output_attentions``, which is what people use instead.
Memory is taken at 8,000 tokens, beside what eager needs for one layer there and for the weights of all twelve.
"""

import gc
from typing import Any

import torch
from harness import Comparison, arguments, compare, peak_memory, save, threads_set
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

import deixis as dx
from deixis.benchmarks import Box, Item, Option
from deixis.benchmarks.images import UniformImage
from deixis.models import VLM, wrap

WIDTH, HEADS = 512, 8
LONG = 8000


def model(layers: int, width: int = WIDTH, heads: int = HEADS) -> VLM:
    """Random weights around pico's processor, with room for pictures of 512 x 512 pixels (256 tokens) and long prompts.

    Args:
        layers: Blocks of the decoder.
        width: Of the residual stream; 64 times the heads, for the rotary positions.
        heads: Of queries, twice as many as of keys.
    """
    pico = dx.load("pico")
    config = pico.model.config.to_dict()
    text = config["text_config"] | {
        "hidden_size": width,
        "intermediate_size": 3 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 2,
        "head_dim": width // heads,
        "max_position_embeddings": 4 * LONG,
        "rope_parameters": {"rope_type": "default", "mrope_section": [12, 10, 10], "rope_theta": 10000.0},
    }
    vision = config["vision_config"] | {"out_hidden_size": width}
    torch.manual_seed(0)
    made = Qwen3VLForConditionalGeneration(Qwen3VLConfig(**(config | {"text_config": text, "vision_config": vision})))
    made.generation_config = pico.model.generation_config
    pico.processor.image_processor.size = {"shortest_edge": 512 * 512, "longest_edge": 512 * 512}
    return wrap(made.eval(), pico.processor, check=False)


def item(words: int) -> Item:
    """A grey picture with a box, and a prompt of so many words."""
    return Item(
        id="perf",
        benchmark="perf",
        task="perf",
        language="en",
        images=(UniformImage(width=512, height=512),),
        prompt=" ".join(["this", "that"] * (words // 2)),
        options=(Option(label="this", forms=("this",)),),
        objects=(Box(name="disk", left=100.0, top=100.0, right=200.0, bottom=200.0),),
    )


class Passes:
    """Forward passes over one item, bare and watched."""

    def __init__(self, vlm: VLM, tokens: int) -> None:
        self.vlm = vlm
        empty = vlm.prepare([item(2)])["input_ids"].shape[1]
        each = (vlm.prepare([item(42)])["input_ids"].shape[1] - empty) / 40
        self.items = [item(2 + 2 * round((tokens - empty) / each / 2))]
        self.inputs = vlm.prepare(self.items)
        self.tokens = self.inputs["input_ids"].shape[1]

    @torch.no_grad()
    def bare(self) -> None:
        """As the model runs by itself."""
        self.vlm.reset()
        self.vlm.model(**self.inputs, logits_to_keep=1)

    @torch.no_grad()
    def watched(self, **plan: Any) -> None:
        """With attention watched."""
        with dx.AttentionWatch(self.vlm, dx.AttentionPlan(**plan)) as watch:
            watch.follow(self.inputs, self.items)
            self.vlm.reset()
            self.vlm.model(**self.inputs, logits_to_keep=1)
            watch.read()

    @torch.no_grad()
    def eager(self, *, keep: bool = True) -> None:
        """Eager attention; with ``keep`` the weights of all layers are returned."""
        self.vlm.reset()
        self.vlm.model.set_attn_implementation("eager")
        try:
            self.vlm.model(**self.inputs, logits_to_keep=1, output_attentions=keep)
        finally:
            self.vlm.model.set_attn_implementation("sdpa")


def times(options: Any) -> list[Comparison]:
    """Ratios to the bare pass; what is asked for stands beside them."""
    layers, tokens = (3, 300) if options.quick else (12, 600)
    passes = Passes(model(layers), tokens)
    kinds: list[tuple[str, Any, float | None]] = [
        ("answer rows", lambda: passes.watched(spread=False), 1.03),
        ("answer rows, sinks and likeness", passes.watched, None),
        ("all queries", lambda: passes.watched(queries=("all",), maps=False, spread=False), 1.3),
        ("all queries, maps, sinks and likeness", lambda: passes.watched(queries=("all",)), None),
        ("eager, output_attentions", passes.eager, None),
    ]
    rounds = options.rounds or (3 if options.quick else 15)
    return [
        compare(
            f"{name} ({passes.tokens} tokens)",
            passes.bare,
            work,
            labels=("bare SDPA", name),
            threads=options.threads,
            rounds=rounds,
            target=target,
            note="the ratio is what the watched pass costs, in bare passes",
        )
        for name, work, target in kinds
    ]


def memory(options: Any) -> dict[str, Any]:
    """Bytes beyond the bare pass at 8,000 tokens, and what eager needs there."""
    long = 1000 if options.quick else LONG
    passes = Passes(model(1), long)
    n, found = passes.tokens, {}
    with threads_set(options.threads):
        passes.bare()
        found["bare"] = _grown(passes.bare)
        found["answer rows"] = _grown(passes.watched)
        found["all queries"] = _grown(lambda: passes.watched(queries=("all",)))
        found["eager, one layer"] = _grown(passes.eager)
    weights = HEADS * n * n * 4
    extra = max(found["answer rows"], found["all queries"]) - found["bare"]
    return {
        "memory_tokens": n,
        "memory_bytes": found,
        "weights_of_one_layer_bytes": weights,
        "extra_over_eager_of_one_layer": extra / (found["eager, one layer"] - found["bare"]),
        "extra_over_eager_weights_of_12_layers": extra / (12 * weights),
    }


def _grown(work: Any) -> int:
    gc.collect()
    return peak_memory(work)


def main() -> None:
    """Measure, print and save."""
    options = arguments(__doc__ or "")
    facts = memory(options)
    measured = times(options)
    save("attention", measured, options.out, **facts)
    for row in measured:  # the differences are in the second decimal
        print(f"{row.name}: " + " [{:.3f}, {:.3f}, {:.3f}] of CPU time: mean, low, high".format(*row.ratio()))


if __name__ == "__main__":
    main()
