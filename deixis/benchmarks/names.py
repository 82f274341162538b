"""Names and whole numbers that callers choose: one check, one wording of the refusal."""

from collections.abc import Collection, Sequence

import numpy as np


def checked_names(name: str, values: Sequence[str], allowed: Collection[str]) -> tuple[str, ...]:
    """The distinct names in ``values``, in order.

    Raises:
        ValueError: ``values`` is one string, no list, or empty, or holds a name that is not allowed; the message lists those
            that are.
    """
    listed = ", ".join(map(repr, allowed))
    if isinstance(values, str) or not isinstance(values, Collection) or not values:
        raise ValueError(f"{name}={values!r} must be a non-empty list of: {listed}.")
    for value in values:
        if value not in allowed:
            raise ValueError(f"{name} holds {value!r}, which is not one of: {listed}.")
    return tuple(dict.fromkeys(values))


def checked_whole(name: str, value: object, least: int, most: int | None = None, unit: str = "") -> int:
    """``value`` as an int.

    Raises:
        ValueError: It is no whole number from ``least`` to ``most``.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value <= (most or value):
        return int(value)
    span = f"between {least} and {most}{unit}" if most else f"of {least} or more"
    raise ValueError(f"{name}={value!r} is not a whole number {span}.")
