"""Sites as steps of a traced pass: when each is reached, and how it is read and written there."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from deixis.hooks.errors import NoSuchSiteError
from deixis.hooks.tracing import Step
from deixis.models import VLM
from deixis.models.sites import ATTENTION_CALLED, DECODER, SITES, Place, Site, received, receiving, returned, returning


def attention_place(layer: int) -> Place:
    """When a decoder block's attention is called."""
    return DECODER, layer, ATTENTION_CALLED


def site_layers(vlm: VLM, site: str) -> list[int]:
    """The layers of a model that have a site.

    Raises:
        NoSuchSiteError: There is no such site, or this family lacks it.
    """
    if site not in SITES:
        raise NoSuchSiteError(f"site={site!r} is not one of: {', '.join(map(repr, SITES))}.")
    try:
        return list(SITES[site].layers(vlm))
    except ValueError as error:
        raise NoSuchSiteError(f"{vlm.name} can't be edited at {site}: {error}") from error


def checked_layers(vlm: VLM, site: str, layers: Sequence[int] | int | str) -> list[int]:
    """Layer numbers in order; ``"all"`` for all that the site has.

    Raises:
        NoSuchSiteError: A number that the site does not have, or none.
    """
    allowed = site_layers(vlm, site)
    if isinstance(layers, str):
        if layers != "all":
            raise NoSuchSiteError(f"layers={layers!r} is neither 'all' nor a list of numbers.")
        return allowed
    if not isinstance(layers, int | Iterable):
        raise NoSuchSiteError(f"layers={layers!r} is neither 'all' nor a whole number nor a list of these.")
    numbers = [layers] if isinstance(layers, int) else list(layers)
    listed = ", ".join(map(str, allowed))
    if not numbers:
        raise NoSuchSiteError(f"layers is empty; {site} has in {vlm.name}: {listed}; or say 'all'.")
    for layer in numbers:
        if isinstance(layer, bool) or not isinstance(layer, Integral) or layer not in allowed:
            raise NoSuchSiteError(f"layer {layer!r} is not one of those that {site} has in {vlm.name}: {listed}.")
    return sorted({int(layer) for layer in numbers})


def write_step(vlm: VLM, site: str, layer: int, change: Callable[[Tensor], Tensor]) -> Step:
    """A step that replaces what is at a site by what ``change`` makes of it."""
    return _step(vlm, site, layer, partial(_write, side=SITES[site].side, vision=SITES[site].vision, change=change))


def read_step(vlm: VLM, site: str, layer: int, take: Callable[[Tensor], Any] = torch.clone) -> Step:
    """A step that keeps what ``take`` makes of what is at a site."""
    return _step(vlm, site, layer, partial(_read, side=SITES[site].side, vision=SITES[site].vision, take=take))


def _step(vlm: VLM, site: str, layer: int, act: Callable[[Any], Any]) -> Step:
    found: Site = SITES[site]
    return Step(name=f"{site} {layer}", module=found.module(vlm, layer), place=found.place(layer), act=act)


def _read(envoy: Any, side: str, vision: bool, take: Callable[[Tensor], Any]) -> Any:
    if side == "input":
        args, kwargs = envoy.inputs
        return take(received(args, kwargs, envoy.path)[1])
    return take(returned(envoy.output, envoy.path, vision)[1])


def _write(envoy: Any, side: str, vision: bool, change: Callable[[Tensor], Tensor]) -> None:
    if side == "input":
        args, kwargs = envoy.inputs
        key, tensor = received(args, kwargs, envoy.path)
        envoy.inputs = receiving(args, kwargs, key, change(tensor))
        return
    output = envoy.output
    at, tensor = returned(output, envoy.path, vision)
    envoy.output = returning(output, at, change(tensor))
