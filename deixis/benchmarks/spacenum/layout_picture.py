"""A picture of a layout: what stands where, seen by which camera; drawn when asked for, with the truth about what is visible."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from PIL import Image

from deixis.benchmarks.images import CachedImage
from deixis.benchmarks.render.desk import DESK_DEPTH_M, DESK_WIDTH_M, DeskSetting, desk_stage
from deixis.benchmarks.render.embree import check_embree
from deixis.benchmarks.render.finish import PAINTS
from deixis.benchmarks.render.open_room import (
    BACKGROUND_ONLY,
    PLAIN,
    ROOM_DEPTH_M,
    ROOM_WIDTH_M,
    RoomSetting,
    piece,
    room_stage,
)
from deixis.benchmarks.render.scene import Parts, Scene, View
from deixis.benchmarks.render.shade import STANDARD, draw
from deixis.benchmarks.render.small_things import COLOURS, SMALL_THINGS, small_thing
from deixis.benchmarks.render.trace import F, Tracer
from deixis.benchmarks.spacenum.placing import AnchorFrame, box_corners

if TYPE_CHECKING:
    from deixis.benchmarks.spacenum.abstractions import AbstractLayout

ROLES = ("anchor_a", "anchor_b", "target")
CLUTTER = "clutter"
SCALES = ("desk", "room")
# Part of every cache key: raise it when the same description gives other bytes.
_VERSION = 1
# Nine samples along edges do, and take a third less time, in pictures of fewer pixels, which are for small models and thousands,
# and in rooms, which are full of edges.
_SMALL = 256

Metres = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Thing:
    """An object of a layout; it fills its box exactly."""

    role: str
    """One of :data:`ROLES`, or ``clutter``."""
    kind: str
    colour: str
    centre_m: Metres
    """Of its box, in the scene."""
    size_m: Metres
    """Of its box along its own axes."""
    yaw_deg: float
    """From the scene's x axis to its own, counter-clockwise from above."""

    @property
    def name(self) -> str:
        """What prompts and maps call it: ``red mug``, or ``bookshelf`` of a kind that is not called by a colour."""
        return self.kind if self.kind in (*PLAIN, *BACKGROUND_ONLY) else f"{self.colour} {self.kind}"

    @property
    def corners(self) -> Float[np.ndarray, "8 xyz"]:
        """Of its box, in the scene."""
        half = [edge / 2 for edge in self.size_m]
        own = box_corners([[-edge for edge in half], half])
        return AnchorFrame(origin_m=self.centre_m, yaw_deg=self.yaw_deg).to_scene(own)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The stage: a desk or a room, and its light."""

    scale: str
    surface: int = 0
    """Wood of the desk, or floor of the room."""
    wall: int = 0
    brightness: float = 1.0
    """Of the lights, 1 being standard."""


@dataclass(frozen=True, kw_only=True)
class Eye:
    """Where the camera is and looks: metres, degrees, millimetres on a 36 mm sensor."""

    position_m: Metres
    yaw_deg: float
    pitch_deg: float
    focal_mm: float

    def view(self, size: int) -> View:
        """The pinhole camera of a square picture ``size`` pixels wide."""
        return View(
            position=self.position_m, yaw=self.yaw_deg, pitch=self.pitch_deg, focal=self.focal_mm, width=size, height=size
        )

    def coordinates(self, points: Float[np.ndarray, "n xyz"]) -> Float[np.ndarray, "n xyz"]:
        """Points of the scene in the camera's frame: right, up, forward (the depth), in metres."""
        offset = points - np.array(self.position_m)
        return np.stack([(offset * axis).sum(axis=1) for axis in self.view(1).axes], axis=1)


