"""Items from outside: what this library saved, lists of one's own, and SpaceNum as it was published."""

import csv
import io
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from deixis.benchmarks.images import FileImage, ImageError, ImageHandle, cache_folder, hash_pixels, write_png
from deixis.benchmarks.item_json import ItemsError, from_record, parse_line, shown
from deixis.benchmarks.items import Item, Items
from deixis.benchmarks.picture_paths import PictureFolder
from deixis.benchmarks.saved import load_lines, load_saved

_LISTED = 5
"""How many rows or pictures a message names."""
_LINES, _TABLES = (".jsonl", ".ndjson"), (".csv", ".tsv")
_KINDS = "a folder that Items.save wrote, a .jsonl or .csv file of your own, or SpaceNum's .json"
_NUMBERED = ("targets", "nuisances")


class ItemsWarning(UserWarning):
    """Rows of a set that were left out, as was asked for."""


def load_items(
    path: str | Path | Iterable[Any], images: str | Path | None = None, allow_missing: bool = False, allow_unknown: bool = False
) -> Items:
    """Read items from a folder, a file or a table.

    - A folder that :meth:`Items.save` wrote, as it was saved.
    - A JSONL file of your own. A line needs ``id``, ``prompt``, ``images`` (paths below the file's folder) and ``options``
      (strings, or objects with ``label``, ``forms``, ``term``, ``value``, ``text``, ``kind``); every other field of
      :class:`Item` may be left out.
    - A CSV or TSV file with the same columns: ``images`` with semicolons and ``options`` with vertical bars between them, and
      numbers and groups as columns of their own, ``targets.x_m`` or ``groups.scene``.
    - SpaceNum as it was published: a JSON array or JSONL file with the columns ``task``, ``subtask``, ``QA_prompt``,
      ``GT_answer``, ``meta_info``, ``image`` and ``QA_prompt_with_image_tag``. Rows that share a picture, or a room of the
      simulator, are one scene.
    - A ``datasets.Dataset`` or any other iterable of such rows; its pictures may be paths, or pictures, which are then kept in
      the cache folder.

    Each picture is read once, so that a missing or damaged one is found now and not hours into a run.

    Args:
        path: Of the folder or file, or a table.
        images: The folder below which the pictures are; None for the file's own.
        allow_missing: Leave out rows whose pictures are missing or damaged, and warn which; otherwise they are refused.
        allow_unknown: Of published rows: leave out columns, actions and words of patterns that are not known.

    Raises:
        ItemsError: The folder, the file or one of its lines cannot be used; the message says which line and item.
        ImageError: A picture is missing, damaged, over 64 megapixels or not the one that was saved.
    """
    if not isinstance(path, str | Path):
        return _of_rows(path, "the table", PictureFolder(Path(images or ".")), allow_missing, allow_unknown)
    path = Path(path)
    if not path.exists():
        raise ItemsError(f"{path} does not exist; name {_KINDS}.")
    if path.is_dir():
        _check_idle(f"the saved items in {path}", images=images is not None, allow_missing=allow_missing)
        return load_saved(path)
    suffix = path.suffix.lower()
    if suffix not in (*_LINES, *_TABLES, ".json"):
        raise ItemsError(f"{path} is none of what can be read; name {_KINDS}.")
    rows = _table(path) if suffix in _TABLES else None if suffix in _LINES and not _is_published(path) else _objects(path)
    if rows is None:
        _check_idle(f"{path}, a list of your own", images=images is not None, allow_missing=allow_missing)
        return load_lines(path)
    folder = Path(images) if images is not None else path.parent
    if not folder.is_dir():
        raise ItemsError(f"images={str(folder)!r} is no folder; name the one below which the pictures are.")
    return _of_rows(rows, str(path), PictureFolder(folder), allow_missing, allow_unknown)


def _check_idle(what: str, **given: bool) -> None:
    idle = [name for name, is_given in given.items() if is_given]
    if idle:
        raise ItemsError(f"{', '.join(idle)} can't change {what}; leave that out.")


def _is_published(path: Path) -> bool:
    from deixis.benchmarks.spacenum.published import is_published

    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = next((line for line in file if line.strip()), "")
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and is_published(record)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ItemsError(f"{path} can't be read as UTF-8 text ({error}); write it as UTF-8.") from error


def _objects(path: Path) -> list[Any]:
    """The objects of a JSON array, or of a file with one a line."""
    text = _read(path)
    try:
        if path.suffix.lower() in _LINES:
            return [parse_line(line) for line in text.split("\n") if line.strip()]
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = "Extra data" in str(error) and path.suffix.lower() not in _LINES
        way_out = "name it .jsonl if it has one row a line, else copy it again" if lines else "copy it again"
        raise ItemsError(f"{path} is not JSON ({error}); {way_out} from its source.") from error
    if isinstance(found, Mapping) and len(found) == 1:  # {"train": [...]}, as some exports have it
        found = next(iter(found.values()))
    if not isinstance(found, list):
        raise ItemsError(f"{path} holds {shown(found)}, not an array of rows; name the file that holds them.")
    return found


