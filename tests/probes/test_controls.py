"""Control labels belong to types, and come from the target's own distribution."""

import numpy as np
import pytest

from deixis.probes.controls import control_labels, recurring

GROUP = np.arange(60)
TYPES = np.tile(np.arange(20), 3)


def test_every_item_of_a_type_has_the_same_label():
    labels = control_labels(np.repeat([0.25, 1.5, 2.75], 20), TYPES, GROUP, np.random.default_rng(0))
    assert all(len(set(labels[t == TYPES])) == 1 for t in range(20))


def test_labels_are_drawn_as_often_as_the_target_has_them():
    target, rng = np.repeat([0, 1], [45, 15]), np.random.default_rng(0)
    share = np.mean([control_labels(target, TYPES, GROUP, rng).mean() for _ in range(400)])
    assert share == pytest.approx(0.25, abs=0.02)


def test_a_group_counts_once_however_many_items_it_has():
    target = np.array([0.0, 1.0, 2.0, 3.0])
    times = np.array([97, 1, 1, 1])
    drawn = [
        control_labels(np.repeat(target, times), np.repeat([0, 1, 0, 1], times), np.repeat(np.arange(4), times), rng)
        for rng in map(np.random.default_rng, range(300))
    ]
    assert np.mean([labels == 0 for labels in drawn]) == pytest.approx(0.25, abs=0.06)


def test_a_draw_without_one_of_the_classes_is_drawn_again():
    for seed in range(50):
        labels = control_labels(np.repeat([0, 1, 2], 20), np.tile(np.arange(4), 15), GROUP, np.random.default_rng(seed))
        assert set(labels) == {0, 1, 2}


def test_types_that_never_recur_are_refused():
    with pytest.raises(ValueError, match="no type has items in two groups"):
        control_labels(np.arange(60.0), GROUP, GROUP, np.random.default_rng(0))
    assert not recurring(GROUP, GROUP)
    assert recurring(TYPES, GROUP)


def test_a_single_type_is_refused():
    with pytest.raises(ValueError, match="at least two types"):
        control_labels(np.arange(60.0), np.zeros(60, dtype=int), GROUP, np.random.default_rng(0))
