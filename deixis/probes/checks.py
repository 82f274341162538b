"""Refusals that all probes share."""

from numbers import Real
from typing import Any

import numpy as np


class NotEnoughDataError(ValueError):
    """The items are too few, or differ too little in the target, for a probe to be learned and tested on them."""


Setting = Any
"""A number given to a constructor: by scikit-learn's contract constructors store anything and ``fit`` does the refusing."""


def check_alpha(alpha: object, *, zero: bool) -> None:
    """Refuse a penalty that is no finite number in range."""
    floor = "at least 0" if zero else "above 0"
    if not isinstance(alpha, Real) or not np.isfinite(float(alpha)) or float(alpha) < 0 or (alpha == 0 and not zero):
        raise ValueError(f"alpha={alpha!r} must be a finite number {floor}.")


def check_option(name: str, value: object, options: tuple[str, ...]) -> None:
    """Refuse a value that is not among the options, listing all of them."""
    if value not in options:
        raise ValueError(f"{name}={value!r} is not one of: {', '.join(map(repr, options))}.")


def check_finite(name: str, values: np.ndarray) -> None:
    """Refuse NaN and infinity; the message counts them and names the first items that hold any."""
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    rows = np.flatnonzero(bad.reshape(len(values), -1).any(axis=1))
    listed = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
    raise ValueError(
        f"{name} holds {int(bad.sum())} values that are NaN or infinite, in {len(rows)} of {len(values)} rows ({listed}); "
        "leave those rows out."
    )
