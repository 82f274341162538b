"""Prepared batches, the places of their roles in a site's tensor, and how the tokens of two batches are laid over each other."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from deixis.benchmarks import Item
from deixis.hooks.errors import NeverFiredError, NoSuchSiteError, TokenCountError
from deixis.models import VLM
from deixis.models.layout import PICTURE_ROLES, Layout
from deixis.models.sites import SITES


@dataclass(frozen=True)
class Where:
    """Rows of a site's tensor, all axes but the last flattened."""

    rows: Int[Tensor, " token"]

    def of(self, hidden: Float[Tensor, "*batch width"]) -> Float[Tensor, "token width"]:
        """What stands there.

        Raises:
            NoSuchSiteError: The module is called several times for one batch, so that rows can't be counted through.
        """
        flat = hidden.flatten(0, -2)
        if len(self.rows) and int(self.rows.max()) >= len(flat):
            raise NoSuchSiteError(
                f"this part of the vision tower runs more than once for a batch ({len(flat)} rows at a time); edit it with "
                "batch_size=1 and one picture an item, or edit merger_out."
            )
        return flat[self.rows.to(hidden.device)]

    def put(self, hidden: Float[Tensor, "*batch width"], values: Float[Tensor, "token width"]) -> Float[Tensor, "*batch width"]:
        """A copy with other values there."""
        changed = hidden.clone().flatten(0, -2)
        changed[self.rows.to(hidden.device)] = values.to(hidden)
        return changed.reshape(hidden.shape)


@dataclass(frozen=True)
class Batch:
    """Items, prepared for a model."""

    vlm: VLM
    items: tuple[Item, ...]

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        """The model's keyword arguments."""
        return self.vlm.prepare(self.items)

    @cached_property
    def layout(self) -> Layout:
        """Which pixels each image token shows."""
        return self.vlm.layout(self.inputs, self.items)

    @cached_property
    def roles(self) -> dict[str, Bool[Tensor, "batch position"]]:
        """Masks by role."""
        return {role: mask.cpu() for role, mask in self.vlm.token_roles(self.inputs, self.items).items()}

    @cached_property
    def grids(self) -> list[list[Any]]:
        """Rows and columns of the views of each item's pictures."""
        found = iter(self.layout.grids)
        return [[next(found) for _ in item.images] for item in self.items]

    def tokens(self, role: str, row: int) -> Bool[Tensor, " position"]:
        """Which positions of one item belong to a role."""
        if role not in self.roles:
            raise ValueError(f"role={role!r} is not one of: {', '.join(map(repr, self.roles))}.")
        return self.roles[role][row]

    def mask(self, role: str) -> Bool[Tensor, "batch position"]:
        """Where a role's tokens are.

        Raises:
            ValueError: There is no such role.
            NeverFiredError: The role has no token in one of the items, so that an edit there would do nothing.
        """
        for row, item in enumerate(self.items):
            if not bool(self.tokens(role, row).any()):
                raise _no_token(role, item)
        return self.roles[role]

    def where(self, role: str, site: str = "resid") -> Where:
        """The places of a role's tokens in a site's tensor."""
        if not SITES[site].vision:
            return Where(self.mask(role).flatten().nonzero()[:, 0])
        return Where(torch.cat([self.rows(role, site, row)[self.pictured(role, site, row)] for row in range(len(self.items))]))

    def rows(self, role: str, site: str, row: int) -> Int[Tensor, " token"]:
        """The rows of a site's tensor that hold one item's image tokens (or those of one picture, for ``object:1``)."""
        whole = _whole(role)
        if not SITES[site].vision:
            return self.tokens(whole, row).nonzero()[:, 0] + row * self.inputs["input_ids"].shape[1]
        fed = self.layout.token_of_row(site)
        mine = self.layout.token_roles(self.items)[whole] & (self.layout.item == row)
        return ((fed >= 0) & mine[fed.clamp(min=0)]).nonzero()[:, 0]

    def pictured(self, role: str, site: str, row: int) -> Bool[Tensor, " token"]:
        """Of :meth:`rows`, those that belong to the role."""
        if not SITES[site].vision:
            return self.tokens(role, row)[self.tokens(_whole(role), row)]
        fed = self.layout.token_of_row(site)[self.rows(role, site, row)]
        return self.layout.token_roles(self.items)[role][fed]


def laid_over(role: str, receiver: Batch, donor: Batch, site: str = "resid") -> tuple[Where, Where]:
    """The places of a role in a receiver and, token by token, those in its donor that correspond.

    Image tokens correspond by their places in pictures of one grid: ``object`` is then every image token that shows the object
    in the receiver or in the donor, and ``background`` the other image tokens, so that a patch of the object takes it away where
    it was and puts it where the donor has it. The tokens of other roles correspond in their order.

    Raises:
        TokenCountError: The role has different numbers of tokens in a receiver and its donor, or their pictures have other grids.
        NeverFiredError: It has none.
        NoSuchSiteError: The role has no tokens at this site.
    """
    if SITES[site].vision and role.partition(":")[0] not in PICTURE_ROLES:
        raise NoSuchSiteError(f"role {role!r} has no rows at {site}, which is inside the vision tower; use 'image' or 'object'.")
    parts = [_pair(role, receiver, donor, site, row) for row in range(len(receiver.items))]
    return Where(torch.cat([mine for mine, _ in parts])), Where(torch.cat([given for _, given in parts]))


def _pair(role: str, receiver: Batch, donor: Batch, site: str, row: int) -> tuple[Int[Tensor, " token"], Int[Tensor, " token"]]:
    item, source = receiver.items[row], donor.items[row]
    kind = role.partition(":")[0]
    if kind not in PICTURE_ROLES:
        mine, given = (
            batch.tokens(role, row).nonzero()[:, 0] + row * batch.inputs["input_ids"].shape[1] for batch in (receiver, donor)
        )
        if len(mine) != len(given):
            raise TokenCountError(
                f"role {role!r} has {len(given)} tokens in the donor {source.id!r} and {len(mine)} in the receiver {item.id!r}; "
                "give a donor of the same prompt, or patch a role of one token, such as 'answer'."
            )
    else:
        if receiver.grids[row] != donor.grids[row]:
            raise TokenCountError(
                f"the pictures of the donor {source.id!r} make the grids of tokens {donor.grids[row]} and those of the receiver "
                f"{item.id!r} {receiver.grids[row]}, so role {role!r} can't be laid over; give pictures of the same size."
            )
        mine, given = receiver.rows(role, site, row), donor.rows(role, site, row)
        one, other = (batch.pictured(role, site, row) for batch in (receiver, donor))
        chosen = one & other if kind == "background" else one | other
        mine, given = mine[chosen], given[chosen]
    if not len(mine):
        raise _no_token(role, item)
    return mine, given


def _whole(role: str) -> str:
    """The role of all image tokens among which a role lies: ``image``, or ``image:1`` for one picture's."""
    _, colon, number = role.partition(":")
    return f"image{colon}{number}"


def _no_token(role: str, item: Item) -> NeverFiredError:
    return NeverFiredError(
        f"role {role!r} has no token in item {item.id!r}, so the edit would never fire there; leave the item out."
    )
