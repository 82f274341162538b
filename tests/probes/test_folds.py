"""Groups stay together, whatever is drawn."""

import numpy as np
import pytest

from deixis.probes.folds import deal_folds, draw_groups, training_subsets


def test_no_group_is_split_and_every_fold_is_used():
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(23), 3))
    fold = deal_folds(rng.normal(size=69), group, 5, rng)
    assert all(len(set(fold[group == g])) == 1 for g in range(23))
    sizes = np.bincount([fold[group == g][0] for g in range(23)])
    assert sizes.min() == 4
    assert sizes.max() == 5


def test_every_fold_gets_its_share_of_every_class():
    y = np.repeat([0.0, 1.0, 2.0], 20)
    fold = deal_folds(y, np.arange(60), 5, np.random.default_rng(3))
    counts = np.array([[np.sum((fold == f) & (y == k)) for k in range(3)] for f in range(5)])
    assert (counts == 4).all()


def test_the_dealing_does_not_depend_on_how_many_items_a_group_has():
    y, group = np.repeat([0.1, 0.2, 0.3], 20), np.arange(60)
    once = deal_folds(y, group, 5, np.random.default_rng(1))
    thrice = deal_folds(np.repeat(y, 3), np.repeat(group, 3), 5, np.random.default_rng(1))
    np.testing.assert_array_equal(thrice, np.repeat(once, 3))


def test_another_seed_deals_otherwise():
    y, group = np.zeros(60), np.arange(60)
    assert (deal_folds(y, group, 5, np.random.default_rng(1)) != deal_folds(y, group, 5, np.random.default_rng(2))).any()


def test_each_pair_of_left_out_folds_has_one_training_subset():
    keep, table = training_subsets(4)
    assert len(keep) == 10
    for i in range(4):
        for j in range(4):
            assert set(np.flatnonzero(~keep[table[i, j]])) == {i, j}


def test_items_of_a_group_are_drawn_together_and_as_many_groups_as_there_are():
    group = np.repeat(np.arange(12), [1, 2, 3] * 4)
    times = draw_groups(np.arange(24.0), group, 3, np.random.default_rng(0), classes=False)
    per_group = [set(times[group == g]) for g in range(12)]
    assert all(len(counts) == 1 for counts in per_group)
    assert sum(counts.pop() for counts in per_group) == 12


def test_every_draw_holds_each_class_in_two_groups():
    y = np.repeat([0.0, 1.0], [18, 2])
    for seed in range(30):
        times = draw_groups(y, np.arange(20), 5, np.random.default_rng(seed), classes=True)
        assert (times[18:] > 0).all()


def test_data_that_no_draw_can_serve_are_refused():
    with pytest.raises(ValueError, match="no bootstrap draw of 30 groups"):
        draw_groups(np.arange(30.0) % 2, np.arange(30), 30, np.random.default_rng(1), classes=True)
