"""What a Watch may be asked for: roles and layers, and which of them each site has."""

from collections.abc import Collection, Mapping, Sequence

from deixis.models import VLM
from deixis.models.layout import PICTURE_ROLES
from deixis.models.sites import SITES

SINGLE_ROLES = ("answer", "bos")
"""Roles of exactly one token: nothing is averaged, so the model's own dtype is kept."""
_MANY_ROLES = (*PICTURE_ROLES, "text")


def roles_of(site: str, roles: Sequence[str]) -> tuple[str, ...]:
    """Those of ``roles`` that ``site`` can have: the vision tower knows no positions, so only the roles of pictures."""
    if site in SITES and SITES[site].vision:
        return tuple(role for role in roles if role.partition(":")[0] in PICTURE_ROLES)
    return tuple(roles)


def chosen_roles(roles: Sequence[str], sites: Sequence[str]) -> tuple[str, ...]:
    """The distinct roles, in order.

    Raises:
        ValueError: One is unknown, or no watched site can have it, or a site would be left without any.
    """
    listed = ", ".join(map(repr, (*SINGLE_ROLES, *_MANY_ROLES)))
    allowed = f"{listed}, or one picture's, such as 'image:0'"
    if isinstance(roles, str) or not roles:
        raise ValueError(f"roles={roles!r} must be a non-empty list of: {allowed}.")
    for role in roles:
        base, _, number = role.partition(":")
        numbered = base in PICTURE_ROLES and number.isascii() and number.isdigit()
        if role not in (*SINGLE_ROLES, *_MANY_ROLES) and not numbered:
            raise ValueError(f"roles holds {role!r}, which is not one of: {allowed}.")
    possible = {role for site in sites for role in roles_of(site, roles)}
    homeless = [role for role in roles if role not in possible]
    bare = [site for site in sites if not roles_of(site, roles)]
    if homeless or bare:
        names = ", ".join(map(repr, PICTURE_ROLES))
        which = f"roles holds {homeless[0]!r}" if homeless else f"roles={tuple(roles)!r} holds none of a picture's"
        raise ValueError(f"{which}; {(bare or sites)[0]} is in the vision tower, which has only: {names}, or one picture's.")
    return tuple(dict.fromkeys(roles))


Layers = Sequence[int] | str
"""Layer numbers, or ``"all"``."""


def chosen_points(vlm: VLM, sites: Sequence[str], layers: Layers | Mapping[str, Layers]) -> tuple[tuple[str, int], ...]:
    """Site and layer of everything that is asked for, in order.

    Raises:
        ValueError: The family lacks a site, no watched site has one of the layers, or a site has none of them.
    """
    has = {site: SITES[site].layers(vlm) for site in sites}
    if isinstance(layers, Mapping):
        if set(layers) != set(sites):
            raise ValueError(
                f"layers names the sites {', '.join(layers)}, where {', '.join(sites)} are watched; give each its own."
            )
        return tuple((site, layer) for site in sites for layer in _chosen(layers[site], {site: has[site]})[site])
    chosen = _chosen(layers, has)
    return tuple((site, layer) for site in sites for layer in chosen[site])


def _chosen(layers: Layers, has: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """The layers of each site among ``layers``."""
    shown = "; ".join(f"{site} has {_span(own)} in this model" for site, own in has.items())
    if isinstance(layers, str):
        if layers != "all":
            raise ValueError(f"layers={layers!r} is neither 'all' nor a list of layer numbers; {shown}.")
        return dict(has)
    if not layers:
        raise ValueError(f"layers is empty; {shown}, or say 'all'.")
    known = set().union(*has.values())
    for layer in layers:
        if isinstance(layer, bool) or not isinstance(layer, int) or layer not in known:
            raise ValueError(f"layers holds {layer!r}; {shown}.")
    chosen = {site: sorted(set(layers) & set(own)) for site, own in has.items()}
    without = [site for site, own in chosen.items() if not own]
    if without:
        raise ValueError(f"layers={list(layers)} holds none of {without[0]}; {shown}; a mapping gives each site its own.")
    return chosen


def _span(layers: Collection[int]) -> str:
    """The numbers in words."""
    low, high = min(layers), max(layers)
    if len(layers) == 1:
        return f"the layer {low}"
    if len(layers) == high - low + 1:
        return f"the layers {low} to {high}"
    return f"the layers {', '.join(map(str, sorted(layers)))}"
