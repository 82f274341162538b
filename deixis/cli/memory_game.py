"""The options that choose items of the memory game."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deixis.cli.options import listed

if TYPE_CHECKING:
    from deixis.benchmarks import Items

_ANY = "For memory-game and spacenum"


def _option(help_text: str, default: str | bool, *names: str, panel: str = "For memory-game", **more: Any) -> Any:
    """An option of this group; None says that it was not given, and the library's own default holds."""
    return typer.Option(*names, help=help_text, show_default=default, rich_help_panel=panel, **more)


def given_options(choice: Any) -> dict[str, Any]:
    """The fields of a choice that were given, by their names."""
    values = {f.name: getattr(choice, f.name) for f in fields(choice)}
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class MemoryGameChoice:
    """What was asked for on the command line; None where nothing was."""

    tasks: Annotated[str | None, _option("demonstrative, distance, or both with a comma between.", "demonstrative")] = None
    languages: Annotated[str | None, _option("Codes or .toml tables of your own, separated by commas.", "en,zh,ja,ko")] = None
    prompts: Annotated[
        str | None,
        _option("Wordings: standard, paraphrase-1, paraphrase-2, each with :dmp for another order of terms; or all.", "standard"),
    ] = None
    distances: Annotated[
        str | None, _option("Metres with commas between, or 0.25:2.75:11 for eleven from 0.25 to 2.75.", "0.25,1.5,2.75")
    ] = None
    shapes: Annotated[str | None, _option("circle, cross, square, star, triangle.", "all five")] = None
    colours: Annotated[str | None, _option("black, blue, green, red.", "all four")] = None
    decouple: Annotated[
        bool | None, _option("Scenes in which distance, image height and apparent size are independent.", False, "--decouple")
    ] = None
    n: Annotated[
        int | None,
        _option("Scenes: of memory-game drawn at random, of spacenum the first of each kind.", "all", "--n", min=1, panel=_ANY),
    ] = None
    seed: Annotated[int | None, _option("Of everything random.", "0", panel=_ANY)] = None
    size: Annotated[int | None, _option("Width and height of the pictures in pixels.", "512", panel=_ANY)] = None
    camera_sides: Annotated[str | None, _option("Where the eye is: centre, left, right.", "centre")] = None
    addressees: Annotated[str | None, _option("Who sits beside the desk: none, near, middle, far.", "none")] = None
    pictures: Annotated[
        Path | None,
        _option(
            "A folder of pictures: named like pic_disk-0-25_star_green.png for memory-game; of a file of items, the one below "
            "which its pictures are.",
            False,
            panel=_ANY,
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """The options that were given, by their names."""
        return given_options(self)

    def items(self) -> "Items":
        """Items of the memory game."""
        from deixis.benchmarks import PROMPTS, memory_game

        arguments = self.given()
        for name in ("tasks", "languages", "prompts", "shapes", "colours", "camera_sides", "addressees"):
            if name in arguments:
                arguments[name] = listed(arguments[name])
        if arguments.get("prompts") == ["all"]:
            arguments["prompts"] = PROMPTS
        if "distances" in arguments:
            arguments["distances"] = _metres(arguments["distances"])
        if "pictures" in arguments:
            arguments["images"] = arguments.pop("pictures")
        return memory_game(**arguments)

    def refuse_for(self, saved: str, used: tuple[str, ...] = ()) -> None:
        """Say that items which are there already are not chosen by these options.

        Raises:
            ValueError: One was given that is not ``used``.
        """
        idle = [f"--{name.replace('_', '-')}" for name in self.given() if name not in used]
        if idle:
            raise ValueError(
                f"{', '.join(idle)} would choose items of the memory game, but BENCHMARK names the saved items in {saved}, which "
                f"are used as they are; leave {'it' if len(idle) == 1 else 'them'} out, or name memory-game."
            )


def _metres(text: str) -> list[float]:
    """Metres from ``0.25,1.5`` or from ``first:last:how many``."""
    import numpy as np

    try:
        if ":" in text:
            first, last, count = text.split(":")
            return [round(float(metre), 6) for metre in np.linspace(float(first), float(last), int(count))]
        return [float(part) for part in listed(text)]
    except ValueError as error:
        raise ValueError(
            f"--distances {text!r} is neither metres with commas between (0.25,1.5,2.75) nor a sweep (0.25:2.75:11)."
        ) from error
