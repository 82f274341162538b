"""Small runs of the bundled models, recorded once a session and shared by the tests of what is read from them."""

import shutil
import tempfile
from atexit import register
from functools import cache
from pathlib import Path

import deixis as dx
from deixis.activations import Run
from deixis.benchmarks import Items
from deixis.models import VLM

MODELS = ("pico", "pico-collapsed")
LANGUAGES = ("en", "ja")


def standard_items() -> Items:
    """24 scenes in two languages, and again with a grey picture and with none."""
    real = dx.memory_game(languages=LANGUAGES, shapes=("star", "cross"), size=256)
    return real + real.with_condition("blank") + real.with_condition("text_only")


def decoupled_items() -> Items:
    """24 scenes in which distance, image height and apparent size are independent."""
    return dx.memory_game(languages=LANGUAGES, decouple=True, n=24, size=256)


@cache
def loaded(model: str) -> VLM:
    """The bundled model."""
    return dx.load(model)


@cache
def pico_run(model: str, *, decoupled: bool = False) -> Run:
    """A run of ``model`` on one of the two sets above."""
    items = decoupled_items() if decoupled else standard_items()
    folder = _folder() / f"{model}{'-decoupled' if decoupled else ''}"
    return dx.record(loaded(model), items, folder, roles=("answer", "object"), progress=False)


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="deixis-pico-"))
    register(shutil.rmtree, folder, ignore_errors=True)
    return folder
