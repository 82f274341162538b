"""A run whose vectors were written by hand over many scenes, for analyses of geometry, transfer and coordinates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deixis.benchmarks import Item, Items, Option

SHAPES, COLOURS = ("star", "cross", "circle", "square"), ("red", "blue", "green")


def scene(number: int, distance: float, x: float, language: str, condition: str = "real", task: str = "demonstrative") -> Item:
    return Item(
        id=f"{number}/{language}/{task}/{condition}",
        benchmark="written",
        task=task,
        language=language,
        condition=condition,
        images=(),
        prompt="?",
        options=(Option(label="this", forms=("this",)),),
        targets={"distance_m": distance, "x_m": x, "region": float(1 + (distance > 1) + (distance > 2))},
        groups={"scene": f"scene {number:03d}", "shape": SHAPES[number % 4], "colour": COLOURS[number // 4 % 3]},
        nuisances={"object_row": 0.8 / (distance + 1), "object_area": 0.01 + 0.001 * (number % 7)},
    )


@dataclass
class WrittenScenes:
    """What analyses ask of a run."""

    items: Items
    rows: Mapping[tuple[str, int], np.ndarray]
    """By role and layer."""
    model: str = "written"
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.info = {"model": self.model}

    def layers(self, site: str = "resid") -> list[int]:  # noqa: ARG002
        return sorted({layer for _, layer in self.rows})

    def activations(self, site: str, layer: int, role: str) -> np.ndarray:  # noqa: ARG002
        return self.rows[role, layer].astype(np.float32)


def written_scenes(
    write: Callable[[Item, int], np.ndarray],
    n: int = 60,
    languages: tuple[str, ...] = ("en",),
    conditions: tuple[str, ...] = ("real",),
    distances: Callable[[np.random.Generator], float] = lambda rng: float(rng.uniform(0.2, 2.8)),
    layers: tuple[int, ...] = (0, 1),
    noise: float = 0.1,
    model: str = "written",
    seed: int = 0,
) -> WrittenScenes:
    """Scenes at random distances and places; ``write`` says what an item's vector at a layer is, noise comes on top."""
    rng = np.random.default_rng(seed)
    places = [(distances(rng), float(rng.uniform(-1, 1))) for _ in range(n)]
    items = Items(
        scene(number, *place, language, condition)
        for condition in conditions
        for number, place in enumerate(places)
        for language in languages
    )
    rows = {}
    for layer in layers:
        plain = np.stack([write(item, layer) for item in items])
        rows["answer", layer] = plain + noise * rng.normal(size=plain.shape)
    return WrittenScenes(items=items, rows=rows, model=model)
