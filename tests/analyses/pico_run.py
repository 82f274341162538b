"""A small run of pico, recorded once a session."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import deixis as dx


@cache
def pico(name: str = "pico") -> Any:
    """The bundled model."""
    return dx.load(name, check=False)


@cache
def pico_run(name: str = "pico") -> Any:
    """60 English scenes, drawn small."""
    items = dx.memory_game(languages=("en",), size=256)
    return dx.record(pico(name), items, Path(mkdtemp()) / name, roles=("answer", "object"), answers=False, progress=False)
