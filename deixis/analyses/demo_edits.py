"""The demo's edits: few pairs and few doses, enough for its conclusion."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deixis.activations import Run
    from deixis.analyses.patch_sweep import PatchSweep
    from deixis.analyses.steer_sweep import SteerSweep
    from deixis.models import VLM

DEMO_FIGURES = 3
_SIZE = 256
"""Pixels: as many as the bundled models look at."""
_STEERED = 6
_DOSES = (-1.5, -0.75, 0.0, 0.75, 1.5)


def demo_patches(runs: Sequence["Run"], vlms: Mapping[str, "VLM"]) -> tuple["PatchSweep", ...]:
    """The gap's patches for every run of the memory game."""
    from deixis.analyses.patch_sweep import patches_for

    return tuple(patches_for(run, vlms[run.settings["model"]], DEMO_FIGURES, size=_SIZE) for run in runs if _is_memory_game(run))


def demo_steers(runs: Sequence["Run"], vlms: Mapping[str, "VLM"]) -> tuple["SteerSweep", ...]:
    """Each model's English demonstratives, steered along distance at the answer before the last block."""
    from deixis.analyses.directions import contrast_direction, probe_direction
    from deixis.analyses.steer_sweep import steer_sweep
    from deixis.hooks.errors import DirectionError

    found = []
    for run in runs:
        vlm = vlms[run.settings["model"]]
        real = [i for i in run.items if i.condition == "real" and i.task == "demonstrative" and i.language == "en"]
        if not _is_memory_game(run) or not real:
            continue
        centre = sum(item.targets["distance_m"] for item in real) / len(real)
        middle = sorted(real, key=lambda item: (abs(item.targets["distance_m"] - centre), item.id))[:_STEERED]
        colours = sorted({item.groups["colour"] for item in real})
        layer = vlm.n_layers - 1
        try:
            way = probe_direction(run, "distance_m", layer=layer, language="en", task="demonstrative")
        except DirectionError:
            continue  # a model that holds no distance there has nothing to be steered along
        other = contrast_direction(run, "colour", colours[0], colours[-1], layer=layer) if len(colours) > 1 else None
        found.append(steer_sweep(vlm, middle, way, _DOSES, unrelated=other, n_random=2, side_effects=False))
    return tuple(found)


def _is_memory_game(run: "Run") -> bool:
    return any(item.benchmark == "memory-game" for item in run.items)
