"""Rooms to move in: built once for all pictures of them, poses that are free, and what is seen from a pose."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from jaxtyping import Int
from PIL import Image

from deixis.benchmarks.images import CachedImage
from deixis.benchmarks.items import Box
from deixis.benchmarks.render import Quality, draw
from deixis.benchmarks.render.embree import check_embree
from deixis.benchmarks.render.room import Room, furnished_room
from deixis.benchmarks.render.stage import Stage
from deixis.benchmarks.spacenum.actions import Pose

# Part of every cache key: raise it when rooms are drawn in other bytes for the same arguments.
_ROOMS_VERSION = 1
_SEED_WORD = 0x5AC3
BODY_RADIUS_M = 0.28
"""Of whoever holds the camera: no wall or piece of furniture comes nearer."""
MIN_VISIBLE = 3
MIN_SHARE = 0.005
"""Of the picture's pixels, for an object to count as visible."""
ROOM_QUALITY = Quality(edge=3)
"""Nine samples at edges instead of sixteen: a room has many edges."""
_GLIMPSE = 128


@dataclass(frozen=True)
class RoomKey:
    """Which room: everything in it follows from these numbers."""

    seed: int
    scene: int
    attempt: int

    def rng(self, *stream: int) -> np.random.Generator:
        """Chance that belongs to this room."""
        return np.random.default_rng((_SEED_WORD, self.seed, self.scene, self.attempt, *stream))


@lru_cache(maxsize=2)
def built(key: RoomKey) -> tuple[Room, Stage]:
    """The room and its stage; the last ones are kept, because several pictures of a room follow each other.

    Raises:
        ImportError: embreex is not installed.
    """
    check_embree("rooms")
    room = furnished_room(key.rng(0))
    return room, Stage(room.scene)


@dataclass(frozen=True, kw_only=True)
class RoomImage(CachedImage):
    """A view of a furnished room."""

    room: RoomKey
    pose: Pose
    pixels: int = 512
    """Width and height."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.pixels, self.pixels

    @cached_property
    def key(self) -> str:
        """Name in the cache: a hash of everything that decides the bytes."""
        what = ("room", _ROOMS_VERSION, self.pixels, asdict(self.room), asdict(self.pose))
        return hashlib.sha256(repr(what).encode()).hexdigest()[:32]

    def draw(self) -> Image.Image:
        """The picture, RGB, made now."""
        _, stage = built(self.room)
        return Image.fromarray(draw(stage, self.pose.view(self.pixels), ROOM_QUALITY).pixels)

    def to_json(self) -> dict[str, Any]:
        """Everything that decides the picture."""
        return {"room": asdict(self.room), "pose": self.pose.as_facts(), "pixels": self.pixels}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "RoomImage":
        """The picture that :meth:`to_json` wrote.

        Raises:
            ValueError: A number is of the wrong kind or missing.
        """
        x, y, z = (float(value) for value in entry["pose"]["position_m"])
        rest = {name: float(entry["pose"][name]) for name in ("yaw_deg", "pitch_deg", "focal_mm")}
        numbers = [entry["room"][name] for name in ("seed", "scene", "attempt")] + [entry["pixels"]]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"the room and size {numbers} are not whole numbers from 0")
        return cls(room=RoomKey(*numbers[:3]), pose=Pose(position_m=(x, y, z), **rest), pixels=numbers[3])


@dataclass(frozen=True)
class Glimpse:
    """What is seen from a pose, from a picture of object numbers 128 pixels wide."""

    shares: dict[str, float]
    """Of the pixels, for each visible thing, by its name."""
    objects: Int[np.ndarray, "row column"]
    mean_depth_m: float

    def boxes(self, room: Room, size: int, image: int) -> list[Box]:
        """Around the visible pixels of each visible thing, in pixels of a picture ``size`` wide; right to one part in 128."""
        found, scale = [], size / len(self.objects)
        for name in self.shares:
            rows, columns = np.nonzero(self.objects == room.scene.names.index(name))
            left, right, top, bottom = columns.min(), columns.max() + 1, rows.min(), rows.max() + 1
            edges = [float(edge * scale) for edge in (left, top, right, bottom)]
            found.append(Box(name=name, left=edges[0], top=edges[1], right=edges[2], bottom=edges[3], image=image))
        return found


def glimpse(key: RoomKey, pose: Pose) -> Glimpse:
    """What is seen from a pose; floor, walls, ceiling and skirting count as nothing."""
    room, stage = built(key)
    objects, depth = stage.seen(pose.view(_GLIMPSE))
    counts = np.bincount(objects.ravel() + 1, minlength=len(room.scene.names) + 1)[1:]
    shares = {room.scene.names[n]: round(int(counts[n]) / objects.size, 5) for n in room.counted}
    visible = {name: share for name, share in shares.items() if share >= MIN_SHARE}
    return Glimpse(visible, objects, round(float(depth.astype(float).sum()) / depth.size, 4))


def is_way_free(room: Room, poses: Sequence[Pose]) -> bool:
    """Whether all the poses, and the straight way from the first to each, are free of walls and furniture."""
    start = poses[0].position_m
    return all(room.is_free((start[0], start[1]), (p.position_m[0], p.position_m[1]), BODY_RADIUS_M) for p in poses)
