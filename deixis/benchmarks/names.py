"""Lists of names that callers choose from: one check, one wording of the refusal."""

from collections.abc import Collection, Sequence


def checked_names(name: str, values: Sequence[str], allowed: Collection[str]) -> tuple[str, ...]:
    """The distinct names in ``values``, in order.

    Raises:
        ValueError: ``values`` is one string, or empty, or holds a name that is not allowed; the message lists those that are.
    """
    listed = ", ".join(map(repr, allowed))
    if isinstance(values, str) or not values:
        raise ValueError(f"{name}={values!r} must be a non-empty list of: {listed}.")
    for value in values:
        if value not in allowed:
            raise ValueError(f"{name} holds {value!r}, which is not one of: {listed}.")
    return tuple(dict.fromkeys(values))
