"""Where what a pass keeps lands on the host: one block of memory a batch, filled while the pass goes on."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

_ALIGNED = 64
"""Every array begins at a multiple of so many bytes."""


@dataclass(frozen=True)
class Shape:
    """Of an array that is to land."""

    rows: int
    width: int
    dtype: torch.dtype

    @property
    def bytes(self) -> int:
        """Without what aligns the next one."""
        return self.rows * self.width * self.dtype.itemsize


Name = tuple[str, int, str]
"""Site, layer and role."""


class Landing:
    """One block of host memory, cut into the arrays that a batch keeps.

    Whoever holds one of the arrays holds the block, so that what was read from one batch is not touched by the next. Pinned
    blocks come from torch's cache of them: with two batches in memory, the same two take turns.

    Args:
        shapes: What is to land, by a name for each.
        pinned: Whether it comes from a GPU, which copies to pinned memory beside its other work.
    """

    def __init__(self, shapes: Mapping[Name, Shape], *, pinned: bool) -> None:
        self._shapes = dict(shapes)
        self._starts: dict[Name, int] = {}
        end = 0
        for name, shape in shapes.items():
            self._starts[name] = end
            end += -(-shape.bytes // _ALIGNED) * _ALIGNED
        self._block = torch.empty(end, dtype=torch.uint8, pin_memory=pinned)
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def place(self, name: Name, width: int, dtype: torch.dtype) -> Float[Tensor, "row width"] | None:
        """The memory for one array; None if it is not of the shape that was foreseen."""
        shape = self._shapes.get(name)
        if shape is None or (shape.width, shape.dtype) != (width, dtype):
            return None
        start = self._starts[name]
        return self._block[start : start + shape.bytes].view(dtype).view(shape.rows, width)

    def fetch(self, value: Float[Tensor, "row width"], place: Float[Tensor, "row width"]) -> None:
        """Copy an array to its place; from a GPU on a stream of its own, complete after :meth:`wait`."""
        if value.device.type != "cuda":
            place.copy_(value)
            return
        stream = self._streams.setdefault(value.device, torch.cuda.Stream(value.device))
        stream.wait_stream(torch.cuda.current_stream(value.device))  # until the value has been computed
        with torch.cuda.stream(stream):
            place.copy_(value, non_blocking=True)
        value.record_stream(stream)  # its memory is not given to the next layer before it has been copied

    def wait(self) -> None:
        """Wait for the copies from GPUs."""
        for stream in self._streams.values():
            stream.synchronize()
