"""Items on disk: what a model sees, as JSON lines and PNG files.

A saved directory holds ``header.json`` (schema version and fingerprint), ``items.jsonl`` and ``images/<hash of the pixels>.png``.
"""

import json
import shutil
import uuid
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from deixis.benchmarks.handles import described, rebuilt
from deixis.benchmarks.images import FileImage, ImageError, ImageHandle
from deixis.benchmarks.item_json import ItemsError, from_record, parse_line, shown, to_line, to_record
from deixis.benchmarks.items import Item, Items

SCHEMA = 1
_HEADER, _LINES, _PICTURES = "header.json", "items.jsonl", "images"


def save_items(items: Items, folder: Path) -> Path:
    """Write ``items`` and their pictures to ``folder``; nothing is left there if it fails half-way.

    Raises:
        FileExistsError: ``folder`` holds something already.
        ImageError: A picture cannot be read.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} holds something already; nothing is overwritten, so name a new folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.parent / f".{folder.name}.{uuid.uuid4().hex}.tmp"
    try:
        (unfinished / _PICTURES).mkdir(parents=True)
        _write(items, unfinished)
        if folder.exists():
            folder.rmdir()
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def load_items(path: str | Path) -> Items:
    """Read items from a directory that :meth:`Items.save` wrote, or from a JSONL file of your own.

    A line of a JSONL file needs ``id``, ``prompt``, ``images`` (paths below the file's folder) and ``options`` (strings, or
    objects with ``label``, ``forms``, ``term``, ``value``); every other field of :class:`Item` may be left out. Each picture is
    read once, so that a missing or damaged one is found now and not hours into a run.

    Raises:
        ItemsError: The directory, the file or one of its lines cannot be used; the message says which line and item.
        ImageError: A picture is missing, damaged, over 64 megapixels or not the one that was saved.
    """
    path = Path(path)
    if not path.exists():
        raise ItemsError(f"{path} does not exist; name a directory that Items.save wrote, or a .jsonl file.")
    if path.is_dir():
        return _load_saved(path)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return _load_lines(path)
    raise ItemsError(f"{path} is neither a directory that Items.save wrote nor a .jsonl file; only these two can be read.")


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


def _write(items: Items, folder: Path) -> None:
    names: dict[str, str] = {}
    with (folder / _LINES).open("w", encoding="utf-8", newline="\n") as file:
        for item in items:
            for image in item.images:
                if image.sha256 not in names:
                    names[image.sha256] = f"{_PICTURES}/{image.sha256}.png"
                    image.load().save(folder / names[image.sha256], "PNG")
            entries = [{"file": names[image.sha256], "sha256": image.sha256} for image in item.images]
            file.write(to_line(to_record(item, entries)) + "\n")
    header = {
        "schema": SCHEMA,
        "deixis": version("deixis"),
        "n_items": len(items),
        "fingerprint": items.fingerprint,
    }
    (folder / _HEADER).write_text(json.dumps(header, indent=2) + "\n", "utf-8")


def _load_saved(folder: Path) -> Items:
    header = _header(folder)
    if header.get("schema") != SCHEMA:
        raise ItemsError(
            f"{folder} was saved with schema {header.get('schema')!r} and this deixis reads schema {SCHEMA}; "
            "save the items again or install the deixis version that header.json names."
        )
    if not (folder / _LINES).is_file():
        raise ItemsError(f"{folder} has no {_LINES}; save the items again.")
    items = _load_lines(folder / _LINES)
    if items.fingerprint != header.get("fingerprint"):
        raise ItemsError(
            f"{folder / _LINES} was changed after it was saved (another fingerprint); save the items again, "
            f"or name the file {_LINES} itself if the change is meant."
        )
    return items


def _header(folder: Path) -> dict[str, Any]:
    path = folder / _HEADER
    try:
        header = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ItemsError(
            f"{folder} has no {_HEADER}, so Items.save did not write it; name a .jsonl file in it instead."
        ) from error
    except (OSError, ValueError) as error:
        raise ItemsError(f"{path} can't be read ({error}); save the items again.") from error
    if not isinstance(header, dict):
        raise ItemsError(f"{path} holds no JSON object; save the items again.")
    return header


def _load_lines(path: Path) -> Items:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ItemsError(f"{path} can't be read as UTF-8 text ({error}); write it as UTF-8.") from error
    folder, known = path.parent.resolve(), {}

    def image(entry: Any) -> ImageHandle:
        name, expected = _file_entry(entry)
        key = (name, expected)
        if key not in known:
            found = _inside(folder, name)
            # Read now, and held to these pixels from now on.
            known[key] = FileImage(path=found, expected=FileImage(path=found, expected=expected).sha256)
        return known[key]

    return Items(_read_lines(text, str(path), image))


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


def _inside(folder: Path, name: str) -> Path:
    """The file ``name`` below ``folder``, wherever its links lead."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    if posix.is_absolute() or windows.root or windows.drive:
        raise ItemsError(f"the image path {name!r} is absolute; write it relative to the folder that holds the items")
    if ".." in posix.parts or ".." in windows.parts:
        raise ItemsError(f"the image path {name!r} holds '..'; keep the images below the folder that holds the items")
    try:
        found = (folder / name).resolve()
        there = found.is_file()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error  # an OSError's text repeats the whole path
        raise ItemsError(f"the image path {shown(name)} can't be used ({reason}); name a file that exists") from error
    if not found.is_relative_to(folder):
        raise ItemsError(f"the image path {name!r} leads out of its folder through a link; copy the image into the folder")
    if not there:
        raise ImageError(f"the image {shown(name)} is missing; put it back into {folder}")
    return found


def _described(image: ImageHandle, item: Item) -> dict[str, Any]:
    try:
        return described(image)
    except ItemsError as error:
        raise ItemsError(f"item {item.id!r} has {error}") from error
