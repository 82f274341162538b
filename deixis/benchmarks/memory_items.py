"""Scenes and questions of the memory game, put together into items."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deixis.benchmarks.decouple import height_cue, latents
from deixis.benchmarks.images import DrawnImage, ImageHandle
from deixis.benchmarks.items import Box, Item
from deixis.benchmarks.languages import Language, LanguageError, language
from deixis.benchmarks.memory_pictures import NamedPicture
from deixis.benchmarks.memory_scenes import PlannedScene
from deixis.benchmarks.render import Camera, Figure, footprint
from deixis.benchmarks.speaker import region_of


@dataclass(frozen=True, kw_only=True)
class SceneFacts:
    """What the items of one scene share."""

    scene: str
    images: tuple[ImageHandle, ...]
    targets: dict[str, float]
    groups: dict[str, str]
    nuisances: dict[str, float]
    objects: tuple[Box, ...]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question in one language and wording."""

    task: str
    table: Language
    prompt: str
    named: bool
    """Whether ids and groups say which prompt it is; the standard set's don't."""

    def item(self, drawn: SceneFacts) -> Item:
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


def asked_questions(tasks: Sequence[str], languages: Sequence[str | Path], prompts: Sequence[str]) -> list[Asked]:
    """Every question about a scene: tasks, within them languages, within them prompts that differ."""
    tables = {table.code: table for table in map(language, languages)}
    return [
        Asked(task=task, table=table, prompt=prompt, named=tuple(prompts) != ("standard",))
        for task in tasks
        for table in tables.values()
        for prompt in _distinct(table, task, prompts)
    ]


def _distinct(table: Language, task: str, prompts: Sequence[str]) -> list[str]:
    """The prompts that differ in this language, by their first names.

    Raises:
        LanguageError: A paraphrase is asked for and the table has none.
    """
    question, first = table.question(task), dict[str, str]()
    for prompt in prompts:
        if not question.has(prompt):
            said = f"the table {table.code}.toml has no paraphrases of [{task}]"
            raise LanguageError(f"{said}; add them there, or leave out {prompt!r} in prompts.")
        first.setdefault(question.prompt_of(prompt), prompt)
    return list(first.values())


def drawn_facts(scene: PlannedScene, decoupled: bool, size: int) -> SceneFacts:
    """A scene that is drawn, with what is exact about its picture.

    Raises:
        ValueError: The disk lies partly outside the picture.
    """
    figure = scene.figure
    targets = {"distance_m": figure.distance_m, "region": float(region_of(figure.distance_m)), "x_m": figure.x_m}
    if figure.addressee_m is not None:
        targets |= {"addressee_m": figure.addressee_m, "to_addressee_m": abs(figure.addressee_m - figure.distance_m)}
    box, nuisances = _seen_object(figure, scene.camera, size)
    groups = _groups(scene.name, figure.shape, figure.colour) | scene.groups
    if decoupled:
        nuisances |= latents(figure, scene.camera)
        targets["size_m"] = nuisances["size_m"]
        groups["height_cue"] = height_cue(figure.distance_m, nuisances["object_row"])
    image = DrawnImage(figure=figure, camera=scene.camera, pixels=size)
    return SceneFacts(scene=scene.name, images=(image,), targets=targets, groups=groups, nuisances=nuisances, objects=(box,))


def picture_facts(picture: NamedPicture) -> SceneFacts:
    """A scene that somebody else drew: what its name says, and no more."""
    name = f"{picture.shape}-{picture.colour}-{picture.distance_m:g}m-pictures"
    return SceneFacts(
        scene=name,
        images=(picture.image,),
        targets={"distance_m": picture.distance_m, "region": float(region_of(picture.distance_m))},
        groups=_groups(name, picture.shape, picture.colour),
        nuisances={},
        objects=(),
    )


def _groups(scene: str, shape: str, colour: str) -> dict[str, str]:
    return {"scene": scene, "figure": f"{colour} {shape}", "shape": shape, "colour": colour}


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
