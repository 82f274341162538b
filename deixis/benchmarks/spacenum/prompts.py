"""The questions in words: our own wording of the two settings and the two directions (the paper's own is not copied)."""

from collections.abc import Mapping, Sequence

from deixis.benchmarks.items import IMAGE_MARK, Option

DIRECTIONS = ("num2space", "space2num")
"""From numbers to pictures, from pictures to numbers."""
ANSWER_LINE = "Answer with the letter of the right option only."
THINK_LINE = (
    "Reason step by step inside <think> and </think> first, comparing the options with one another. "
    "Then write 'Answer:' and the letter of the right option."
)
NO_THINK_LINE = "Do not reason or explain: answer at once, with the letter of the right option only."
_UNITS = {"m": "meters", "deg": "degrees"}
_AXES = {
    "1D": "Along one axis, each object has the two numbers where it begins and ends, in meters.",
    "2D": "Seen from above, each object has two opposite corners of its rectangle, the smaller x and y first, in meters.",
    "3D": "In space, each object has two opposite corners of its box, the smaller x, y and z first, in meters.",
}
"""How to read a map's entries."""


def magnitude_text(value: float | int, unit: str) -> str:
    """``0.4 meters``, ``50 degrees``: metres with one decimal or as many as it takes.

    Raises:
        ValueError: ``unit`` is neither ``m`` nor ``deg``.
    """
    if unit not in _UNITS:
        raise ValueError(f"unit={unit!r} is not one of: {', '.join(map(repr, _UNITS))}.")
    number = f"{value:g}"
    return f"{number if unit == 'deg' or '.' in number else f'{number}.0'} {_UNITS[unit]}"


def transition_prompt(direction: str, action: str, magnitude: str | None, options: Sequence[Option], n_pictures: int) -> str:
    """The question of a transition item.

    Args:
        direction: ``"num2space"``: the first picture is the view before, the others are the candidates; ``"space2num"``: two
            pictures, before and after.
        action: Such as ``"rotate left"``.
        magnitude: As :func:`magnitude_text` writes it; None in ``space2num``, where it is asked for.
        options: With letters and texts.
        n_pictures: Of the item.

    Raises:
        ValueError: The direction is unknown, or a magnitude is missing or would give the answer away.
    """
    _check_direction(direction, magnitude)
    if direction == "num2space":
        question = (
            f"Image 1 is what you see first. Then you do one action: {action} by {magnitude}. "
            "Which of the other images is what you see afterwards?"
        )
    else:
        question = (
            f"Image 1 is what you see first. Then you do one action: {action}. Image 2 is what you see afterwards. "
            "How large was the action?"
        )
    return _asked(n_pictures, question, options)


def layout_prompt(
    direction: str,
    map_text: str,
    options: Sequence[Option],
    names: Mapping[str, str],
    map: str,  # noqa: A002
    frame: str | None = None,
) -> str:
    """The question of a layout item.

    Args:
        direction: ``"num2space"``: the pictures are the options; ``"space2num"``: one picture, and the target's entry in the map
            is ``[x]``.
        map_text: The map as text.
        options: With letters and texts.
        names: What ``anchor_a``, ``anchor_b`` and ``target`` are.
        map: ``"1D"``, ``"2D"`` or ``"3D"``.
        frame: Where the origin is and where the axes point, in sentences; None for the usual frame.

    Raises:
        ValueError: The direction or the kind of map is unknown.
    """
    _check_direction(direction)
    if map not in _AXES:
        raise ValueError(f"map={map!r} is not one of: {', '.join(repr(known) for known in _AXES)}.")
    origin = frame or (
        f"The origin is at a corner of the {names['anchor_a']}, and the x axis points from there towards the {names['anchor_b']}."
    )
    given = f"This map tells where objects are. {_AXES[map]} {origin}\nMap: {map_text}\n"
    if direction == "num2space":
        return _asked(len(options), f"{given}Which image shows the scene that the map describes?", options)
    asked = f"In the map, [x] stands for the {names['target']}. Which option is its entry, so that the map fits Image 1?"
    return _asked(1, given + asked, options)


def option_lines(options: Sequence[Option]) -> str:
    """One line an option: letter, point, text."""
    return "\n".join(f"{option.label}. {option.text}" for option in options)


def _asked(n_pictures: int, question: str, options: Sequence[Option]) -> str:
    pictures = "\n".join(f"Image {k + 1}: {IMAGE_MARK}" for k in range(n_pictures))
    return f"{pictures}\n{question}\n{option_lines(options)}\n{ANSWER_LINE}"


def _check_direction(direction: str, magnitude: str | None = "") -> None:
    if direction not in DIRECTIONS:
        raise ValueError(f"direction={direction!r} is not one of: {', '.join(map(repr, DIRECTIONS))}.")
    if magnitude != "" and (magnitude is None) == (direction == "num2space"):
        said = "needs the magnitude in words" if magnitude is None else "asks for the magnitude, so it must not be given"
        raise ValueError(f"direction={direction!r} {said}; see magnitude_text.")
