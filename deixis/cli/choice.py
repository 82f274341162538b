"""Every option that chooses items, the same for every command that takes a benchmark."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from deixis.cli.memory_game import MemoryGameChoice
from deixis.cli.spacenum import FileChoice, SpaceNumChoice
from deixis.console import warn

if TYPE_CHECKING:
    from deixis.benchmarks import Items

_GROUPS = {"memory_game": MemoryGameChoice, "spacenum": SpaceNumChoice, "files": FileChoice}
_SHARED = ("n", "seed", "size")
"""Options of the memory game that SpaceNum has too."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkChoice:
    """What was asked for on the command line."""

    memory_game: MemoryGameChoice
    spacenum: SpaceNumChoice
    files: FileChoice

    @property
    def seed(self) -> int:
        """Of everything random."""
        return self.memory_game.seed or 0

    def items(self, name: str, conditions: Sequence[str]) -> "Items":
        """The items of a benchmark, or those in a folder or file.

        Raises:
            ValueError: No such benchmark, or an option that would have no effect.
        """
        from deixis.benchmarks import ItemsWarning, load_items

        if name == "memory-game":
            self._refuse(name, self.spacenum, self.files)
            return self.memory_game.items()
        if name == "spacenum":
            shared = {key: value for key, value in self.memory_game.given().items() if key in _SHARED}
            self._refuse(name, self.memory_game, self.files, used=_SHARED)
            return self.spacenum.items(**shared)
        if not Path(name).exists():
            raise ValueError(f"benchmark {name!r} is neither 'memory-game', 'spacenum' nor a folder or file of items.")
        # Who shows whom in shuffled pictures is random, whoever wrote the items.
        used = ("seed",) if any("shuffled" in each for each in conditions) else ()
        folder = self.memory_game.pictures
        in_table = Path(name).is_file()
        self._refuse_for_files(name, used=(*used, "pictures") if in_table else used)
        given = self.files.given()
        if not in_table and given:
            raise ValueError(
                f"--{'-'.join(next(iter(given)).split('_'))} is for files of rows, and {name} is a folder; leave it out."
            )
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", ItemsWarning)
            items = load_items(name, images=folder, **given)
        for each in told:
            warn(str(each.message))
        return items

    def _refuse(self, name: str, *others: Any, used: tuple[str, ...] = ()) -> None:
        idle = [f"--{key.replace('_', '-')}" for other in others for key in other.given() if key not in used]
        if idle:
            raise ValueError(f"{', '.join(idle)} can't change items of {name}; leave {'it' if len(idle) == 1 else 'them'} out.")

    def _refuse_for_files(self, name: str, used: tuple[str, ...]) -> None:
        self.memory_game.refuse_for(name, used)
        if idle := [f"--{key.replace('_', '-')}" for key in self.spacenum.given()]:
            raise ValueError(
                f"{', '.join(idle)} would choose items of SpaceNum, but BENCHMARK names the items in {name}, which are used as "
                f"they are; leave {'it' if len(idle) == 1 else 'them'} out, or name spacenum."
            )


def takes_benchmark(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``function`` every option that chooses items; it gets them as one argument, ``choice``."""

    @wraps(function)
    def run(**arguments: Any) -> Any:
        parts = {name: group(**{f.name: arguments.pop(f.name) for f in fields(group)}) for name, group in _GROUPS.items()}
        return function(**arguments, choice=BenchmarkChoice(**parts))

    shared = {
        f.name: Parameter(
            f.name, Parameter.KEYWORD_ONLY, default=None, annotation=get_type_hints(group, include_extras=True)[f.name]
        )
        for group in _GROUPS.values()
        for f in fields(group)
    }
    own = {name: parameter for name, parameter in signature(function).parameters.items() if name != "choice"}
    run.__dict__["__signature__"] = signature(function).replace(parameters=[*own.values(), *shared.values()])
    run.__annotations__ = {name: parameter.annotation for name, parameter in (own | shared).items()}
    return run
