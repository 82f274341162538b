"""Lazy pictures: drawn, read or uniform when asked for, never all in memory."""

import hashlib
import io
import math
import os
import re
import struct
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from deixis.benchmarks.render import Camera, Figure, draw, memory_scene

MAX_PIXELS = 64_000_000
LONGEST_SIDE = 16_384
"""Of a picture that is drawn from a description, in pixels."""
# Part of every cache key: raise it when the renderer draws other bytes for the same arguments.
_RENDERER_VERSION = 1
# Fields that came later stand in a key only where they are not at their default: pictures drawn before keep their keys.
_LATER_FIGURE, _LATER_CAMERA = ("addressee_m", "addressee_x_m"), ("x_m", "yaw_deg")
_EIGHT_BIT = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV")
"""Pillow's modes that become 8-bit RGB without loss of depth."""


class ImageError(ValueError):
    """A picture that cannot be used: missing, truncated, too large or changed."""


class ImageHandle(ABC):
    """A picture that is not in memory yet."""

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""

    @abstractmethod
    def load(self) -> Image.Image:
        """The picture, RGB."""

    @cached_property
    def sha256(self) -> str:
        """Hash of mode, size and pixels; equal pictures have equal hashes whatever file holds them."""
        return hash_pixels(self.load())

    def to_json(self) -> Any:
        """What ``from_json`` of the class takes to make the picture again, in plain JSON (see the module ``handles``)."""
        raise NotImplementedError(f"{type(self).__name__} has no description; give it to_json and from_json.")


