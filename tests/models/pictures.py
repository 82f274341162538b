"""Pictures made of arrays, and what a model's towers hold when they are shown: for tests of layouts."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from deixis.benchmarks import Item
from deixis.benchmarks.images import ImageHandle
from deixis.models import VLM
from tests.toys import toy_item


@dataclass(frozen=True, eq=False)
class ArrayImage(ImageHandle):
    """A picture in memory."""

    pixels: np.ndarray

    @property
    def size(self) -> tuple[int, int]:
        return self.pixels.shape[1], self.pixels.shape[0]

    def load(self) -> Image.Image:
        return Image.fromarray(self.pixels)


def noise(width: int, height: int, seed: int = 0) -> ArrayImage:
    return ArrayImage(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def inverted(image: ArrayImage, left: float, top: float, right: float, bottom: float) -> ArrayImage:
    """The picture with a rectangle of it inverted."""
    pixels = image.pixels.copy()
    part = np.s_[round(top) : round(bottom), round(left) : round(right)]
    pixels[part] = 255 - pixels[part]
    return ArrayImage(pixels)


def shown(images: Sequence[ImageHandle], prompt: str = "what is this", **changes: Any) -> Item:
    return toy_item(0, images=tuple(images), prompt=prompt, objects=(), **changes)


class _DoneError(Exception):
    """All that is wanted has passed by."""


@contextmanager
def _hooked(vlm: VLM, kept: dict[str, list[Tensor]]) -> Iterator[None]:
    """Vision blocks that return what they receive, and hooks that keep what passes by; the first decoder block ends the pass."""

    def keep(name: str, tensor: Tensor) -> None:
        if tensor.is_floating_point():  # Ovis2 looks its indicators up in the table that is also its merger
            kept.setdefault(name, []).append(tensor.detach().flatten(0, -2))

    def done(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        kept["resid"] = [_hidden(args, kwargs)]
        raise _DoneError

    def merged(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        entered = _hidden(args, kwargs)
        keep("merger_in", entered)
        if entered.is_floating_point():
            keep("merger_out", output if isinstance(output, Tensor) else output[0])

    with ExitStack() as stack:
        towers = vlm.vision_block_modules if vlm.family.vision_blocks is not None else ()
        for block in towers:
            # Before the hooks with which transformers keeps hidden states.
            hook = block.register_forward_hook(_returns_its_input, with_kwargs=True, prepend=True)
            stack.callback(hook.remove)
        for first in towers[:1]:
            seen = first.register_forward_pre_hook(lambda _m, a, kw: keep("vision", _hidden(a, kw)), with_kwargs=True)
            stack.callback(seen.remove)
        stack.callback(vlm.merger_module.register_forward_hook(merged, with_kwargs=True).remove)
        stack.callback(vlm.blocks[0].register_forward_pre_hook(done, with_kwargs=True).remove)
        yield


def _hidden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    return args[0] if args else next(v for k, v in kwargs.items() if k in ("hidden_states", "inputs_embeds"))


def _returns_its_input(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
    hidden = _hidden(args, kwargs)
    return (hidden, *output[1:]) if isinstance(output, tuple) else hidden


def passed_by(vlm: VLM, items: Sequence[Item]) -> dict[str, Tensor]:
    """Rows of the vision sites, and ``resid`` of the image tokens at layer 0, with vision blocks that mix nothing.

    Without attention in the tower, a row holds its own patches only, so that what a change of pixels reaches can be told.
    """
    inputs = vlm.prepare(items)
    kept: dict[str, list[Tensor]] = {}
    vlm.reset()
    with torch.no_grad(), _hooked(vlm, kept), suppress(_DoneError):
        vlm.model(**inputs)
    vlm.reset()
    rows = {site: torch.cat(parts) for site, parts in kept.items() if site != "resid"}
    if vlm.family.image_tokens == "sequence":
        rows["resid"] = kept["resid"][0][inputs["input_ids"] == vlm.image_token_id]
    return rows


def reading_colours(vlm: VLM) -> VLM:
    """The model with a vision tower whose first block receives the mean colour of every patch, and nothing else.

    The first three features of the patch embedding are the means of red, green and blue; positions, class tokens and gates are
    zero, norms plain. The model is changed for good.
    """
    paths = vlm.family.vision_blocks
    tower = vlm.model.get_submodule(".".join((paths if isinstance(paths, str) else paths[0]).split(".")[:2]))
    with torch.no_grad():
        for name, weight in tower.named_parameters():
            weight.fill_(1.0 if ("norm" in name or "ln_pre" in name) and name.endswith("weight") else 0.0)
        weight = next(m for m in tower.modules() if isinstance(m, nn.Conv2d | nn.Conv3d | nn.Linear)).weight
        for colour in range(3):
            if weight.ndim > 2:
                weight[colour, colour] = 1 / weight[0, 0].numel()
            else:  # patches flattened with colours last
                weight[colour, colour::3] = 3 / weight.shape[1]
    return vlm


def shades(width: int, height: int) -> ArrayImage:
    """Red grows from left to right, green from top to bottom, blue is full."""
    pixels = np.full((height, width, 3), 255, np.uint8)
    pixels[..., 0] = np.round((np.arange(width) + 0.5) * 255 / width)
    pixels[..., 1] = np.round((np.arange(height) + 0.5) * 255 / height)[:, None]
    return ArrayImage(pixels)


def places_seen(vlm: VLM, rows: Tensor, size: tuple[int, int]) -> np.ndarray:
    """Where in a picture of shades each row of a tower that reads colours looks: ratios to blue survive any norm."""
    processor = vlm.processor.image_processor
    mean, std = np.array(processor.image_mean), np.array(processor.image_std)
    if not processor.do_normalize:  # Gemma 4 does it in the patch embedding
        mean, std = np.full(3, 0.5), np.full(3, 0.5)
    values = rows.double().numpy()
    values = values - values[:, 3:4]  # what a feature that is zero has become
    return (values[:, :2] / values[:, 2:3] * (1 - mean[2]) / std[2] * std[:2] + mean[:2]) * size
