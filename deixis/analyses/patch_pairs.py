"""Pairs of scenes for patching: equal in everything but what is to be moved."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from deixis.benchmarks import Item

Contrast = Literal["distance", "colour"]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The same question about two pictures."""

    name: str
    """Pairs of one name share their scenes, and move together in every bootstrap draw."""
    contrast: Contrast
    """In what the pictures differ: ``distance``, or ``colour`` as a control that should not move where something is."""
    donor: "Item"
    """The clean item, whose activations are put into the other."""
    receiver: "Item"

    @property
    def options(self) -> tuple[int, int]:
        """The option that the donor's picture speaks for, and the one that the receiver's does, as places among the options.

        With a truth: the two right options. With terms: the proximal one for the nearer picture, the distal one for the farther.

        Raises:
            ValueError: The items say neither.
        """
        labels = [option.label for option in self.receiver.options]
        terms = [option.term for option in self.receiver.options]
        if self.donor.truth is not None and self.receiver.truth is not None and self.donor.truth != self.receiver.truth:
            return labels.index(self.donor.truth), labels.index(self.receiver.truth)
        if "proximal" in terms and "distal" in terms:
            near, far = terms.index("proximal"), terms.index("distal")
            nearer = self.donor.targets["distance_m"] <= self.receiver.targets["distance_m"]
            return (near, far) if nearer else (far, near)
        if self.receiver.truth is not None:  # a control: the right option of both, against the mean rival
            right = labels.index(self.receiver.truth)
            return (0 if right else len(labels) - 1), right
        raise ValueError(f"item {self.receiver.id!r} has neither a truth nor proximal and distal options; no difference to move.")


def near_far_pairs(
    tasks: Sequence[str] = ("demonstrative",),
    languages: Sequence[str] = ("en", "zh", "ja", "ko"),
    n: int = 4,
    *,
    near: float = 0.25,
    far: float = 2.75,
    controls: bool = True,
    size: int = 512,
    seed: int = 0,
) -> tuple[Pair, ...]:
    """Memory-game pairs: the same figure, place to the side, light and camera, near (donor) and far (receiver).

    Args:
        tasks: As for :func:`deixis.memory_game`.
        languages: As there.
        n: Figures, drawn without repetition while there are some; each gives a pair per task and language.
        near: Metres.
        far: Metres.
        controls: Also give each receiver a donor of another colour at the same distance, which should move no answer
            about distance.
        size: Width and height of the pictures in pixels.
        seed: Of the choice of figures.

    Raises:
        ValueError: ``n`` is below 1, ``near`` is not below ``far``, or what ``memory_game`` refuses.
    """
    from deixis.benchmarks.memory_game import COLOURS
    from deixis.benchmarks.render import SHAPES

    if n < 1 or not near < far:
        raise ValueError(f"n={n} must be 1 or more and near={near} below far={far}.")
    rng = np.random.default_rng((seed, 9))
    figures = [(shape, colour) for shape in SHAPES for colour in COLOURS]
    order = np.concatenate([rng.permutation(len(figures)) for _ in range(-(-n // len(figures)))])[:n]
    pairs: list[Pair] = []
    for number, place in enumerate(order):
        shape, colour = figures[place]
        other = COLOURS[(COLOURS.index(colour) + 1 + int(rng.integers(len(COLOURS) - 1))) % len(COLOURS)]
        name = f"{colour}-{shape}-{number}"
        close, distant, recoloured = (
            _items(tasks, languages, shape, hue, metres, size, seed + number, name)
            for hue, metres in ((colour, near), (colour, far), (other, far))
        )
        pairs += [Pair(name=name, contrast="distance", donor=a, receiver=b) for a, b in zip(close, distant, strict=True)]
        if controls:
            pairs += [Pair(name=name, contrast="colour", donor=a, receiver=b) for a, b in zip(recoloured, distant, strict=True)]
    return tuple(pairs)


def _items(
    tasks: Sequence[str], languages: Sequence[str], shape: str, colour: str, metres: float, size: int, seed: int, name: str
) -> "list[Item]":
    """The questions about one scene whose place to the side and light depend on ``seed`` only."""
    from deixis.benchmarks import memory_game
    from deixis.benchmarks.images import DrawnImage
    from deixis.benchmarks.items import Box
    from deixis.benchmarks.render import footprint

    rng = np.random.default_rng((seed, 91))
    x_m, brightness = round(float(rng.uniform(-0.12, 0.12)), 4), round(float(rng.uniform(0.92, 1.06)), 4)
    found = []
    for item in memory_game(tasks, languages, (metres,), (shape,), (colour,), size=size):
        image = item.images[0]
        if not isinstance(image, DrawnImage):
            raise TypeError(f"item {item.id!r} shows a {type(image).__name__}, not a drawn scene.")
        image = replace(image, figure=replace(image.figure, x_m=x_m, brightness=brightness))
        outline = footprint(image.figure, image.camera, size)
        (left, top), (right, bottom) = outline.min(axis=0), outline.max(axis=0)
        scene = f"pair-{name}-{colour}-{metres:g}m"
        found.append(
            replace(
                item,
                id=f"memory-game/{scene}/{item.task}/{item.language}",
                images=(image,),
                targets={**item.targets, "x_m": x_m},
                groups={**item.groups, "scene": scene},
                nuisances={"brightness": brightness},
                objects=(Box(name="disk", left=float(left), top=float(top), right=float(right), bottom=float(bottom)),),
            )
        )
    return found
