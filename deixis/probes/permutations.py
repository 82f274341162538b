"""Targets dealt out again at random, as they could have been if the features knew nothing of them."""

import numpy as np
from jaxtyping import Int, Shaped


def permuted(
    target: Shaped[np.ndarray, " item"],
    group: Int[np.ndarray, " item"],
    fold: Int[np.ndarray, " item"],
    rng: np.random.Generator,
) -> Shaped[np.ndarray, " item"]:
    """The target after one random exchange between groups, all items of a group together.

    A permutation test is exact only if the data and the permuted data are treated alike (Phipson and Smyth 2010, Statistical
    Applications in Genetics and Molecular Biology 9:39). Folds are dealt by the target (:func:`~deixis.probes.folds.deal_folds`):
    labels exchanged freely over folds that stay as they are would be stratified less well than the data, and score lower or
    higher for that alone. Labels are therefore dealt over the folds anew by the same rule, and shuffled within each fold: given
    the folds, this is the distribution of the labels where they have nothing to do with the features.

    Where a group's items differ in the target (groups that are shapes, say), labels are exchanged within each group, all items
    of equal label together: the folds depend on each group's lowest label only and stay as they were.

    Args:
        target: Class codes or values.
        group: Codes ``0..n_groups-1``, each used.
        fold: Of :func:`~deixis.probes.folds.deal_folds` for this target.
        rng: Decides the exchange. Equal groups, targets and folds give equal exchanges, however many items a group has.
    """
    first = np.unique(group, return_index=True)[1]
    label, held = target[first], fold[first]
    if (label[group] == target).all():
        return _between(label, held, rng)[group]
    return _within(target, group, rng)


def _between(
    label: Shaped[np.ndarray, " group"], fold: Int[np.ndarray, " group"], rng: np.random.Generator
) -> Shaped[np.ndarray, " group"]:
    n_folds, size = int(fold.max()) + 1, np.bincount(fold)
    runs = int(size.min())
    in_order = np.sort(label)
    dealt = rng.permuted(in_order[: runs * n_folds].reshape(runs, n_folds), axis=1)
    # The last, shorter run of groups went to the folds that have one group more.
    rest = dict(zip(np.flatnonzero(size > runs).tolist(), rng.permutation(in_order[runs * n_folds :]), strict=True))
    found = np.empty_like(label)
    for number in range(n_folds):
        own = dealt[:, number]
        found[fold == number] = rng.permutation(np.append(own, rest[number]) if number in rest else own)
    return found


def _within(
    target: Shaped[np.ndarray, " item"], group: Int[np.ndarray, " item"], rng: np.random.Generator
) -> Shaped[np.ndarray, " item"]:
    found = np.empty_like(target)
    for number in range(int(group.max()) + 1):
        rows = group == number
        labels, block = np.unique(target[rows], return_inverse=True)
        found[rows] = rng.permutation(labels)[block]
    return found
