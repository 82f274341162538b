"""Items on disk: what a model sees, as JSON lines and PNG files.

A saved directory holds ``header.json`` (schema version and fingerprint), ``items.jsonl`` and ``images/<hash of the pixels>.png``.
"""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deixis.benchmarks.handles import described, rebuilt
from deixis.benchmarks.images import ImageError, ImageHandle
from deixis.benchmarks.item_json import ItemsError, from_record, parse_line, to_line, to_record
from deixis.benchmarks.items import Item, Items
from deixis.benchmarks.picture_paths import PictureFolder
from deixis.benchmarks.saving import HEADER, LINES, SCHEMA, UnfinishedFolder, check_is_free, write_pictures


def save_items(items: Items, folder: Path) -> Path:
    """Write ``items`` and their pictures to ``folder``; nothing is left there if it fails half-way.

    Raises:
        FileExistsError: ``folder`` holds something already.
        ImageError: A picture cannot be read.
    """
    check_is_free(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = UnfinishedFolder(items, folder, folder.parent / f".{folder.name}.{uuid.uuid4().hex}.tmp")
    try:
        for images in unfinished.missing():
            unfinished.note(images, write_pictures(images, unfinished.place))
        unfinished.finish()
    finally:
        unfinished.remove()
    return folder


def items_to_jsonl(items: Items) -> str:
    """One line an item, for a run's own directory: drawn pictures as what draws them, files as absolute path and hash.

    Raises:
        ItemsError: An item's picture is of a class that only its own program knows.
    """
    entries: dict[int, dict[str, Any]] = {}  # items share pictures: describe (and hash) each once
    lines = []
    for item in items:
        for image in item.images:
            if id(image) not in entries:
                entries[id(image)] = _described(image, item)
        lines.append(to_line(to_record(item, [entries[id(image)] for image in item.images])) + "\n")
    return "".join(lines)


def items_from_jsonl(text: str) -> Items:
    """The items that :func:`items_to_jsonl` wrote; pictures are not read yet.

    Raises:
        ItemsError: A line cannot be read; the message says which.
    """
    known: dict[str, ImageHandle] = {}

    def image(entry: Any) -> ImageHandle:
        key = json.dumps(entry, sort_keys=True)
        if key not in known:
            known[key] = rebuilt(entry)
        return known[key]

    return Items(_read_lines(text, "the run's items.jsonl", image))


def load_saved(folder: Path) -> Items:
    """The items of a directory that :func:`save_items` wrote.

    Raises:
        ItemsError: It is none, was changed, or is of another version.
    """
    header = _header(folder)
    if header.get("schema") != SCHEMA:
        raise ItemsError(
            f"{folder} was saved with schema {header.get('schema')!r} and this deixis reads schema {SCHEMA}; "
            "save the items again or install the deixis version that header.json names."
        )
    if not (folder / LINES).is_file():
        raise ItemsError(f"{folder} has no {LINES}; save the items again.")
    items = load_lines(folder / LINES)
    if items.fingerprint != header.get("fingerprint"):
        raise ItemsError(
            f"{folder / LINES} was changed after it was saved (another fingerprint); save the items again, "
            f"or name the file {LINES} itself if the change is meant."
        )
    return items


def _header(folder: Path) -> dict[str, Any]:
    path = folder / HEADER
    try:
        header = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ItemsError(
            f"{folder} has no {HEADER}, so Items.save did not write it; name a .jsonl file in it instead."
        ) from error
    except (OSError, ValueError) as error:
        raise ItemsError(f"{path} can't be read ({error}); save the items again.") from error
    if not isinstance(header, dict):
        raise ItemsError(f"{path} holds no JSON object; save the items again.")
    return header


def load_lines(path: Path) -> Items:
    """The items of a JSONL file, whose pictures lie below its folder.

    Raises:
        ItemsError: The file or one of its lines can't be used; the message says which line and item.
        ImageError: A picture is missing, damaged, over 64 megapixels or not the one that was saved.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ItemsError(f"{path} can't be read as UTF-8 text ({error}); write it as UTF-8.") from error
    pictures = PictureFolder(path.parent)
    return Items(_read_lines(text, str(path), lambda entry: pictures.picture(*_file_entry(entry))))


def _read_lines(text: str, name: str, image: Callable[[Any], ImageHandle]) -> list[Item]:
    items: list[Item] = []
    first_line: dict[str, int] = {}
    # Not splitlines: it also breaks at signs that JSON allows inside a string.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        try:
            record = parse_line(line)
            if isinstance(record.get("id"), str):
                where += f" (item {record['id']!r})"
            item = from_record(record, image)
        except (ItemsError, ImageError) as error:
            raise type(error)(f"{where}: {str(error).rstrip('.')}.") from error
        except RecursionError as error:
            raise ItemsError(f"{where}: it is nested too deeply; write it flatter.") from error
        if item.id in first_line:
            raise ItemsError(f"{where}: line {first_line[item.id]} has this id already; ids must differ.")
        first_line[item.id] = number
        items.append(item)
    if not items:
        raise ItemsError(f"{name} holds no item; write one JSON object a line.")
    return items


def _file_entry(entry: Any) -> tuple[str, str | None]:
    if isinstance(entry, str):
        return entry, None
    if isinstance(entry, dict) and set(entry) == {"file", "sha256"} and all(isinstance(v, str) for v in entry.values()):
        return entry["file"], entry["sha256"]
    raise ItemsError("an entry of images is neither a path nor an object with the strings file and sha256")


def _described(image: ImageHandle, item: Item) -> dict[str, Any]:
    try:
        return described(image)
    except ItemsError as error:
        raise ItemsError(f"item {item.id!r} has {error}") from error
