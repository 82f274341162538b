"""What may be done to items: each condition is a record, and several are joined with a plus sign.

Those below change the pictures of any item; :mod:`deixis.benchmarks.spacenum.interventions` adds those that need more truth.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deixis.benchmarks.images import DecolouredImage, ImageHandle, UniformImage
from deixis.benchmarks.items import IMAGE_MARK, Item

BLANK_GREY, BLACK_GREY = 128, 0
_SEED_STREAM = 5297
_MARKS = re.compile(rf"(?P<indent>[ \t]*)(?:{re.escape(IMAGE_MARK)}[ \t]*)+")
_CLOSING = ",.;:?!)"


@dataclass(frozen=True)
class Condition:
    """One change; truth, targets and groups stay those of the item, and the question too unless it is a change ``of_words``.

    Boxes and nuisances describe a picture: they go with the one that is shown where that is another scene's.
    """

    name: str
    what: str
    """In words, for help pages."""
    keeps_a_scene: bool
    """Whether a scene is still to be seen; if not, no other change of pictures can be joined to it."""
    change: Callable[[Sequence[Item], int], list[Item]]
    """Items and a seed to the changed items, in order."""
    of_words: bool = False
    """Whether the prompt is changed and not the pictures."""


def with_condition(items: Sequence[Item], name: str, seed: int) -> list[Item]:
    """The items in the condition ``name``; see :meth:`deixis.Items.with_condition`."""
    wanted = _parts(name)
    if "real" in wanted:
        _check_all_real(items)
        return list(items)
    changed = list(items)
    for item in items:
        _check_joinable(item, wanted)
    for part in wanted:
        changed = known_conditions()[part].change(changed, seed)
    return [_named(item, wanted) for item in changed]


def known_conditions() -> dict[str, Condition]:
    """Every condition by its name, in the order in which joined ones are applied."""
    from deixis.benchmarks.spacenum.interventions import INTERVENTIONS  # which is made of the records below

    return CONDITIONS | INTERVENTIONS


def _parts(name: str) -> tuple[str, ...]:
    """The conditions that ``name`` joins, in the order of the table, whatever order they are written in."""
    given, known = name.split("+"), known_conditions()
    for part in given:
        if part not in known and part != "real":
            listed = ", ".join(map(repr, (*known, "real")))
            said = f"condition={name!r}" if part == name else f"condition={name!r} holds {part!r}, which"
            raise ValueError(f"{said} is not one of: {listed}.")
    if len(set(given)) < len(given):
        raise ValueError(f"condition={name!r} holds a condition twice; name each once.")
    if len(given) > 1:
        alone = "real" if "real" in given else _alone([known[part] for part in given])
        if alone is not None:
            why = "changes nothing" if alone == "real" else "leaves no scene that the other could change"
            raise ValueError(f"condition={name!r} contradicts itself: {alone!r} {why}; name it alone.")
    return tuple(sorted(given, key=["real", *known].index))


def _alone(parts: Sequence[Condition]) -> str | None:
    """The name of a condition that leaves no scene, where another of them would change the pictures too."""
    of_pictures = [part for part in parts if not part.of_words]
    return next((part.name for part in of_pictures if not part.keeps_a_scene), None) if len(of_pictures) > 1 else None


def _check_all_real(items: Sequence[Item]) -> None:
    for item in items:
        if item.condition != "real":
            raise ValueError(f"item {item.id!r} is in condition {item.condition!r} already; start from the real items.")


def _check_joinable(item: Item, wanted: tuple[str, ...]) -> None:
    of_words = all(known_conditions()[part].of_words for part in wanted)
    if not item.images and item.condition == "real" and not of_words:
        raise ValueError(f"item {item.id!r} has no picture, and a condition changes pictures; leave it out.")
    if item.condition == "real":
        return
    joined, table = (*item.condition.split("+"), *wanted), known_conditions()
    known = [table[part] for part in joined if part in table]
    if len(known) < len(joined) or len(set(joined)) < len(joined) or _alone(known) is not None:
        raise ValueError(
            f"item {item.id!r} is in condition {item.condition!r} already, to which {'+'.join(wanted)!r} can't be joined; "
            "start from the real items."
        )


def _named(item: Item, wanted: tuple[str, ...]) -> Item:
    before = () if item.condition == "real" else tuple(item.condition.split("+"))
    condition = "+".join(sorted({*before, *wanted}, key=[*known_conditions()].index))
    bare = item.id.removesuffix("+" + item.condition) if before else item.id
    return replace(item, id=f"{bare}+{condition}", condition=condition)


def _each_picture(change: Callable[[ImageHandle], ImageHandle]) -> Callable[[Sequence[Item], int], list[Item]]:
    def changed(items: Sequence[Item], _seed: int) -> list[Item]:
        return [replace(item, images=tuple(change(image) for image in item.images)) for item in items]

    return changed


def _uniform(grey: int) -> Callable[[ImageHandle], ImageHandle]:
    return lambda image: UniformImage(width=image.size[0], height=image.size[1], grey=grey)


def _without_pictures(items: Sequence[Item], _seed: int) -> list[Item]:
    return [replace(item, images=(), objects=(), prompt=_without_marks(item.prompt)) for item in items]


def _without_marks(prompt: str) -> str:
    """The prompt without marks for pictures, the blanks around them, and lines that held nothing else."""
    lines = [(line, _MARKS.sub(_joint, line)) for line in prompt.split("\n")]
    text = "\n".join(bare for line, bare in lines if bare.strip() or bare == line)
    text = text.lstrip("\n") if prompt.startswith(IMAGE_MARK) else text
    return text.rstrip("\n") if prompt.endswith(IMAGE_MARK) else text


def _joint(marks: re.Match[str]) -> str:
    """What stays where marks stood: a line's indent, or one blank between two words."""
    before, after = marks.string[: marks.start()], marks.string[marks.end() :]
    if not before:
        return marks["indent"]
    blank = " " in marks[0] or "\t" in marks[0]
    return " " if blank and after and after[0] not in _CLOSING else ""


