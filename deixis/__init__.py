"""Where inside a vision-language model does space live, and does its answer use it?

``import deixis as dx`` loads nothing heavy: every public name is fetched from its room when it is first used.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deixis.activations import Estimate as Estimate
    from deixis.activations import Run as Run
    from deixis.activations import estimate as estimate
    from deixis.activations import open_run as open_run
    from deixis.activations import record as record
    from deixis.activations import sample_answers as sample_answers
    from deixis.analyses import CollapseRule as CollapseRule
    from deixis.analyses import answer_frame as answer_frame
    from deixis.analyses import attention_collapse as attention_collapse
    from deixis.analyses import attention_map as attention_map
    from deixis.analyses import attention_summary as attention_summary
    from deixis.analyses import attribution as attribution
    from deixis.analyses import behaviour as behaviour
    from deixis.analyses import compare as compare
    from deixis.analyses import contrast_direction as contrast_direction
    from deixis.analyses import decision_layers as decision_layers
    from deixis.analyses import decode_coordinates as decode_coordinates
    from deixis.analyses import distance_code as distance_code
    from deixis.analyses import distance_sensitivity as distance_sensitivity
    from deixis.analyses import encoding_gap as encoding_gap
    from deixis.analyses import frame_sweep as frame_sweep
    from deixis.analyses import layer_sweep as layer_sweep
    from deixis.analyses import lens_by_region as lens_by_region
    from deixis.analyses import logit_lens as logit_lens
    from deixis.analyses import near_far_pairs as near_far_pairs
    from deixis.analyses import patch_sweep as patch_sweep
    from deixis.analyses import prior_correction as prior_correction
    from deixis.analyses import probe_direction as probe_direction
    from deixis.analyses import probe_geometry as probe_geometry
    from deixis.analyses import reasoning_tags as reasoning_tags
    from deixis.analyses import report as report
    from deixis.analyses import run_edits as run_edits
    from deixis.analyses import scene_kinds as scene_kinds
    from deixis.analyses import scoring_agreement as scoring_agreement
    from deixis.analyses import site_sweep as site_sweep
    from deixis.analyses import spacenum_scores as spacenum_scores
    from deixis.analyses import steer_sweep as steer_sweep
    from deixis.analyses import transfer as transfer
    from deixis.analyses import tuned_lens as tuned_lens
    from deixis.benchmarks import Camera as Camera
    from deixis.benchmarks import Item as Item
    from deixis.benchmarks import Items as Items
    from deixis.benchmarks import Option as Option
    from deixis.benchmarks import add_language as add_language
    from deixis.benchmarks import counter_heuristic as counter_heuristic
    from deixis.benchmarks import cyclic_permutations as cyclic_permutations
    from deixis.benchmarks import interventions as interventions
    from deixis.benchmarks import load_items as load_items
    from deixis.benchmarks import memory_game as memory_game
    from deixis.benchmarks import spacenum as spacenum
    from deixis.hooks import AttentionPlan as AttentionPlan
    from deixis.hooks import AttentionRows as AttentionRows
    from deixis.hooks import AttentionWatch as AttentionWatch
    from deixis.hooks import Direction as Direction
    from deixis.hooks import Edit as Edit
    from deixis.hooks import Watch as Watch
    from deixis.models import VLM as VLM
    from deixis.models import load as load
    from deixis.models import untrained as untrained
    from deixis.models import wrap as wrap

_ROOMS = {
    "activations": ("Estimate", "Run", "estimate", "open_run", "record", "sample_answers"),
    "analyses": (
        "CollapseRule",
        "answer_frame",
        "attention_collapse",
        "attention_map",
        "attention_summary",
        "attribution",
        "behaviour",
        "compare",
        "contrast_direction",
        "decision_layers",
        "decode_coordinates",
        "distance_code",
        "distance_sensitivity",
        "encoding_gap",
        "frame_sweep",
        "layer_sweep",
        "lens_by_region",
        "logit_lens",
        "near_far_pairs",
        "patch_sweep",
        "prior_correction",
        "probe_direction",
        "probe_geometry",
        "reasoning_tags",
        "report",
        "run_edits",
        "scene_kinds",
        "scoring_agreement",
        "site_sweep",
        "spacenum_scores",
        "steer_sweep",
        "transfer",
        "tuned_lens",
    ),
    "benchmarks": (
        "Camera",
        "Item",
        "Items",
        "Option",
        "add_language",
        "counter_heuristic",
        "cyclic_permutations",
        "interventions",
        "load_items",
        "memory_game",
        "spacenum",
    ),
    "hooks": ("AttentionWatch", "AttentionRows", "AttentionPlan", "Direction", "Edit", "Watch"),
    "models": ("VLM", "load", "untrained", "wrap"),
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
