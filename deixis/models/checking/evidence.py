"""The forward passes that the checks of a record share: six calls of the model, each made when a check first needs it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from deixis.benchmarks import Item
from deixis.models.checking.items import NoiseImage, Rectangle, check_item, enough_pixels, inner_third
from deixis.models.layout import Layout
from deixis.models.passes import PromptPass
from deixis.models.sites import SITES, received, returned

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

Point = tuple[str, int]
"""A site and a layer."""
SHORT, LONG, OTHER, CHANGED = range(4)
"""Rows of the shared batch: a short prompt, a longer one, the short one with another picture, and with one patch changed."""
_RESID_LAYERS = 8


@dataclass
class BatchPass:
    """One pass over the four items, left-padded, and what its parts held."""

    inputs: Mapping[str, Tensor]
    layout: Layout
    image: Tensor
    """Positions of image tokens."""
    state: PromptPass
    logits: Float[Tensor, "batch vocabulary"]
    seen: dict[Point, list[Tensor]] = field(default_factory=dict)
    """By site and layer, call by call, on the device where it was; ``block`` is what decoder blocks return, ``patches`` what the
    vision tower's first block receives."""

    def only(self, point: Point) -> Tensor:
        """What a point held, which must have run once.

        Raises:
            ValueError: It ran several times or never.
        """
        calls = self.seen.get(point, [])
        if len(calls) != 1:
            raise ValueError(f"{point[0]} {point[1]} ran {len(calls)} times in one pass, not once.")
        return calls[0]

    def rows(self, point: Point) -> Float[Tensor, "row width"]:
        """The rows of a point in the vision tower, calls joined."""
        return torch.cat([call.reshape(-1, call.shape[-1]) for call in self.seen[point]])


