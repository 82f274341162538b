"""Pictures that a file of items names: found below one folder, read once, and held to their pixels from then on."""

from pathlib import Path, PurePosixPath, PureWindowsPath

from deixis.benchmarks.images import FileImage, ImageError
from deixis.benchmarks.item_json import ItemsError, shown


class PictureFolder:
    """The pictures below a folder, each read at most once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._known: dict[tuple[str, str | None], FileImage] = {}

    def picture(self, name: str, expected: str | None = None) -> FileImage:
        """The picture at ``name``, read now, so that a missing or damaged one is found before hours of work.

        Args:
            name: A path relative to the folder.
            expected: The hash of its pixels, if that is known.

        Raises:
            ItemsError: The path is absolute, leads out of the folder, or can't be used.
            ImageError: There is no such picture, or it can't be read, or isn't the one that is expected.
        """
        key = (name, expected)
        if key not in self._known:
            found = self._inside(name)
            self._known[key] = FileImage(path=found, expected=FileImage(path=found, expected=expected).sha256)
        return self._known[key]

    def _inside(self, name: str) -> Path:
        """The file ``name`` below the folder, wherever its links lead."""
        posix, windows = PurePosixPath(name), PureWindowsPath(name)
        if posix.is_absolute() or windows.root or windows.drive:
            raise ItemsError(f"the image path {name!r} is absolute; write it relative to the folder that holds the items")
        if ".." in posix.parts or ".." in windows.parts:
            raise ItemsError(f"the image path {name!r} holds '..'; keep the images below the folder that holds the items")
        try:
            found = (self.folder / name).resolve()
            there = found.is_file()
        except (OSError, ValueError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or error  # an OSError's text repeats the whole path
            raise ItemsError(f"the image path {shown(name)} can't be used ({reason}); name a file that exists") from error
        if not found.is_relative_to(self.folder):
            raise ItemsError(f"the image path {name!r} leads out of its folder through a link; copy the image into the folder")
        if not there:
            raise ImageError(f"the image {shown(name)} is missing; put it back into {self.folder}")
        return found
