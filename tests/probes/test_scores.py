"""Scores against scikit-learn and against repeated items."""

import numpy as np
import pytest
from sklearn import metrics

from deixis.probes.scores import METRICS, SCORES, advantage, balanced_accuracy, chance_of, mae, r2


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4, 30)), rng.normal(size=30), rng.integers(1, 4, size=30).astype(float)


def test_scores_of_values_are_those_of_scikit_learn(values):
    predicted, truth, weight = values
    for got, expected in ((r2, metrics.r2_score), (mae, metrics.mean_absolute_error)):
        want = [expected(truth, row, sample_weight=weight) for row in predicted]
        np.testing.assert_allclose(got(predicted, truth, weight), want)


def test_balanced_accuracy_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    truth, predicted = rng.integers(3, size=50), rng.integers(3, size=(4, 50))
    weight = rng.integers(1, 4, size=50).astype(float)
    want = [metrics.balanced_accuracy_score(truth, row, sample_weight=weight) for row in predicted]
    np.testing.assert_allclose(balanced_accuracy(predicted, truth, weight), want)


def test_a_weight_is_a_repetition(values):
    predicted, truth, weight = values
    times = weight.astype(int)
    ones = np.ones(times.sum())
    for score in (r2, mae):
        np.testing.assert_allclose(
            score(predicted, truth, weight), score(np.repeat(predicted, times, axis=1), np.repeat(truth, times), ones)
        )


def test_weights_may_differ_along_a_leading_axis(values):
    predicted, truth, weight = values
    weights = np.stack([np.ones(30), weight])
    both = r2(predicted[:, None], truth, weights)
    np.testing.assert_allclose(both[:, 1], r2(predicted, truth, weight))


def test_chance_is_one_over_the_classes_zero_or_the_error_of_the_training_mean():
    truth, fold = np.array([0.0, 1.0, 2.0, 5.0]), np.array([0, 0, 1, 1])
    assert chance_of("balanced_accuracy", np.array([0, 1, 2, 2]), fold) == pytest.approx(1 / 3)
    assert chance_of("r2", truth, fold) == 0
    assert chance_of("mae", truth, fold) == pytest.approx((3.5 + 2.5 + 1.5 + 4.5) / 4)


def test_an_advantage_is_positive_where_the_task_beats_its_control():
    assert advantage("r2", 0.9, 0.2) == pytest.approx(0.7)
    assert advantage("mae", 0.1, 0.8) == pytest.approx(0.7)


def test_every_metric_of_every_kind_has_a_score():
    assert {metric for kind in METRICS.values() for metric in kind} == set(SCORES)


@pytest.mark.parametrize("predicted", [[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
def test_r2_of_a_constant_truth_follows_scikit_learn(predicted: list[float]) -> None:
    truth = np.full(3, 2.0)
    assert r2(np.array(predicted), truth, np.ones(3)) == metrics.r2_score(truth, predicted)
