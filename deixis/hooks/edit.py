"""Edits of a running model: what is changed, where, and by what. They run on nnsight, here or remotely."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from deixis.benchmarks import Item, Items
from deixis.hooks.batches import Batch, Where, laid_over
from deixis.hooks.direction import Direction
from deixis.hooks.edit_sites import checked_layers, read_step, write_step
from deixis.hooks.errors import DirectionError, DonorCountError
from deixis.hooks.knock_out import cut_step, joined_cuts
from deixis.hooks.tracing import Remote, Step, check_unwatched, run_steps
from deixis.models import VLM

Layers = Sequence[int] | int | str
"""Layer numbers, one of them, or ``"all"``."""


@dataclass(frozen=True, kw_only=True)
class Edit(ABC):
    """A change to a running model; make one with :meth:`patch`, :meth:`swap`, :meth:`steer`, :meth:`ablate`, :meth:`knock_out`.

    Edits change prompt positions only; an answer that is written afterwards reads what they left in keys and values. Several
    edits in one pass act in the order in which the model reaches them, and at one module in the order in which they are given.
    """

    kind: ClassVar[str]

    @abstractmethod
    def steps(self, batch: Batch, numbers: Sequence[int], remote: Remote, /) -> list[Step]:
        """What the edit does to a batch. ``numbers``: the places of its items among all that are edited."""

    @staticmethod
    def patch(donors: "Items | Item", *, role: str, layers: Layers, site: str = "resid") -> "Patch":
        """Put what the donors hold at a site, layers and role into the receivers.

        Args:
            donors: One item for each receiver, or one for all.
            role: Whose tokens are replaced; see :func:`deixis.hooks.batches.laid_over` for which correspond.
            layers: Where; at several layers all are replaced in one pass.
            site: One of :data:`deixis.hooks.SITES`.
        """
        return Patch(donors=_tuple(donors), role=role, layers=layers, site=site)

    @staticmethod
    def swap(donors: "Items | Item") -> "Patch":
        """Replace the whole block of image tokens by the donors', as every block of the decoder receives it.

        In a causal decoder that reads the picture before the question this is the donor's picture under the receiver's question.
        """
        return Swap(donors=_tuple(donors), role="image", layers="all", site="resid")

    @staticmethod
    def steer(direction: Direction, amount: float | int, *, role: str | None = None, layers: Layers | None = None) -> "Steer":
        """Add a probe's direction to every token of a role.

        Args:
            direction: From :func:`deixis.probe_direction`.
            amount: In the unit of the direction's target: 1.0 at ``distance_m`` moves what the probe reads by 1 m.
            role: None for the direction's own.
            layers: None for the direction's own.

        Raises:
            DirectionError: The direction or the amount is NaN or infinite.
        """
        return Steer(
            direction=direction,
            amount=float(amount),
            role=role or direction.role,
            layers=(direction.layer,) if layers is None else layers,
        )

    @staticmethod
    def ablate(
        *,
        role: str,
        layers: Layers,
        site: str = "resid",
        how: str = "zero",
        reference: "Items | None" = None,
        direction: Direction | None = None,
    ) -> "Ablate":
        """Take away what a role's tokens hold.

        Args:
            role: Whose tokens.
            layers: Where.
            site: As for :meth:`patch`.
            how: ``zero``; ``mean``, the average over that role's tokens in ``reference``; ``project``, the component along
                ``direction`` only, down to that of the direction's own mean.
            reference: Items whose mean is put in, for ``mean``.
            direction: For ``project``.
        """
        if how not in ("zero", "mean", "project"):
            raise ValueError(f"how={how!r} is not one of: 'zero', 'mean', 'project'.")
        if (how == "mean") != (reference is not None) or (how == "project") != (direction is not None):
            raise ValueError(f"how={how!r} takes reference= for 'mean' and direction= for 'project', and neither for 'zero'.")
        return Ablate(
            role=role, layers=layers, site=site, how=how, reference=_tuple(reference) if reference else (), direction=direction
        )

    @staticmethod
    def knock_out(*, queries: str, keys: str, layers: Layers, heads: Sequence[int] | None = None) -> "KnockOut":
        """Cut the attention edges from one role's tokens to another's.

        What is left of a query's attention is spread over its other keys (the softmax runs without the cut ones).

        Args:
            queries: The role whose tokens look.
            keys: The role that they no longer see; a token always sees itself.
            layers: A window of decoder blocks.
            heads: Query heads; None for all.
        """
        return KnockOut(queries=queries, keys=keys, layers=layers, heads=None if heads is None else tuple(heads))


@dataclass(frozen=True, kw_only=True)
class Patch(Edit):
    """See :meth:`Edit.patch`."""

    kind: ClassVar[str] = "patch"
    donors: tuple[Item, ...]
    role: str
    layers: Layers
    site: str

    def steps(self, batch: Batch, numbers: Sequence[int], remote: Remote, /) -> list[Step]:
        """Read the donors in a pass of their own, then replace."""
        vlm = batch.vlm
        layers = checked_layers(vlm, self.site, self.layers)
        one = len(self.donors) == 1
        if not one and max(numbers) >= len(self.donors):
            raise _wrong_count(self.kind, len(self.donors), max(numbers) + 1)
        source = Batch(vlm, tuple(self.donors[0 if one else number] for number in numbers))
        mine, theirs = laid_over(self.role, batch, source, self.site)
        reads = [read_step(vlm, self.site, layer, theirs.of) for layer in layers]
        held = run_steps(vlm, source.inputs, reads, remote=remote).seen
        return [
            write_step(vlm, self.site, layer, partial(put_at, where=mine, values=values))
            for layer, values in zip(layers, held, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class Swap(Patch):
    """See :meth:`Edit.swap`."""

    kind: ClassVar[str] = "swap"


@dataclass(frozen=True, kw_only=True)
class Steer(Edit):
    """See :meth:`Edit.steer`."""

    kind: ClassVar[str] = "steer"
    direction: Direction
    amount: float
    role: str
    layers: Layers

    def __post_init__(self) -> None:
        self.direction.check_finite()
        if not math.isfinite(self.amount):
            raise DirectionError(f"amount={self.amount} is no amount to steer by; give a finite number.")

    def steps(self, batch: Batch, _numbers: Sequence[int], _remote: Remote, /) -> list[Step]:
        """Add the same vector to every token of the role."""
        vlm, site = batch.vlm, self.direction.site
        layers = checked_layers(vlm, site, self.layers)
        where = batch.where(self.role, site)
        added = torch.from_numpy(self.direction.vector).float() * self.amount
        self.direction.check_fits(vlm)
        return [write_step(vlm, site, layer, partial(add_at, where=where, vector=added)) for layer in layers]


@dataclass(frozen=True, kw_only=True)
class Ablate(Edit):
    """See :meth:`Edit.ablate`."""

    kind: ClassVar[str] = "ablate"
    role: str
    layers: Layers
    site: str
    how: str
    reference: tuple[Item, ...]
    direction: Direction | None

    def __post_init__(self) -> None:
        if self.direction is None:
            return
        self.direction.check_finite()
        if not self.direction.norm:
            raise DirectionError(
                f"the direction of {self.direction.target} is zero, which points nowhere, so nothing can be projected out; "
                "learn another."
            )

    def steps(self, batch: Batch, _numbers: Sequence[int], remote: Remote, /) -> list[Step]:
        """Replace by nothing, by a mean, or by what is left without a direction."""
        vlm = batch.vlm
        layers = checked_layers(vlm, self.site, self.layers)
        where = batch.where(self.role, self.site)
        if self.direction is not None:
            self.direction.check_fits(vlm)
            if self.direction.site != self.site:
                raise DirectionError(f"the direction is one of {self.direction.site}, not of {self.site}; project it out there.")
            unit = torch.from_numpy(self.direction.vector).float()
            unit = unit / unit.norm()
            level = float(unit @ torch.from_numpy(self.direction.mean).float())
            changes = [partial(project_at, where=where, unit=unit, level=level) for _ in layers]
        elif self.how == "mean":
            means = _means(vlm, self.reference, self.site, layers, self.role, remote)
            changes = [partial(fill_at, where=where, vector=mean) for mean in means]
        else:
            changes = [partial(fill_at, where=where, vector=None) for _ in layers]
        return [write_step(vlm, self.site, layer, change) for layer, change in zip(layers, changes, strict=True)]


@dataclass(frozen=True, kw_only=True)
class KnockOut(Edit):
    """See :meth:`Edit.knock_out`."""

    kind: ClassVar[str] = "knock-out"
    queries: str
    keys: str
    layers: Layers
    heads: tuple[int, ...] | None

    def steps(self, batch: Batch, _numbers: Sequence[int], _remote: Remote, /) -> list[Step]:
        """Change the mask that each of the blocks' attentions receives."""
        vlm = batch.vlm
        layers = checked_layers(vlm, "attn_out", self.layers)
        queries, keys = batch.mask(self.queries), batch.mask(self.keys)
        return [cut_step(vlm, layer, queries, keys, self.heads, f"{self.queries} to {self.keys}") for layer in layers]


