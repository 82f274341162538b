"""Pictures that this library draws, drawn by Blender instead: same scene, same camera, same truth."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from PIL import Image

from deixis.benchmarks.images import CachedImage, DrawnImage, ImageHandle
from deixis.benchmarks.render import memory_scene
from deixis.benchmarks.render.blender import SAMPLES, check_samples, cycles_pixels
from deixis.benchmarks.render.blender_worker import VERSION
from deixis.benchmarks.render.scene import View
from deixis.benchmarks.render.stage import Stage

# Part of every cache key: raise it when the same scene is handed to Blender in another way.
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class BlenderImage(CachedImage):
    """A memory-game scene, a room or a layout through Cycles, drawn on first use and kept in the cache folder.

    Raises:
        ValueError: The source is none of these, or ``samples`` is no whole number from 1 to 4096.
    """

    source: ImageHandle
    samples: int = SAMPLES
    """Light paths per pixel."""

    def __post_init__(self) -> None:
        check_samples(self.samples)
        if not isinstance(self.source, CachedImage) or not isinstance(self.source, _scene_classes()):
            raise ValueError(
                f"a picture of class {type(self.source).__name__} is no scene that Blender could draw; "
                "take items of dx.memory_game or dx.spacenum."
            )

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.source.size

    @cached_property
    def key(self) -> str:
        """Name in the cache: a hash of everything that decides the bytes, except the processor."""
        what = ("blender", _VERSION, VERSION, self.samples, self.source.key)  # pyright: ignore[reportAttributeAccessIssue]
        return hashlib.sha256(repr(what).encode()).hexdigest()[:32]

    def draw(self) -> Image.Image:
        """The picture, RGB, made now.

        Raises:
            ImportError: There is no Blender, or no embreex.
            RuntimeError: Blender failed.
        """
        return Image.fromarray(cycles_pixels(*staged(self.source), self.samples))

    def to_json(self) -> dict[str, Any]:
        """The picture that is drawn by Blender, and with how many samples."""
        from deixis.benchmarks.handles import described

        return {"source": described(self.source), "samples": self.samples}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "BlenderImage":
        """The picture that :meth:`to_json` described."""
        from deixis.benchmarks.handles import rebuilt

        return cls(source=rebuilt(entry["source"]), samples=entry["samples"])


def staged(image: ImageHandle) -> tuple[Stage, View]:
    """The scene of a picture that this library draws, and the camera that sees it.

    Raises:
        ImportError: embreex is not installed.
        ValueError: The picture is no memory-game scene, room or layout.
    """
    from deixis.benchmarks.spacenum.layout_picture import LayoutImage
    from deixis.benchmarks.spacenum.rooms import RoomImage, built

    match image:
        case DrawnImage():
            return Stage(memory_scene(image.figure)), image.camera.view(image.pixels)
        case RoomImage():
            return built(image.room)[1], image.pose.view(image.pixels)
        case LayoutImage():
            return Stage(image.scene()), image.eye.view(image.pixels)
    raise ValueError(f"a picture of class {type(image).__name__} has no scene.")


def _scene_classes() -> tuple[type[ImageHandle], ...]:
    from deixis.benchmarks.spacenum.layout_picture import LayoutImage
    from deixis.benchmarks.spacenum.rooms import RoomImage

    return DrawnImage, RoomImage, LayoutImage
