"""AttentionWatch: where a running model's attention goes, exactly, beside its own SDPA or flash result.

The model computes as it always does; what its attention function is given is read on the side. Rows are softmax rows of chosen
queries in float32, and only sums over them are kept (:mod:`deixis.hooks.attention_sums`): never a matrix of queries times keys.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from deixis.benchmarks import Item
from deixis.hooks.attention_calls import AttentionCall
from deixis.hooks.attention_keys import AttentionError, Listening
from deixis.hooks.attention_passes import DecoderPass, Kept, VisionPass, image_tokens, moved, padded
from deixis.hooks.attention_plan import AttentionPlan
from deixis.hooks.attention_stats import STATISTICS, ImageTokens
from deixis.hooks.attention_sums import MaskPlans
from deixis.hooks.prompt_roles import with_prompt_roles
from deixis.hooks.spread import SpreadWatch
from deixis.models import VLM
from deixis.models.layout import Layout

ATTENTION_SITES = ("attention", "vision_attention")
VISION_QUERIES = ("image", "object", "background")
"""Roles of the vision tower's queries: it has no text and no answer."""


@dataclass(eq=False)
class _Pass:
    """One forward pass, and what has been seen of it."""

    layout: Layout
    tokens: ImageTokens
    decoder: dict[torch.device, DecoderPass]
    cross: dict[torch.device, DecoderPass]
    vision: dict[int, VisionPass]
    may_rest: tuple[int, ...]
    """Layers that do not run for this batch."""
    kept: dict[tuple[str, int], Kept] = field(default_factory=dict)


