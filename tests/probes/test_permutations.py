"""Exchanging labels: together within groups, over folds as they were dealt, and as a test that is exact."""

import numpy as np
import pytest
from scipy.stats import kstest

from deixis.probes import cross_validate_probe
from deixis.probes.folds import deal_folds
from deixis.probes.nested import METHODS
from deixis.probes.permutations import permuted
from deixis.probes.procedure import Procedure

P_ONLY = {"n_bootstrap": 0, "n_controls": 0, "n_orders": 0}


def dealt(target: np.ndarray, group: np.ndarray, seed: int = 0) -> np.ndarray:
    return deal_folds(target.astype(float), group, 5, np.random.default_rng(seed))


def test_items_of_a_group_keep_one_label_and_the_labels_stay_the_same_ones():
    group = np.repeat(np.arange(23), [1, 2, 3, 4] * 5 + [2, 2, 2])
    target = (np.arange(23) % 3)[group]
    found = permuted(target, group, dealt(target, group), np.random.default_rng(1))
    labels = [set(found[group == g]) for g in range(23)]
    assert all(len(label) == 1 for label in labels)
    assert sorted(min(label) for label in labels) == sorted(np.arange(23) % 3)


def test_every_exchange_could_have_been_dealt_into_these_folds():
    """Each run of five sorted labels has one in every fold, as in the data; the rest lies in the folds that have one more."""
    group, target = np.arange(23), np.random.default_rng(0).normal(size=23)
    fold = dealt(target, group)
    for seed in range(20):
        found = permuted(target, group, fold, np.random.default_rng(seed))
        order = np.argsort(found)
        for run in range(4):
            assert sorted(fold[order[5 * run : 5 * run + 5]]) == [0, 1, 2, 3, 4]
        assert len(set(fold[order[20:]])) == 3


def test_all_places_are_equally_likely_for_a_label():
    group, target = np.arange(10), np.arange(10.0)
    fold = dealt(target, group)
    rng = np.random.default_rng(0)
    lowest = np.bincount([int(permuted(target, group, fold, rng).argmin()) for _ in range(4000)], minlength=10)
    # 400 expected in each, with a deviation of 19.
    assert np.abs(lowest - 400).max() < 80


def test_labels_that_differ_within_groups_are_exchanged_within_them():
    group = np.repeat(np.arange(6), 6)
    target = np.tile(np.repeat([1.0, 2.0, 3.0], 2), 6)
    found = permuted(target, group, dealt(target, group), np.random.default_rng(3))
    assert (found != target).any()
    for g in range(6):
        pairs = found[group == g].reshape(3, 2)
        assert (pairs[:, 0] == pairs[:, 1]).all()  # items of equal label stay together
        assert sorted(pairs[:, 0]) == [1.0, 2.0, 3.0]


def test_equal_groups_are_exchanged_alike_however_many_items_they_have():
    target = np.arange(15) % 3
    once = permuted(target, np.arange(15), dealt(target, np.arange(15)), np.random.default_rng(4))
    group = np.repeat(np.arange(15), 4)
    four = permuted(target[group], group, dealt(target[group], group), np.random.default_rng(4))
    np.testing.assert_array_equal(four[::4], once)


def noise_p(seed: int, kind: str, n_permutations: int) -> float:
    """p of a probe on noise, items in unequal groups, labels by group."""
    rng = np.random.default_rng((seed, 11))
    group = np.repeat(np.arange(18), rng.integers(1, 4, size=18))
    X = rng.normal(size=(len(group), 6)) + rng.normal(size=(18, 6))[group]  # items of a group are alike
    label = rng.normal(size=18) if kind == "regression" else np.arange(18) % 3
    y = label[group]
    found = cross_validate_probe(
        X, y, group, kind=kind, alphas=(1.0, 100.0), n_folds=3, n_permutations=n_permutations, seed=seed, **P_ONLY
    )
    return float(found.p_value[0])


@pytest.mark.filterwarnings("ignore::deixis.probes.TooFewItemsWarning")
@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_on_noise_a_small_p_is_as_rare_as_it_says(kind):
    p = np.array([noise_p(seed, kind, 19) for seed in range(150)])
    for level in (0.05, 0.2, 0.5):
        # Three standard errors above the level.
        assert (p <= level + 1e-9).mean() <= level + 3 * np.sqrt(level * (1 - level) / len(p))
    # A test that never rejects would pass the above; values have no ties, so theirs are as frequent as they say.
    if kind == "regression":
        assert (p <= 0.5).mean() > 0.37


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::deixis.probes.TooFewItemsWarning")
def test_p_of_noise_is_uniform_for_r2():
    p = np.array([noise_p(seed, "regression", 99) for seed in range(1500)])
    # p lies on a grid of hundredths; a uniform draw within each step makes it continuous.
    smooth = p - np.random.default_rng(0).uniform(0, 0.01, size=len(p))
    assert kstest(smooth, "uniform").pvalue > 0.01
    assert (p <= 0.05).mean() == pytest.approx(0.05, abs=0.017)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::deixis.probes.TooFewItemsWarning")
def test_p_of_noise_is_never_too_small_for_classes():
    p = np.array([noise_p(seed, "classification", 99) for seed in range(600)])
    for level in (0.01, 0.05, 0.1, 0.25, 0.5):
        assert (p <= level + 1e-9).mean() <= level + 3 * np.sqrt(level * (1 - level) / len(p))


def test_labels_exchanged_freely_over_stratified_folds_would_be_wrong():
    """The reason for the exchange's form: free exchanges leave values uneven over the folds, and score unlike the data."""
    rng = np.random.default_rng(0)
    work = Procedure(method=METHODS["ridge"], n_folds=5, alphas=(1000.0,), seed=0)
    data, kept, free = [], [], []
    for _ in range(40):
        X, target, group = rng.normal(size=(30, 4)), rng.normal(size=30), np.arange(30)
        fold = deal_folds(target, group, 5, rng)
        labels = [target, *(permuted(target, group, fold, rng) for _ in range(5)), *(rng.permutation(target) for _ in range(5))]
        scores = [outcome.score[0] for outcome in work.outcomes(X, labels, np.ones(30), fold)]
        data.append(scores[0])
        kept += scores[1:6]
        free += scores[6:]
    assert np.mean(kept) == pytest.approx(np.mean(data), abs=0.01)
    assert np.mean(free) < np.mean(data) - 0.02
