"""A bar on stderr for what takes a while."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

Step = TypeVar("Step")


def steps(work: Sequence[Step], what: str, *, shown: bool) -> Iterator[Step]:
    """``work`` in order, with a bar where a person sees it."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(work, what, console=console, transient=True, disable=not (shown and console.is_terminal))
