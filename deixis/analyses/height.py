"""How much of a decoded distance is the object's height in the picture."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from deixis.analyses.probe_data import choose_items, probe_data
from deixis.analyses.probe_layers import decoded, layers_of, procedure
from deixis.probes.ridge import RidgeProbe
from deixis.probes.row_space import FLAT

if TYPE_CHECKING:
    from deixis.activations import Run

PIXELS = ("object_row", "object_area")


@dataclass(frozen=True, kw_only=True)
class HeightReading:
    """What a probe that was learned on one set of scenes follows in another, where distance and image height part."""

    model: str
    role: str
    layer: int
    """Chosen on the scenes that the probe was learned on."""
    n_scenes: int
    distance: float
    """Share of the decoded values' variance that goes with the true distance (squared correlation)."""
    object_row: float
    """With the object's height in the picture."""
    object_area: float
    """With its size in the picture."""
    r2: float
    """Of the decoded values as distances: 0 or less is no better than the mean."""


def height_reading(
    run: "Run", decoupled: "Run", role: str = "answer", target: str = "distance_m", seed: int = 0
) -> HeightReading:
    """Learn distance on a run's scenes and decode it in scenes where nothing in the picture alone gives it away.

    In the standard scenes a farther object also stands higher and looks smaller, and a probe may read any of the three; in
    decoupled ones (``memory_game(decouple=True)``) they are independent, so that the shares that the decoded values have in
    common with each of them add up, and say what the probe read. The first language that both runs hold is used.

    Args:
        run: The standard scenes.
        decoupled: The decoupled ones, of the same model.
        role: At which token positions.
        target: What is decoded.
        seed: Of the folds by which layer and penalty are chosen.

    Raises:
        ValueError: The runs share no language, or hold other things than these.
    """
    spoken = [language for language in _languages(decoupled) if language in _languages(run)]
    if not spoken:
        raise ValueError(f"the runs share no language: {_languages(run)} and {_languages(decoupled)}; record one of them again.")
    place = {"role": role, "site": "resid"}
    asked: dict[str, Any] = {**place, "layers": None, "groups": "scene", "condition": "real", "task": None}
    held = layers_of(run, [target], language=spoken[0], **asked)
    with threadpool_limits(limits=1):
        best = decoded(held, procedure(5, seed))
        X, y = held.X[held.layers.index(best.layer)], held.targets[0]
        scale = X.std(axis=0)
        scale = np.where(scale > FLAT * np.abs(X).max(axis=0), scale, np.inf)
        probe = RidgeProbe(float(best.alphas[0])).fit((X - X.mean(axis=0)) / scale, y)
        chosen = choose_items(decoupled, target, groups="scene", types="figure", condition="real", task=None, nuisances=PIXELS)
        other = probe_data(decoupled, chosen, layer=best.layer, language=spoken[0], **place)
        seen = np.asarray(probe.predict((other.X - X.mean(axis=0)) / scale))
    shares = {name: _share(seen, values) for name, values in zip(PIXELS, np.asarray(other.nuisances).T, strict=True)}
    error = float(((seen - other.target) ** 2).mean() / other.target.var())
    return HeightReading(
        model=held.model,
        role=role,
        layer=best.layer,
        n_scenes=len(set(other.groups)),
        distance=_share(seen, other.target),
        r2=1 - error,
        **shares,
    )


def _languages(run: "Run") -> list[str]:
    return list(dict.fromkeys(item.language for item in run.items))


def _share(a: Float[np.ndarray, " item"], b: Float[np.ndarray, " item"]) -> float:
    return float(np.corrcoef(a, b)[0, 1] ** 2) if a.std() > 0 and b.std() > 0 else 0.0
