"""What too few items could have shown at all."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from scipy.stats import norm

FEW_GROUPS = 20
"""Fewer groups than this are warned of."""
_LEVEL, _POWER = 0.05, 0.8
_LISTENER: ContextVar[list[str] | None] = ContextVar("told_of_few", default=None)


class TooFewItemsWarning(UserWarning):
    """A probe was tested on so few groups that only a large effect could have been seen."""


def smallest_effect(kind: str, n_groups: int, n_classes: int = 0, level: float = _LEVEL, power: float = _POWER) -> float:
    """The true score that a one-sided test would find with this power, were the probe learned from other data.

    Values: the R2 whose root is the correlation ``tanh((z_level + z_power) / sqrt(n - 3))`` (Fisher's transformation; Cohen 1988,
    *Statistical Power Analysis*, section 3.4). Classes: ``1/K + (z_level + z_power) sqrt((1/K)(1 - 1/K) / n)``, at most 1 (the
    normal approximation of a share). A probe that must also be learned from the same groups sees less.
    """
    z = float(norm.ppf(1 - level) + norm.ppf(power))
    if kind == "regression":
        return float(np.tanh(z / np.sqrt(n_groups - 3)) ** 2) if n_groups > 3 else 1.0
    chance = 1 / n_classes
    return min(1.0, chance + z * float(np.sqrt(chance * (1 - chance) / n_groups)))


@contextmanager
def told_of_few() -> Iterator[list[str]]:
    """Collect what would be warned of too few items as sentences, each once, for those who show them elsewhere.

    The warnings module is not asked: what it lets through depends on filters that libraries change when they are imported.
    """
    said: list[str] = []
    token = _LISTENER.set(said)
    try:
        yield said
    finally:
        _LISTENER.reset(token)


def few_groups(kind: str, n_groups: int, n_classes: int = 0) -> str | None:
    """The warning's sentence where there are fewer than :data:`FEW_GROUPS` groups, else None."""
    if n_groups >= FEW_GROUPS:
        return None
    metric = "R2" if kind == "regression" else "balanced accuracy"
    return (
        f"only {n_groups} groups: a true {metric} below {smallest_effect(kind, n_groups, n_classes):.2f} would be missed more "
        f"than once in five times; take a low score as unknown, not as absent, or give at least {FEW_GROUPS} groups."
    )


def warn_of_few(kind: str, n_groups: int, n_classes: int = 0) -> None:
    """Warn (or tell :func:`told_of_few`) of fewer than :data:`FEW_GROUPS` groups, with the smallest effect that could be seen."""
    sentence = few_groups(kind, n_groups, n_classes)
    if sentence is not None:
        tell_of_few(sentence, stacklevel=4)


def tell_of_few(sentence: str, stacklevel: int = 3) -> None:
    """Pass on a sentence that :func:`told_of_few` collected: to whoever listens around it, else as a warning."""
    said = _LISTENER.get()
    if said is None:
        warnings.warn(sentence, TooFewItemsWarning, stacklevel=stacklevel)
    elif sentence not in said:
        said.append(sentence)
