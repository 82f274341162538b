"""The one place where items are divided: whole groups into folds, whole groups into bootstrap draws."""

import numpy as np
from jaxtyping import Bool, Float, Int

from deixis.probes.checks import NotEnoughDataError


def deal_folds(
    target: Float[np.ndarray, " item"], group: Int[np.ndarray, " item"], n_folds: int, rng: np.random.Generator
) -> Int[np.ndarray, " item"]:
    """Deal groups into folds, never splitting one; every fold gets about the same share of low, middle and high targets.

    Groups are sorted by target (ties at random) and each consecutive run of ``n_folds`` groups is spread over all folds. The
    dealing depends on the groups and their targets only, not on how many items a group has, so that data sets which differ in
    their duplicates are divided alike.

    Args:
        target: Class codes or values; of a group whose items differ, the lowest counts.
        group: Codes ``0..n_groups-1``, each used.
        n_folds: At most the number of groups.
        rng: Decides ties and the order within each run.

    Returns:
        The fold of each item, ``0..n_folds-1``.
    """
    n_groups = int(group.max()) + 1
    lowest = np.full(n_groups, np.inf)
    np.minimum.at(lowest, group, target)
    order = np.lexsort((rng.random(n_groups), lowest))
    runs = rng.random((-(-n_groups // n_folds), n_folds)).argsort(axis=1)
    fold = np.empty(n_groups, dtype=np.int64)
    fold[order] = runs.ravel()[:n_groups]
    return fold[group]


def training_subsets(n_folds: int) -> tuple[Bool[np.ndarray, "subset fold"], Int[np.ndarray, "fold fold"]]:
    """The training sets of a nested cross-validation whose inner folds are the outer ones but for the test fold.

    Leaving out folds ``i`` (test) and ``j`` (validation) trains on the same items as ``j`` (test) and ``i`` (validation), so
    ``n_folds (n_folds + 1) / 2`` fits serve the whole nested cross-validation.

    Returns:
        Which folds each subset trains on; and for (left-out fold, other left-out fold) the subset without both, the diagonal
        holding the subset without that one fold.
    """
    pairs = [(i, j) for i in range(n_folds) for j in range(i, n_folds)]
    keep = np.ones((len(pairs), n_folds), dtype=bool)
    table = np.empty((n_folds, n_folds), dtype=np.int64)
    for number, (i, j) in enumerate(pairs):
        keep[number, [i, j]] = False
        table[i, j] = table[j, i] = number
    return keep, table


def draw_groups(
    target: Float[np.ndarray, " item"],
    group: Int[np.ndarray, " item"],
    n_folds: int,
    rng: np.random.Generator,
    *,
    classes: bool,
) -> Int[np.ndarray, " item"]:
    """How often each item counts in one bootstrap draw of groups with replacement; all items of a group count alike.

    A draw on which cross-validation is undefined is drawn again: fewer distinct groups than folds, a class in fewer than two
    groups, or (for values) a target that does not vary.

    Raises:
        NotEnoughDataError: A thousand draws in a row were undefined.
    """
    n_groups = int(group.max()) + 1
    for _ in range(1000):
        times = np.bincount(rng.integers(n_groups, size=n_groups), minlength=n_groups)[group]
        seen = times > 0
        if len(np.unique(group[seen])) >= n_folds and _varies(target, group, seen, classes=classes):
            return times
    raise NotEnoughDataError(
        f"no bootstrap draw of {n_groups} groups holds {n_folds} distinct groups and two of every class; "
        "use more groups, fewer folds, or n_bootstrap=0."
    )


def _varies(
    target: Float[np.ndarray, " item"], group: Int[np.ndarray, " item"], seen: Bool[np.ndarray, " item"], *, classes: bool
) -> bool:
    if not classes:
        return bool(np.ptp(target[seen]) > 0)
    return all(len(np.unique(group[seen & (target == code)])) >= 2 for code in np.unique(target))
