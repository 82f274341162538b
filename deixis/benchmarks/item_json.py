"""Items as JSON records: written exactly, read strictly."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from deixis.benchmarks.images import ImageHandle
from deixis.benchmarks.items import Box, Item, Option
from deixis.benchmarks.languages import TERMS

_REQUIRED = ("id", "prompt", "images", "options")
_OPTIONAL = {
    "benchmark": "custom",
    "task": "question",
    "language": "und",
    "condition": "real",
    "truth": None,
    "targets": {},
    "groups": {},
    "nuisances": {},
    "objects": [],
    "facts": {},
}
_BOX = ("name", "left", "top", "right", "bottom")


class ItemsError(ValueError):
    """Items that cannot be read; the message names the file, the line and, where it is known, the item."""


def to_record(item: Item, images: Iterable[Any]) -> dict[str, Any]:
    """Everything that an item holds, ready for JSON; a number that is not known (NaN) becomes null."""
    record: dict[str, Any] = {**item.seen(), "images": list(images)}
    for name in ("targets", "nuisances"):
        record[name] = {key: None if math.isnan(value) else value for key, value in record[name].items()}
    return record


def to_line(record: Mapping[str, Any]) -> str:
    """One line of JSON without its line break.

    Raises:
        ItemsError: A number is infinite or NaN where only a finite one can be kept.
    """
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False)
    except TypeError as error:
        raise ItemsError(
            f"item {record['id']!r} has facts that JSON does not know ({error}); use plain numbers, texts, lists."
        ) from error
    except ValueError as error:
        raise ItemsError(
            f"item {record['id']!r} holds an infinite number or NaN in a box, an option or its facts; make it finite."
        ) from error


def parse_line(line: str) -> dict[str, Any]:
    """The object that a line of JSON holds; a key that comes twice is refused, because one of them would be lost."""
    try:
        record = json.loads(line, object_pairs_hook=_distinct)
        if "\\u" in line:
            json.dumps(record, ensure_ascii=False).encode()
    except ItemsError:
        raise
    except UnicodeEncodeError as error:
        raise ItemsError(
            f"a text holds {error.object[error.start]!r}, half of a surrogate pair, which UTF-8 can't hold; write the whole sign"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ItemsError(f"this is not JSON ({error}); write one JSON object a line") from error
    if not isinstance(record, dict):
        raise ItemsError(f"this is {shown(record)}, not a JSON object; write one object a line")
    return record


def from_record(record: Mapping[str, Any], image: Callable[[Any], ImageHandle]) -> Item:
    """The item that ``record`` describes; ``image`` turns each entry of its ``images`` into a handle.

    Raises:
        ItemsError: A field is missing, unknown or of the wrong type, or the truth is no option's label.
    """
    _check_names(record, _REQUIRED, _OPTIONAL)
    full = _OPTIONAL | dict(record)
    images = tuple(image(entry) for entry in _list(full["images"], "images"))
    options = tuple(_option(entry) for entry in _list(full["options"], "options"))
    labels = [option.label for option in options]
    if not labels or len(set(labels)) < len(labels):
        raise ItemsError(f"options has the labels {labels}; give at least one, and no label twice")
    truth = full["truth"]
    if truth is not None and truth not in labels:
        raise ItemsError(f"truth is {shown(truth)}, which is no option's label; use null or one of: {', '.join(labels)}")
    return Item(
        id=_named(full["id"], "id"),
        benchmark=_named(full["benchmark"], "benchmark"),
        task=_named(full["task"], "task"),
        language=_named(full["language"], "language"),
        condition=_named(full["condition"], "condition"),
        images=images,
        prompt=_text(full["prompt"], "prompt"),
        options=options,
        truth=truth,
        targets=_numbers(full["targets"], "targets"),
        groups={key: _text(value, f"groups.{key}") for key, value in _object(full["groups"], "groups").items()},
        nuisances=_numbers(full["nuisances"], "nuisances"),
        objects=tuple(_box(entry, len(images)) for entry in _list(full["objects"], "objects")),
        facts=_object(full["facts"], "facts"),
    )


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ItemsError(f"the field {twice!r} comes twice; keep one")
    return record


def _check_names(record: Mapping[str, Any], required: Iterable[str], optional: Iterable[str], inside: str = "") -> None:
    for name in required:
        if name not in record:
            raise ItemsError(f"{inside}the field {name!r} is missing; needed are {', '.join(required)}")
    for name in record:
        if name not in (*required, *optional):
            raise ItemsError(f"{inside}the field {name!r} is not known; allowed are {', '.join((*required, *optional))}")


def _option(entry: Any) -> Option:
    if isinstance(entry, str):
        entry = {"label": entry}
    fields = _object(entry, "an entry of options")
    _check_names(fields, ("label",), ("forms", "term", "value", "text", "kind"), "in options ")
    label = _named(fields["label"], "options.label")
    forms = tuple(_named(form, "options.forms") for form in _list(fields.get("forms", [label, f" {label}"]), "options.forms"))
    if not forms:
        raise ItemsError(f"the option {label!r} has no forms; leave the field out or give at least one")
    term, value = fields.get("term"), fields.get("value")
    if term is not None and term not in TERMS:
        raise ItemsError(f"options.term is {shown(term)}; allowed are null, {', '.join(TERMS)}")
    given = {name: _named(fields[name], f"options.{name}") for name in ("text", "kind") if fields.get(name) is not None}
    value = None if value is None else _number(value, "options.value")
    return Option(label=label, forms=forms, term=term, value=value, **given)


def _box(entry: Any, n_images: int) -> Box:
    fields = _object(entry, "an entry of objects")
    _check_names(fields, _BOX, ("image",), "in objects ")
    left, top, right, bottom = (_number(fields[name], f"objects.{name}") for name in _BOX[1:])
    image = fields.get("image", 0)
    if isinstance(image, bool) or not isinstance(image, int) or not 0 <= image < n_images:
        raise ItemsError(f"objects.image is {shown(image)}; allowed are whole numbers from 0 to {n_images - 1}")
    if not (left <= right and top <= bottom):
        raise ItemsError(f"an object's box runs from ({left}, {top}) to ({right}, {bottom}); left and top come first")
    return Box(name=_named(fields["name"], "objects.name"), left=left, top=top, right=right, bottom=bottom, image=image)


def _numbers(value: Any, name: str) -> dict[str, float]:
    known = _object(value, name)
    return {key: math.nan if v is None else _number(v, f"{name}.{key}") for key, v in known.items()}


def _number(value: Any, name: str) -> float:
    try:
        if not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value):
            return float(value)
    except OverflowError as error:
        raise ItemsError(f"{name} is {shown(value)}, a whole number too large for a float; write a smaller one") from error
    raise ItemsError(f"{name} is {shown(value)}, not a finite number")


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ItemsError(f"{name} is {shown(value)}, not a string")
    return value


def _named(value: Any, name: str) -> str:
    if not _text(value, name).strip():
        raise ItemsError(f"{name} is empty; write something")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ItemsError(f"{name} is {shown(value)}, not a list")
    return value


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ItemsError(f"{name} is {shown(value)}, not an object")
    return value


def shown(value: Any) -> str:
    """``value`` for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