class Evidence:
    """What a model does with the items of the checks. Nothing is run before it is asked for."""

    def __init__(self, vlm: "VLM", everywhere: bool = False) -> None:
        self.vlm = vlm
        self._everywhere = everywhere
        self.left_out: list[str] = []
        """What the check that runs now could not look at, each with its reason."""

    @cached_property
    def region(self) -> tuple[int, Rectangle]:
        """An image token, and pixels that lie well inside its box; the corner on the upper right, which no flip or turn keeps."""
        item = check_item("region", "Hi", NoiseImage(0, *self.size))
        boxes = self.vlm.layout(self.vlm.prepare([item]), [item]).boxes
        corner = (boxes[:, 2] - boxes[:, 1]).nan_to_num(-torch.inf)
        token = int(corner.argmax())
        left, top, right, bottom = boxes[token].tolist()
        return token, inner_third((left, top, right, bottom))

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height of the pictures."""
        return enough_pixels(self.vlm)

    @cached_property
    def items(self) -> tuple[Item, Item, Item, Item]:
        """The items of the batch, in the order of :data:`SHORT` and so on."""
        picture = NoiseImage(0, *self.size)
        changed = NoiseImage(0, *self.size, inverted=self.region[1])
        return (
            check_item("short", "Hi", picture),
            check_item("long", "Hi there, what is in this picture?", picture),
            check_item("other", "Hi", NoiseImage(1, *self.size)),
            check_item("changed", "Hi", changed),
        )

    @cached_property
    def batch(self) -> BatchPass:
        """Call 1: all four items, watched."""
        vlm, items = self.vlm, list(self.items)
        inputs = vlm.prepare(items)
        roles, layout = vlm.token_roles(inputs, items), vlm.layout(inputs, items)
        seen: dict[Point, list[Tensor]] = {}
        with _noted(vlm, self.points, seen), torch.no_grad():
            state = PromptPass.run(vlm, inputs)
        return BatchPass(inputs, layout, roles["image"], state, state.logits.cpu().double(), seen)

    @cached_property
    def points(self) -> list[Point]:
        """Where the batch is watched and edited: ``resid`` everywhere, the other sites once, or everywhere too."""
        vlm = self.vlm
        if self._everywhere:
            return [(site, layer) for site in SITES for layer in self.layers_of(site)]
        middle = vlm.n_layers // 2
        points = [("resid", layer) for layer in range(vlm.n_layers + 1)]
        for site in SITES:
            if site != "resid" and (layers := self.layers_of(site)):
                points.append((site, min(layers, key=lambda layer: abs(layer - middle)) if not SITES[site].vision else 0))
        return points

    def layers_of(self, site: str) -> list[int]:
        """The layers of a site, none where the family lacks it by its own record."""
        missing = {"vision": "vision_blocks", "merger_in": "merger", "merger_out": "merger"}.get(site)
        if missing is not None and getattr(self.vlm.family, missing) is None:
            return []
        if site == "head" and all(self.vlm.out_proj_of(layer) is None for layer in range(self.vlm.n_layers)):
            return []
        return SITES[site].layers(self.vlm)

    @cached_property
    def generated(self) -> tuple[Int[Tensor, " token"], list[Float[Tensor, " vocabulary"]]]:
        """Calls 2 and 3: two tokens that ``generate`` writes behind the short item alone, and the logits of each."""
        return generated(self.vlm, self.items[SHORT], 2)

    @cached_property
    def continued(self) -> Float[Tensor, "batch vocabulary"]:
        """Call 4: the logits behind each prompt of the batch and the first token that ``generate`` chose."""
        _ = self.batch, self.generated
        # The model may remember positions of whatever it ran last; a pass that goes on must not depend on it.
        tokens = self.generated[0][:1].to(self.batch.state.mask.device).expand(len(self.items), 1)
        with torch.no_grad():
            return self.batch.state.extended(tokens)[:, -1].cpu().double()

    @cached_property
    def alone(self) -> Float[Tensor, " vocabulary"]:
        """Call 5: the long item by itself."""
        return self.logits([self.items[LONG]])[0]

    @cached_property
    def edited(self) -> "EditPass":
        """Call 6: the short item once for each edited point: ``resid`` at up to eight layers, every other site once."""
        return self.edit([*_spread([p for p in self.points if p[0] == "resid"], _RESID_LAYERS), *_others(self.points)])

    def edit(self, points: Sequence[Point]) -> "EditPass":
        """One pass over copies of the short item, each edited at one point; one more is left alone, one replaced by itself."""
        n = len(points) + 2
        items = [self.items[SHORT]] * n
        inputs = self.vlm.prepare(items)
        layout = self.vlm.layout(inputs, items)
        with ExitStack() as stack:
            for row, point in enumerate(points):
                edit = _Edit(self.batch, point, row, n - 2, layout)
                stack.callback(SITES[point[0]].attach(self.vlm, point[1], edit).remove)
            logits = self._logits_of(inputs)
        return EditPass(edited=dict(zip(points, logits[:-2], strict=True)), itself=logits[-2], clean=logits[-1])

    def logits(self, items: Sequence[Item]) -> Float[Tensor, "batch vocabulary"]:
        """The last logits of a bare pass."""
        return self._logits_of(self.vlm.prepare(items))

    def _logits_of(self, inputs: Mapping[str, Tensor]) -> Float[Tensor, "batch vocabulary"]:
        self.vlm.reset()
        with torch.no_grad():
            return self.vlm.model(**inputs, use_cache=False, logits_to_keep=1).logits[:, -1].cpu().double()


def generated(vlm: "VLM", item: Item, n: int) -> tuple[Int[Tensor, " token"], list[Float[Tensor, " vocabulary"]]]:
    """The ``n`` tokens that ``generate`` writes behind an item alone, and the logits of each."""
    vlm.reset()
    with torch.no_grad():
        out = vlm.model.generate(
            **vlm.prepare([item]),
            do_sample=False,
            max_new_tokens=n,
            min_new_tokens=n,
            output_logits=True,
            return_dict_in_generate=True,
        )
    return out.sequences[0, -n:].cpu(), [step[0].cpu().double() for step in out.logits]


@dataclass(frozen=True)
class EditPass:
    """Logits of one item, edited at each of several points."""

    edited: Mapping[Point, Float[Tensor, " vocabulary"]]
    itself: Float[Tensor, " vocabulary"]
    """Every point replaced by what was recorded of it in another batch."""
    clean: Float[Tensor, " vocabulary"]


class _Edit:
    """Replaces what one row of the batch holds at a point by noise, and what another holds by what was recorded there."""

    def __init__(self, recorded: BatchPass, point: Point, row: int, itself: int, layout: Layout) -> None:
        self._point, self._row, self._itself, self._layout = point, row, itself, layout
        self._recorded = recorded
        self._generator = torch.Generator().manual_seed(point[1])
        self._passed = 0

    def __call__(self, tensor: Tensor) -> Tensor:
        """The tensor with both rows changed."""
        return self._in_tower(tensor) if SITES[self._point[0]].vision else self._in_sequence(tensor)

    def _in_sequence(self, tensor: Float[Tensor, "batch position width"]) -> Float[Tensor, "batch position width"]:
        site, layer = self._point
        recorded, changed = self._recorded, tensor.clone()
        size = float(recorded.only(("resid", layer))[SHORT, -1].float().norm())
        # What a block adds is small beside what it is added to: noise of its own size could drown.
        changed[self._row, -1] = self._noise(changed[self._row, -1], size if site == "resid" else 3 * size)
        real = int(recorded.inputs["attention_mask"][SHORT].sum())
        changed[self._itself, -real:] = recorded.only(self._point)[SHORT, -real:].to(changed)
        return changed

    def _in_tower(self, tensor: Tensor) -> Tensor:
        """Rows of the tower: all that feed the item's image tokens, also where the tower is called picture by picture."""
        flat = tensor.reshape(-1, tensor.shape[-1]).clone()
        owner = self._owners(self._layout).to(flat.device)
        before, part = owner[: self._passed], owner[self._passed : self._passed + len(flat)]
        mine, itself = part == self._row, part == self._itself
        flat[mine] = self._noise(flat[mine], float(flat[mine].float().norm()))
        own = self._recorded.rows(self._point)[self._owners(self._recorded.layout).to(flat.device) == SHORT]
        start = int((before == self._itself).sum())
        flat[itself] = own[start : start + int(itself.sum())].to(flat)
        self._passed += len(flat)
        return flat.reshape(tensor.shape)

    def _owners(self, layout: Layout) -> Int[Tensor, " row"]:
        """The item that each row feeds, -1 for none."""
        tokens = layout.token_of_row(self._point[0])
        return torch.where(tokens >= 0, layout.item[tokens.clamp(min=0)], -1)

    def _noise(self, like: Tensor, norm: float) -> Tensor:
        noise = torch.randn(like.shape, generator=self._generator)
        return (noise * (norm / max(float(noise.norm()), 1e-6))).to(like)


