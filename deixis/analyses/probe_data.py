"""From a run to the arrays that a probe takes: which items, which rows, each distinct vector once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    from deixis.activations import Run
    from deixis.benchmarks import Item

SAME = 0.01
"""Vectors of one scene that lie closer than this share of the items' root-mean-square spread are one vector, seen twice."""
PIXELS = ("object_row", "object_area", "brightness")
"""Nuisances that a picture shows directly. The latents of decoupled scenes (``camera_pitch`` and the like) are not among them:
together with the object's height they determine its distance, and taking them out would take the distance out."""
_ROUNDING = 1e-5


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The items that a question is asked of: their places in the run, targets, groups and types."""

    index: Int[np.ndarray, " item"]
    ids: tuple[str, ...]
    languages: tuple[str, ...]
    target: Float[np.ndarray, " item"]
    groups: tuple[str, ...]
    types: tuple[str, ...] | None
    """None where the items have no such group."""
    nuisances: Float[np.ndarray, "item nuisance"] | None
    """None where the items have none."""


@dataclass(frozen=True, kw_only=True)
class ProbeData:
    """Distinct vectors with what belongs to them, one row each."""

    X: Float[np.ndarray, "item feature"]
    target: Float[np.ndarray, " item"]
    groups: tuple[str, ...]
    types: tuple[str, ...] | None
    nuisances: Float[np.ndarray, "item nuisance"] | None
    kept: Int[np.ndarray, " item"]
    """Which of the chosen items these are."""
    n_missing: int
    """Items left out because they have no token of the role."""


def choose_items(
    run: "Run",
    target: str,
    *,
    groups: str,
    types: str,
    condition: str,
    task: str | None,
    nuisances: Sequence[str] | None = None,
    where: Mapping[str, str] | None = None,
) -> Chosen:
    """The items of one condition and task; ``nuisances`` None takes those of :data:`PIXELS` that all of them have.

    Args:
        run: With the items.
        target: A key of their targets.
        groups: The group that is never split.
        types: The group that the control task is made by.
        condition: Of the items.
        task: Of the items; None for ``demonstrative``, or the only one.
        nuisances: Of the items.
        where: Further groups and the value that an item must have in each.

    Raises:
        ValueError: No such items, no such target or group, a target that is not finite, in metres for some and in degrees for
            others, or several tasks and none chosen; the message lists what there is.
    """
    items = list(enumerate(run.items))
    items = _those(items, "condition", condition, lambda item: item.condition)
    tasks = {item.task for _, item in items}
    if task is None and len(tasks) > 1 and "demonstrative" not in tasks:
        raise ValueError(f"the run holds several tasks ({_listed(tasks)}); choose one with task= (--task).")
    items = _those(items, "task", task or ("demonstrative" if "demonstrative" in tasks else min(tasks)), lambda item: item.task)
    for name, value in (where or {}).items():
        items = _those(items, name, value, lambda item, name=name: str(_value(item, "groups", "where", name)))
    members = [item for _, item in items]
    _check_unit(target, members)
    values = np.array([_value(item, "targets", "target", target) for item in members], dtype=np.float64)
    _check_finite(target, values, members)
    return Chosen(
        index=np.array([index for index, _ in items]),
        ids=tuple(item.id for item in members),
        languages=tuple(item.language for item in members),
        target=values,
        groups=tuple(str(_value(item, "groups", "groups", groups)) for item in members),
        types=tuple(item.groups[types] for item in members) if all(types in item.groups for item in members) else None,
        nuisances=_nuisances(members, nuisances),
    )


def _nuisances(items: "Sequence[Item]", names: Sequence[str] | None) -> Float[np.ndarray, "item nuisance"] | None:
    if names is None:
        names = [name for name in PIXELS if all(name in item.nuisances for item in items)]
    if not names:
        return None
    return np.array([[_value(item, "nuisances", "nuisances", name) for name in names] for item in items], dtype=np.float64)


def _those(items: list[tuple[int, "Item"]], name: str, value: str, read: "Callable[[Item], str]") -> list[tuple[int, "Item"]]:
    found = [(index, item) for index, item in items if read(item) == value]
    if not found:
        raise ValueError(f"the run holds no items with {name}={value!r}; it holds: {_listed({read(item) for _, item in items})}.")
    return found


def _check_unit(target: str, items: "Sequence[Item]") -> None:
    """Refuse magnitudes of moves and of turns put together: 0.4 m and 40 degrees are no values of one quantity."""
    units = {str(item.facts["unit"]) for item in items if "unit" in item.facts}
    if target.endswith("magnitude") and len(units) > 1:
        columns = {item.groups["column"] for item in items if "column" in item.groups}
        raise ValueError(
            f"the target {target!r} is in {' for some items and in '.join(sorted(units))} for others; take the items of one "
            f"action, such as where={{'column': {min(columns, default='move F/B')!r}}}; there are: {_listed(columns)}."
        )


def _check_finite(name: str, values: Float[np.ndarray, " item"], items: "Sequence[Item]") -> None:
    bad = [item.id for item, value in zip(items, values, strict=True) if not np.isfinite(value)]
    if bad:
        listed = ", ".join(map(repr, bad[:5])) + (", ..." if len(bad) > 5 else "")
        raise ValueError(
            f"the target {name!r} is NaN or infinite for {len(bad)} of {len(items)} items ({listed}); leave those items out."
        )


def _value(item: "Item", field: str, name: str, key: str) -> float | str:
    values = getattr(item, field)
    if key not in values:
        raise ValueError(f"{name}={key!r} is missing from item {item.id!r}; it has: {_listed(values)}.")
    return values[key]


def _listed(names: object) -> str:
    return ", ".join(sorted(map(repr, names))) or "nothing"  # pyright: ignore[reportArgumentType]


def probe_data(run: "Run", chosen: Chosen, *, site: str, layer: int, role: str, language: str | None) -> ProbeData:
    """The vectors of the chosen items (of one language, or None for all), each distinct one once.

    Where the picture precedes the text in a causal decoder, all questions about a picture have the same vectors at its tokens:
    counted once per question they would only look like more data. Vectors are compared within a scene (of equal target), with a
    tolerance for the rounding that differs between batches.

    Raises:
        ValueError: An infinite or partly NaN vector; no item has a token of the role.
    """
    take = np.array([language in (None, spoken) for spoken in chosen.languages])
    rows = np.asarray(run.activations(site, layer, role), dtype=np.float64)[chosen.index]
    missing = np.asarray(np.isnan(rows).all(axis=1))
    _check_whole(rows, missing, chosen.ids, site, layer, role)
    take &= ~missing
    if not take.any():
        raise ValueError(f"no item has a token of role {role!r} at {site} layer {layer}; choose another role.")
    kept = np.flatnonzero(take)
    kept = kept[distinct(rows[kept], [(chosen.groups[i], chosen.target[i]) for i in kept])]
    return ProbeData(
        X=settled(rows[kept]),
        target=chosen.target[kept],
        groups=tuple(chosen.groups[i] for i in kept),
        types=None if chosen.types is None else tuple(chosen.types[i] for i in kept),
        nuisances=None if chosen.nuisances is None else chosen.nuisances[kept],
        kept=kept,
        n_missing=int(missing.sum()),
    )


def settled(rows: Float[np.ndarray, "item feature"]) -> Float[np.ndarray, "item feature"]:
    """Vectors that differ by rounding alone made equal: a blank picture is the same for all scenes, whatever batch it was in."""
    mean = rows.mean(axis=0)
    return np.tile(mean, (len(rows), 1)) if _apart(rows - mean, mean).max() <= _ROUNDING else rows


def _apart(difference: Float[np.ndarray, "item feature"], size: Float[np.ndarray, " feature"]) -> Float[np.ndarray, " item"]:
    """Root-mean-square difference, each feature's as a share of its own size or, if that is larger, of the median size.

    A share of the whole vector's norm would let one large constant feature hide all that the others hold.
    """
    scale = np.maximum(np.abs(size), np.median(np.abs(size)))
    share = np.divide(difference, scale, out=np.where(difference == 0, 0.0, np.inf), where=scale > 0)
    return np.sqrt((share**2).mean(axis=1))


def distinct(rows: Float[np.ndarray, "item feature"], scenes: list[tuple[str, float]]) -> Int[np.ndarray, " kept"]:
    """Which rows to keep so that no two rows of one scene are the same vector up to rounding; the first one stays."""
    spread = np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean())
    members: dict[tuple[str, float], list[int]] = {}
    for number, scene in enumerate(scenes):
        kept = members.setdefault(scene, [])
        apart = rows[kept] - rows[number]
        near = len(kept) > 0 and np.linalg.norm(apart, axis=1).min() <= SAME * spread
        if not near and not (_apart(apart, rows[number]) <= _ROUNDING).any():
            kept.append(number)
    return np.sort(np.concatenate([np.array(kept) for kept in members.values()]))


def whole_vectors(
    rows: Float[np.ndarray, "item feature"], ids: Sequence[str], site: str, layer: int, role: str
) -> Float[np.ndarray, "item feature"]:
    """The vectors, if every item has one and all are finite.

    Raises:
        ValueError: An item has no token of the role; an infinite or partly NaN vector.
    """
    missing = np.asarray(np.isnan(rows).all(axis=1))
    _check_whole(rows, missing, ids, site, layer, role)
    if missing.any():
        raise ValueError(
            f"{int(missing.sum())} of {len(rows)} items have no token of role {role!r} at {site} layer {layer}, the first "
            f"{ids[int(missing.argmax())]!r}; choose another role, or leave those items out."
        )
    return rows


def _check_whole(
    rows: Float[np.ndarray, "item feature"],
    missing: Bool[np.ndarray, " item"],
    ids: Sequence[str],
    site: str,
    layer: int,
    role: str,
) -> None:
    broken = ~np.isfinite(rows).all(axis=1) & ~missing
    if broken.any():
        raise ValueError(
            f"{int(broken.sum())} of {len(rows)} vectors hold NaN or infinite values at {site} layer {layer}, role {role!r}, "
            f"the first at item {ids[int(broken.argmax())]!r}; record the run again, in another dtype if it overflowed."
        )
