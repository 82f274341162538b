"""Items: one question put to a model, with everything that decides or explains the answer."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from deixis.benchmarks.images import ImageHandle, UniformImage

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Option:
    """An answer that counts, with every surface form in which it may be written.

    Raises:
        ValueError: There is no form, or an empty one.
    """

    label: str
    """What is reported."""
    forms: tuple[str, ...]
    term: str | None = None
    """Deictic value: ``proximal``, ``medial`` or ``distal``."""
    value: float | None = None

    def __post_init__(self) -> None:
        if not self.forms or not all(form.strip() for form in self.forms):
            raise ValueError(f"the option {self.label!r} has the forms {self.forms}; give at least one, and none that is empty.")


@dataclass(frozen=True, kw_only=True)
class Box:
    """Where an object lies in one of the item's pictures, in pixels of that picture (right and bottom exclusive)."""

    name: str
    left: float
    top: float
    right: float
    bottom: float
    image: int = 0


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question put to a model.

    Raises:
        ValueError: Two options share a label.
    """

    id: str
    benchmark: str
    task: str
    language: str
    condition: str = "real"
    images: tuple[ImageHandle, ...]
    prompt: str
    options: tuple[Option, ...]
    truth: str | None = None
    """The right option's label, or None where answers are compared with a distribution."""
    targets: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    """Items that share ``groups["scene"]`` are never split between train and test."""
    nuisances: Mapping[str, float] = field(default_factory=dict)
    objects: tuple[Box, ...] = ()

    def __post_init__(self) -> None:
        labels = [option.label for option in self.options]
        if len(set(labels)) < len(labels):
            raise ValueError(f"item {self.id!r} has options with the labels {labels}; give no label twice.")

    def seen(self) -> dict[str, Any]:
        """Everything but the pictures, ready for JSON."""
        return {
            "id": self.id,
            "benchmark": self.benchmark,
            "task": self.task,
            "language": self.language,
            "condition": self.condition,
            "prompt": self.prompt,
            "options": [asdict(option) for option in self.options],
            "truth": self.truth,
            "targets": {name: float(value) for name, value in self.targets.items()},
            "groups": dict(self.groups),
            "nuisances": {name: float(value) for name, value in self.nuisances.items()},
            "objects": [asdict(box) for box in self.objects],
        }


class Items:
    """An ordered set of items with distinct ids.

    Raises:
        ValueError: Two items share an id.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = tuple(items)
        seen: set[str] = set()
        for item in self._items:
            if item.id in seen:
                raise ValueError(f"two items have the id {item.id!r}; ids must differ within one set of items.")
            seen.add(item.id)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> "Items": ...
    def __getitem__(self, index: int | slice) -> "Item | Items":
        return Items(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __add__(self, other: "Items") -> "Items":
        return Items((*self, *other))

    def __repr__(self) -> str:
        """Counts by what tells items apart."""
        kinds = {(i.benchmark, i.task, i.language, i.condition) for i in self}
        return f"Items({len(self)} items, {len(kinds)} kinds of benchmark/task/language/condition)"

    def filter(self, keep: Callable[[Item], bool]) -> "Items":
        """The items for which ``keep`` is true, in order."""
        return Items(item for item in self if keep(item))

    def with_condition(self, name: str) -> "Items":
        """The same questions with the pictures changed; ids get the condition's name behind a plus sign.

        ``"real"`` changes nothing. Boxes and targets stay those of the original scene, so that roles and targets line up item by
        item.

        Raises:
            ValueError: ``name`` is no known condition, or an item has been changed already.
        """
        if name != "real" and name not in CONDITIONS:
            listed = ", ".join(map(repr, (*CONDITIONS, "real")))
            raise ValueError(f"condition={name!r} is not one of: {listed}.")
        return Items(_changed(item, name) for item in self)

    def to_frame(self) -> "pd.DataFrame":
        """One row per item: ids, kinds, truth, and a column per group, target and nuisance."""
        import pandas as pd

        plain = ("id", "benchmark", "task", "language", "condition", "truth")
        rows = [
            {name: getattr(item, name) for name in plain} | {**item.groups} | {**item.targets} | {**item.nuisances}
            for item in self
        ]
        return pd.DataFrame(rows, columns=None if rows else list(plain))

    @property
    def fingerprint(self) -> str:
        """Hash over all items and the pixels of all their pictures (draws or reads each picture once)."""
        digest = hashlib.sha256()
        for item in self:
            what = item.seen() | {"images": [image.sha256 for image in item.images]}
            digest.update(json.dumps(what, sort_keys=True, ensure_ascii=False).encode())
        return digest.hexdigest()

    def save(self, folder: str | Path) -> Path:
        """Write questions and pictures, all that a model sees, to ``folder``; :func:`deixis.load_items` reads it.

        Raises:
            FileExistsError: ``folder`` holds something already.
        """
        from deixis.benchmarks.saved import save_items

        return save_items(self, Path(folder))


def _blank(image: ImageHandle) -> ImageHandle:
    width, height = image.size
    return UniformImage(width=width, height=height)


CONDITIONS: dict[str, Callable[[ImageHandle], ImageHandle]] = {"blank": _blank}
"""What may be done to a picture. A new condition is a new entry here."""


def _changed(item: Item, name: str) -> Item:
    if item.condition != "real":
        raise ValueError(f"item {item.id!r} is in condition {item.condition!r} already; start from the real items.")
    if name == "real":
        return item
    images = tuple(CONDITIONS[name](image) for image in item.images)
    return replace(item, id=f"{item.id}+{name}", condition=name, images=images)
