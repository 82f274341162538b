"""Where inside a vision-language model does space live, and does its answer use it?

``import deixis as dx`` loads nothing heavy: every public name is fetched from its room when it is first used.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deixis.activations import Run as Run
    from deixis.activations import open_run as open_run
    from deixis.activations import record as record
    from deixis.analyses import behaviour as behaviour
    from deixis.analyses import compare as compare
    from deixis.analyses import encoding_gap as encoding_gap
    from deixis.analyses import layer_sweep as layer_sweep
    from deixis.analyses import logit_lens as logit_lens
    from deixis.analyses import report as report
    from deixis.benchmarks import Camera as Camera
    from deixis.benchmarks import Item as Item
    from deixis.benchmarks import Items as Items
    from deixis.benchmarks import Option as Option
    from deixis.benchmarks import counter_heuristic as counter_heuristic
    from deixis.benchmarks import load_items as load_items
    from deixis.benchmarks import memory_game as memory_game
    from deixis.hooks import Watch as Watch
    from deixis.models import VLM as VLM
    from deixis.models import load as load
    from deixis.models import wrap as wrap

_ROOMS = {
    "activations": ("Run", "open_run", "record"),
    "analyses": ("behaviour", "compare", "encoding_gap", "layer_sweep", "logit_lens", "report"),
    "benchmarks": ("Camera", "Item", "Items", "Option", "counter_heuristic", "load_items", "memory_game"),
    "hooks": ("Watch",),
    "models": ("VLM", "load", "wrap"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted([*_HOME, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]
__version__ = version("deixis")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'deixis' has no attribute {name!r}")
    return getattr(import_module(f"deixis.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
