"""Layout items: two anchors define a coordinate frame, a third object stands somewhere in it, and a map says where.

Each scene has four pictures: the same camera, anchors and clutter, and the target's four placements (see
:mod:`deixis.benchmarks.spacenum.placing`). They serve all maps and both directions. 1D maps ask the right one against one that is
wrong: in position, in size and in both, in turn over the scenes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from deixis.benchmarks.images import ImageHandle
from deixis.benchmarks.items import Box, Item, Items
from deixis.benchmarks.spacenum.abstractions import AbstractLayout
from deixis.benchmarks.spacenum.layout_picture import CLUTTER, LayoutImage, Seen, Thing, seen_things
from deixis.benchmarks.spacenum.layout_plan import LayoutPlan, layout_plan
from deixis.benchmarks.spacenum.maps import MAPS, box_text, check_distinct, map_text
from deixis.benchmarks.spacenum.options import Lettered, balanced_letters, lettered, lettered_pictures
from deixis.benchmarks.spacenum.placing import KINDS, box_corners
from deixis.benchmarks.spacenum.prompts import DIRECTIONS, layout_prompt

STANDARD_SCENES = {"desk": 100, "room": 400}
"""Scenes of each scale in the standard set, which deals one desk and four rooms in turn."""
_COLUMN_LETTERS = {"desk": "D", "room": "R"}
_WORD = 7_190_023


def layout_items(
    n: int | None = None,
    seed: int = 0,
    size: int = 512,
    directions: Sequence[str] = DIRECTIONS,
    scales: Sequence[str] = ("desk", "room"),
    maps: Sequence[str] = tuple(MAPS),
) -> Items:
    """Items of the first ``n`` scenes, scene by scene, within a scene direction by direction, within that map by map.

    The right and the wrong position differ by at least 8 cm along x on a desk and 0.5 m in a room; of the two sizes, every edge
    of the larger is longer by at least a quarter, and by 2 cm on a desk or 10 cm in a room. In the picture the target's middle
    moves by at least 0.04 of the width, and its area changes by a factor of at least 1.35. All coordinates are whole steps of
    a grid (1 cm or 5 cm), so that the text of a map is exact and no two options are equal in it.

    Args:
        n: Scenes; None for the paper's count at each of the scales.
        seed: Of everything random.
        size: Width and height of the pictures in pixels.
        directions: ``"num2space"``, ``"space2num"``.
        scales: ``"desk"``, ``"room"``.
        maps: ``"1D"``, ``"2D"``, ``"3D"``.

    Raises:
        LayoutError: No layout was found for a scene in a bounded number of tries.
    """
    dealt = _dealt(n, scales)
    letters = _Letters(seed, dealt)
    return Items(item for scale, number in dealt for item in _items_of(scale, number, seed, size, directions, maps, letters))


def _dealt(n: int | None, scales: Sequence[str]) -> list[tuple[str, int]]:
    """Scale and number within it of each scene: of every five, one is a desk, where both are asked for."""
    if n is None:
        n = sum(STANDARD_SCENES[scale] for scale in scales)
    if len(set(scales)) == 1:
        return [(scales[0], k) for k in range(n)]
    return [("desk", k // 5) if k % 5 == 0 else ("room", k - k // 5 - 1) for k in range(n)]


def _column(scale: str, map_: str, direction: str) -> tuple[int, int, int]:
    """A column of the paper's table as numbers, for seeds."""
    return list(STANDARD_SCENES).index(scale), list(MAPS).index(map_), DIRECTIONS.index(direction)


class _Letters:
    """Places of the right options: balanced within each column of the paper's table."""

    def __init__(self, seed: int, dealt: Sequence[tuple[str, int]]) -> None:
        self._seed = seed
        self._counts = {scale: sum(1 for found, _ in dealt if found == scale) for scale in STANDARD_SCENES}
        self._places: dict[tuple[int, int, int], list[int]] = {}

    def place(self, scale: str, number: int, direction: str, map_: str, k: int) -> int:
        """Of the right option of one item."""
        column = _column(scale, map_, direction)
        if column not in self._places:
            rng = np.random.default_rng((_WORD, self._seed, *column))
            self._places[column] = balanced_letters(self._counts[scale], k, rng)
        return self._places[column][number]


@dataclass(frozen=True, kw_only=True)
class _Scene:
    """A plan at the size of its pictures, with what is visible in each."""

    name: str
    plan: LayoutPlan
    names: dict[str, str]

    @property
    def pictures(self) -> tuple[LayoutImage, ...]:
        """One of each placement."""
        return self.plan.pictures

    @property
    def seen(self) -> tuple[dict[str, Seen], ...]:
        """What is visible in each picture."""
        return self.plan.seen


