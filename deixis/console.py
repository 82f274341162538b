"""How the commands talk: tables on stdout, progress on stderr, one sentence for an error, an exit code.

Exit codes: 0 done, 1 the job failed, 2 bad usage or bad input, 130 stopped by Ctrl-C.
"""

import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.progress import track
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

FAILED, BAD, STOPPED = 1, 2, 130
# What the user can put right in the command or in the files; anything else is the job's failure.
BAD_INPUT = (ValueError, KeyError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True)
class Outcome:
    """What a command has to say."""

    data: Any
    """For ``--json``: anything that JSON knows."""
    shown: tuple[RenderableType, ...] = ()
    """For people: text and tables, in order."""
    code: int = 0
    """Exit code, once it has been said."""
    silent: bool = False
    """Whether another process says it: the first of several ranks."""


_SHARED = {
    "as_json": Annotated[bool, typer.Option("--json", help="Print the result as JSON.")],
    "debug": Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")],
}


def command(app: typer.Typer, name: str) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
    """Make a function that returns an :class:`Outcome` the subcommand ``name``, with ``--json`` and ``--debug``."""

    def register(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
        @wraps(function)
        def run(as_json: bool, debug: bool, **arguments: Any) -> None:
            _attempt(lambda: _say(function(**arguments), as_json), name, debug)

        shared = [Parameter(key, Parameter.KEYWORD_ONLY, default=False, annotation=kind) for key, kind in _SHARED.items()]
        own = signature(function)
        run.__dict__["__signature__"] = own.replace(parameters=[*own.parameters.values(), *shared])
        run.__annotations__ = {**function.__annotations__, **_SHARED}
        app.command(name)(run)
        return function

    return register


def _attempt(job: Callable[[], None], name: str, debug: bool) -> None:
    try:
        job()
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        _complain("stopped; run the same command again to continue.")
        raise typer.Exit(STOPPED) from None
    except Exception as error:
        if debug:
            traceback.print_exc()
        expected = isinstance(error, BAD_INPUT)
        hint = "" if expected or debug else f" Run 'deixis {name} ... --debug' for the whole story."
        _complain(f"{sentence(error)}{hint}")
        raise typer.Exit(BAD if expected else FAILED) from error


def _say(outcome: Outcome, as_json: bool) -> None:
    """Print the outcome, down to the last byte: what is left in a buffer would fail when nobody can catch it any more.

    Raises:
        RuntimeError: stdout takes nothing more, such as on a full disk.
    """
    try:
        if outcome.silent:
            return
        if as_json:
            sys.stdout.write(json.dumps(outcome.data, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
        else:
            _print(outcome.shown)
        sys.stdout.flush()
    except OSError as error:
        _silence_stdout()
        if isinstance(error, BrokenPipeError):  # the reader has seen enough, as `head` does
            raise typer.Exit(FAILED) from None
        raise RuntimeError(f"the result can't be written to stdout ({error.strerror}).") from error
    if outcome.code:
        raise typer.Exit(outcome.code)


def _silence_stdout() -> None:
    """Send what is still in the buffer nowhere; Python would try again to write it at the end."""
    with suppress(OSError):  # a stdout without a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def sentence(error: BaseException) -> str:
    """An error's message as one sentence on one line; with the class's name where the message alone says little."""
    # str(KeyError("x")) is "'x'", with quotation marks around the whole message.
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    text = " ".join(str(said).split())
    if " " not in text or not isinstance(error, (*BAD_INPUT, RuntimeError, ImportError)):
        text = f"{type(error).__name__}: {text}"
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _complain(text: str) -> None:
    _stderr().print(f"deixis: {text}", soft_wrap=True)


def _stderr() -> Console:
    return Console(stderr=True, highlight=False, markup=False)


def _print(shown: tuple[RenderableType, ...]) -> None:
    console = Console(highlight=False, markup=False)
    for part in shown:
        # Long lines such as paths are left to the terminal: a path that was broken can't be copied.
        console.print(part, soft_wrap=isinstance(part, str))


def warn(text: str) -> None:
    """Say on stderr what the user should know, whoever watches."""
    _complain(text)


def is_watched() -> bool:
    """Whether progress should be shown: only where a person sees it."""
    return sys.stderr.isatty()


def progress_bar(steps: Iterable[Any], total: int, what: str) -> Iterable[Any]:
    """``steps``, with a bar on stderr where a person sees it."""
    return track(steps, what, total=total, console=_stderr(), disable=not is_watched(), transient=True)


def note(text: str) -> None:
    """Say what is being done, where a person sees it."""
    if is_watched():
        _stderr().print(f"{text} ...", style="dim")


def records(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    """A frame's rows for JSON: NaN and infinities become null."""
    return json.loads(frame.to_json(orient="records", double_precision=15, force_ascii=False))


def table(frame: "pd.DataFrame", columns: Mapping[str, str], digits: int = 2, title: str | None = None) -> Table:
    """The frame's ``columns``, under other headings, numbers to the right with ``digits`` decimals, NaN as a dash."""
    shown = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False, show_edge=False)
    for name, heading in columns.items():
        shown.add_column(heading, justify="right" if frame[name].dtype.kind in "fi" else "left")
    for row in frame[list(columns)].itertuples(index=False):
        shown.add_row(*(cell(value, digits) for value in row))
    return shown


def cell(value: object, digits: int = 2) -> str:
    """One value as a table shows it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)
