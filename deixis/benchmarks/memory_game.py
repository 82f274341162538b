"""The memory game (arXiv 2607.07251): a figure on a disk at three distances along a long desk."""

from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from deixis.benchmarks.items import Items
from deixis.benchmarks.languages.table import PROMPTS
from deixis.benchmarks.memory_items import asked_questions, drawn_facts, picture_facts
from deixis.benchmarks.memory_pictures import named_pictures
from deixis.benchmarks.memory_scenes import ADDRESSEES, CAMERA_SIDES, COLOURS, Plan, planned_scenes
from deixis.benchmarks.names import checked_names, checked_whole
from deixis.benchmarks.render import SHAPES, Camera
from deixis.benchmarks.render.memory_scene import DESK_LENGTH_M

TASKS = ("demonstrative", "distance")
STANDARD_SIZE = 512


def memory_game(
    tasks: Sequence[str] = ("demonstrative",),
    languages: Sequence[str | Path] = ("en", "zh", "ja", "ko"),
    distances: Sequence[float] | np.ndarray = (0.25, 1.50, 2.75),
    shapes: Sequence[str] = SHAPES,
    colours: Sequence[str] = COLOURS,
    camera: Camera | None = None,
    decouple: bool = False,
    n: int | None = None,
    seed: int = 0,
    size: int = STANDARD_SIZE,
    camera_sides: Sequence[str] = ("centre",),
    addressees: Sequence[str] = ("none",),
    prompts: Sequence[str] = ("standard",),
    images: str | Path | None = None,
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
            Regions then have the shares of their lengths, 30, 50 and 20 % between 0.25 and 2.75 m: nearly exact where scenes are
            decoupled, by chance (3, 16 and 5 of 24) where not. Without ``n`` each distance has equally many scenes.
        seed: Of everything random.
        size: Width and height of the pictures in pixels.
        camera_sides: ``"centre"``, ``"left"``, ``"right"``: where the eye is; each multiplies the scenes.
        addressees: ``"none"``, ``"near"``, ``"middle"``, ``"far"``: who sits beside the desk; each multiplies the scenes.

        prompts: Wordings of each question, from :data:`PROMPTS`: ``"standard"``, ``"paraphrase-1"``, ``"paraphrase-2"``, and each
            with the options listed in another order, as in ``"standard:dmp"`` (distal, medial, proximal). A language of two terms
            has two orders; a prompt that would be asked twice is asked once. Tables of your own need paraphrases only then.
        images: A folder of pictures named as in the paper, ``pic_disk-0-25_star_green.png``, to be used in place of drawn ones;
            nothing but what the name says is known of them, so they have no boxes and no nuisances.

    Returns:
        Scenes in order, and within a scene tasks, then languages, then prompts.

        Targets: ``distance_m``, ``x_m`` (metres), ``region`` (1 to 3); decoupled also ``size_m`` (the disk's diameter, metres);
        with an addressee ``addressee_m`` and ``to_addressee_m`` (metres along the desk, from its near edge and from the disk).
        Nuisances: ``object_row`` (image height of the disk's middle, 0 at the top, 1 at the bottom), ``object_area`` (share of
        the picture), ``brightness``; decoupled also ``camera_pitch`` (degrees), ``camera_height``, ``camera_setback`` (metres),
        ``camera_focal`` (mm), ``horizon_row`` and ``size_m``. Groups: ``scene``, ``figure``, ``shape``, ``colour``;
        ``camera_side``, ``addressee`` and ``prompt`` where they are asked for; decoupled also ``height_cue`` (``agrees``,
        ``contradicts``, ``neutral``).

    Raises:
        ValueError: An argument is outside what it allows; the message lists it.
        ImageError: A picture in ``images`` is missing, damaged or has another name.
    """
    _check_list("languages", languages, '("en",)')
    questions = asked_questions(checked_names("tasks", tasks, TASKS), languages, checked_names("prompts", prompts, PROMPTS))
    plan = Plan(
        shapes=checked_names("shapes", shapes, SHAPES),
        colours=checked_names("colours", colours, COLOURS),
        distances=_metres(distances),
        camera=camera or Camera(),
        camera_sides=checked_names("camera_sides", camera_sides, CAMERA_SIDES),
        addressees=checked_names("addressees", addressees, ADDRESSEES),
        decouple=decouple,
        n=None if n is None else checked_whole("n", n, 1),
        seed=checked_whole("seed", seed, 0),
    )
    size = checked_whole("size", size, 16, 4096, " pixels")
    if images is not None:
        _check_nothing_is_drawn(plan, camera, size)
        scenes = [picture_facts(picture) for picture in named_pictures(Path(images), plan.shapes, plan.colours, plan.distances)]
    else:
        _check_can_be_decoupled(plan, camera)
        scenes = [drawn_facts(scene, decouple, size) for scene in planned_scenes(plan)]
    return Items(asked.item(scene) for scene in scenes for asked in questions)


def _check_can_be_decoupled(plan: Plan, camera: Camera | None) -> None:
    if plan.decouple and camera is not None:
        raise ValueError("decouple=True gives each scene a camera of its own; leave out camera, or decouple.")
    if plan.decouple and plan.addressees != ("none",):
        raise ValueError("with decouple=True an addressee would often be out of frame; leave out addressees, or decouple.")


def _check_nothing_is_drawn(plan: Plan, camera: Camera | None, size: int) -> None:
    """What decides how scenes are drawn says nothing about pictures that are there."""
    given = {
        "camera": camera is not None,
        "decouple": plan.decouple,
        "n": plan.n is not None,
        "seed": plan.seed != 0,
        "size": size != STANDARD_SIZE,
        "camera_sides": plan.camera_sides != ("centre",),
        "addressees": plan.addressees != ("none",),
    }
    idle = [name for name, is_given in given.items() if is_given]
    if idle:
        raise ValueError(
            f"images=... are pictures that are there already, so {', '.join(idle)} can't change them; leave that out."
        )


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