def edit_steps(edits: Sequence[Edit], batch: Batch, numbers: Sequence[int], remote: Remote = False) -> list[Step]:
    """All steps of some edits for one batch.

    Raises:
        EditError: An edit does not fit the model or the items; the subclass and the sentence say how.
    """
    check_unwatched(batch.vlm)
    return joined_cuts([step for edit in edits for step in edit.steps(batch, numbers, remote)])


def check_donors(edits: Sequence[Edit], n_items: int) -> None:
    """Refuse donors that are neither one nor one for each of the items.

    Raises:
        DonorCountError: The message tells both numbers.
    """
    for edit in edits:
        if isinstance(edit, Patch) and len(edit.donors) not in (1, n_items):
            raise _wrong_count(edit.kind, len(edit.donors), n_items)


def _wrong_count(kind: str, donors: int, items: int) -> DonorCountError:
    return DonorCountError(
        f"the {kind} has {donors} donors for {items} items; give one for each item, in their order, or one for all."
    )


def put_at(hidden: Float[Tensor, "*batch width"], where: Where, values: Tensor) -> Tensor:
    """Other values at some positions."""
    return where.put(hidden, values)


def add_at(hidden: Float[Tensor, "*batch width"], where: Where, vector: Tensor) -> Tensor:
    """A vector added at some positions."""
    return where.put(hidden, where.of(hidden) + vector.to(hidden))