def _table(path: Path) -> list[dict[str, Any]]:
    """The lines of a CSV or TSV file as records, nested as those of a JSONL file are."""
    reader = csv.reader(io.StringIO(_read(path)), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    header, *lines = list(reader) or [[]]
    if len(set(header)) < len(header):
        raise ItemsError(f"{path} has a column twice in {', '.join(header)}; keep one.")
    if wrong := next((k for k, line in enumerate(lines, 2) if line and len(line) != len(header)), None):
        raise ItemsError(
            f"{path}, line {wrong}: it has {len(lines[wrong - 2])} cells and the head {len(header)}; make them agree."
        )
    return [_nested(dict(zip(header, line, strict=True))) for line in lines if line]


def _nested(cells: Mapping[str, str]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, cell in cells.items():
        outer, point, inner = name.partition(".")
        if point and outer in (*_NUMBERED, "groups"):
            if cell.strip():
                record.setdefault(outer, {})[inner] = _float(cell) if outer in _NUMBERED else cell
        elif name in ("images", "options"):
            record[name] = [part.strip() for part in cell.split(";" if name == "images" else "|") if part.strip()]
        elif cell.strip() or name in ("id", "prompt"):
            record[name] = cell
    return record


def _float(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell  # refused with its name, as in a JSONL file


def _of_rows(rows: Iterable[Any], name: str, pictures: PictureFolder, allow_missing: bool, allow_unknown: bool) -> Items:
    from deixis.benchmarks.spacenum.published import is_published

    records = list(rows)
    if not records:
        raise ItemsError(f"{name} holds no item; write one a row.")
    found = _Rows(name, pictures)
    if isinstance(records[0], Mapping) and is_published(records[0]):
        return found.published(records, allow_missing, allow_unknown)
    return found.own(records, allow_missing)


class _Rows:
    """Rows on their way to items; what can't be used is collected and told together."""

    def __init__(self, name: str, pictures: PictureFolder) -> None:
        self._name, self._pictures = name, pictures
        self._wrong: list[str] = []
        self._missing: dict[int, str] = {}

    def published(self, records: Sequence[Any], allow_missing: bool, allow_unknown: bool) -> Items:
        from deixis.benchmarks.spacenum.published import read_row, row_item, scenes

        rows = []
        for number, record in enumerate(records, 1):
            try:
                rows.append(read_row(_mapping(record), number, allow_unknown))
            except ItemsError as error:
                self._wrong.append(f"row {number}: {str(error).rstrip('.')}")
        self._refuse_wrong(len(records), "correct them, or leave what is not known out with allow_unknown=True (--allow-unknown)")
        images = {row.number: self._images(row.number, row.images) for row in rows}
        self._tell_missing(len(records), allow_missing)
        return Items(
            row_item(row, found, scene)
            for row, scene in zip(rows, scenes(rows), strict=True)
            if (found := images[row.number]) is not None
        )

    def own(self, records: Sequence[Any], allow_missing: bool) -> Items:
        items: list[Item] = []
        for number, record in enumerate(records, 1):
            try:
                row = _mapping(record)
                images = row.get("images")
                found = self._images(number, images if isinstance(images, list | tuple) else [])
                if found is not None:
                    held = iter(found)
                    items.append(from_record(dict(row), lambda _entry, held=held: next(held)))
            except ItemsError as error:
                self._wrong.append(f"row {number}: {str(error).rstrip('.')}")
        self._refuse_wrong(len(records), "correct them")
        self._tell_missing(len(records), allow_missing)
        return Items(items)

    def _images(self, number: int, entries: Sequence[Any]) -> list[ImageHandle] | None:
        try:
            return [self._image(entry) for entry in entries]
        except ImageError as error:
            self._missing[number] = str(error).rstrip(".")
        except ItemsError as error:
            self._wrong.append(f"row {number}: {str(error).rstrip('.')}")
        return None

    def _image(self, entry: Any) -> ImageHandle:
        if isinstance(entry, str):
            return self._pictures.picture(entry)
        if isinstance(entry, Image.Image):
            return _kept(entry)
        if isinstance(entry, Mapping) and isinstance(entry.get("bytes"), bytes):
            try:
                with Image.open(io.BytesIO(entry["bytes"])) as opened:
                    return _kept(opened)
            except (OSError, ValueError, SyntaxError) as error:
                raise ImageError(f"the bytes of a picture can't be read ({error})") from error
        if isinstance(entry, Mapping) and isinstance(entry.get("path"), str):
            return self._pictures.picture(entry["path"])
        raise ItemsError(f"a picture is {shown(entry)}, which is neither a path nor a picture")

    def _refuse_wrong(self, n_rows: int, way_out: str) -> None:
        if self._wrong:
            raise ItemsError(
                f"{self._name}: {len(self._wrong)} of {n_rows} rows can't be used ({_first(self._wrong)}); {way_out}."
            )

    def _tell_missing(self, n_rows: int, allowed: bool) -> None:
        if self._wrong:
            self._refuse_wrong(n_rows, "correct them")
        if not self._missing:
            return
        listed = _first([f"row {number}: {said}" for number, said in self._missing.items()])
        told = f"{self._name}: {len(self._missing)} of {n_rows} rows have pictures that are missing or damaged ({listed})"
        if not allowed:
            raise ImageError(f"{told}; put them back, or load the other rows with allow_missing=True (--allow-missing).")
        if len(self._missing) == n_rows:
            raise ImageError(f"{told}, so none is left; images=... names the folder below which the pictures are.")
        warnings.warn(f"{told}; they are left out.", ItemsWarning, stacklevel=5)


def _mapping(record: Any) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        raise ItemsError(f"this is {shown(record)}, not an object with columns")
    return record


def _first(told: Sequence[str]) -> str:
    more = len(told) - _LISTED
    return "; ".join(told[:_LISTED]) + (f"; and {more} more" if more > 0 else "")


def _kept(image: Image.Image) -> FileImage:
    """A picture in memory as a file in the cache folder, so that a run can find it again."""
    plain = image.convert("RGB")
    digest = hash_pixels(plain)
    path = cache_folder() / "tables" / f"{digest[:32]}.png"
    if not path.exists():
        write_png(plain, path)
    return FileImage(path=path, expected=digest)
