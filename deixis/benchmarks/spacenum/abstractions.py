"""A layout with everything taken away but where things are: points, rectangles from above, boxes through the camera.

Drawn from the description of the layout alone, so that it works for items of which only the facts are left. Each object keeps its
name and its colour; clutter is left out.

- ``points``: from above, for each object the two corners that a 2D map names. One point an object would make the options that
  differ in size the same picture.
- ``boxes_2d``: from above, the rectangles that a 2D map names.
- ``boxes_3d``: the boxes that a 3D map names, through the camera that sees the layout.

From above, the way that the camera looks is up; the part of the ground that is shown depends on the camera alone, so that it is
the same in all options of a scene.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageColor, ImageDraw, ImageFont

from deixis.benchmarks.images import CachedImage
from deixis.benchmarks.spacenum.layout_picture import ROLES, LayoutImage, Thing, colour_code, ground_of
from deixis.benchmarks.spacenum.placing import AnchorFrame

FORMS = ("points", "boxes_2d", "boxes_3d")
_VERSION = 2
_FINE = 4
"""Drawn this many times larger, then reduced."""
_LINE, _DOT, _TEXT, _HALO = 0.008, 0.016, 0.042, 0.007
"""Widths of lines, radius of points, height of letters and the white around them, in widths of the picture."""
_INK, _GROUND = "#202020", "#ededea"
_FACES = {(0, 1, 3, 2): 0.72, (4, 5, 7, 6): 0.72, (0, 1, 5, 4): 0.86, (2, 3, 7, 6): 0.86, (1, 3, 7, 5): 1.0}
"""Corners of the faces that can be seen, and how bright each is; the underside can't be."""

Points = Float[np.ndarray, "n xy"]
Edges = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class AbstractLayout(CachedImage):
    """A layout as points, rectangles or boxes on white.

    Raises:
        ValueError: ``form`` is none of :data:`FORMS`.
    """

    form: str
    layout: LayoutImage
    """What it shows."""

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form={self.form!r} is not one of: {', '.join(map(repr, FORMS))}.")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.layout.size

    @cached_property
    def key(self) -> str:
        """Name in the cache: a hash of everything that decides the bytes."""
        return hashlib.sha256(repr(("abstract layout", _VERSION, self.to_json())).encode()).hexdigest()[:32]

    def draw(self) -> Image.Image:
        """The picture, RGB, made now."""
        pixels = self.layout.pixels
        image = Image.new("RGB", (pixels * _FINE, pixels * _FINE), "white")
        _Pen(image, self).draw()
        return image.resize((pixels, pixels), Image.Resampling.BOX)

    def outlines(self) -> dict[str, Points]:
        """Role of each object and the points that are drawn of it, in shares of the picture from its left and top."""
        shown = _through_camera if self.form == "boxes_3d" else _from_above(self.layout)
        corners = {role: _frame_corners(self.layout, self.layout.thing(role)) for role in ROLES}
        named = {"points": [0, 6], "boxes_2d": [0, 2, 6, 4], "boxes_3d": list(range(8))}[self.form]
        return {role: shown(self.layout, points[named]) for role, points in corners.items()}

    def boxes(self) -> dict[str, Edges]:
        """Role of each object and left, top, right and bottom of what is drawn of it, in pixels."""
        edge = {"points": _DOT}.get(self.form, _LINE / 2) * self.layout.pixels
        found = {}
        for role, points in self.outlines().items():
            low, high = (points * self.layout.pixels).min(axis=0) - edge, (points * self.layout.pixels).max(axis=0) + edge
            limits = (float(low[0]), float(low[1]), float(high[0]), float(high[1]))
            found[role] = tuple(min(max(value, 0.0), float(self.layout.pixels)) for value in limits)
        return found

    def to_json(self) -> dict[str, Any]:
        """The picture in plain JSON."""
        return {"form": self.form, "layout": self.layout.to_json()}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "AbstractLayout":
        """The picture that :meth:`to_json` described.

        Raises:
            TypeError: A field is missing or unknown.
            ValueError: A value is none that a picture can have.
        """
        return cls(form=entry["form"], layout=LayoutImage.from_json(entry["layout"]))


