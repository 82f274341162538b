"""What SpaceNum's pictures cost beside the memory game's, and how long the whole standard set takes to plan and to draw.

Ratios are of equally many pictures of 512 pixels: five views of one room (with the room built anew), the four placements of one
layout on a desk and in a room, against as many scenes of the memory game. Nothing comes from the picture cache.
"""

from collections.abc import Callable, Sequence
from typing import Any

from harness import arguments, compare, save, timed

import deixis as dx

PICTURES = {"room": 2_000, "desk": 400, "open room": 1_600}
"""In the standard set: five a room of 400, four a layout of 100 and 400."""


def drawing(pictures: Sequence[Any]) -> Callable[[], None]:
    """Draw them all, whatever the cache holds."""
    from deixis.benchmarks.spacenum.rooms import built

    def run() -> None:
        built.cache_clear()
        for picture in pictures:
            picture.draw()

    return run


def memory_game(n: int, size: int) -> Callable[[], None]:
    """Draw as many scenes of the memory game."""
    from deixis.benchmarks.render import draw, memory_scene

    images: list[Any] = [item.images[0] for item in dx.memory_game(languages=("en",))][:n]

    def run() -> None:
        for image in images:
            draw(memory_scene(image.figure), image.camera.view(size))

    return run


def main() -> None:
    options = arguments(__doc__ or "")
    size, rounds = (128, 2) if options.quick else (512, options.rounds or 5)
    n = 8 if options.quick else 40
    planned = timed(lambda: dx.spacenum("transition", n=n, seed=1, size=size))[0] / n
    laid = timed(lambda: dx.spacenum("layout", n=n, seed=1, size=size))[0] / n
    asked = {"directions": ("num2space",), "seed": 2, "size": size, "n": 1}
    sets = {
        "room": dx.spacenum("transition", **asked)[0].images,
        "desk": dx.spacenum("layout", scales=("desk",), maps=("2D",), **asked)[0].images,
        "open room": dx.spacenum("layout", scales=("room",), maps=("2D",), **asked)[0].images,
    }
    found = [
        compare(
            f"{len(pictures)} pictures, {name}, {size} px",
            drawing(pictures),
            memory_game(len(pictures), size),
            labels=(name, "memory game"),
            threads=options.threads,
            rounds=rounds,
            note="both draw equally many pictures; the room's time holds the building of the room and its light",
        )
        for name, pictures in sets.items()
    ]
    drawn = sum(
        PICTURES[name] * sum(row.ours_cpu) / len(row.ours_cpu) / len(sets[name]) for name, row in zip(sets, found, strict=True)
    )
    minutes = {"planning": (400 * planned + 500 * laid) / 60, "drawing": drawn / 60}
    save("drawing", found, options.out, standard_set_cpu_minutes=minutes)


if __name__ == "__main__":
    main()