def hash_pixels(image: Image.Image) -> str:
    """SHA-256 of an RGB picture's size and bytes, in hexadecimal."""
    digest = hashlib.sha256(f"RGB {image.width} {image.height} ".encode())
    digest.update(image.tobytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Where drawn pictures are kept: ``$DEIXIS_CACHE``, else the user's cache folder."""
    base = os.environ.get("DEIXIS_CACHE")
    if base:
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deixis"


class CachedImage(ImageHandle):
    """A picture that is drawn on first use and kept in the cache folder."""

    @cached_property
    def key(self) -> str:
        """Name in the cache: a hash of everything that decides the bytes."""
        raise NotImplementedError(f"{type(self).__name__} has no key; give it one, without which nothing can be cached.")

    @abstractmethod
    def draw(self) -> Image.Image:
        """The picture, RGB, made now."""

    @property
    def path(self) -> Path:
        """Where it is in the cache, once it was drawn."""
        return cache_folder() / "images" / f"{self.key}.png"

    def load(self) -> Image.Image:
        """The picture, RGB, from the cache if it is there."""
        path = self.path
        with suppress(OSError, ImageError):  # not drawn yet, or left incomplete by another program
            return _opened(path.read_bytes(), str(path))
        image = self.draw()
        with suppress(OSError):  # a read-only home must not keep anyone from drawing
            write_png(image, path)
        return image


@dataclass(frozen=True, kw_only=True)
class DrawnImage(CachedImage):
    """A memory-game scene, drawn on first use and kept in the cache folder."""

    figure: Figure
    camera: Camera = field(default_factory=Camera)
    pixels: int = 512
    """Width and height."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.pixels, self.pixels

    @cached_property
    def key(self) -> str:
        """Name in the cache: a hash of everything that decides the bytes."""
        what = (_RENDERER_VERSION, self.pixels, _keyed(self.figure, _LATER_FIGURE), _keyed(self.camera, _LATER_CAMERA))
        return hashlib.sha256(repr(what).encode()).hexdigest()[:32]

    def draw(self) -> Image.Image:
        """The picture, RGB, made now."""
        return Image.fromarray(draw(memory_scene(self.figure), self.camera.view(self.pixels)).pixels)

    def to_json(self) -> dict[str, Any]:
        """Figure, camera and size."""
        return {"figure": asdict(self.figure), "camera": asdict(self.camera), "pixels": self.pixels}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "DrawnImage":
        """The picture that :meth:`to_json` described."""
        figure, camera, pixels = entry["figure"], entry["camera"], entry["pixels"]
        check_description(*figure.values(), *camera.values(), sides=(pixels,))
        return cls(figure=Figure(**figure), camera=Camera(**camera), pixels=pixels)


def _keyed(part: Figure | Camera, later: tuple[str, ...]) -> list[tuple[str, object]]:
    default = {f.name: f.default for f in fields(part)}
    return sorted((name, value) for name, value in asdict(part).items() if name not in later or value != default[name])


@dataclass(frozen=True, kw_only=True)
class UniformImage(ImageHandle):
    """One colour all over: the ``blank`` condition is grey 128."""

    width: int
    height: int
    grey: int = 128

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.width, self.height

    def load(self) -> Image.Image:
        """The picture, RGB."""
        return Image.new("RGB", self.size, (self.grey,) * 3)

    def to_json(self) -> dict[str, Any]:
        """Size and grey."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "UniformImage":
        """The picture that :meth:`to_json` described."""
        check_description(entry["grey"], sides=(entry["width"], entry["height"]))
        return cls(**entry)


@dataclass(frozen=True, kw_only=True)
class DecolouredImage(ImageHandle):
    """Another picture in shades of grey (luma of ITU-R BT.601)."""

    source: ImageHandle

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.source.size

    def load(self) -> Image.Image:
        """The picture, RGB with three equal channels."""
        return self.source.load().convert("L").convert("RGB")

    def to_json(self) -> dict[str, Any]:
        """The picture that is turned grey."""
        from deixis.benchmarks.handles import described

        return described(self.source)

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "DecolouredImage":
        """The picture that :meth:`to_json` described."""
        from deixis.benchmarks.handles import rebuilt

        return cls(source=rebuilt(entry))


@dataclass(frozen=True, kw_only=True)
class FileImage(ImageHandle):
    """A picture on disk; ``expected`` is the hash that it had when the items were saved."""

    path: Path
    expected: str | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels as shown, from the file's head unless EXIF turns the picture."""
        return _shown_size(self._data(), str(self.path))

    def load(self) -> Image.Image:
        """The picture, RGB: turned as EXIF says, transparent parts on white.

        Raises:
            ImageError: The file is missing, no picture, truncated, over 64 megapixels, of more than 8 bits a channel, or not
                the one that was saved.
        """
        image = _opened(self._data(), str(self.path))
        if self.expected is not None and hash_pixels(image) != self.expected:
            raise ImageError(f"{self.path} is not the picture that was saved (its hash differs); put the original back.")
        return image

    def _data(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise ImageError(f"{self.path} can't be read ({error.strerror}); put the picture back.") from error


def check_description(*values: Any, sides: tuple[Any, ...]) -> None:
    """Refuse what no program wrote as a picture's description, and would only be seen when it is drawn.

    Raises:
        ValueError: A number is not finite, or a picture's side is no whole number of 1 to 16,384 pixels.
    """
    for value in values:
        if isinstance(value, int | float) and not math.isfinite(value):
            raise ValueError(f"{value} is no finite number")
    for side in sides:
        if isinstance(side, bool) or not isinstance(side, int) or not 0 < side <= LONGEST_SIDE:
            raise ValueError(f"a side of {str(side)[:60]} pixels, where 1 to {LONGEST_SIDE} are possible")


def write_png(image: Image.Image, path: Path) -> None:
    """Write a PNG without time stamps under a temporary name, then rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
        image.save(file, "PNG")
    Path(file.name).replace(path)


def _head(data: bytes, name: str) -> Image.Image:
    """The picture with nothing but its head read; one that is too large or would lose depth in 8 bits is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit below is lower
            image = Image.open(io.BytesIO(data))
    except Image.DecompressionBombError as error:
        raise _too_large(name, "too many pixels") from error
    except UnidentifiedImageError as error:  # whose own words are an address in memory
        raise ImageError(f"{name} is no picture that pillow can read; use PNG or JPEG.") from error
    except (OSError, ValueError, SyntaxError) as error:
        raise ImageError(f"{name} is no picture that pillow can read: {error}. Use PNG or JPEG.") from error
    if image.width * image.height > MAX_PIXELS:
        raise _too_large(name, f"{image.width} x {image.height} pixels")
    deep = _deep_mode(image)
    if deep is not None:
        raise ImageError(f"{name} has the mode {deep}, which 8-bit RGB can't hold without loss; convert it to 8 bits a channel.")
    return image


def _too_large(name: str, pixels: str) -> ImageError:
    return ImageError(f"{name} has {pixels}; at most {MAX_PIXELS // 1_000_000} megapixels are read. Reduce it first.")


def _deep_mode(image: Image.Image) -> str | None:
    """The mode, if it is not an 8-bit one.

    Pillow itself cuts 16-bit colour down to RGB; only the arguments of its decoder tell.
    """
    if image.mode not in _EIGHT_BIT:
        return image.mode
    for *_, given in getattr(image, "tile", ()):
        raw, *rest = given if isinstance(given, tuple) else (given,)
        if isinstance(raw, str) and re.search(r";(16|32)[BLN]", raw):
            return raw
        if image.format == "PPM" and rest and rest[0] > 255:  # the brightest value of a PPM file
            return f"{raw} up to {rest[0]}"
    return None


def _shown_size(data: bytes, name: str) -> tuple[int, int]:
    with _head(data, name) as image, _damage_named(name):
        turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1
        return ImageOps.exif_transpose(image).size if turned else image.size


def _opened(data: bytes, name: str) -> Image.Image:
    with _head(data, name) as image, _damage_named(name):
        upright = ImageOps.exif_transpose(image)
        if not upright.has_transparency_data:
            return upright.convert("RGB")
        seen = upright.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, SyntaxError, struct.error) as error:
        raise ImageError(f"{name} is damaged: {error}. Copy it again from its source.") from error
