"""The slow checks: every site at every layer, every token of odd pictures, answers behind prompts of all kinds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deixis.benchmarks import Item
from deixis.models.checking.at_load import misplaced, unmoved
from deixis.models.checking.comparing import CannotCheck, close, tolerance
from deixis.models.checking.evidence import Evidence, Point, generated
from deixis.models.checking.items import NoiseImage, check_item, enough_pixels, inner_third
from deixis.models.layout import Layout
from deixis.models.passes import PromptPass
from deixis.models.sites import received

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

_T = TypeVar("_T")
_ROWS = 14
"""Edits in one pass."""
_TOKENS = 128
"""Image tokens of one picture whose pixels are changed, evenly spread where it has more."""
_SHAPES = ((61, 97), (200, 64), (64, 64))
"""Width and height of the pictures whose map is checked, before they grow until tokens can be told apart."""
_ANSWER = 6
"""Tokens of an answer that are compared."""


def _everywhere(evidence: Evidence) -> str | None:
    """Every site at every layer moves the logits, and itself does not."""
    everywhere = Evidence(evidence.vlm, everywhere=True)
    unused = _unused(evidence.vlm)
    if unused:
        listed = ", ".join(str(layer) for _, layer in sorted(unused))
        evidence.left_out.append(f"vision {listed}: the config takes the features of a block before, nothing goes on from there")
    points = [point for point in everywhere.points if point not in unused]
    for part in _parts(points):
        problem = unmoved(evidence.vlm, everywhere.edit(part))
        if problem is not None:
            return problem
    return None


def _unused(vlm: "VLM") -> set[Point]:
    """Vision blocks behind the one whose features the config takes: they run, and nothing of theirs goes on."""
    if vlm.family.vision_blocks is None:
        return set()
    n, taken = len(vlm.vision_block_modules), getattr(vlm.model.config, "vision_feature_layer", None)
    if taken is None:
        return set()
    layers = [taken] if isinstance(taken, int) else list(taken)
    last = max(n + 1 + layer if layer < 0 else layer for layer in layers)  # hidden state k is what block k - 1 returns
    return {("vision", layer) for layer in range(last, n)}


def _parts(of: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(of), _ROWS):
        yield of[start : start + _ROWS]


class _Complete(Exception):  # noqa: N818 - no error: enough has been seen
    """The tower's first block has received every row."""


def patches_of(vlm: "VLM", items: Sequence[Item]) -> tuple[Float[Tensor, "row width"], Layout]:
    """What the vision tower's first block receives; the forward pass is stopped there."""
    inputs = vlm.prepare(items)
    layout = vlm.layout(inputs, items)
    wanted, parts = len(layout.token_of_row("vision")), []

    def keep(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        hidden = received(args, kwargs, "the first vision block")[1]
        parts.append(hidden.detach().reshape(-1, hidden.shape[-1]).cpu())
        if sum(map(len, parts)) >= wanted:
            raise _Complete

    handle = vlm.vision_block_modules[0].register_forward_pre_hook(keep, with_kwargs=True)
    try:
        vlm.reset()
        with torch.no_grad():
            vlm.model(**inputs, use_cache=False)
    except _Complete:
        pass
    finally:
        handle.remove()
        vlm.reset()
    return torch.cat(parts), layout


def _map(evidence: Evidence) -> str | None:
    """Token by token, in pictures of odd shapes, large enough for tiles where the family cuts any."""
    vlm = evidence.vlm
    if vlm.family.vision_blocks is None:
        raise CannotCheck("the record names no vision blocks, so that only the map's first token was checked.")
    for width, height in _SHAPES:
        for problem in _map_of(vlm, NoiseImage(0, *enough_pixels(vlm, width, height))):
            return f"a picture of {width} x {height}: {problem}"
    return None


def _map_of(vlm: "VLM", picture: NoiseImage) -> Iterator[str]:
    item = check_item("map", "Hi", picture)
    boxes = vlm.layout(vlm.prepare([item]), [item]).boxes
    shown = boxes.isfinite().all(dim=1).nonzero()[:, 0].tolist()
    step = max(1, -(-len(shown) // _TOKENS))
    for part in _parts(shown[::step]):
        regions = [inner_third((left, top, right, bottom)) for left, top, right, bottom in boxes[list(part)].tolist()]
        items = [item, *(check_item("map", "Hi", replace(picture, inverted=region)) for region in regions)]
        rows, layout = patches_of(vlm, items)
        near = tolerance(vlm) * float(rows.float().std())
        for number, region in enumerate(regions, start=1):
            problem = misplaced(rows, layout.token_of_row("vision"), layout, (0, number), region, near)
            if problem is not None:
                yield problem


def _answers(evidence: Evidence) -> str | None:
    """Prompts without, with one and with two pictures, of several lengths, in one batch: each as ``generate`` alone goes on."""
    vlm = evidence.vlm
    one, wide = NoiseImage(0, *evidence.size), NoiseImage(1, 2 * evidence.size[0], evidence.size[1])
    items = [
        check_item("none", "Hi"),
        check_item("one", "Hi there", one),
        check_item("two", "Hi", one, wide),
        check_item("long", "Hi there, what is in this picture, and where is it? " * 3, wide),
    ]
    if vlm.family.needs_picture:
        items = items[1:]
    if not vlm.family.mixes_counts:
        items = [item for item in items if len(item.images) == 1]
    alone = [generated(vlm, item, _ANSWER) for item in items]
    with torch.no_grad():
        state = PromptPass.run(vlm, vlm.prepare(items))
        steps = [state.logits.cpu().double()]
        for step in range(_ANSWER - 1):
            tokens = torch.stack([tokens[step] for tokens, _ in alone])[:, None]
            steps.append(state.extended(tokens.to(state.mask.device))[:, -1].cpu().double())
    for row, (item, (_, logits)) in enumerate(zip(items, alone, strict=True)):
        for step, expected in enumerate(logits):
            if not close(vlm, expected, steps[step][row]):
                return f"token {step} behind an item with {len(item.images)} pictures ({item.id!r}) has other logits in a batch."
    return None


IN_FULL: dict[str, tuple[str, Callable[[Evidence], str | None]]] = {
    "every site": ("at every layer, replacing a site moves the logits, replacing it by itself does not", _everywhere),
    "every token": ("in pictures of odd shapes, pixels inside a token's box change that token alone", _map),
    "answers": ("prompts with no, one and two pictures go on in a batch as generate does alone", _answers),
}
"""The slow checks, in order: what holds when it passes, and the check."""
