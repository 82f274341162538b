"""Watch: what the parts of a running model hold, at chosen sites, layers and token roles."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from deixis.benchmarks import Item
from deixis.benchmarks.names import checked_names
from deixis.hooks.choices import SINGLE_ROLES, chosen_points, chosen_roles, roles_of
from deixis.hooks.landing import Landing, Shape
from deixis.hooks.pooling import Positions, gather, gather_rows, mean_over, mean_over_rows
from deixis.models import VLM
from deixis.models.checking.items import small_item
from deixis.models.layout import Layout
from deixis.models.sites import SITES

Point = tuple[str, int]
"""A site and a layer."""


class WatchError(RuntimeError):
    """A watched model was not run as watching needs it."""


class _AllSeen(Exception):  # noqa: N818 - ends a pass, and is no error
    """Every watched point has been kept, so that the rest of the pass would be for nothing."""


@dataclass(frozen=True)
class Seen:
    """What one site and layer held at one role's tokens during one forward pass, on the host."""

    values: Float[Tensor, "row width"]
    """A row per item (float32; NaN where the role has no token; the model's dtype for roles of one token), or, with
    ``pool=None``, a row per token in the model's dtype, item by item."""
    counts: Int[Tensor, " batch"]
    """Tokens of each item; at the sites of the vision tower its rows, of which several may make one token."""
    ran: bool = True
    """False where this batch passes the layer by (Mllama's cross-attention without a picture): every value is NaN then."""


