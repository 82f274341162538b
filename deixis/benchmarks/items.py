"""Items: one question put to a model, with everything that decides or explains the answer."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from deixis.benchmarks.images import ImageHandle

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
    text: str | None = None
    """What stands behind a letter in the prompt ("50 degrees"), where ``label`` is that letter."""
    kind: str | None = None
    """What is wrong about it: ``correct``, ``position``, ``size``, ``both``; or ``less_correct``, ``less_wrong``, ``wrong``."""

    def __post_init__(self) -> None:
        if not self.forms or not all(form.strip() for form in self.forms):
            raise ValueError(f"the option {self.label!r} has the forms {self.forms}; give at least one, and none that is empty.")

    def seen(self) -> dict[str, Any]:
        """Ready for JSON; what came later than the first saved items stands there only where it is given."""
        return {name: value for name, value in asdict(self).items() if value is not None or name not in _LATER_OPTION}


_LATER_OPTION = ("text", "kind")


@dataclass(frozen=True, kw_only=True)
class Box:
    """Where an object lies in one of the item's pictures, in pixels of that picture (right and bottom exclusive)."""

    name: str
    left: float
    top: float
    right: float
    bottom: float
    image: int = 0


IMAGE_MARK = "<image>"
"""Where a picture stands in a prompt, for each picture once; without any mark the pictures come first."""


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
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else is exactly true of the pictures, ready for JSON (poses, boxes in space); no model sees it."""

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
            "options": [option.seen() for option in self.options],
            "truth": self.truth,
            "targets": {name: float(value) for name, value in self.targets.items()},
            "groups": dict(self.groups),
            "nuisances": {name: float(value) for name, value in self.nuisances.items()},
            "objects": [asdict(box) for box in self.objects],
        } | ({"facts": dict(self.facts)} if self.facts else {})


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

    def with_condition(self, name: str, seed: int = 0) -> "Items":
        """The same questions with the pictures changed; ids get the condition's name behind a plus sign.

        ``blank`` is uniform grey, ``black`` black, ``text_only`` no picture at all, ``shuffled`` the picture of another scene,
        ``decoloured`` shades of grey; ``"shuffled+decoloured"`` is both, and ``"real"`` changes nothing. The interventions of
        ``dx.interventions``, which need items with more truth, are conditions too. Truth, targets
        and groups stay those of the original scene, so that conditions line up item by item. Boxes and nuisances stay too, but
        are those of the picture that is shown where it is another scene's (its name is in the group ``shown``); without any
        picture there are no boxes, and the marks ``<image>`` are taken out of the prompt.

        Args:
            name: One condition, or several joined with ``+``.
            seed: Decides which scene shows which in ``shuffled``; never its own, and no two the same.

        Raises:
            ValueError: ``name`` is no known condition, contradicts itself or what was done to an item before, or an item has no
                picture; fewer than two scenes are there to shuffle.
        """
        from deixis.benchmarks.conditions import with_condition

        return Items(with_condition(self._items, name, seed))

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
        return fingerprint_of(self, lambda image: image.sha256)

    def save(self, folder: str | Path) -> Path:
        """Write questions and pictures, all that a model sees, to ``folder``; :func:`deixis.load_items` reads it.

        Raises:
            FileExistsError: ``folder`` holds something already.
        """
        from deixis.benchmarks.saved import save_items

        return save_items(self, Path(folder))


def fingerprint_of(items: Iterable[Item], sha256: Callable[[ImageHandle], str]) -> str:
    """The fingerprint of items whose pictures' hashes are known; see :attr:`Items.fingerprint`."""
    digest = hashlib.sha256()
    for item in items:
        what = item.seen() | {"images": [sha256(image) for image in item.images]}
        digest.update(json.dumps(what, sort_keys=True, ensure_ascii=False).encode())
    return digest.hexdigest()
