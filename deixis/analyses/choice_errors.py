"""What a wrong choice is worth: how near its number lies to the right one, and what about its layout is wrong."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from deixis.benchmarks import Item

POINTS = (100.0, 70.0, 40.0, 0.0)
"""Of the options in the order of their distance from the right number (SpaceNum, arXiv 2605.23898, section 3.2)."""
CHANCE_POINTS = sum(POINTS) / len(POINTS)
"""52.5: what random letters get on average, whatever the distances; ties share points, so that the sum stays the same."""
CHANCE_POINTS_OF_ERRORS = sum(POINTS[1:]) / (len(POINTS) - 1)
"""36.7: the same, among wrong letters alone."""
_POINTS_OF_KINDS: dict[str, float] = dict(zip(("correct", "less_correct", "less_wrong", "wrong"), POINTS, strict=True))
_DECIMALS = 6
"""Steps of 0.2 m are no exact binary fractions: equal distances differ in the last digits."""
LAYOUT_ERRORS = ("position", "size", "both")


def proximity_points(values: Sequence[float], truth: float) -> Float[np.ndarray, " option"]:
    """Points of four options by the rank of their distance from the right number; equal distances share their ranks' mean.

    Raises:
        ValueError: There are not four values, one is not finite, or not exactly one is right.
    """
    from scipy.stats import rankdata

    errors = np.round(np.abs(np.asarray(values, float) - truth), _DECIMALS)
    if len(errors) != len(POINTS) or not np.isfinite(errors).all() or (errors == 0).sum() != 1:
        raise ValueError(f"points are for four numbers of which one is right; got {list(values)} where {truth} is right.")
    # A shared rank is the mean of the ranks below and above it.
    below, above = rankdata(errors, "min"), rankdata(errors, "max")
    return np.array([np.mean(POINTS[low - 1 : high]) for low, high in zip(below, above, strict=True)])


def points_of(item: "Item") -> Mapping[str, float]:
    """Points of every option of an item, by letter; empty where they are not defined.

    By the options' values; by their kinds (``less_correct`` and so on) where the values are not known.
    """
    kinds = [option.kind for option in item.options]
    if len(item.options) != len(POINTS) or set(kinds) & set(LAYOUT_ERRORS):
        return {}
    labels = [option.label for option in item.options]
    values = [option.value for option in item.options]
    if all(value is not None for value in values):
        known = [float(value) for value in values if value is not None]
        return dict(zip(labels, proximity_points(known, known[labels.index(str(item.truth))]).tolist(), strict=True))
    if all(kind in _POINTS_OF_KINDS for kind in kinds):
        return {label: _POINTS_OF_KINDS[str(kind)] for label, kind in zip(labels, kinds, strict=True)}
    return {}
