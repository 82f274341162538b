"""A folder of items while it is being written: picture by picture, and on from there if it was interrupted."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from deixis.benchmarks.handles import described
from deixis.benchmarks.images import CachedImage, ImageHandle, hash_pixels, write_png
from deixis.benchmarks.item_json import ItemsError, to_line, to_record
from deixis.benchmarks.items import Items, fingerprint_of

SCHEMA = 1
HEADER, LINES, PICTURES = "header.json", "items.jsonl", "images"
_PLAN, _DONE = "plan.json", "done.jsonl"


def check_is_free(folder: Path) -> None:
    """Refuse to write over anything.

    Raises:
        FileExistsError: ``folder`` holds something already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} holds something already; nothing is overwritten, so name a new folder.")


class UnfinishedFolder:
    """Items on their way to ``folder``: made beside it, under another name, and renamed when all is there.

    Every picture is written under the hash of its pixels and then noted with that hash; a second writer of the same items takes
    over what is noted. What the finished folder holds does not depend on where the writing was interrupted.
    """

    def __init__(self, items: Items, folder: Path, place: Path | None = None) -> None:
        """Begin, or go on.

        Args:
            items: To be written.
            folder: Where they will be; nothing may be there yet.
            place: Where they are made; None for the folder's hidden neighbour, in which a later call goes on.

        Raises:
            FileExistsError: ``folder`` holds something already, or the neighbour holds a part of other items.
        """
        check_is_free(folder)
        self._items, self._folder = items, folder
        self.place = place or folder.parent / f".{folder.name}.unfinished"
        self._hashes: dict[ImageHandle, str] = {}
        self._images = {image: _key(image) for item in items for image in item.images}
        plan = self._plan()
        (self.place / PICTURES).mkdir(parents=True, exist_ok=True)
        self._check_plan(plan)
        self._read_done()
        self._done = (self.place / _DONE).open("a", encoding="utf-8")

    @property
    def n_written(self) -> int:
        """Pictures that are there."""
        return len(self._hashes)

    @property
    def n_pictures(self) -> int:
        """Pictures in all."""
        return len(self._images)

    def missing(self) -> Iterator[list[ImageHandle]]:
        """The pictures that are not there yet, scene by scene: those of one scene share what is costly to build."""
        scenes: dict[str, dict[ImageHandle, None]] = {}
        known: set[ImageHandle] = set(self._hashes)
        for item in self._items:
            new = [image for image in item.images if image not in known]
            known.update(new)
            scenes.setdefault(item.groups.get("scene", item.id), {}).update(dict.fromkeys(new))
        return (list(images) for images in scenes.values() if images)

    def note(self, images: list[ImageHandle], hashes: list[str]) -> None:
        """Say that :func:`write_pictures` has written these pictures."""
        for image, sha256 in zip(images, hashes, strict=True):
            self._hashes[image] = sha256
            key = self._images[image]
            if key is not None:
                self._done.write(json.dumps({"key": key, "sha256": sha256}) + "\n")
        self._done.flush()

    def finish(self) -> str:
        """Write the lines and the head, and give the folder its name.

        Returns:
            The fingerprint of the items.
        """
        self._done.close()
        with (self.place / LINES).open("w", encoding="utf-8", newline="\n") as file:
            for item in self._items:
                hashes = [self._hashes[image] for image in item.images]
                entries = [{"file": f"{PICTURES}/{sha256}.png", "sha256": sha256} for sha256 in hashes]
                file.write(to_line(to_record(item, entries)) + "\n")
        fingerprint = fingerprint_of(self._items, lambda image: self._hashes[image])
        header = {"schema": SCHEMA, "deixis": version("deixis"), "n_items": len(self._items), "fingerprint": fingerprint}
        (self.place / HEADER).write_text(json.dumps(header, indent=2) + "\n", "utf-8")
        self._leave_nothing_else()
        if self._folder.exists():
            self._folder.rmdir()
        self.place.rename(self._folder)
        return fingerprint

    def close(self) -> None:
        """Stop here; a later writer goes on."""
        self._done.close()

    def remove(self) -> None:
        """Stop, and leave nothing behind."""
        self._done.close()
        shutil.rmtree(self.place, ignore_errors=True)

    def _plan(self) -> str:
        """What tells these items from others, before a picture is drawn; items that can't be written are refused now."""
        digest = hashlib.sha256()
        for item in self._items:
            digest.update(to_line(to_record(item, [self._images[image] for image in item.images])).encode())
        return json.dumps({"schema": SCHEMA, "items": digest.hexdigest()})

    def _check_plan(self, plan: str) -> None:
        """What is there must be a part of the same items."""
        path = self.place / _PLAN
        if path.exists() and path.read_text("utf-8") != plan:
            raise FileExistsError(
                f"{self.place} holds a part of other items, which were to be {self._folder}; delete it, repeat the command that "
                "began it, or name another folder."
            )
        path.write_text(plan, "utf-8")

    def _read_done(self) -> None:
        by_key = {key: image for image, key in self._images.items() if key is not None}
        path = self.place / _DONE
        for line in path.read_text("utf-8").split("\n") if path.exists() else []:
            try:
                noted = json.loads(line)
                image, sha256 = by_key[noted["key"]], str(noted["sha256"])
            except (ValueError, KeyError, TypeError):
                continue  # cut off by the kill
            if (self.place / PICTURES / f"{sha256}.png").is_file():
                self._hashes[image] = sha256

    def _leave_nothing_else(self) -> None:
        """Take away notes, and files that were cut off."""
        kept = {f"{sha256}.png" for sha256 in self._hashes.values()}
        for path in (self.place / PICTURES).iterdir():
            if path.name not in kept:
                path.unlink()
        for name in (_PLAN, _DONE):
            (self.place / name).unlink()


def write_pictures(images: list[ImageHandle], place: Path) -> list[str]:
    """Draw or read pictures and write each under the hash of its pixels, whole or not at all.

    Returns:
        The hashes, in order.
    """
    hashes = []
    for image in images:
        loaded = image.load()
        hashes.append(hash_pixels(loaded))
        path = place / PICTURES / f"{hashes[-1]}.png"
        if path.exists():
            continue
        if isinstance(image, CachedImage) and image.path.is_file():  # packed once already
            unfinished = path.with_suffix(".tmp")
            shutil.copyfile(image.path, unfinished)
            unfinished.replace(path)
        else:
            write_png(loaded, path)
    return hashes


def _key(image: ImageHandle) -> str | None:
    """What tells the picture from others in another process; None for a class that only its own program knows."""
    try:
        return hashlib.sha256(json.dumps(described(image), sort_keys=True).encode()).hexdigest()
    except ItemsError:
        return None
