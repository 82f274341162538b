"""What is refused before anything is decoded: runs that do not belong together, and pictures on both sides of a split."""

import json
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from deixis.benchmarks.images import FileImage, ImageHandle

if TYPE_CHECKING:
    from deixis.activations import Run
    from deixis.benchmarks import Item
    from deixis.models import VLM

NETWORK = ("weights", "dtype", "revision")
"""Settings of a run that tell one network from another of the same name."""
ARCHITECTURE = ("family", "n_layers", "d_model")


def refuse_paths(runs: Iterable[object]) -> None:
    """Refuse the name of a run's folder where the run itself is needed.

    Raises:
        TypeError: One of them is a path.
    """
    for run in runs:
        if isinstance(run, str | PathLike):
            raise TypeError(f"{str(run)!r} is a path, not a run; open it with dx.open_run({str(run)!r}).")


def called(run: "Run") -> str:
    """The run's folder; its model where it has none."""
    return str(getattr(run, "path", run.info["model"]))


def first_difference(run: "Run", other: "Run", names: Sequence[str]) -> str | None:
    """The first of these settings in which two runs differ."""
    return next((name for name in names if run.info.get(name) != other.info.get(name)), None)


def refuse_other_networks(runs: "Sequence[Run]") -> None:
    """Refuse to treat runs of different networks as runs of one because their models share a name.

    Raises:
        ValueError: Weights, dtype or revision differ from those of the first run.
    """
    for run in runs[1:]:
        name = first_difference(runs[0], run, NETWORK)
        if name is not None:
            raise ValueError(
                f"the runs {called(runs[0])} and {called(run)} share the name {runs[0].info['model']!r} but differ in {name} "
                f"({runs[0].info.get(name)} and {run.info.get(name)}): vectors of different networks can't be put together; pass "
                "runs of one network."
            )


def refuse_other_weights(run: "Run", vlm: "VLM") -> None:
    """Refuse a model that is not the one that was recorded, whatever its name.

    Raises:
        ValueError: The weights differ from those of the run.
    """
    from deixis.activations.settings import weights_fingerprint

    if run.info.get("weights") not in (None, weights_fingerprint(vlm.model)):
        raise ValueError(f"the run was recorded with other weights than those of {vlm.name}; pass the model that was recorded.")


def refuse_other_items(items: "Sequence[Item]", others: "Sequence[Item]") -> None:
    """Refuse an untrained run whose items are not those of the run, as a model sees them.

    Raises:
        ValueError: Other ids, or an item with another question, options, target or group.
    """
    if [item.id for item in items] != [item.id for item in others]:
        raise ValueError("the untrained run holds other items than the run; record both with the same items.")
    for item, other in zip(items, others, strict=True):
        mine, its = item.seen(), other.seen()
        field = next((name for name in mine if _text(mine[name]) != _text(its[name])), None)
        if field is not None:
            raise ValueError(
                f"item {item.id!r} has another {field} in the untrained run than in the run; record both with the same items."
            )


def _text(value: Any) -> str:
    """As JSON, in which NaN equals NaN."""
    return json.dumps(value, sort_keys=True)


def refuse_shared_pictures(items: "Iterable[Item]", groups: str) -> None:
    """Refuse real items that show the same pictures in different groups: the split would put a picture on both of its sides.

    Handles are compared, so that no picture is drawn or read; of files whose hash is known, the hash. Vectors would not tell:
    those of the answer token's embedding are equal for all items.

    Raises:
        ValueError: Two items share their pictures and not their group.
    """
    first: dict[frozenset[object], Item] = {}
    for item in items:
        if item.condition != "real" or not item.images:
            continue
        other = first.setdefault(frozenset(map(_picture, item.images)), item)
        here, there = str(item.groups[groups]), str(other.groups[groups])
        if here != there:
            raise ValueError(
                f"items {other.id!r} and {item.id!r} show the same picture but have {groups} {there!r} and {here!r}, so that it "
                f"could be both learned from and tested on; give them one {groups}."
            )


def _picture(image: ImageHandle) -> object:
    return image.expected if isinstance(image, FileImage) and image.expected is not None else image


def chosen_layers(run: "Run", site: str, layers: Sequence[int] | None) -> list[int]:
    """The layers to work on, in order: all that were recorded, or those of them that were asked for.

    Raises:
        ValueError: One that was not recorded, or none at all.
    """
    recorded = list(run.layers(site))
    if layers is None:
        return recorded
    missing = [layer for layer in layers if layer not in recorded]
    if missing or not len(layers):
        raise ValueError(f"layers={list(layers)} must be some of those recorded at {site}: {', '.join(map(str, recorded))}.")
    return sorted(set(layers))
