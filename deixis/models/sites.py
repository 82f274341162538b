"""Sites: the places in a model that can be watched and edited, and how a tensor is taken from there and put back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from deixis.models.vlm import VLM

Visit = Callable[[Tensor], Tensor | None]
"""Sees the tensor of a site; what it returns takes the tensor's place, None leaves it."""


Place = tuple[int, int, int]
"""Order of execution: part of the model (:data:`TOWER`, :data:`MERGER` or :data:`DECODER`), block, place within the block."""
TOWER, MERGER, DECODER = range(3)
ATTENTION_CALLED = 1
"""Place of the call of a decoder block's attention: behind ``resid``, before ``head``."""


class SiteError(RuntimeError):
    """A module takes or gives something in which a site's tensor cannot be told."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A place in every model that has it: a module of each layer, and the side of the module."""

    name: str
    meaning: str
    layers: Callable[[VLM], list[int]]
    """The layers that have it, in order.

    Raises:
        ValueError: The family has no such part.
    """
    module: Callable[[VLM, int], nn.Module]
    side: Literal["input", "output"]
    """Whether the site is what the module receives or what it returns."""
    part: int = DECODER
    """The part of the model that it lies in."""
    within: int
    """When a block reaches it, beside the other sites of its part and :data:`ATTENTION_CALLED`."""

    @property
    def vision(self) -> bool:
        """Whether it holds rows of the vision tower (``Layout.token_of_row``) rather than positions of the sequence."""
        return self.part != DECODER

    def place(self, layer: int) -> Place:
        """When a pass reaches it."""
        return self.part, layer, self.within

    def attach(self, vlm: VLM, layer: int, visit: Visit, *, last: bool = False) -> RemovableHandle:
        """Show every tensor that passes this site at ``layer`` to ``visit``; remove the handle to stop.

        Args:
            vlm: The model.
            layer: One that has the site.
            visit: What looks at the tensor, or replaces it.
            last: Behind hooks that are there already, to see what they put in; else before them, so that they see what
                ``visit`` puts in.
        """
        where, module = f"{self.name} {layer}", self.module(vlm, layer)

        def before(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if self.vision and _looks_up(args):
                return None
            key, tensor = received(args, kwargs, where)
            changed = visit(tensor)
            return None if changed is None else receiving(args, kwargs, key, changed)

        def after(_module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
            if self.vision and _looks_up(args):
                return None
            at, tensor = returned(output, where, self.vision)
            changed = visit(tensor)
            return None if changed is None else returning(output, at, changed)

        # First in line to write: transformers collects ``hidden_states`` by hooks of its own, and must collect what was put in.
        if self.side == "input":
            return module.register_forward_pre_hook(before, with_kwargs=True, prepend=not last)
        return module.register_forward_hook(after, prepend=not last)


def received(args: tuple[Any, ...], kwargs: Mapping[str, Any], where: str) -> tuple[int | str, Tensor]:
    """The hidden states among what a module is called with, and the place where they are.

    Raises:
        SiteError: There are none, or several tensors could be meant.
    """
    if args and isinstance(args[0], Tensor) and args[0].is_floating_point():
        return 0, args[0]
    if isinstance(kwargs.get("hidden_states"), Tensor):
        return "hidden_states", kwargs["hidden_states"]
    named = {name: v for name, v in kwargs.items() if isinstance(v, Tensor) and v.is_floating_point()}
    if args or len(named) != 1:
        given = ", ".join([*map(_kind, args), *(f"{name} {_kind(v)}" for name, v in kwargs.items())])
        raise SiteError(f"{where} is called with ({given}), where one tensor of hidden states is needed; correct the record.")
    return next(iter(named.items()))


def returned(output: Any, where: str, vision: bool) -> tuple[int | str | None, Tensor]:
    """The hidden states in what a module returns, and their place in a tuple or named output (None for a plain tensor).

    Never the first entry of whatever it is: the first entry of a tensor would be the batch's first row. Among several entries it
    is the one tensor of hidden states beside what cannot be such (None, attention weights with four axes, a router's two).

    Raises:
        SiteError: It is neither a tensor nor a collection with one candidate.
    """
    if isinstance(output, Tensor):
        return None, output
    if isinstance(output, Mapping):
        entries: dict[Any, Any] = dict(output)
    elif isinstance(output, (tuple, list)):
        entries = dict(enumerate(output))
    else:
        raise SiteError(f"{where} gives a {type(output).__name__}, not a tensor; correct the record.")
    axes = (2, 3) if vision else (3,)
    fitting = [at for at, v in entries.items() if isinstance(v, Tensor) and v.is_floating_point() and v.ndim in axes]
    if len(fitting) != 1:
        raise SiteError(
            f"{where} gives a {type(output).__name__} of ({', '.join(map(_kind, entries.values()))}), where one tensor of hidden "
            "states is needed; correct the record."
        )
    return fitting[0], entries[fitting[0]]


def receiving(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], key: int | str, changed: Tensor
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same call with another tensor at the place that :func:`received` found."""
    if isinstance(key, str):
        return args, {**kwargs, key: changed}
    return (changed, *args[1:]), dict(kwargs)


def returning(output: Any, at: int | str | None, changed: Tensor) -> Any:
    """The same output with another tensor at the place that :func:`returned` found."""
    if at is None:
        return changed
    if isinstance(output, Mapping):
        return type(output)(**{**output, str(at): changed})
    return type(output)(changed if number == at else value for number, value in enumerate(output))


def _looks_up(args: tuple[Any, ...]) -> bool:
    """Whether a module of the vision tower is asked for rows by number (Ovis2's marks around a picture), not shown a picture."""
    return bool(args) and isinstance(args[0], Tensor) and not args[0].is_floating_point()


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def _entered_by_resid(vlm: VLM, layer: int) -> nn.Module:
    return vlm.final_norm if layer == vlm.n_layers else vlm.blocks[layer]


def _decoder_layers(vlm: VLM) -> list[int]:
    return list(range(vlm.n_layers))


def _head_layers(vlm: VLM) -> list[int]:
    found = [layer for layer in range(vlm.n_layers) if vlm.out_proj_of(layer) is not None]
    if not found:
        raise ValueError(f"{vlm.family.architecture} has no head: no attention of it has {' or '.join(vlm.family.out_proj)}.")
    return found


def _out_proj(vlm: VLM, layer: int) -> nn.Module:
    module = vlm.out_proj_of(layer)
    if module is None:
        raise ValueError(f"head has no layer {layer} in {vlm.family.architecture}; it has: {_head_layers(vlm)}.")
    return module


def _only_layer(vlm: VLM) -> list[int]:
    _ = vlm.merger_module  # says so where there is none
    return [0]


def _merger(vlm: VLM, _layer: int) -> nn.Module:
    return vlm.merger_module


_ALL = (
    Site(
        name="resid",
        meaning="the residual stream that enters block i; at layer L the input of the final norm",
        layers=lambda vlm: list(range(vlm.n_layers + 1)),
        module=_entered_by_resid,
        side="input",
        within=0,
    ),
    Site(
        name="attn_out",
        meaning="what the block's attention returns, before a norm that may follow it",
        layers=_decoder_layers,
        module=lambda vlm, layer: vlm.attention_of(layer)[1],
        side="output",
        within=3,
    ),
    Site(
        name="mlp_out",
        meaning="what the block's MLP or mixture of experts returns, before a norm that may follow it",
        layers=_decoder_layers,
        module=lambda vlm, layer: vlm.mlp_of(layer),
        side="output",
        within=4,
    ),
    Site(
        name="head",
        meaning="the heads' outputs side by side, as the attention's output projection receives them",
        layers=_head_layers,
        module=_out_proj,
        side="input",
        within=2,
    ),
    Site(
        name="vision",
        meaning="what block i of the vision tower returns, patch by patch",
        layers=lambda vlm: list(range(len(vlm.vision_block_modules))),
        module=lambda vlm, layer: vlm.vision_block_modules[layer],
        side="output",
        part=TOWER,
        within=0,
    ),
    Site(
        name="merger_in",
        meaning="what the module that turns vision features into image tokens receives",
        layers=_only_layer,
        module=_merger,
        side="input",
        part=MERGER,
        within=0,
    ),
    Site(
        name="merger_out",
        meaning="what that module returns: the image tokens, before the decoder",
        layers=_only_layer,
        module=_merger,
        side="output",
        part=MERGER,
        within=1,
    ),
)

SITES: dict[str, Site] = {site.name: site for site in _ALL}
"""Every site by its name. A new site is a new entry above."""