def _frame_corners(layout: LayoutImage, thing: Thing) -> Float[np.ndarray, "8 xyz"]:
    """Corners of the thing's box in the scene, in the order of the anchors' frame: least first, greatest last, x slowest."""
    a, b = (layout.thing(role).centre_m for role in ROLES[:2])
    towards = AnchorFrame(origin_m=thing.centre_m, yaw_deg=math.degrees(math.atan2(b[1] - a[1], b[0] - a[0])))
    sides = towards.from_scene(thing.corners) > 0
    order = np.lexsort((sides[:, 2], sides[:, 1], sides[:, 0]))
    return thing.corners[order]


def _through_camera(layout: LayoutImage, points: Float[np.ndarray, "n xyz"]) -> Points:
    return layout.eye.view(1).project(points)


def _from_above(layout: LayoutImage) -> Callable[[LayoutImage, Float[np.ndarray, "n xyz"]], Points]:
    """From the scene to a picture of the ground in which the camera looks up: the least square that holds what it sees."""
    frame = AnchorFrame(origin_m=(0.0, 0.0, 0.0), yaw_deg=layout.eye.yaw_deg)
    seen = frame.from_scene(_seen_ground(layout))[:, :2]
    low, high = seen.min(axis=0), seen.max(axis=0)
    middle, side = (low + high) / 2, float((high - low).max())

    def shown(_layout: LayoutImage, points: Float[np.ndarray, "n xyz"]) -> Points:
        place = (frame.from_scene(points)[:, :2] - middle) / side
        return np.stack([0.5 + place[:, 0], 0.5 - place[:, 1]], axis=1)

    return shown


def _seen_ground(layout: LayoutImage) -> Float[np.ndarray, "n xyz"]:
    """Corners of the part of the ground that the camera sees (the ground cut by the four planes of its view)."""
    (x0, x1), (y0, y1) = ground_of(layout.setting)
    outline = np.array([(x0, y0, 0.0), (x1, y0, 0.0), (x1, y1, 0.0), (x0, y1, 0.0)])
    half = layout.eye.view(1).half_width
    for axis, sign in ((0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)):
        place = layout.eye.coordinates(outline)
        outline = _cut(outline, place[:, 2] * half + sign * place[:, axis])
    return outline


def _cut(outline: Float[np.ndarray, "n xyz"], inside: Float[np.ndarray, " n"]) -> Float[np.ndarray, "m xyz"]:
    """The part of a polygon at which ``inside`` is not negative (Sutherland and Hodgman 1974)."""
    kept = []
    for k, (point, value) in enumerate(zip(outline, inside, strict=True)):
        before, at = outline[k - 1], inside[k - 1]
        if (value >= 0) != (at >= 0):
            kept.append(before + (point - before) * (at / (at - value)))
        if value >= 0:
            kept.append(point)
    return np.array(kept)


