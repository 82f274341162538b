"""SpaceNum (arXiv 2605.23898): numbers as sizes of actions between two views, and as coordinates of a layout."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from deixis.benchmarks.items import Items
from deixis.benchmarks.names import checked_names, checked_whole
from deixis.benchmarks.spacenum.prompts import DIRECTIONS

KINDS = ("transition", "layout")
SCALES = ("desk", "room")
MAPS = ("1D", "2D", "3D")
STANDARD_SIZE = 512


def spacenum(
    kind: str = "transition",
    n: int | None = None,
    seed: int = 0,
    size: int = STANDARD_SIZE,
    directions: Sequence[str] = DIRECTIONS,
    actions: Sequence[str] | None = None,
    magnitudes: Mapping[str, Sequence[float | int]] | None = None,
    scales: Sequence[str] = SCALES,
    maps: Sequence[str] = MAPS,
) -> Items:
    """Items of SpaceNum's form, of scenes that this library makes itself; pictures are drawn when they are first looked at.

    ``"transition"``: two views of a furnished room, before and after an action. ``"layout"``: two anchors define a coordinate
    frame on a desk or in a room, in which a third object stands somewhere. In the direction ``num2space`` numbers are given and a
    picture is chosen, in ``space2num`` it is the other way round; the answer is a letter.

    Args:
        kind: ``"transition"`` or ``"layout"``.
        n: Scenes, dealt in turn over the kinds of actions, or desks and rooms in the ratio of one to four; None for the paper's
            counts: 400 scenes and 800 items of transitions, 500 scenes and 3,000 items of layouts. The first scenes are the same
            whatever ``n`` is.
        seed: Of everything random.
        size: Width and height of the pictures in pixels.
        directions: ``"num2space"``, ``"space2num"``, or both.
        actions: For transitions, such as ``("rotate left",)``; None for all eight.
        magnitudes: For transitions: an action's own list of at least four values, in metres up to 5 or in degrees below 180, in
            place of the paper's grid.
        scales: For layouts: ``"desk"``, ``"room"``, or both.
        maps: For layouts: ``"1D"``, ``"2D"``, ``"3D"``.

    Returns:
        Scene by scene, and within a scene direction by direction (of layouts, map by map within it). ``truth`` is the right
        letter, ``facts`` holds poses, boxes and coordinates exactly.

    Raises:
        ValueError: An argument is outside what it allows, or would change nothing; the message lists what is allowed.
    """
    kind = checked_names("kind", [kind] if isinstance(kind, str) else kind, KINDS)[0]
    shared = {
        "n": None if n is None else checked_whole("n", n, 1),
        "seed": checked_whole("seed", seed, 0),
        "size": checked_whole("size", size, 16, 4096, " pixels"),
        "directions": checked_names("directions", directions, DIRECTIONS),
    }
    if kind == "transition":
        _check_idle(kind, scales=scales not in (SCALES, [*SCALES]), maps=maps not in (MAPS, [*MAPS]))
        own = {"actions": _actions(actions), "magnitudes": magnitudes}
        _check_used(own["actions"], magnitudes)
        return _maker("transition")(**shared, **own)
    _check_idle(kind, actions=actions is not None, magnitudes=magnitudes is not None)
    own = {"scales": checked_names("scales", scales, SCALES), "maps": checked_names("maps", maps, MAPS)}
    return _maker("layout")(**shared, **own)


def _maker(kind: str) -> Callable[..., Items]:
    """What makes the items of one kind; loaded now, because it loads the renderer's rooms."""
    return getattr(import_module(f"deixis.benchmarks.spacenum.{kind}"), f"{kind}_items")


def _actions(actions: Sequence[str] | None) -> tuple[str, ...]:
    known = import_module("deixis.benchmarks.spacenum.actions").ACTIONS
    return checked_names("actions", tuple(known) if actions is None else actions, tuple(known))


def _check_used(actions: tuple[str, ...], magnitudes: Mapping[str, Sequence[float | int]] | None) -> None:
    grids = import_module("deixis.benchmarks.spacenum.actions").grids
    idle = [name for name in grids(magnitudes) if name in (magnitudes or {}) and name not in actions]
    if idle:
        raise ValueError(
            f"magnitudes has {idle[0]!r}, which is not among actions={list(actions)}; leave it out, or ask for that action."
        )


def _check_idle(kind: str, **given: bool) -> None:
    idle = [name for name, is_given in given.items() if is_given]
    if idle:
        raise ValueError(f"{', '.join(idle)} can't change kind={kind!r}; leave that out, or choose the other kind.")
