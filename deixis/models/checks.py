"""Checks of a family's record by effect: what the paths lead to must be what the record says it is."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor, nn

from deixis.benchmarks import Item
from deixis.benchmarks.images import ImageHandle

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3, torch.bfloat16: 6e-2, torch.float16: 2e-2}
"""Largest difference of logits that counts as equal, as a share of their spread, by the model's dtype."""


@dataclass(frozen=True)
class _Noise(ImageHandle):
    """A small picture of noise."""

    seed: int

    @property
    def size(self) -> tuple[int, int]:
        return 64, 64

    def load(self) -> Image.Image:
        pixels = np.random.default_rng(self.seed).integers(0, 256, (*self.size, 3), dtype=np.uint8)
        return Image.fromarray(pixels)


def _item(name: str, prompt: str, seed: int) -> Item:
    return Item(
        id=f"check/{name}", benchmark="check", task="check", language="en", images=(_Noise(seed),), prompt=prompt, options=()
    )


def block_input(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The hidden states among what a decoder block or norm is called with.

    Raises:
        TypeError: There are none.
    """
    hidden = args[0] if args else kwargs.get("hidden_states")
    if not isinstance(hidden, Tensor):
        raise TypeError("a decoder block got no hidden states; its record names another module.")
    return hidden


def check_vlm(vlm: "VLM") -> str | None:
    """The first thing that is wrong with a family's record for this model, or None.

    Five forward passes of short prompts, one of them a batch with a row per layer.
    """
    for name in ("blocks", "final_norm", "head", "embeddings", "vision_blocks", "merger"):
        path = getattr(vlm.family, name)
        try:
            vlm.model.get_submodule(path)
        except AttributeError as error:
            return f"{name} = {path!r} leads nowhere ({error})."
    short, long = _item("short", "Hi", 0), _item("long", "Hi there, what is in this picture?", 0)
    other = _item("other picture", "Hi", 1)
    try:
        alone, seen = _watched(vlm, [short])
        problem = _wrong_head(vlm, alone, seen) or _wrong_blocks(vlm, [short], seen)
        if problem:
            return problem
        return _wrong_batch(vlm, short, long, alone) or _blind(vlm, other, alone) or _wrong_edits(vlm, short, seen)
    finally:
        vlm.reset()


def _logits(vlm: "VLM", items: Sequence[Item]) -> Float[Tensor, "batch vocabulary"]:
    vlm.reset()
    with torch.inference_mode():
        return vlm.model(**vlm.prepare(items), use_cache=False, logits_to_keep=1).logits[:, -1].cpu().double()


def _points(vlm: "VLM") -> list[nn.Module]:
    return [*vlm.blocks, vlm.final_norm]


def _watched(vlm: "VLM", items: Sequence[Item]) -> tuple[Tensor, dict[int, list[Tensor]]]:
    """Logits, and what each block and the final norm received, call by call."""
    seen: dict[int, list[Tensor]] = {}

    def keep(layer: int) -> Callable[..., None]:
        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            seen.setdefault(layer, []).append(block_input(args, kwargs).detach())

        return hook

    with ExitStack() as stack:
        for layer, module in enumerate(_points(vlm)):
            stack.callback(module.register_forward_pre_hook(keep(layer), with_kwargs=True).remove)
        return _logits(vlm, items), seen


def _close(vlm: "VLM", one: Tensor, two: Tensor) -> bool:
    spread = max(float(one.std()), 1e-6)
    return bool((one - two).abs().max() <= TOLERANCE.get(vlm.model.dtype, 6e-2) * spread)


def _wrong_blocks(vlm: "VLM", items: Sequence[Item], seen: dict[int, list[Tensor]]) -> str | None:
    """Check 4: the list holds every block once, in the order in which they run, from the embeddings on."""
    if len(set(vlm.blocks)) != vlm.n_layers or vlm.n_layers != vlm.text_config.num_hidden_layers:
        wanted = vlm.text_config.num_hidden_layers
        return f"blocks = {vlm.family.blocks!r} holds {len(set(vlm.blocks))} different blocks, the config names {wanted}."
    if list(seen) != sorted(seen):
        return f"the blocks ran in the order {list(seen)}."
    for layer in range(vlm.n_layers + 1):
        calls = seen.get(layer, [])
        if len(calls) != 1 or calls[0].ndim != 3 or calls[0].shape[-1] != vlm.d_model:
            shapes = [tuple(call.shape) for call in calls]
            return f"resid {layer} ran {len(calls)} times with {shapes}, not once with (batch, position, {vlm.d_model})."
    last = vlm.prepare(items)["input_ids"][:, -1]
    with torch.inference_mode():
        embedded = vlm.model.get_submodule(vlm.family.embeddings)(last)
    if not torch.equal(embedded.to(seen[0][0].device), seen[0][0][:, -1]):
        return "resid 0 at a text token is not what the embeddings give."
    return None


def _wrong_head(vlm: "VLM", logits: Tensor, seen: dict[int, list[Tensor]]) -> str | None:
    """Check 1: norm and head on ``resid[L]`` give the model's logits."""
    if vlm.n_layers not in seen:
        return f"final_norm = {vlm.family.final_norm!r} never ran."
    found = vlm.logits(seen[vlm.n_layers][-1][:, -1]).cpu().double()
    if found.shape != logits.shape or not _close(vlm, logits, found):
        return f"{vlm.family.final_norm} and {vlm.family.head} on resid {vlm.n_layers} do not give the model's logits."
    return None


def _wrong_batch(vlm: "VLM", short: Item, long: Item, alone: Tensor) -> str | None:
    """Check 3: two items of different lengths in one batch equal the two alone."""
    both = _logits(vlm, [short, long])
    if not _close(vlm, alone[0], both[0]) or not _close(vlm, _logits(vlm, [long])[0], both[1]):
        return "items of different lengths give other logits in one left-padded batch than alone."
    return None


def _blind(vlm: "VLM", other: Item, alone: Tensor) -> str | None:
    """Another picture must give other logits, or nothing below means anything."""
    if torch.equal(alone, _logits(vlm, [other])):
        return "another picture does not move the logits."
    return None


def _wrong_edits(vlm: "VLM", item: Item, seen: dict[int, list[Tensor]]) -> str | None:
    """Check 2: replacing ``resid[i]`` moves the logits, replacing it by itself does not; a row of one batch for each layer."""
    points = _points(vlm)
    generator = torch.Generator().manual_seed(0)

    def edit(row: int) -> Callable[..., Any]:
        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            hidden = block_input(args, kwargs).clone()
            noise = torch.randn(hidden.shape[-1], generator=generator).to(hidden)
            hidden[row, -1] = noise * hidden[row, -1].float().norm().to(hidden) / noise.norm()
            return ((hidden, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": hidden})

        return hook

    with ExitStack() as stack:
        for layer, module in enumerate(points):
            stack.callback(module.register_forward_pre_hook(edit(layer), with_kwargs=True).remove)
        edited = _logits(vlm, [item] * (len(points) + 1))
    for layer in range(len(points)):
        if _close(vlm, edited[-1], edited[layer]):
            return f"replacing resid {layer} at the last position does not move the logits."
    clean = vlm.logits(seen[vlm.n_layers][-1][:, -1])[0].cpu().double()
    if not _close(vlm, edited[-1], clean):
        return "replacing resid by itself moves the logits."
    return None
