"""The memory game (arXiv 2607.07251): a figure on a disk at three distances along a long desk."""

from collections.abc import Sequence
from numbers import Real

import numpy as np

from deixis.benchmarks.images import DrawnImage
from deixis.benchmarks.items import Box, Item, Items
from deixis.benchmarks.languages import Language, language
from deixis.benchmarks.names import checked_names
from deixis.benchmarks.render import SHAPES, Camera, Figure, footprint
from deixis.benchmarks.render.memory_scene import DESK_LENGTH_M, INKS
from deixis.benchmarks.speaker import region_of

TASKS = ("demonstrative", "distance")
COLOURS = tuple(INKS)
_SEED_STREAM = 874
_LATERAL_M = 0.12
_BRIGHTNESS = (0.92, 1.06)


def memory_game(
    tasks: Sequence[str] = ("demonstrative",),
    languages: Sequence[str] = ("en", "zh", "ja", "ko"),
    distances: Sequence[float] = (0.25, 1.50, 2.75),
    shapes: Sequence[str] = SHAPES,
    colours: Sequence[str] = COLOURS,
    camera: Camera | None = None,
    n: int | None = None,
    seed: int = 0,
    size: int = 512,
) -> Items:
    """Items of the memory game; pictures are drawn when they are first looked at.

    The standard set crosses shapes, colours and distances: 60 scenes, each asked in every language. ``seed`` decides a small
    shift to the side (within 12 cm) and the brightness of each scene.

    Args:
        tasks: ``"demonstrative"`` asks for "this red star" and has no truth, ``"distance"`` asks "near, middle or far?".
        languages: Codes of the tables in ``deixis/benchmarks/languages``.
        distances: Metres from the desk's near edge.
        shapes: Figures on the disk.
        colours: Of the figures.
        camera: The speaker's eye; None for the standard one.
        n: Draw this many scenes at random (distance uniform between the extremes of ``distances``) in place of the standard set.
        seed: Of everything random.
        size: Width and height of the pictures in pixels.

    Returns:
        Scenes in order, and within a scene tasks, then languages. Targets: ``distance_m``, ``x_m`` (metres), ``region`` (1 to 3).
        Nuisances: ``object_row`` (image height of the disk's middle, 0 at the top, 1 at the bottom), ``object_area`` (share of
        the picture), ``brightness``. Groups: ``scene``, ``figure``, ``shape``, ``colour``.

    Raises:
        ValueError: An argument is outside what it allows; the message lists it.
    """
    checked_names("tasks", tasks, TASKS)
    checked_names("shapes", shapes, SHAPES)
    checked_names("colours", colours, COLOURS)
    _check_list("languages", languages, '("en",)')
    tables = [language(code) for code in languages]
    view = camera or Camera()
    _check_list("distances", distances, "(0.25, 1.5)")
    for distance in distances:
        if not isinstance(distance, Real) or not 0 < distance < DESK_LENGTH_M:
            raise ValueError(f"distances holds {distance}; a disk must lie between 0 and {DESK_LENGTH_M} m.")
    metres = [float(distance) for distance in distances]
    size, seed = _whole("size", size, 16, 4096, " pixels"), _whole("seed", seed, 0)
    figures = _crossed(shapes, colours, metres, seed) if n is None else _random(shapes, colours, metres, _whole("n", n, 1), seed)
    return Items(item for name, figure in figures for item in _items_of_scene(name, figure, view, size, tasks, tables))


def _check_list(name: str, values: object, example: str) -> None:
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        raise ValueError(f"{name}={values!r} is not a list with something in it; give a list such as {example}.")


def _whole(name: str, value: object, least: int, most: int | None = None, unit: str = "") -> int:
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value <= (most or value):
        return int(value)
    span = f"between {least} and {most}{unit}" if most else f"of {least} or more"
    raise ValueError(f"{name}={value!r} is not a whole number {span}.")


def _crossed(shapes: Sequence[str], colours: Sequence[str], distances: Sequence[float], seed: int) -> list[tuple[str, Figure]]:
    figures = []
    for shape in shapes:
        for colour in colours:
            for distance in distances:
                # Each scene has a stream of its own: leaving out a shape must not redraw the other scenes.
                rng = np.random.default_rng(
                    (_SEED_STREAM, seed, SHAPES.index(shape), COLOURS.index(colour), round(distance * 1e6))
                )
                name = f"{shape}-{colour}-{distance:g}m-s{seed}"
                figures.append((name, _figure(rng, shape, colour, distance)))
    return figures


def _random(
    shapes: Sequence[str], colours: Sequence[str], distances: Sequence[float], n: int, seed: int
) -> list[tuple[str, Figure]]:
    figures = []
    for number in range(n):
        rng = np.random.default_rng((_SEED_STREAM, seed, number))
        shape, colour = shapes[int(rng.integers(len(shapes)))], colours[int(rng.integers(len(colours)))]
        distance = float(rng.uniform(min(distances), max(distances)))
        figures.append((f"random-{number}-s{seed}", _figure(rng, shape, colour, distance)))
    return figures


def _figure(rng: np.random.Generator, shape: str, colour: str, distance_m: float) -> Figure:
    return Figure(
        shape=shape,
        colour=colour,
        distance_m=distance_m,
        x_m=round(float(rng.uniform(-_LATERAL_M, _LATERAL_M)), 4),
        brightness=round(float(rng.uniform(*_BRIGHTNESS)), 4),
    )


def _items_of_scene(
    name: str, figure: Figure, camera: Camera, size: int, tasks: Sequence[str], tables: Sequence[Language]
) -> list[Item]:
    image = DrawnImage(figure=figure, camera=camera, pixels=size)
    region = region_of(figure.distance_m)
    box, nuisances = _seen_object(figure, camera, size)
    items = []
    for task in tasks:
        for table in tables:
            question = table.question(task)
            truth = next((o.label for o in question.options if o.value == region), None)
            items.append(
                Item(
                    id=f"memory-game/{name}/{task}/{table.code}",
                    benchmark="memory-game",
                    task=task,
                    language=table.code,
                    images=(image,),
                    prompt=question.prompt,
                    options=question.options,
                    truth=truth,
                    targets={"distance_m": figure.distance_m, "region": float(region), "x_m": figure.x_m},
                    groups={
                        "scene": name,
                        "figure": f"{figure.colour} {figure.shape}",
                        "shape": figure.shape,
                        "colour": figure.colour,
                    },
                    nuisances=nuisances,
                    objects=(box,),
                )
            )
    return items


def _seen_object(figure: Figure, camera: Camera, size: int) -> tuple[Box, dict[str, float]]:
    """The disk's box, and image height, area and brightness, from its exact outline."""
    outline = footprint(figure, camera, size)
    (left, top), (right, bottom) = outline.min(axis=0), outline.max(axis=0)
    if left < 0 or top < 0 or right > size or bottom > size:
        raise ValueError(f"the disk at {figure.distance_m:g} m lies partly outside the picture; use another distance or camera.")
    area, row = _area_and_row(outline)
    box = Box(name="disk", left=float(left), top=float(top), right=float(right), bottom=float(bottom))
    return box, {"object_row": row / size, "object_area": area / size**2, "brightness": figure.brightness}


def _area_and_row(outline: np.ndarray) -> tuple[float, float]:
    """Area of a polygon and the height of its centroid (shoelace formula)."""
    x, y = outline.T
    following_x, following_y = np.roll(x, -1), np.roll(y, -1)
    cross = x * following_y - following_x * y
    area = cross.sum() / 2
    return abs(float(area)), float(((y + following_y) * cross).sum() / (6 * area))