def _items_of(
    scale: str, number: int, seed: int, size: int, directions: Sequence[str], maps: Sequence[str], letters: _Letters
) -> Iterator[Item]:
    plan = layout_plan(scale, seed, number).at_size(size)
    scene = _Scene(
        name=f"layout-{scale}-s{seed}-{number:04d}",
        plan=plan,
        names={thing.role: thing.name for thing in plan.pictures[0].things if thing.role != CLUTTER},
    )
    for direction in directions:
        for map_ in maps:
            offered = (0, 1, 2, 3) if map_ != "1D" else (0, 1 + number % 3)
            place = letters.place(scale, number, direction, map_, len(offered))
            column = _column(scale, map_, direction)
            rng = np.random.default_rng((_WORD, seed, *column, number))
            yield _item(scene, direction, map_, offered, place, rng)


def _item(scene: _Scene, direction: str, map_: str, offered: Sequence[int], place: int, rng: np.random.Generator) -> Item:
    boxes = [scene.plan.boxes(number) for number in offered]
    texts = [box_text((each["target"][0], each["target"][1]), MAPS[map_]) for each in boxes]
    check_distinct(texts)
    kinds = [KINDS[number] for number in offered]
    if direction == "num2space":
        options = lettered_pictures(len(offered), 1, kinds=kinds, right_at=place, rng=rng)
        shown = [offered[k] for k in options.order]
    else:
        options = lettered(texts, kinds=kinds, right_at=place, rng=rng)
        shown = [0]
    named = {scene.names[role]: (box[0], box[1]) for role, box in boxes[0].items()}
    hidden = scene.names["target"] if direction == "space2num" else None
    prompt = layout_prompt(
        direction, map_text(named, map_, hidden), options.options, scene.names, map_, frame=frame_words(scene.names, map_)
    )
    return Item(
        id=f"spacenum/{scene.name}/layout-{direction}/{map_}",
        benchmark="spacenum",
        task=f"layout-{direction}",
        language="en",
        images=tuple(scene.pictures[number] for number in shown),
        prompt=prompt,
        options=options.options,
        truth=options.truth,
        targets=_targets(scene),
        groups=_groups(scene, direction, map_, kinds, options),
        nuisances=_nuisances(scene),
        objects=tuple(box for place, number in enumerate(shown) for box in _boxes(scene.seen[number], place)),
        facts=_facts(scene, [offered[k] for k in options.order], shown),
    )


def frame_words(names: Mapping[str, str], map_: str) -> str:
    """Where the frame's origin is and where its axes point, for the prompt."""
    a, b = names["anchor_a"], names["anchor_b"]
    along = f"the x axis points from the middle of the {a} to the middle of the {b}"
    if map_ == "1D":
        return f"The axis points from the middle of the {a} to the middle of the {b}, and 0 is where the {a} begins."
    side = "the y axis to the left of it, as seen from above"
    up = ", and the z axis up" if map_ == "3D" else ""
    joined = f"{along}, {side}{up}" if up else f"{along}, and {side}"
    return f"The origin is the corner of the {a} with the smallest x and y, on the ground; {joined}."


def _targets(scene: _Scene) -> dict[str, float]:
    """Of the right placement: the target's box in the anchors' frame, its middle in the camera's, and its distance."""
    box = scene.plan.boxes(0)["target"]
    middle = box_corners(box).mean(axis=0)
    eye = scene.pictures[0].eye
    camera = eye.coordinates(scene.plan.frame.to_scene(middle[None]))[0]
    sides = [high - low for low, high in zip(*box, strict=True)]
    named = {f"{axis}_m": value for axis, value in zip("xyz", middle, strict=True)}
    named |= {"size_m": max(sides)}
    named |= {f"camera_{axis}_m": value for axis, value in zip("xyz", camera, strict=True)}
    named |= {"distance_m": float(np.sqrt((camera * camera).sum()))}
    return {name: round(float(value), 6) for name, value in named.items()}


def _nuisances(scene: _Scene) -> dict[str, float]:
    picture = scene.pictures[0]
    return {
        **_place_in_picture(scene.seen[0]["target"]),
        "brightness": picture.setting.brightness,
        "camera_pitch": picture.eye.pitch_deg,
        "camera_height": picture.eye.position_m[2],
        "camera_focal": picture.eye.focal_mm,
    }


def _place_in_picture(seen: Seen) -> dict[str, float]:
    return {"object_column": seen.column, "object_row": seen.row, "object_area": seen.area, "object_share": seen.share}


