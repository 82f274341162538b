"""Runs made of chosen numbers, so that the truth behind every analysis is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from deixis.benchmarks import Item, Items
from deixis.benchmarks.languages import language


@dataclass
class FakeRun:
    """What analyses read of a run, in memory."""

    items: Items
    shares: Callable[[Item], Mapping[str, float]]
    """The option distribution that an item is to have, by label."""
    features: Mapping[tuple[str, int], np.ndarray] = field(default_factory=dict)
    """Vectors by role and layer."""
    answers: list[str] = field(default_factory=list)
    model: str = "fake"
    offset: bool = True
    """Add a constant to each item's logits: it must not matter to any distribution."""

    @property
    def options(self) -> pd.DataFrame:
        rows = []
        for number, item in enumerate(self.items):
            shares = self.shares(item)
            rows += [
                (item.id, o.label, o.term, np.float32(np.log(shares[o.label]) + self.offset * (number % 7))) for o in item.options
            ]
        return pd.DataFrame(rows, columns=["item", "option", "term", "logit"])

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(role for role, _ in self.features))

    @property
    def sites(self) -> tuple[str, ...]:
        return ("resid",)

    def layers(self, site: str = "resid") -> list[int]:  # noqa: ARG002
        return sorted({layer for _, layer in self.features})

    def resid(self, layer: int, role: str = "answer") -> np.ndarray:
        return self.features[role, layer]

    def activations(self, site: str, layer: int, role: str) -> np.ndarray:  # noqa: ARG002
        return self.features[role, layer]

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "answers": bool(self.answers),
            "roles": list(self.roles),
            "layers": {"resid": self.layers()},
            "dtype": "float32",
        }

    @property
    def info(self) -> dict[str, Any]:
        return self.settings


def by_term(item: Item, shares: Mapping[str, float]) -> dict[str, float]:
    """Shares of terms as shares of the item's labels."""
    return {option.label: shares[option.term] for option in item.options if option.term}


def right_answer(item: Item, term: str = "proximal") -> str:
    """What a model that sees everything writes."""
    if item.truth is not None:
        return item.truth
    table = language(item.language)
    colour, shape = table.colours[item.groups["colour"]][0], table.shapes[item.groups["shape"]][0]
    return f"{table.demonstrative_of(term)} {colour} {shape}"
