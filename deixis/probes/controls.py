"""Control tasks: what a probe reaches when there is nothing to know but the items' types."""

import numpy as np
from jaxtyping import Int, Shaped

from deixis.probes.checks import NotEnoughDataError


def control_labels(
    target: Shaped[np.ndarray, " item"],
    types: Int[np.ndarray, " item"],
    group: Int[np.ndarray, " item"],
    rng: np.random.Generator,
) -> Shaped[np.ndarray, " item"]:
    """One random label per type, from the target's own distribution over groups (Hewitt and Liang 2019, arXiv 1909.03368).

    A probe can reach them only by telling the types apart and remembering each one's label; types must recur in several groups,
    or held-out items have nothing to be remembered by. A draw without one of the classes is drawn again.

    Raises:
        NotEnoughDataError: Fewer than two types, or no type with items in two groups.
    """
    n_types = int(types.max()) + 1
    if n_types < 2:
        raise NotEnoughDataError("a control task needs at least two types; give other types, or n_controls=0.")
    if not recurring(types, group):
        raise NotEnoughDataError(
            "no type has items in two groups, so its label cannot be remembered; give other types, or n_controls=0."
        )
    first = np.unique(group, return_index=True)[1]
    # Fewer classes than the task has would make the control easier than the task.
    wanted = 2 if target.dtype.kind == "f" else min(n_types, len(np.unique(target)))
    for _ in range(1000):
        labels = rng.choice(target[first], size=n_types)
        if len(np.unique(labels)) >= wanted:
            return _coded(labels[types])
    raise NotEnoughDataError("a thousand draws of control labels lacked a class; give more types, or n_controls=0.")


def recurring(types: Int[np.ndarray, " item"], group: Int[np.ndarray, " item"]) -> bool:
    """Whether any type has items in at least two groups."""
    pairs = np.unique(np.stack([types, group]), axis=1)
    return bool((np.bincount(pairs[0]) >= 2).any())


def _coded(labels: Shaped[np.ndarray, " item"]) -> Shaped[np.ndarray, " item"]:
    """Class labels as codes without gaps; values as they are."""
    return labels if labels.dtype.kind == "f" else np.unique(labels, return_inverse=True)[1]