def _groups(scene: _Scene, direction: str, map_: str, kinds: Sequence[str], options: Lettered) -> dict[str, str]:
    scale = scene.plan.scale
    return {
        "scene": scene.name,
        "kind": "layout",
        "direction": direction,
        "column": f"{map_} {_COLUMN_LETTERS[scale]}",
        "map": map_,
        "scale": scale,
        "varied": kinds[1] if len(kinds) == 2 else "both",
        "letter": options.truth,
        "permutation": "0",
    }


def seen_anew(item: Item) -> Item:
    """A layout item whose pictures were changed: its boxes, and what depends on them, taken from the pictures it has now.

    Boxes of abstractions are the edges of what is drawn. Of the nuisances, ``object_column``, ``object_row``, ``object_area`` and
    ``object_share`` follow (an abstraction has no more than the middle and area of the drawn box, and hides nothing), of the
    facts ``clutter`` and the ``share`` that is visible.

    Raises:
        ValueError: A picture is no layout's, nor wraps one.
    """
    shown = [_layout_handle(image) for image in item.images]
    seen = [_seen_in(picture) for picture in shown]
    target = seen[item.facts["shown"].index("correct")]["target"]
    found = dict(zip(item.facts["shown"], seen, strict=True))
    clutter = [thing.name for picture in shown for thing in _layout_in(picture).things if thing.role == CLUTTER]
    placements = [
        {**placement, "share": {role: round(what.share, 4) for role, what in found[placement["kind"]].items()}}
        if placement["kind"] in found
        else placement
        for placement in item.facts["placements"]
    ]
    facts = {
        **item.facts,
        "clutter": [thing for thing in item.facts["clutter"] if thing["name"] in clutter],
        "placements": placements,
    }
    objects = tuple(box for place, things in enumerate(seen) for box in _boxes(things, place))
    return replace(item, objects=objects, nuisances={**item.nuisances, **_place_in_picture(target)}, facts=facts)


def _layout_handle(image: ImageHandle) -> LayoutImage | AbstractLayout:
    """The layout's picture that is shown, whatever is drawn over it."""
    while not isinstance(image, LayoutImage | AbstractLayout):
        source = getattr(image, "source", None)
        if source is None:
            raise ValueError(f"a picture of class {type(image).__name__} shows no layout; make the items with deixis.spacenum.")
        image = source
    return image


def _layout_in(picture: LayoutImage | AbstractLayout) -> LayoutImage:
    return picture.layout if isinstance(picture, AbstractLayout) else picture


def _seen_in(picture: LayoutImage | AbstractLayout) -> dict[str, Seen]:
    if isinstance(picture, LayoutImage):
        return seen_things(picture)
    size, found = picture.layout.pixels, {}
    for role, (left, top, right, bottom) in picture.boxes().items():
        found[role] = Seen(
            box=(left, top, right, bottom),
            column=(left + right) / 2 / size,
            row=(top + bottom) / 2 / size,
            area=(right - left) * (bottom - top) / size**2,
            share=1.0,
        )
    return found


def _boxes(seen: Mapping[str, Seen], image: int) -> list[Box]:
    found = []
    for role, what in seen.items():
        left, top, right, bottom = (float(edge) for edge in what.box)
        found.append(Box(name=role, left=left, top=top, right=right, bottom=bottom, image=image))
    return found


def _facts(scene: _Scene, offered: Sequence[int], shown: Sequence[int]) -> dict[str, Any]:
    """Exact truth in plain JSON; ``placements`` in the order of the letters, ``shown`` the kind of each picture's."""
    plan, picture = scene.plan, scene.pictures[0]
    x_axis, y_axis, _ = ([round(float(value), 9) for value in axis] for axis in plan.frame.axes)
    return {
        "scale": plan.scale,
        "step_m": plan.step_m,
        "frame": {
            "origin_m": list(plan.frame.origin_m),
            "x_axis": x_axis,
            "y_axis": y_axis,
            "yaw_deg": plan.frame.yaw_deg,
        },
        "setting": asdict(picture.setting),
        "camera": _plain(picture.eye),
        "placements": [_placement(scene, number) for number in offered],
        "clutter": [_described(thing) for thing in picture.things if thing.role == CLUTTER],
        "shown": [KINDS[number] for number in shown],
    }


def _placement(scene: _Scene, number: int) -> dict[str, Any]:
    boxes = scene.plan.boxes(number)
    things = [thing for thing in scene.pictures[number].things if thing.role != CLUTTER]
    return {
        "kind": KINDS[number],
        "objects": [_described(thing) | {"box": boxes[thing.role]} for thing in things],
        "share": {role: round(what.share, 4) for role, what in scene.seen[number].items()},
    }


def _described(thing: Thing) -> dict[str, Any]:
    return {"name": thing.name, **_plain(thing)}


def _plain(record: Any) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(record).items()}
