"""Vision features of pictures that several items show, made once.

Every picture goes through the tower alone, or with the other pictures of its item where these matter, so that its features are
the same bits whichever items come before or beside it, and whether they were kept or made again.
"""

import inspect
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from deixis.benchmarks import Item
from deixis.benchmarks.images import ImageHandle
from deixis.models.vlm import VLM

MOST_BYTES = 512 << 20
"""Of features that are kept, on the model's device; those not asked for the longest go first."""
Pictures = tuple[ImageHandle, ...]


class VisionFeatures:
    """Makes the features of pictures, and keeps them while there is room.

    Args:
        vlm: A model whose family takes features in place of pixels (:attr:`~deixis.models.families.Family.vision_cache`).
        most_bytes: How many bytes of features to keep; 0 keeps none, and gives the same.

    Raises:
        ValueError: The family takes pixels only.
    """

    def __init__(self, vlm: VLM, most_bytes: int = MOST_BYTES) -> None:
        if not vlm.family.vision_cache:
            raise ValueError(f"{vlm.family.architecture} takes pixels only; run it as it is.")
        self._vlm, self._most = vlm, most_bytes
        self._kept: OrderedDict[tuple[str, ...], Any] = OrderedDict()
        self._bytes: dict[tuple[str, ...], int] = {}
        # Some classes leave it to the model inside, and Pixtral's sizes pass through the outer one unnamed.
        owners = [owner for owner in (vlm.model, vlm.model.model) if hasattr(owner, "get_image_features")]
        self._owner = owners[0]
        self._takes = {name for owner in owners for name in inspect.signature(type(owner).get_image_features).parameters}

    def instead_of_pixels(self, inputs: Mapping[str, Tensor], items: Sequence[Item]) -> dict[str, Any]:
        """The keyword arguments of a prepared batch with features in place of its pixels.

        What else the processor says of the pictures (grids, sizes) stays, since positions are worked out from it.
        """
        units = [unit for item in items for unit in self._units(item)]
        if not units:
            return dict(inputs)
        own = {_name(unit): unit for unit in units}
        made = {name: self._features(name, unit, items[0]) for name, unit in own.items()}
        joined = joined_features([made[_name(unit)] for unit in units])
        self._make_room()
        rest = {name: value for name, value in inputs.items() if name != "pixel_values"}
        return {**rest, "mm_encoder_outputs": {"image": joined}}

    def _units(self, item: Item) -> list[Pictures]:
        """The pictures that go through the tower together."""
        if not item.images:
            return []
        return [(image,) for image in item.images] if self._vlm.family.pictures_apart else [item.images]

    def _features(self, name: tuple[str, ...], pictures: Pictures, like: Item) -> Any:
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        alone = replace(like, images=pictures, prompt="a", objects=(), id="pictures")
        inputs = self._vlm.prepare([alone])
        given = {key: value for key, value in inputs.items() if key in self._takes}
        with torch.no_grad():
            whole = self._owner.get_image_features(**given, return_dict=True)
        found = joined_features([whole])  # what the decoder takes, without the tower's own hidden states
        self._kept[name] = found
        self._bytes[name] = sum(tensor.untyped_storage().nbytes() for tensor in _tensors(found))
        return found

    def _make_room(self) -> None:
        while self._kept and sum(self._bytes.values()) > self._most:
            oldest, _ = self._kept.popitem(last=False)
            del self._bytes[oldest]


def joined_features(parts: Sequence[Any]) -> Any:
    """The outputs of ``get_image_features`` for several pictures as if it had been called for all of them at once.

    Features come as a tuple or list with an entry a picture, or as a tensor whose first axis counts pictures or their tiles;
    DeepStack's as a list of layers of such. What is the same whatever the picture (Ovis2's marks) is taken once.
    """
    first = parts[0]
    joined: dict[str, Any] = {"pooler_output": _joined([part.pooler_output for part in parts])}
    if getattr(first, "deepstack_features", None) is not None:
        layers = zip(*(part.deepstack_features for part in parts), strict=True)
        joined["deepstack_features"] = [_joined(layer) for layer in layers]
    if getattr(first, "visual_indicator_features", None) is not None:
        joined["visual_indicator_features"] = first.visual_indicator_features
    return type(first)(**joined)


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], Tensor):
        return torch.cat(list(parts))
    return type(parts[0])(each for part in parts for each in part)


def _tensors(value: Any) -> list[Tensor]:
    """All tensors in a nest of tuples, lists and outputs."""
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def _name(pictures: Pictures) -> tuple[str, ...]:
    return tuple(picture.sha256 for picture in pictures)