class Watch:
    """Keep what chosen sites and layers of a model hold, for chosen token roles.

    ``resid`` at layer i is the tensor that block i really receives, whatever was added since the block before returned (Qwen3-VL
    adds DeepStack features there); at layer L it is the input of the final norm. The other sites are in :data:`SITES`. Hooks are
    attached on entering and removed on leaving, also after an exception. One forward pass for each pair of :meth:`expect` and
    :meth:`read`::

        with Watch(vlm, layers=[0, 12], roles=("answer",)) as watch:
            watch.expect(inputs, items)
            vlm.model(**inputs)
            seen = watch.read()
        seen["resid", 12, "answer"].values

    Args:
        vlm: The model.
        sites: Names out of :data:`SITES`.
        layers: Layer numbers or ``"all"``, for every site; or a mapping with each site's own. Numbers that one of several sites
            lacks are left out there.
        roles: Groups of token positions: ``answer``, ``image``, ``object``, ``background``, ``text``, ``bos``; ``image:0`` and so
            on for one of several pictures. The sites of the vision tower have those of pictures only.
        pool: ``"mean"`` averages over a role's tokens (in float32, on the device); None keeps each token.

    Raises:
        ValueError: A name or number is not among what is allowed, or the family lacks a site. Nothing is attached yet then.
    """

    def __init__(
        self,
        vlm: VLM,
        sites: Sequence[str] = ("resid",),
        layers: Sequence[int] | Mapping[str, Sequence[int] | str] | str = "all",
        roles: Sequence[str] = ("answer", "object", "image"),
        pool: str | None = "mean",
    ) -> None:
        if pool not in ("mean", None):
            raise ValueError(f"pool={pool!r} is not one of: 'mean', None.")
        self.sites = checked_names("sites", sites, SITES)
        self.roles = chosen_roles(roles, self.sites)
        self.pool = pool
        self.points: tuple[Point, ...] = chosen_points(vlm, self.sites, layers)
        self._vlm = vlm
        self._where: dict[tuple[str, torch.device], dict[str, Positions]] = {}
        self._rows: dict[str, int] = {}
        self._kept: dict[Point, dict[str, Tensor]] = {}
        self._parts: dict[Point, list[Tensor]] = {}
        self._absent: set[Point] = set()
        self._ran: set[Point] = set()
        self._like: dict[Point, Tensor] = {}
        self._landing: Landing | None = None
        self._measuring = self._ends_pass = False
        self._stack, self._stand_ins = ExitStack(), ExitStack()

    def layers(self, site: str) -> list[int]:
        """The layers watched at ``site``, in order."""
        return [layer for where, layer in self.points if where == site]

    def roles_at(self, site: str) -> tuple[str, ...]:
        """The watched roles that ``site`` can have."""
        return roles_of(site, self.roles)

    def __enter__(self) -> "Watch":
        self._ran.clear()
        with ExitStack() as stack:  # if attaching fails half-way, what is attached comes off
            for site, layer in self.points:
                stack.callback(SITES[site].attach(self._vlm, layer, self._visit((site, layer)), last=True).remove)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stack.close()
        self._forget()
        if kind is None:
            self._check_ran(self._ran)

    def expect(self, inputs: Mapping[str, Tensor], items: Sequence[Item]) -> None:
        """Say that the next forward pass is of this prepared batch.

        Where it passes decoder layers by (Mllama's cross-attention, without a picture), their ``resid`` is that of the next layer
        that runs, and their other sites are NaN.

        Raises:
            ValueError: See :meth:`follow`.
        """
        self.follow(self._vlm.token_roles(inputs, items))
        layout = self._vlm.layout(inputs, items)
        for site in filter(_in_tower, self.sites):
            self._follow_rows(site, layout, items)
        skipped = self._vlm.family.optional_layers
        if skipped is not None:
            self._pass_by(skipped(self._vlm, inputs))
        if self._absent - set(self._like):
            self._measure()

    def follow(self, roles: Mapping[str, Bool[Tensor, "batch position"]]) -> None:
        """Say which positions of the next forward pass belong to each role: what :meth:`expect` does, of the decoder alone.

        A numbered role (``image:3``) that the batch lacks has no tokens in it.

        Raises:
            ValueError: A watched role is missing, or a role of one token has another number of them in some row.
        """
        self._forget()
        wanted = self.roles if not all(map(_in_tower, self.sites)) else ()
        positions = {role: _positions(role, roles) for role in wanted}
        device = next((p.rows.device for p in positions.values()), torch.device("cpu"))
        self._where["", device] = positions

    def run(self, inputs: Mapping[str, Any]) -> dict[tuple[str, int, str], Seen]:
        """Run the model after :meth:`expect` just as far as the last watched point, and read.

        Nothing behind that point is computed: no later block, no logits, no keys and values kept. A model some of whose weights
        accelerate keeps elsewhere runs to its end, since what was fetched for a block is put back when the block returns.
        """
        self._vlm.reset()
        self._ends_pass = not _keeps_weights_elsewhere(self._vlm)
        keep = {"logits_to_keep": 1} if "logits_to_keep" in self._vlm.accepts else {}
        try:
            self._vlm.model(**inputs, **keep, use_cache=False)
        except _AllSeen:
            pass
        finally:
            self._ends_pass = False
            self._vlm.reset()
        return self.read()

    def read(self) -> dict[tuple[str, int, str], Seen]:
        """What the last forward pass held, by site, layer and role, on the host.

        Raises:
            WatchError: A watched module did not run since :meth:`follow`, or not over all the rows of the batch's pictures.
        """
        for (site, layer), parts in self._parts.items():
            found = sum(map(len, parts))
            raise WatchError(f"{site} {layer} held {found} rows where the batch's pictures have {self._rows[site]}.")
        self._check_ran(self._kept.keys() | self._absent)
        self._ran |= self._absent
        for point in self._absent - self._kept.keys():
            self._kept[point] = {role: self._nothing(point, role) for role in self.roles_at(point[0])}
        counts = {
            (site, role): next(where[role] for (kind, _), where in self._where.items() if kind == _kind(site)).counts.cpu()
            for site in self.sites
            for role in self.roles_at(site)
        }
        moved = {(*point, role): value.cpu() for point, kept in self._kept.items() for role, value in kept.items()}
        if self._landing is not None:
            self._landing.wait()
        ordered = [(*point, role) for point in self.points for role in self.roles_at(point[0])]
        absent = {point for point in self._absent if not _in_tower(point[0])}
        seen = {key: Seen(moved[key], counts[key[0], key[2]], ran=key[:2] not in absent) for key in ordered}
        self._forget()
        return seen

    def _forget(self) -> None:
        self._stand_ins.close()
        self._where, self._rows, self._kept, self._parts, self._absent = {}, {}, {}, {}, set()
        self._landing = None

    def _follow_rows(self, site: str, layout: Layout, items: Sequence[Item]) -> None:
        tokens, masks = layout.token_of_row(site), layout.token_roles(items)
        none = torch.zeros(len(layout.boxes), dtype=torch.bool)
        self._where[site, torch.device("cpu")] = {
            role: Positions.of_rows(tokens, masks.get(role, none), layout.item, len(items)) for role in self.roles_at(site)
        }
        self._rows[site] = len(tokens)
        if not len(tokens):  # a batch without pictures: the tower does not run
            self._absent |= {point for point in self.points if point[0] == site}

    def _pass_by(self, skipped: Sequence[int]) -> None:
        """Let the next layer that runs stand in for the residual stream of one that does not."""
        for site, layer in self.points:
            if _in_tower(site) or layer not in skipped:
                continue
            if site != "resid":
                self._absent.add((site, layer))
                continue
            later = next(n for n in range(layer + 1, self._vlm.n_layers + 1) if n not in skipped)
            self._stand_ins.callback(SITES[site].attach(self._vlm, later, self._visit((site, layer)), last=True).remove)

    def _measure(self) -> None:
        """Learn width and dtype of what this batch lacks from a small item with a picture."""
        self._measuring = True
        try:
            item = small_item()
            self._vlm.reset()
            with torch.no_grad():
                self._vlm.model(**self._vlm.prepare([item]), use_cache=False)
        finally:
            self._measuring = False
            self._vlm.reset()

    def _nothing(self, point: Point, role: str) -> Tensor:
        shape = self._shape(point, role)
        return torch.full((shape.rows, shape.width), torch.nan, dtype=shape.dtype)

    def _visit(self, point: Point) -> Callable[[Tensor], None]:
        site, layer = point
        vision = _in_tower(site)

        def keep(hidden: Tensor) -> None:
            if self._measuring:
                self._like[point] = torch.empty((0, hidden.shape[-1]), dtype=hidden.dtype)
                return
            if not vision and hidden.ndim != 3:
                raise WatchError(f"{site} {layer} held no batch x position x width tensor; this architecture needs a record.")
            if (vision and site not in self._rows) or not self._where or point in self._kept:
                way = "expect" if vision else "follow"
                raise WatchError(f"{site} {layer} ran without {way}() before it; call {way}, one forward pass, then read.")
            if vision:
                self._keep_rows(point, hidden.detach().reshape(-1, hidden.shape[-1]))
            else:
                self._kept[point] = {role: self._landed(point, role, hidden.detach()) for role in self.roles}
            self._ran.add(point)
            if self._ends_pass and len(self._kept.keys() | self._absent) == len(self.points):
                raise _AllSeen

        return keep

    def _keep_rows(self, point: Point, rows: Float[Tensor, "row width"]) -> None:
        """Join what a tower that is called picture by picture gives; reduce it as soon as all rows are there."""
        parts = self._parts.setdefault(point, [])
        parts.append(rows)
        found, wanted = sum(map(len, parts)), self._rows[point[0]]
        if found > wanted:
            raise WatchError(f"{point[0]} {point[1]} held {found} rows where the batch's pictures have {wanted}.")
        if found < wanted:
            return
        joined = parts[0] if len(parts) == 1 else torch.cat(parts)
        del self._parts[point]
        self._kept[point] = {role: self._landed(point, role, joined) for role in self.roles_at(point[0])}

    def _landed(self, point: Point, role: str, hidden: Tensor) -> Float[Tensor, "row width"]:
        """What is kept of a role: on the host, at its place in the batch's block, or where it was computed."""
        where = self._on(_kind(point[0]), hidden.device)[role]
        reduce = gather if self._keeps_tokens(role) else mean_over
        if _in_tower(point[0]):
            reduce = gather_rows if self.pool is None else mean_over_rows
        dtype = hidden.dtype if self._keeps_tokens(role) else torch.float32
        place = self._block(hidden.device).place((*point, role), hidden.shape[-1], dtype)
        self._like[point] = torch.empty((0, hidden.shape[-1]), dtype=hidden.dtype)
        if place is None:  # not foreseen: the first batch, from which the shapes are learned
            return reduce(hidden, where)
        if hidden.device.type == "cpu":
            return reduce(hidden, where, place)
        self._block(hidden.device).fetch(reduce(hidden, where), place)
        return place

    def _keeps_tokens(self, role: str) -> bool:
        return self.pool is None or role in SINGLE_ROLES

    def _block(self, device: torch.device) -> Landing:
        """The block for what this batch keeps, as far as its shapes are known from batches before."""
        if self._landing is None:
            known = [point for point in self.points if point in self._like and point not in self._absent]
            shapes = {(*point, role): self._shape(point, role) for point in known for role in self.roles_at(point[0])}
            self._landing = Landing(shapes, pinned=device.type == "cuda")
        return self._landing

    def _shape(self, point: Point, role: str) -> Shape:
        where = next(where[role] for (kind, _), where in self._where.items() if kind == _kind(point[0]))
        like, single = self._like[point], self._keeps_tokens(role)
        return Shape(len(where.rows) if single else len(where.counts), like.shape[-1], like.dtype if single else torch.float32)

    def _on(self, kind: str, device: torch.device) -> dict[str, Positions]:
        """The positions on a device; layers of one model may lie on several."""
        if (kind, device) not in self._where:
            known = next(where for (other, _), where in self._where.items() if other == kind)
            self._where[kind, device] = {role: p.to(device) for role, p in known.items()}
        return self._where[kind, device]

    def _check_ran(self, ran: set[Point]) -> None:
        silent = [f"{site} {layer}" for site, layer in self.points if (site, layer) not in ran]
        if silent:
            raise WatchError(f"never ran: {', '.join(silent)}; run the model between follow and read, or watch other layers.")


def _keeps_weights_elsewhere(vlm: VLM) -> bool:
    devices = {str(device) for device in getattr(vlm.model, "hf_device_map", {}).values()}
    return "disk" in devices or ("cpu" in devices and len(devices) > 1)


def _in_tower(site: str) -> bool:
    return SITES[site].vision


def _kind(site: str) -> str:
    """Which positions a site goes by: those of the sequence, or its own rows."""
    return site if _in_tower(site) else ""


def _positions(role: str, roles: Mapping[str, Bool[Tensor, "batch position"]]) -> Positions:
    mask = roles.get(role)
    if mask is None:
        example = next(iter(roles.values()), None)
        if ":" not in role or example is None:
            raise ValueError(f"role {role!r} is not among the batch's roles: {', '.join(roles)}.")
        mask = torch.zeros_like(example)
    positions = Positions.of(mask)
    if role in SINGLE_ROLES and bool((positions.counts != 1).any()):
        raise ValueError(f"role {role!r} must mark exactly one position in each row of the batch.")
    return positions