def fill_at(hidden: Float[Tensor, "*batch width"], where: Where, vector: Tensor | None) -> Tensor:
    """One vector at some positions; None for zero."""
    held = where.of(hidden)
    return where.put(hidden, torch.zeros_like(held) if vector is None else vector.to(hidden).expand_as(held))


def project_at(hidden: Float[Tensor, "*batch width"], where: Where, unit: Tensor, level: float) -> Tensor:
    """The component along ``unit`` set to ``level`` at some positions."""
    held, along = where.of(hidden), unit.to(hidden)
    return where.put(hidden, held + (level - held @ along)[:, None] * along)


def _means(vlm: VLM, items: Sequence[Item], site: str, layers: Sequence[int], role: str, remote: Remote) -> list[Tensor]:
    """Mean over a role's tokens in all items, by layer, in float32."""
    sums: list[Tensor] = []
    count = 0
    for start in range(0, len(items), 8):
        batch = Batch(vlm, tuple(items[start : start + 8]))
        where = batch.where(role, site)
        seen = run_steps(vlm, batch.inputs, [read_step(vlm, site, layer, where.of) for layer in layers], remote=remote).seen
        found = [values.float().sum(dim=0) for values in seen]
        sums = found if not sums else [total + part for total, part in zip(sums, found, strict=True)]
        count += len(where.rows)
    return [total / count for total in sums]


def _tuple(items: "Items | Item | Sequence[Item]") -> tuple[Item, ...]:
    found = (items,) if isinstance(items, Item) else tuple(items)
    if not found:
        raise ValueError("there is no donor or reference item; give at least one.")
    return found
