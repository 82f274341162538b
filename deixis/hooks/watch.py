"""Watch: what the parts of a running model receive, at chosen layers and token positions."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from deixis.benchmarks.names import checked_names
from deixis.hooks.pooling import Positions, gather, mean_over
from deixis.models import VLM

SINGLE_ROLES = ("answer", "bos")
"""Roles of exactly one token: nothing is averaged, so the model's own dtype is kept."""
_MANY_ROLES = ("image", "object", "background", "text")
_NUMBERED_ROLES = ("image", "object", "background")


class WatchError(RuntimeError):
    """A watched model was not run as watching needs it."""


@dataclass(frozen=True)
class Site:
    """A place in the model: which layers it has, and the module whose input it is."""

    layers: Callable[[VLM], int]
    module: Callable[[VLM, int], nn.Module]


def _entered_by_resid(vlm: VLM, layer: int) -> nn.Module:
    return vlm.final_norm if layer == vlm.n_layers else vlm.blocks[layer]


SITES: dict[str, Site] = {"resid": Site(layers=lambda vlm: vlm.n_layers + 1, module=_entered_by_resid)}
"""Every site that can be watched. A new site is a new entry here."""


@dataclass(frozen=True)
class Seen:
    """What one site and layer held at one role's tokens during one forward pass, on the host."""

    values: Float[Tensor, "row width"]
    """A row per item (float32; NaN where the role has no token; the model's dtype for roles of one token), or, with
    ``pool=None``, a row per token in the model's dtype, item by item."""
    counts: Int[Tensor, " batch"]
    """Tokens of each item."""


