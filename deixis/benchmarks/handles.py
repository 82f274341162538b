"""How pictures are written into a run's ``items.jsonl`` without their pixels, and made again: the one registry of their classes.

A picture is written as ``{name: description}``, where ``name`` is that of its class here; only a file on disk is written as
``{"file": path, "sha256": hash}``. A class of pictures that can be made again has ``to_json()``, which returns its description
in plain JSON, and the class method ``from_json(description)``.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from deixis.benchmarks.images import FileImage, ImageHandle
from deixis.benchmarks.item_json import ItemsError

HANDLES = {
    "drawn": "deixis.benchmarks.images:DrawnImage",
    "uniform": "deixis.benchmarks.images:UniformImage",
    "decoloured": "deixis.benchmarks.images:DecolouredImage",
    "anchored": "deixis.benchmarks.spacenum.anchored:AnchoredImage",
    "room": "deixis.benchmarks.spacenum.rooms:RoomImage",
    "layout": "deixis.benchmarks.spacenum.layout_picture:LayoutImage",
    "abstract_layout": "deixis.benchmarks.spacenum.abstractions:AbstractLayout",
    "blender": "deixis.benchmarks.blender_pictures:BlenderImage",
}
"""Where each class is, by its name in ``items.jsonl``. Loaded when a picture of the class is made again."""


def described(image: ImageHandle) -> dict[str, Any]:
    """``image`` in plain JSON.

    Raises:
        ItemsError: The class is not in :data:`HANDLES`.
    """
    if isinstance(image, FileImage):
        return {"file": str(image.path.resolve()), "sha256": image.sha256}
    kind = type(image)
    home = f"{kind.__module__}:{kind.__qualname__}"
    name = next((name for name, known in HANDLES.items() if known == home), None)
    if name is None:
        raise ItemsError(
            f"a picture of class {kind.__name__}, which another program could not rebuild; "
            "write the items with Items.save and load them with deixis.load_items first."
        )
    return {name: image.to_json()}


def rebuilt(entry: Any) -> ImageHandle:
    """The picture that :func:`described` wrote; not drawn or read yet.

    Raises:
        ItemsError: The entry is of no known class, or not what that class writes.
    """
    try:
        match entry:
            case {"file": str(path), "sha256": str(expected)}:
                return FileImage(path=Path(path), expected=expected)
            case dict() if len(entry) == 1 and next(iter(entry)) in HANDLES:
                ((name, description),) = entry.items()
                return _kind(name).from_json(description)
    except ItemsError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ItemsError(f"an entry of images can't be rebuilt ({error}); record the run again") from error
    *most, last = HANDLES
    raise ItemsError(f"an entry of images is neither {', '.join(most)}, {last} nor a file with its hash; record the run again")


def _kind(name: str) -> Any:
    module, _, kind = HANDLES[name].partition(":")
    return getattr(import_module(module), kind)