@dataclass(frozen=True, kw_only=True)
class LayoutImage(CachedImage):
    """A desk or a room with things in it, drawn on first use and kept in the cache folder."""

    setting: Setting
    eye: Eye
    things: tuple[Thing, ...]
    pixels: int = 512
    """Width and height."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.pixels, self.pixels

    @cached_property
    def key(self) -> str:
        """Name in the cache: a hash of everything that decides the bytes."""
        return hashlib.sha256(repr(("layout", _VERSION, self.to_json())).encode()).hexdigest()[:32]

    def draw(self) -> Image.Image:
        """The picture, RGB, made now."""
        fine = self.setting.scale == "desk" and self.pixels >= _SMALL
        quality = STANDARD if fine else replace(STANDARD, edge=3)
        return Image.fromarray(draw(self.scene(), self.eye.view(self.pixels), quality).pixels)

    def scene(self) -> Scene:
        """What the renderer gets; the things' names in it are their roles.

        Raises:
            ImportError: embreex is not installed.
        """
        check_embree("layouts")
        scene = _stage(self.setting)
        for thing in self.things:
            x, y, z = thing.centre_m
            parts = _parts(thing.kind, thing.colour, thing.size_m)
            scene.add(thing.role, parts, (x, y, z - thing.size_m[2] / 2), thing.yaw_deg)
        return scene

    def without_clutter(self) -> "LayoutImage":
        """The same picture with the anchors and the target alone."""
        return replace(self, things=tuple(thing for thing in self.things if thing.role != CLUTTER))

    def abstracted(self, form: str) -> "AbstractLayout":
        """The anchors and the target as ``points``, ``boxes_2d`` or ``boxes_3d``.

        Raises:
            ValueError: ``form`` is none of these.
        """
        from deixis.benchmarks.spacenum.abstractions import AbstractLayout

        return AbstractLayout(form=form, layout=self.without_clutter())

    def thing(self, role: str) -> Thing:
        """The anchor or the target."""
        return next(thing for thing in self.things if thing.role == role)

    def to_json(self) -> dict[str, Any]:
        """The picture in plain JSON."""
        return {
            "setting": asdict(self.setting),
            "eye": asdict(self.eye),
            "things": [asdict(thing) for thing in self.things],
            "pixels": self.pixels,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "LayoutImage":
        """The picture that :meth:`to_json` described.

        Raises:
            TypeError: A field is missing or unknown.
            ValueError: A value is none that a picture can have.
        """
        things = tuple(Thing(**_tuples(thing)) for thing in entry["things"])
        setting = Setting(**entry["setting"])
        if setting.scale not in SCALES or sorted(t.role for t in things if t.role != CLUTTER) != sorted(ROLES):
            raise ValueError(f"a layout shows each of {', '.join(ROLES)} once, at one of the scales {', '.join(SCALES)}")
        return cls(setting=setting, eye=Eye(**_tuples(entry["eye"])), things=things, pixels=int(entry["pixels"]))


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(map(float, value)) if isinstance(value, list | tuple) else value for name, value in fields.items()}


def _stage(setting: Setting) -> Scene:
    stage = _built_stage(setting)
    return replace(stage, solids=[*stage.solids], names=[*stage.names], placements=[*stage.placements])


@lru_cache(maxsize=8)
def _built_stage(setting: Setting) -> Scene:
    if setting.scale == "desk":
        return desk_stage(DeskSetting(wood=setting.surface, wall=setting.wall, brightness=setting.brightness))
    return room_stage(RoomSetting(floor=setting.surface, wall=setting.wall, brightness=setting.brightness))


@lru_cache(maxsize=128)
def _parts(kind: str, colour: str, size: Metres) -> Parts:
    return small_thing(kind, colour, size) if kind in SMALL_THINGS else piece(kind, colour, size)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is visible of an object, counted at pixel centres."""

    box: tuple[float, float, float, float]
    """Left, top, right, bottom in pixels, right and bottom exclusive."""
    column: float
    row: float
    """Middle of what is visible, in shares of the picture from its left and top."""
    area: float
    """Share of the picture."""
    share: float
    """Of what would be visible if nothing stood before it."""


def seen_things(image: LayoutImage) -> dict[str, Seen]:
    """Role of each anchor and target of which at least a pixel is visible, and what is.

    Rays are cast where the objects' boxes project, and nowhere else: nothing of them can be visible elsewhere.
    """
    scene, view = image.scene(), image.eye.view(image.pixels)
    windows = {role: _window(image.thing(role).corners, view) for role in ROLES}
    whole = Tracer(scene)
    found = {}
    for role, window in windows.items():
        shown = _numbers(whole, view, window) == scene.names.index(role)
        alone = _lone(image.thing(role), view, window)
        if shown.any():
            found[role] = _measured(shown, alone, window, image.pixels)
    return found