class Watch:
    """Keep what enters chosen layers of a model, for chosen token roles.

    ``resid`` at layer i is the tensor that block i really receives, whatever was added since the block before returned (Qwen3-VL
    adds DeepStack features there); at layer L it is the input of the final norm. Hooks are attached on entering and removed on
    leaving, also after an exception. One forward pass for each pair of :meth:`follow` and :meth:`read`::

        with Watch(vlm, layers=[0, 12], roles=("answer",)) as watch:
            watch.follow(vlm.token_roles(inputs, items))
            vlm.model(**inputs)
            seen = watch.read()
        seen["resid", 12, "answer"].values

    Args:
        vlm: The model.
        sites: Names out of :data:`SITES`.
        layers: Layer numbers, 0 to L at ``resid``, or ``"all"``.
        roles: Groups of token positions: ``answer``, ``image``, ``object``, ``background``, ``text``, ``bos``; ``image:0`` and so
            on for one of several pictures.
        pool: ``"mean"`` averages over a role's tokens (in float32, on the device); None keeps each token.

    Raises:
        ValueError: A name or number is not among what is allowed. Nothing is attached yet then.
    """

    def __init__(
        self,
        vlm: VLM,
        sites: Sequence[str] = ("resid",),
        layers: Sequence[int] | str = "all",
        roles: Sequence[str] = ("answer", "object", "image"),
        pool: str | None = "mean",
    ) -> None:
        if pool not in ("mean", None):
            raise ValueError(f"pool={pool!r} is not one of: 'mean', None.")
        self.sites = checked_names("sites", sites, SITES)
        self.roles = _checked_roles(roles)
        self.pool = pool
        self.points = {
            (site, layer): SITES[site].module(vlm, layer)
            for site in self.sites
            for layer in _checked_layers(site, layers, SITES[site].layers(vlm))
        }
        self._where: dict[torch.device, dict[str, Positions]] | None = None
        self._kept: dict[tuple[str, int], dict[str, Tensor]] = {}
        self._ran: set[tuple[str, int]] = set()
        self._stack = ExitStack()

    def layers(self, site: str) -> list[int]:
        """The layers watched at ``site``, in order."""
        return [layer for where, layer in self.points if where == site]

    def __enter__(self) -> "Watch":
        self._ran.clear()
        with ExitStack() as stack:  # if attaching fails half-way, what is attached comes off
            for (site, layer), module in self.points.items():
                handle = module.register_forward_pre_hook(self._hook(site, layer), with_kwargs=True)
                stack.callback(handle.remove)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stack.close()
        self._where = None
        self._kept = {}
        if kind is None:
            self._check_all_ran(self._ran)

    def follow(self, roles: Mapping[str, Bool[Tensor, "batch position"]]) -> None:
        """Say which positions of the next forward pass belong to each role; see ``VLM.token_roles``.

        A numbered role (``image:3``) that the batch lacks has no tokens in it.

        Raises:
            ValueError: A watched role is missing, or a role of one token has another number of them in some row.
        """
        example = next(iter(roles.values()), None)
        positions = {}
        for role in self.roles:
            mask = roles.get(role)
            if mask is None:
                if ":" not in role or example is None:
                    raise ValueError(f"role {role!r} is not among the batch's roles: {', '.join(roles)}.")
                mask = torch.zeros_like(example)
            positions[role] = Positions.of(mask)
            if role in SINGLE_ROLES and bool((positions[role].counts != 1).any()):
                raise ValueError(f"role {role!r} must mark exactly one position in each row of the batch.")
        device = next((p.rows.device for p in positions.values()), torch.device("cpu"))
        self._where = {device: positions}
        self._kept = {}

    def read(self) -> dict[tuple[str, int, str], Seen]:
        """What the last forward pass held, by site, layer and role, on the host.

        Raises:
            WatchError: A watched module did not run since :meth:`follow`.
        """
        self._check_all_ran(self._kept)
        counts = {role: p.counts.cpu() for role, p in next(iter((self._where or {}).values())).items()}
        moved = {(*point, role): _to_host(value) for point, kept in self._kept.items() for role, value in kept.items()}
        for device in {value.device for kept in self._kept.values() for value in kept.values()}:
            if device.type == "cuda":
                torch.cuda.synchronize(device)
        self._where = None
        self._kept = {}
        return {key: Seen(values=value, counts=counts[key[2]]) for key, value in moved.items()}

    def _hook(self, site: str, layer: int) -> Callable[..., None]:
        def keep(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            hidden = args[0] if args else kwargs.get("hidden_states")
            if not isinstance(hidden, Tensor) or hidden.ndim != 3:
                raise WatchError(f"{site} {layer} received no batch x position x width tensor; this architecture needs a record.")
            if self._where is None or (site, layer) in self._kept:
                raise WatchError(f"{site} {layer} ran without follow() before it; call follow, one forward pass, then read.")
            self._kept[site, layer] = {role: self._reduce(hidden.detach(), role) for role in self.roles}
            self._ran.add((site, layer))

        return keep

    def _reduce(self, hidden: Float[Tensor, "batch position width"], role: str) -> Float[Tensor, "row width"]:
        where = self._positions(hidden.device)[role]
        if self.pool is None or role in SINGLE_ROLES:
            return gather(hidden, where)
        return mean_over(hidden, where)

    def _positions(self, device: torch.device) -> dict[str, Positions]:
        known = self._where or {}
        if device not in known:  # layers of one model may lie on several devices
            known[device] = {role: p.to(device) for role, p in next(iter(known.values())).items()}
        return known[device]

    def _check_all_ran(self, ran: set[tuple[str, int]] | Mapping[tuple[str, int], Any]) -> None:
        silent = [f"{site} {layer}" for site, layer in self.points if (site, layer) not in ran]
        if silent:
            raise WatchError(f"never ran: {', '.join(silent)}; run the model between follow and read, or watch other layers.")


def _checked_roles(roles: Sequence[str]) -> tuple[str, ...]:
    listed = ", ".join(map(repr, (*SINGLE_ROLES, *_MANY_ROLES)))
    allowed = f"{listed}, or one picture's, such as 'image:0'"
    if isinstance(roles, str) or not roles:
        raise ValueError(f"roles={roles!r} must be a non-empty list of: {allowed}.")
    for role in roles:
        base, _, number = role.partition(":")
        numbered = base in _NUMBERED_ROLES and number.isascii() and number.isdigit()
        if role not in (*SINGLE_ROLES, *_MANY_ROLES) and not numbered:
            raise ValueError(f"roles holds {role!r}, which is not one of: {allowed}.")
    return tuple(dict.fromkeys(roles))


def _checked_layers(site: str, layers: Sequence[int] | str, n: int) -> list[int]:
    if isinstance(layers, str):
        if layers != "all":
            raise ValueError(f"layers={layers!r} is neither 'all' nor a list of numbers from 0 to {n - 1}.")
        return list(range(n))
    for layer in layers:
        if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < n:
            raise ValueError(f"layers holds {layer!r}; {site} has the layers 0 to {n - 1} in this model.")
    if not layers:
        raise ValueError(f"layers is empty; {site} has the layers 0 to {n - 1} in this model, or say 'all'.")
    return sorted(set(layers))


def _to_host(value: Tensor) -> Tensor:
    """A copy on the host; from a GPU it is asynchronous, and complete after the device has been synchronised."""
    if value.device.type != "cuda":
        return value.cpu()
    host = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
    return host.copy_(value, non_blocking=True)