class _Pen:
    """Draws one layout on a picture that is finer than the result."""

    def __init__(self, image: Image.Image, what: AbstractLayout) -> None:
        self.what, self.layout, self.width = what, what.layout, image.width
        self.canvas = ImageDraw.Draw(image)
        self.names: list[Edges] = []
        self.outlines = {role: points * self.width for role, points in what.outlines().items()}

    def draw(self) -> None:
        """All objects, the nearest last, then their names."""
        if self.what.form == "boxes_3d":
            self._polygon(_through_camera(self.layout, _seen_ground(self.layout)) * self.width, _GROUND, None)
        far = {role: float(self.layout.eye.coordinates(np.array([self.layout.thing(role).centre_m]))[0, 2]) for role in ROLES}
        for role in sorted(ROLES, key=lambda role: -far[role]):
            {"points": self._points, "boxes_2d": self._rectangle, "boxes_3d": self._solid}[self.what.form](role)
        for role in ROLES:
            self._name(role)

    def _colour(self, role: str, shade: float = 1.0) -> str:
        red, green, blue = ImageColor.getrgb(colour_code(self.layout.thing(role)))[:3]
        return "#" + "".join(f"{round(value * shade):02x}" for value in (red, green, blue))

    def _points(self, role: str) -> None:
        radius, line = _DOT * self.width, round(_LINE * self.width / 4)
        for x, y in self.outlines[role]:
            edges = (x - radius, y - radius, x + radius, y + radius)
            self.canvas.ellipse(edges, fill=self._colour(role), outline=_INK, width=line)

    def _rectangle(self, role: str) -> None:
        self._polygon(self.outlines[role], self._colour(role), _INK)

    def _solid(self, role: str) -> None:
        corners = _frame_corners(self.layout, self.layout.thing(role))
        eye = np.array(self.layout.eye.position_m)
        middle = corners.mean(axis=0)
        for face, shade in _FACES.items():
            centre = corners[list(face)].mean(axis=0)
            if ((centre - middle) * (eye - centre)).sum() > 0:
                self._polygon(self.outlines[role][list(face)], self._colour(role, shade), _INK)

    def _polygon(self, points: Points, fill: str, outline: str | None) -> None:
        places = [(float(x), float(y)) for x, y in points]
        self.canvas.polygon(places, fill=fill)
        if outline is not None:
            self.canvas.line([*places, places[0], places[1]], fill=outline, width=round(_LINE * self.width / 2), joint="curve")

    def _name(self, role: str) -> None:
        """Above, below or beside the object: inside the picture, and where it hides least of what is drawn and named already."""
        name, height = self.layout.thing(role).name, max(_TEXT * self.width, 8 * _FINE)
        font = ImageFont.load_default(height)
        halo = max(round(_HALO * self.width), _FINE)
        left, top, right, bottom = map(float, self.canvas.textbbox((0, 0), name, font=font, stroke_width=halo))
        places = [self._in_picture(at, right - left, bottom - top) for at in self._beside(role, right - left, bottom - top)]
        edges = min(places, key=self._hidden)  # the first of equals
        self.names.append(edges)
        at = (edges[0] - left, edges[1] - top)
        self.canvas.text(at, name, font=font, fill=_INK, stroke_width=halo, stroke_fill="white")

    def _hidden(self, place: Edges) -> float:
        """How much a name at this place would cover, in pixels: points or objects, and other names, which weigh most."""
        dot = _DOT * self.width
        drawn = [(float(x) - dot, float(y) - dot, float(x) + dot, float(y) + dot) for p in self.outlines.values() for x, y in p]
        if self.what.form != "points":
            spans = [(points.min(axis=0), points.max(axis=0)) for points in self.outlines.values()]
            drawn += [(float(low[0]), float(low[1]), float(high[0]), float(high[1])) for low, high in spans]
        return sum(_shared(place, other) for other in drawn) + 20 * sum(_shared(place, other) for other in self.names)

    def _beside(self, role: str, width: float, height: float) -> list[tuple[float, float]]:
        (x0, y0), (x1, y1) = ((float(x), float(y)) for x, y in (extreme(self.outlines[role], 0) for extreme in (np.min, np.max)))
        gap, middle = _DOT * self.width + height / 4, (y0 + y1 - height) / 2
        centred = (x0 + x1 - width) / 2
        near = [(centred, y0 - gap - height), (centred, y1 + gap), (x1 + gap, middle), (x0 - gap - width, middle)]
        corners = [(x, y) for y in (y0 - gap - height, y1 + gap) for x in (x1 + gap, x0 - gap - width)]
        farther = [(x, y0 - gap - k * height) for k in (2.2, 3.4) for x in (centred, x1 + gap, x0 - gap - width)]
        farther += [(x, y1 + gap + (k - 1) * height) for k in (2.2, 3.4) for x in (centred, x1 + gap, x0 - gap - width)]
        return [*near, *corners, *farther]

    def _in_picture(self, at: tuple[float, float], width: float, height: float) -> Edges:
        x, y = (min(max(value, 0.0), self.width - extent) for value, extent in zip(at, (width, height), strict=True))
        return x, y, x + width, y + height


def _shared(one: Edges, other: Edges) -> float:
    """Area that two rectangles share."""
    wide, high = (min(one[k + 2], other[k + 2]) - max(one[k], other[k]) for k in (0, 1))
    return max(wide, 0.0) * max(high, 0.0)