class AttentionWatch:
    """Keep statistics of a model's attention, for chosen queries, at chosen layers.

    One forward pass for each pair of :meth:`follow` and :meth:`read`::

        with AttentionWatch(vlm) as watch:
            watch.follow(inputs, items)
            vlm.model(**inputs)
            seen = watch.read()

    Logits are those of the unwatched model, bit for bit, and on leaving the model has its own attention implementation again,
    also after an exception.

    Args:
        vlm: The model.
        plan: What to look at.

    Raises:
        AttentionError: The model's attention can't be read; the message names the part and says what to do.
        ValueError: A layer is not among the model's.
    """

    def __init__(self, vlm: VLM, plan: AttentionPlan | None = None) -> None:
        self.plan = plan or AttentionPlan()
        self._vlm = vlm
        self.layers = checked_layers(self.plan.layers, vlm.n_layers)
        self.not_applicable = tuple(layer for layer in self.layers if is_linear(vlm, layer))
        """Layers whose attention has no softmax rows."""
        if len(self.not_applicable) == len(self.layers):
            raise AttentionError(f"none of the layers {list(self.layers)} has softmax attention; watch other layers.")
        self.vision_layers = _vision_layers(vlm) if self.plan.vision else ()
        read = [layer for layer in self.layers if layer not in self.not_applicable]
        modules = {layer: vlm.attention_of(layer)[1] for layer in read}
        towers = {layer: vlm.vision_attention_of(layer) for layer in self.vision_layers}
        listeners = {module: self._hear(layer) for layer, module in modules.items()}
        listeners |= {module: self._hear_vision(layer) for layer, module in towers.items()}
        self._listening = Listening(listeners, vlm.device.type)
        groups = {"attention": modules, "vision_attention": towers}
        self._heads = {site: _most_heads(list(found.values()), vlm.n_heads) for site, found in groups.items()}
        self._spread = SpreadWatch(vlm) if self.plan.spread else None
        self._stack = ExitStack()
        self._pass: _Pass | None = None

    def __enter__(self) -> "AttentionWatch":
        with ExitStack() as stack:  # if attaching fails half-way, what is attached comes off
            stack.callback(self._listening.stop)
            self._listening.start()
            for module, hook in self._spread.hooks() if self._spread is not None else ():
                stack.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._pass = None

    def follow(self, inputs: Mapping[str, Tensor], items: Sequence[Item]) -> None:
        """Say what the next forward pass will be given: a prepared batch and its items."""
        vlm = self._vlm
        roles = with_prompt_roles(self.plan.queries, vlm.token_roles(inputs, items), inputs, items, vlm)
        layout = vlm.layout(inputs, items)
        device, empty = roles["answer"].device, torch.zeros_like(roles["answer"])
        tokens = ImageTokens.of(layout, items, device)
        rows, columns = roles["image"].nonzero(as_tuple=True)
        self_attention = DecoderPass(
            # Where pictures enter by cross-attention, the sequence holds no image token.
            tokens=tokens if len(rows) == len(tokens.item) else tokens.none(),
            rows=rows,
            columns=columns,
            member=torch.stack([roles.get(query, empty) for query in self.plan.queries], dim=1).float(),
            bos=roles["bos"].int().argmax(dim=1),
            text=roles["text"].float(),
        )
        within = torch.arange(len(tokens.item), device=device)
        first = torch.searchsorted(tokens.item, torch.arange(len(items), device=device))
        cross = replace(self_attention, tokens=tokens, rows=tokens.item, columns=within - first[tokens.item], cross=True)
        vision = {n: VisionPass.of(layout, items, tokens, VISION_QUERIES) for n in self.vision_layers}
        resting = vlm.family.optional_layers
        self._pass = _Pass(
            layout=layout,
            tokens=tokens,
            decoder={device: self_attention},
            cross={device: replace(cross, plans=MaskPlans())},
            vision=vision,
            may_rest=() if resting is None else tuple(resting(vlm, inputs)),
        )
        if self._spread is not None:
            self._spread.follow(roles["image"], self_attention.bos, layout)

    def read(self) -> dict[str, np.ndarray]:
        """What the last forward pass held, by the names under which a run keeps it; see :mod:`deixis.activations.attention`.

        Raises:
            AttentionError: A watched layer's attention was never called through transformers' interface.
        """
        now = self._current()
        self._check_all_heard(now)
        has_pictures = len(now.tokens.item) > 0
        for layer, seen in now.vision.items():
            if has_pictures:
                now.kept["vision_attention", layer] = seen.seen()
        found = dict(image_tokens(now.layout, now.tokens))
        found |= self._joined(now, "attention", self.layers, len(self.plan.queries))
        if self.vision_layers:
            found |= self._joined(now, "vision_attention", self.vision_layers, len(VISION_QUERIES))
        if self._spread is not None:
            found |= self._spread.read(len(now.tokens.item))
        self._pass = None
        return {name: value.cpu().numpy() for name, value in found.items()}

    def settings(self) -> dict[str, Any]:
        """What a run's header says of it."""
        sites = {"attention": {"layers": list(self.layers), "queries": list(self.plan.queries)}}
        if self.vision_layers:
            sites["vision_attention"] = {"layers": list(self.vision_layers), "queries": list(VISION_QUERIES)}
        rest = {"not_applicable": list(self.not_applicable), "maps": self.plan.maps, "spread": self.plan.spread}
        return {"sites": sites, **rest, "statistics": list(STATISTICS)}

    def _joined(self, now: _Pass, site: str, layers: Sequence[int], n_queries: int) -> dict[str, Tensor]:
        """All layers of a site; NaN at layers that have no rows or did not run."""
        n_heads = self._heads[site]
        n_items, n_tokens = len(now.layout.images_per_item), len(now.tokens.item)
        no_values = torch.full((n_items, n_heads, n_queries, len(STATISTICS)), torch.nan)
        no_map = torch.full((n_tokens, n_heads, n_queries), torch.nan)
        kept = [now.kept.get((site, layer)) for layer in layers]
        values = padded([no_values if found is None else found[0].cpu() for found in kept], 1, n_heads)
        joined: dict[str, Tensor] = {f"{site}/values": torch.stack(values, dim=1)}
        if self.plan.maps:
            maps = [no_map if found is None or len(found[1]) != n_tokens else found[1].cpu() for found in kept]
            joined[f"{site}/maps"] = torch.stack(padded(maps, 1, n_heads), dim=1).half()
        return joined

    def _current(self) -> _Pass:
        if self._pass is None:
            raise AttentionError("the model ran without follow() before it; call follow, one forward pass, then read.")
        return self._pass

    def _hear(self, layer: int) -> Callable[[AttentionCall], None]:
        name = self._vlm.attention_of(layer)[0]

        def hear(call: AttentionCall) -> None:
            now = self._current()
            if ("attention", layer) in now.kept:
                raise AttentionError(f"attention {layer} ran twice after follow(); call follow, one forward pass, then read.")
            known = now.cross if "cross" in name else now.decoder
            now.kept["attention", layer] = moved(known, call.query.device).seen(call)

        return hear

    def _hear_vision(self, layer: int) -> Callable[[AttentionCall], None]:
        def hear(call: AttentionCall) -> None:
            self._current().vision[layer].add(call)

        return hear

    def _check_all_heard(self, now: _Pass) -> None:
        rest = {*self.not_applicable, *now.may_rest}
        silent = [layer for layer in self.layers if layer not in rest and ("attention", layer) not in now.kept]
        if silent:
            kind = type(self._vlm.attention_of(silent[0])[1]).__name__
            raise AttentionError(
                f"the attention of decoder layer {', '.join(map(str, silent))} ({kind}) was never called through transformers' "
                "AttentionInterface, so it runs a kernel of its own; watch other layers (AttentionPlan(layers=...)), load the "
                "model with attn_implementation='sdpa', or record with attention=False."
            )


def checked_layers(layers: Sequence[int] | str, n: int) -> tuple[int, ...]:
    """Decoder blocks by number.

    Raises:
        ValueError: One of them is not among the model's ``n``.
    """
    if isinstance(layers, str):
        if layers != "all":
            raise ValueError(f"layers={layers!r} is neither 'all' nor a list of numbers from 0 to {n - 1}.")
        return tuple(range(n))
    wrong = [layer for layer in layers if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < n]
    if wrong or not layers:
        what = f"holds {wrong[0]!r}" if wrong else "is empty"
        raise ValueError(f"layers {what}; attention has the layers 0 to {n - 1} in this model, or say 'all'.")
    return tuple(sorted(set(layers)))


def is_linear(vlm: VLM, layer: int) -> bool:
    """Whether a layer's attention is linear: a recurrence without a softmax over keys."""
    return "linear" in vlm.attention_of(layer)[0]


def _vision_layers(vlm: VLM) -> tuple[int, ...]:
    if vlm.family.vision_blocks is None or vlm.family.vision_attention is None:
        raise AttentionError(f"{vlm.family.architecture} has no vision tower with attention; use AttentionPlan(vision=False).")
    return tuple(range(len(vlm.vision_block_modules)))


def _most_heads(modules: Sequence[nn.Module], default: int) -> int:
    """By the configs; heads that were pruned are filled up with NaN."""
    return max((getattr(getattr(module, "config", None), "num_attention_heads", default) for module in modules), default=default)
