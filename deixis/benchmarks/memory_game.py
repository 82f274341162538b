"""The memory game (arXiv 2607.07251): a figure on a disk at three distances along a long desk."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from deixis.benchmarks.decouple import height_cue, latents
from deixis.benchmarks.images import DrawnImage, ImageHandle
from deixis.benchmarks.items import Box, Item, Items
from deixis.benchmarks.languages import Language, Question, language
from deixis.benchmarks.languages.table import PROMPTS
from deixis.benchmarks.memory_scenes import ADDRESSEES, CAMERA_SIDES, COLOURS, Plan, PlannedScene, planned_scenes
from deixis.benchmarks.names import checked_names
from deixis.benchmarks.render import SHAPES, Camera, Figure, footprint
from deixis.benchmarks.render.memory_scene import DESK_LENGTH_M
from deixis.benchmarks.speaker import region_of

TASKS = ("demonstrative", "distance")


def memory_game(
    tasks: Sequence[str] = ("demonstrative",),
    languages: Sequence[str] = ("en", "zh", "ja", "ko"),
    distances: Sequence[float] | np.ndarray = (0.25, 1.50, 2.75),
    shapes: Sequence[str] = SHAPES,
    colours: Sequence[str] = COLOURS,
    camera: Camera | None = None,
    decouple: bool = False,
    n: int | None = None,
    seed: int = 0,
    size: int = 512,
    camera_sides: Sequence[str] = ("centre",),
    addressees: Sequence[str] = ("none",),
    prompts: Sequence[str] = ("standard",),
) -> Items:
    """Items of the memory game; pictures are drawn when they are first looked at.

    The standard set crosses shapes, colours and distances: 60 scenes, each asked in every language. ``seed`` decides a small
    shift to the side (within 12 cm) and the brightness of each scene.

    In one camera the farther disk is always higher in the picture and smaller. ``decouple=True`` gives every scene a camera and a
    disk of its own, so that distance, image height and apparent size are independent of one another (see
    :mod:`deixis.benchmarks.decouple`); pitch, focal length and disk size then travel with distance instead, and are recorded.

    Args:
        tasks: ``"demonstrative"`` asks for "this red star" and has no truth, ``"distance"`` asks "near, middle or far?".
        languages: Codes of the tables in ``deixis/benchmarks/languages``, or paths of tables of your own (``"nl.toml"``).
        distances: Metres from the desk's near edge, as many as wanted.
        shapes: Figures on the disk.
        colours: Of the figures.
        camera: The speaker's eye; None for the standard one.
        decouple: Whether each scene has a camera of its own that takes distance, image height and apparent size apart.
        n: Draw this many scenes at random (distance uniform between the extremes of ``distances``) in place of the standard set.
        seed: Of everything random.
        size: Width and height of the pictures in pixels.
        camera_sides: ``"centre"``, ``"left"``, ``"right"``: where the eye is; each multiplies the scenes.
        addressees: ``"none"``, ``"near"``, ``"middle"``, ``"far"``: who sits beside the desk; each multiplies the scenes.

        prompts: Wordings of each question, from :data:`PROMPTS`: ``"standard"``, ``"paraphrase-1"``, ``"paraphrase-2"``, and each
            with the options listed in another order, as in ``"standard:dmp"`` (distal, medial, proximal). A language of two terms
            has two orders; a prompt that would be asked twice is asked once.

    Returns:
        Scenes in order, and within a scene tasks, then languages, then prompts.

        Targets: ``distance_m``, ``x_m`` (metres), ``region`` (1 to 3); with an addressee ``addressee_m`` and ``to_addressee_m``
        (metres along the desk, from its near edge and from the disk). Nuisances: ``object_row`` (image height of the disk's
        middle, 0 at the top, 1 at the bottom), ``object_area`` (share of the picture), ``brightness``; decoupled also
        ``camera_pitch`` (degrees), ``camera_height``, ``camera_setback`` (metres), ``camera_focal`` (mm), ``horizon_row`` and
        ``size_m`` (the disk's diameter). Groups: ``scene``, ``figure``, ``shape``, ``colour``; ``camera_side``, ``addressee`` and
        ``prompt`` where they are asked for; decoupled also ``height_cue`` (``agrees``, ``contradicts``, ``neutral``).

    Raises:
        ValueError: An argument is outside what it allows; the message lists it.
    """
    _check_list("languages", languages, '("en",)')
    tables = {table.code: table for table in map(language, languages)}
    questions = [
        _Asked(task=task, table=table, prompt=prompt, named=tuple(prompts) != ("standard",))
        for task in checked_names("tasks", tasks, TASKS)
        for table in tables.values()
        for prompt in _distinct(table.question(task), checked_names("prompts", prompts, PROMPTS))
    ]
    plan = Plan(
        shapes=checked_names("shapes", shapes, SHAPES),
        colours=checked_names("colours", colours, COLOURS),
        distances=_metres(distances),
        camera=camera or Camera(),
        camera_sides=checked_names("camera_sides", camera_sides, CAMERA_SIDES),
        addressees=checked_names("addressees", addressees, ADDRESSEES),
        decouple=decouple,
        n=None if n is None else _whole("n", n, 1),
        seed=_whole("seed", seed, 0),
    )
    if decouple and camera is not None:
        raise ValueError("decouple=True gives each scene a camera of its own; leave out camera, or decouple.")
    if decouple and plan.addressees != ("none",):
        raise ValueError("with decouple=True an addressee would often be out of frame; leave out addressees, or decouple.")
    size = _whole("size", size, 16, 4096, " pixels")
    return Items(item for scene in planned_scenes(plan) for item in _items_of_scene(scene, decouple, size, questions))


def _metres(distances: Any) -> tuple[float, ...]:
    _check_list("distances", distances, "(0.25, 1.5)")
    for distance in distances:
        if not isinstance(distance, Real) or not 0 < float(distance) < DESK_LENGTH_M:
            raise ValueError(f"distances holds {distance}; a disk must lie between 0 and {DESK_LENGTH_M} m.")
    metres = tuple(float(distance) for distance in distances)
    shown = [f"{distance:g}" for distance in metres]  # as it stands in a scene's name
    twice = next((name for name in shown if shown.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"distances holds {twice} m twice (to six digits); give each once.")
    return metres


def _check_list(name: str, values: object, example: str) -> None:
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        raise ValueError(f"{name}={values!r} is not a list with something in it; give a list such as {example}.")


def _whole(name: str, value: object, least: int, most: int | None = None, unit: str = "") -> int:
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value <= (most or value):
        return int(value)
    span = f"between {least} and {most}{unit}" if most else f"of {least} or more"
    raise ValueError(f"{name}={value!r} is not a whole number {span}.")


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """What the items of one scene share."""

    scene: str
    images: tuple[ImageHandle, ...]
    targets: dict[str, float]
    groups: dict[str, str]
    nuisances: dict[str, float]
    objects: tuple[Box, ...]


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One question in one language and wording."""

    task: str
    table: Language
    prompt: str
    named: bool
    """Whether ids and groups say which prompt it is; the standard set's don't."""

    def item(self, drawn: _Drawn) -> Item:
        """The question, put to a scene."""
        question = self.table.question(self.task)
        region = drawn.targets["region"]
        # The standard prompt keeps its id, so that it lines up with sets that have no other.
        ending = f"/{self.prompt}" if self.prompt != "standard" else ""
        return Item(
            id=f"memory-game/{drawn.scene}/{self.task}/{self.table.code}{ending}",
            benchmark="memory-game",
            task=self.task,
            language=self.table.code,
            images=drawn.images,
            prompt=question.prompt_of(self.prompt),
            options=question.options,
            truth=next((o.label for o in question.options if o.value == region), None),
            targets=drawn.targets,
            groups=drawn.groups | ({"prompt": self.prompt} if self.named else {}),
            nuisances=drawn.nuisances,
            objects=drawn.objects,
        )


def _distinct(question: Question, prompts: Sequence[str]) -> list[str]:
    """The prompts that differ in this language, by their first names."""
    first: dict[str, str] = {}
    for prompt in prompts:
        first.setdefault(question.prompt_of(prompt), prompt)
    return list(first.values())


def _items_of_scene(scene: PlannedScene, decoupled: bool, size: int, questions: Sequence[_Asked]) -> list[Item]:
    figure = scene.figure
    image = DrawnImage(figure=figure, camera=scene.camera, pixels=size)
    targets = {"distance_m": figure.distance_m, "region": float(region_of(figure.distance_m)), "x_m": figure.x_m}
    if figure.addressee_m is not None:
        targets |= {"addressee_m": figure.addressee_m, "to_addressee_m": abs(figure.addressee_m - figure.distance_m)}
    box, nuisances = _seen_object(figure, scene.camera, size)
    groups = {
        "scene": scene.name,
        "figure": f"{figure.colour} {figure.shape}",
        "shape": figure.shape,
        "colour": figure.colour,
        **scene.groups,
    }
    if decoupled:
        nuisances |= latents(figure, scene.camera)
        groups["height_cue"] = height_cue(figure.distance_m, nuisances["object_row"])
    drawn = _Drawn(scene=scene.name, images=(image,), targets=targets, groups=groups, nuisances=nuisances, objects=(box,))
    return [asked.item(drawn) for asked in questions]


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