def _shuffled(items: Sequence[Item], seed: int) -> list[Item]:
    """Every scene shows the pictures of one other scene, and no two scenes those of the same; boxes and nuisances go with them.

    So a split by scene is a split by picture too: no picture is on both sides of it.
    """
    changed: dict[str, Item] = {}
    for n_images in sorted({len(item.images) for item in items}):
        changed |= _shuffled_alike([item for item in items if len(item.images) == n_images], seed)
    return [changed[item.id] for item in items]


def _shuffled_alike(items: Sequence[Item], seed: int) -> dict[str, Item]:
    """The same among items with equally many pictures, by id."""
    scenes: dict[str, list[Item]] = {}  # of each scene one item for each of its sets of pictures
    for item in items:
        known = scenes.setdefault(_scene_of(item), [])
        if all(item.images != other.images for other in known):
            known.append(item)
    names = sorted(scenes)
    if len(names) < 2:
        raise ValueError(f"condition='shuffled' needs at least two scenes with {len(items[0].images)} pictures each; add more.")
    # One cycle through all scenes in random order: each gives to the next, so none keeps its own.
    order = np.random.default_rng((_SEED_STREAM, seed)).permutation(len(names))
    giver = {names[to]: names[of] for of, to in zip(order, np.roll(order, -1), strict=True)}
    changed = {}
    for item in items:
        scene = _scene_of(item)
        mine, theirs = scenes[scene], scenes[giver[scene]]
        place = next(k for k, known in enumerate(mine) if known.images == item.images)
        shown = theirs[place % len(theirs)]
        if set(shown.images) & {image for known in mine for image in known.images}:
            raise ValueError(f"the scenes {scene!r} and {giver[scene]!r} share a picture; give what shares pictures one scene.")
        groups = {**item.groups, "shown": giver[scene]}
        changed[item.id] = replace(item, images=shown.images, objects=shown.objects, nuisances=shown.nuisances, groups=groups)
    return changed


def _scene_of(item: Item) -> str:
    return item.groups.get("scene", item.id)


CONDITIONS: dict[str, Condition] = {
    condition.name: condition
    for condition in (
        Condition("blank", "uniform grey", False, _each_picture(_uniform(BLANK_GREY))),
        Condition("black", "all black", False, _each_picture(_uniform(BLACK_GREY))),
        Condition("text_only", "no picture at all", False, _without_pictures),
        Condition("shuffled", "another scene's picture", True, _shuffled),
        Condition("decoloured", "shades of grey", True, _each_picture(lambda image: DecolouredImage(source=image))),
    )
}
"""What may be done to a picture. A new condition is a new record here."""