def _spread(points: list[Point], n: int) -> list[Point]:
    """At most ``n`` of them, evenly, the first and the last among them."""
    if len(points) <= n:
        return points
    return [points[round(at * (len(points) - 1) / (n - 1))] for at in range(n)]


def _others(points: Iterable[Point]) -> list[Point]:
    return [point for point in points if point[0] != "resid"]


@contextmanager
def _noted(vlm: "VLM", points: Iterable[Point], seen: dict[Point, list[Tensor]]) -> Iterator[None]:
    """Keep copies of what the points hold, of what decoder blocks return, and of what the tower's first block receives."""

    def keep(point: Point) -> Callable[[Tensor], None]:
        return lambda tensor: seen.setdefault(point, []).append(tensor.detach().clone())

    def block(layer: int) -> Callable[..., None]:
        return lambda _m, _a, output: keep(("block", layer))(returned(output, f"block {layer}", vision=False)[1])

    def patches(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        keep(("patches", 0))(received(args, kwargs, "the first vision block")[1])

    with ExitStack() as stack:
        for site, layer in points:
            stack.callback(SITES[site].attach(vlm, layer, keep((site, layer))).remove)
        for layer, module in enumerate(vlm.blocks):
            stack.callback(module.register_forward_hook(block(layer)).remove)
        if vlm.family.vision_blocks is not None:
            first = vlm.vision_block_modules[0]
            stack.callback(first.register_forward_pre_hook(patches, with_kwargs=True).remove)
        yield