Window = tuple[int, int, int, int]


def _window(corners: Float[np.ndarray, "8 xyz"], view: View) -> Window:
    points = view.project(corners)
    low = [max(0, math.floor(float(value))) for value in points.min(axis=0)]
    high = [min(edge, math.ceil(float(value))) for edge, value in zip((view.width, view.height), points.max(axis=0), strict=True)]
    return low[0], low[1], max(low[0] + 1, high[0]), max(low[1] + 1, high[1])


def _numbers(tracer: Tracer, view: View, window: Window) -> Int[np.ndarray, "row column"]:
    """Number of the object seen at each pixel centre of the window."""
    left, top, right, bottom = window
    rows, columns = np.mgrid[top:bottom, left:right]
    direction = view.rays(columns.ravel() + 0.5, rows.ravel() + 0.5).astype(F)
    origin = np.broadcast_to(np.array(view.position, F), direction.shape)
    return tracer.seen(origin, direction)[0].reshape(rows.shape)


@lru_cache(maxsize=64)  # the anchors stand the same in all four placements
def _lone(thing: Thing, view: View, window: Window) -> int:
    """How many pixels show the thing where it stands alone."""
    scene = Scene()
    x, y, z = thing.centre_m
    scene.add(thing.role, _parts(thing.kind, thing.colour, thing.size_m), (x, y, z - thing.size_m[2] / 2), thing.yaw_deg)
    return int((_numbers(Tracer(scene), view, window) == 0).sum())


def _measured(shown: np.ndarray, alone: int, window: Window, size: int) -> Seen:
    rows, columns = (np.flatnonzero(shown.any(axis=axis)) for axis in (1, 0))
    counts = shown.sum()
    row = float((shown.sum(axis=1) * (np.arange(shown.shape[0]) + window[1] + 0.5)).sum() / counts) / size
    column = float((shown.sum(axis=0) * (np.arange(shown.shape[1]) + window[0] + 0.5)).sum() / counts) / size
    left, top = window[0] + float(columns[0]), window[1] + float(rows[0])
    return Seen(
        box=(left, top, window[0] + float(columns[-1]) + 1, window[1] + float(rows[-1]) + 1),
        column=column,
        row=row,
        area=float(counts) / size**2,
        share=float(counts) / alone,
    )


def colour_code(thing: Thing) -> str:
    """The thing's colour as ``"#rrggbb"``; no two things of a scene have the same."""
    return COLOURS[thing.colour] if thing.kind in SMALL_THINGS else PAINTS[thing.colour]


def ground_of(setting: Setting) -> tuple[tuple[float, float], tuple[float, float]]:
    """Spans of x and y of what things stand on, in metres."""
    if setting.scale == "desk":
        return (-DESK_WIDTH_M / 2, DESK_WIDTH_M / 2), (0.0, DESK_DEPTH_M)
    return (-ROOM_WIDTH_M / 2, ROOM_WIDTH_M / 2), (-ROOM_DEPTH_M / 2, ROOM_DEPTH_M / 2)


def layout_of(facts: Mapping[str, Any], kind: str, pixels: int) -> LayoutImage:
    """The picture of one placement, from an item's facts alone.

    Args:
        facts: Of a layout item.
        kind: Which placement: ``correct``, ``position``, ``size`` or ``both``.
        pixels: Width and height.

    Raises:
        ValueError: The facts hold no such placement.
    """
    return LayoutImage(
        setting=Setting(**facts["setting"]), eye=Eye(**_tuples(facts["camera"])), things=things_of(facts, kind), pixels=pixels
    )


def things_of(facts: Mapping[str, Any], kind: str) -> tuple[Thing, ...]:
    """Anchors, target and clutter of one placement in an item's facts.

    Raises:
        ValueError: The facts hold no such placement.
    """
    placement = next((entry for entry in facts["placements"] if entry["kind"] == kind), None)
    if placement is None:
        raise ValueError(f"the item has no placement {kind!r}; it has: {', '.join(e['kind'] for e in facts['placements'])}.")
    fields: Sequence[str] = tuple(Thing.__dataclass_fields__)
    entries = [*placement["objects"], *facts["clutter"]]
    return tuple(Thing(**_tuples({name: entry[name] for name in fields})) for entry in entries)
