"""The options that choose items of SpaceNum, and those of items that are in files."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deixis.cli.memory_game import given_options
from deixis.cli.options import listed

if TYPE_CHECKING:
    from deixis.benchmarks import Items


def _option(help_text: str, default: str | bool, *names: str, panel: str = "For spacenum", **more: Any) -> Any:
    """An option of this group; None says that it was not given, and the library's own default holds."""
    return typer.Option(*names, help=help_text, show_default=default, rich_help_panel=panel, **more)


@dataclass(frozen=True, kw_only=True)
class SpaceNumChoice:
    """What was asked for on the command line; None where nothing was. Scenes, seed and size are shared with the memory game."""

    kind: Annotated[str | None, _option("transition, layout, or both with a comma between.", "transition,layout")] = None
    directions: Annotated[str | None, _option("num2space, space2num, or both.", "num2space,space2num")] = None
    actions: Annotated[str | None, _option("Transitions: such as 'rotate left,rotate right'.", "all eight")] = None
    magnitudes: Annotated[
        str | None,
        _option("Transitions: an action's own values, as in 'rotate up=5,15,25,35; move left=0.3,0.6,0.9,1.2'.", False),
    ] = None
    scales: Annotated[str | None, _option("Layouts: desk, room, or both.", "desk,room")] = None
    maps: Annotated[str | None, _option("Layouts: 1D, 2D, 3D.", "1D,2D,3D")] = None
    permutations: Annotated[
        bool | None, _option("Each item once for every cyclic shift of its options.", False, "--permutations")
    ] = None

    def given(self) -> dict[str, Any]:
        """The options that were given, by their names."""
        return given_options(self)

    def items(self, **shared: Any) -> "Items":
        """Items of SpaceNum, one kind after the other."""
        from deixis.benchmarks import cyclic_permutations, spacenum
        from deixis.benchmarks.spacenum import KINDS

        arguments = {**self.given(), **shared}
        permuted = arguments.pop("permutations", False)
        for name in ("directions", "actions", "scales", "maps"):
            if name in arguments:
                arguments[name] = listed(arguments[name])
        if "magnitudes" in arguments:
            arguments["magnitudes"] = _magnitudes(arguments["magnitudes"])
        kinds = listed(arguments.pop("kind", _kinds_of(arguments, KINDS)))
        parts = [spacenum(kind, **arguments) for kind in kinds]
        items = sum(parts[1:], start=parts[0])
        return cyclic_permutations(items) if permuted else items


@dataclass(frozen=True, kw_only=True)
class FileChoice:
    """What was asked for of items in files."""

    allow_missing: Annotated[
        bool | None,
        _option("Leave out rows whose pictures are missing or damaged.", False, "--allow-missing", panel="For items in files"),
    ] = None
    allow_unknown: Annotated[
        bool | None,
        _option(
            "Leave out columns, actions and pattern words that are not known.",
            False,
            "--allow-unknown",
            panel="For items in files",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """The options that were given, by their names."""
        return given_options(self)


def _kinds_of(arguments: dict[str, Any], kinds: tuple[str, ...]) -> str:
    """Both kinds, unless an option is there that only one of them has."""
    if {"actions", "magnitudes"} & set(arguments):
        return "transition"
    return "layout" if {"scales", "maps"} & set(arguments) else ",".join(kinds)


def _magnitudes(text: str) -> dict[str, list[float]]:
    """Values by action from ``rotate up=5,15,25,35; move left=0.3,0.6,0.9,1.2``."""
    try:
        parts = [part.split("=") for part in text.split(";") if part.strip()]
        return {action.strip(): [float(value) for value in listed(values)] for action, values in parts}
    except ValueError as error:
        raise ValueError(
            f"--magnitudes {text!r} is not of the form 'rotate up=5,15,25,35; move left=0.3,0.6,0.9,1.2'."
        ) from error
