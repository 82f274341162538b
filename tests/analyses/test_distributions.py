"""Distances between distributions, by closed forms and by scipy; bootstraps by their limits."""

from itertools import product
from math import comb, log2, sqrt

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import binom

from deixis.analyses.distributions import (
    ClusterSums,
    bootstrap_means,
    debiased_js_distance,
    interval,
    js_distance,
    option_table,
    sampling_noise,
    split_half_distances,
)
from deixis.benchmarks import memory_game
from tests.analyses.fake_run import FakeRun

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("base", [2.0, np.e, 10.0])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_distance_is_scipys(k, base):
    p, q = RNG.dirichlet(np.full(k, 0.3), size=50), RNG.dirichlet(np.ones(k), size=50)
    expected = [jensenshannon(a, b, base=base) for a, b in zip(p, q, strict=True)]
    np.testing.assert_allclose(js_distance(p, q, base), expected, atol=1e-7)


def test_the_distance_has_its_closed_forms():
    assert js_distance(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx(1)
    assert js_distance(np.array([0.3, 0.7]), np.array([0.3, 0.7])) == 0
    # Certain against even: m = (3/4, 1/4), so JSD = (log2(4/3) + (log2(2/3) + log2(2)) / 2) / 2.
    expected = sqrt((log2(4 / 3) + (log2(2 / 3) + log2(2)) / 2) / 2)
    assert js_distance(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == pytest.approx(expected)
    natural = js_distance(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.e)
    assert natural == pytest.approx(expected * sqrt(np.log(2)))


def test_the_distance_is_a_metric():
    points = RNG.dirichlet(np.ones(3), size=12)
    for a, b, c in product(points, repeat=3):
        assert js_distance(a, b) == pytest.approx(js_distance(b, a))
        assert js_distance(a, c) <= js_distance(a, b) + js_distance(b, c) + 1e-12


@pytest.mark.parametrize(("n", "share"), [(5.0, 0.5), (20.0, 0.3), (60.0, 0.05)])
def test_the_noise_floor_is_the_binomial_expectation(n, share):
    reference = np.array([share, 1 - share])
    exact = sum(
        comb(int(n), k) * share**k * (1 - share) ** (n - k) * jensenshannon([k / n, 1 - k / n], reference, base=2)
        for k in range(int(n) + 1)
    )
    assert sampling_noise(reference, n, 2.0, np.random.default_rng(0)) == pytest.approx(exact, rel=0.04)


def test_without_a_sample_size_there_is_no_noise_floor():
    assert np.isnan(sampling_noise(np.array([0.5, 0.5]), float("nan"), 2.0, np.random.default_rng(0)))


def test_items_of_one_scene_move_together():
    values = np.repeat(RNG.normal(size=(10, 1)), 30, axis=0)
    apart = bootstrap_means(values, np.arange(300), 4000, np.random.default_rng(0)).std()
    together = bootstrap_means(values, np.repeat(np.arange(10), 30), 4000, np.random.default_rng(0)).std()
    # 30 copies of each of 10 numbers say as much as the 10: the standard error is sd / sqrt(10), not sd / sqrt(300).
    assert together == pytest.approx(values.std() / sqrt(10), rel=0.05)
    assert apart == pytest.approx(values.std() / sqrt(300), rel=0.05)


def test_one_scene_gives_zero_spread():
    draws = bootstrap_means(RNG.normal(size=(6, 2)), np.array(["a"] * 6), 50, np.random.default_rng(0))
    assert (draws == draws[0]).all()


def test_an_interval_holds_its_estimate():
    assert interval(np.linspace(1, 2, 101), 0.5) == (0.5, pytest.approx(1.975))


def test_the_table_has_softmax_over_each_items_own_options():
    items = memory_game(languages=("en", "ja"), shapes=("star",), size=64)
    weights = {label: RNG.uniform(0.1, 1) for item in items for label in [o.label for o in item.options]}
    table = option_table(FakeRun(items, lambda _: weights))
    assert table["item"].tolist() == [i.id for i in items for _ in i.options]
    for _, part in table.groupby("item"):
        chosen = np.array([weights[label] for label in part["option"]])
        np.testing.assert_allclose(part["prob"], chosen / chosen.sum(), rtol=1e-5)


def test_a_logit_that_is_not_finite_names_its_item():
    items = memory_game(languages=("en",), shapes=("star",), colours=("red",), size=64)
    run = FakeRun(items, lambda item: {"this": 1.0, "that": np.nan if item is items[1] else 1.0})
    with pytest.raises(ValueError, match=rf"item '{items[1].id}' has the logit nan for 'that'"):
        option_table(run)


def one_hot(rng: np.random.Generator, p: np.ndarray, n: int) -> np.ndarray:
    return np.eye(len(p))[rng.choice(len(p), size=n, p=p)]


def each_alone(values: np.ndarray) -> ClusterSums:
    return ClusterSums.of(values, np.arange(len(values)))


def counted(ones: int, n: int) -> ClusterSums:
    """n answers of two terms, ``ones`` of them the first."""
    return each_alone(np.eye(2)[[0] * ones + [1] * (n - ones)])


@pytest.mark.parametrize("p", [0.35, 0.8])
def test_the_expected_bias_is_the_closed_form_and_the_jackknife_takes_it_off(p):
    """Two terms: the expectation over all binomial outcomes is a sum, so that nothing is left to chance."""
    n, reference = 40, np.array([0.55, 0.45])
    far = lambda x: float(js_distance(np.array([x, 1 - x]), reference))  # noqa: E731
    weights = binom.pmf(np.arange(n + 1), n, p)
    raw = sum(w * far(ones / n) for ones, w in enumerate(weights)) - far(p)
    corrected = sum(w * debiased_js_distance(counted(ones, n), reference) for ones, w in enumerate(weights)) - far(p)
    step = 1e-3
    curvature = (far(p + step) - 2 * far(p) + far(p - step)) / step**2
    assert raw == pytest.approx(curvature * p * (1 - p) / (2 * n), rel=0.35)  # first order in 1 / n
    assert raw > 0
    assert abs(corrected) < 0.35 * raw


def test_the_divergence_of_answers_drawn_from_the_reference_is_k_less_1_over_8_n():
    """Where the truth is 0: to first order chi-square over 8 n, and the jackknife leaves about two thirds of the distance."""
    p, n, rng = np.array([0.5, 0.3, 0.2]), 60, np.random.default_rng(0)
    raw, corrected = [], []
    for _ in range(1000):
        cells = each_alone(one_hot(rng, p, n))
        raw.append(float(js_distance(cells.sums.mean(axis=0), p, np.e)))
        corrected.append(debiased_js_distance(cells, p, np.e))
    assert np.mean(np.square(raw)) == pytest.approx((len(p) - 1) / (8 * n), rel=0.08)  # standard error 3 %
    assert 0.5 < np.mean(corrected) / np.mean(raw) < 0.8


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (0.53, 0.29, 0.18), (0.6, 0.3, 0.1), (0.85, 0.1, 0.05)])
def test_the_corrected_distance_lies_nearer_to_the_truth_than_the_raw_one(shares):
    """Items as models give them, whole distributions around a mean, in figures of two items that go together."""
    reference, mean, rng = np.array([0.5, 0.3, 0.2]), np.array(shares), np.random.default_rng(1)
    truth = float(js_distance(mean, reference))
    raw, corrected = [], []
    for _ in range(600):
        values = np.repeat(rng.dirichlet(3 * mean, size=10), 2, axis=0)
        cells = ClusterSums.of(values, np.repeat(np.arange(10), 2))
        raw.append(float(js_distance(values.mean(axis=0), reference)))
        corrected.append(debiased_js_distance(cells, reference))
    assert np.mean(raw) > truth + 3 * np.std(raw) / np.sqrt(len(raw))  # biased upward
    assert abs(np.mean(corrected) - truth) < 0.75 * abs(np.mean(raw) - truth)


def test_no_correction_is_made_where_items_do_not_differ():
    reference = np.array([0.7, 0.3])
    same = each_alone(np.tile([0.5, 0.5], (6, 1)))
    assert debiased_js_distance(same, reference) == pytest.approx(jensenshannon([0.5, 0.5], reference, base=2))
    assert np.isnan(debiased_js_distance(ClusterSums.of(np.tile([0.5, 0.5], (4, 1)), np.zeros(4)), reference))


def test_two_halves_lie_about_twice_as_far_apart_as_the_whole_from_its_truth():
    p, n, rng = np.array([0.5, 0.5]), 40, np.random.default_rng(2)
    whole, halves = [], []
    for _ in range(300):
        cells = each_alone(one_hot(rng, p, n))
        whole.append(float(js_distance(cells.sums.mean(axis=0), p)))
        halves.append(split_half_distances(cells, 2.0, rng, splits=20).mean())
    assert np.mean(halves) / np.mean(whole) == pytest.approx(2.0, rel=0.1)


def test_halves_of_equal_items_do_not_differ_and_one_cluster_has_no_halves():
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(split_half_distances(each_alone(np.tile([0.2, 0.8], (7, 1))), 2.0, rng), 0, atol=1e-7)
    assert len(split_half_distances(ClusterSums.of(np.eye(2), np.zeros(2)), 2.0, rng)) == 0
    two = split_half_distances(each_alone(np.eye(2)), 2.0, rng)
    np.testing.assert_allclose(two, 1.0)  # disjoint


def test_sums_over_clusters_keep_the_order_of_names_and_have_no_mean_without_items():
    sums = ClusterSums.of(np.array([[1.0], [2.0], [4.0]]), np.array(["b", "c", "b"]), names=("c", "a", "b"))
    assert sums.sums.ravel().tolist() == [2, 0, 5]
    assert sums.sizes.tolist() == [1, 0, 2]
    means = sums.means(np.array([[1.0, 1.0, 1.0], [0.0, 3.0, 0.0], [2.0, 0.0, 1.0]]))
    np.testing.assert_allclose(means.ravel(), [7 / 3, np.nan, 9 / 4])
    assert sums.filled.sizes.tolist() == [1, 2]


def test_an_interval_of_nothing_is_nan():
    assert np.isnan(interval(np.full(4, np.nan), 0.5)).all()
    assert np.isnan(interval(np.ones(4), float("nan"))).all()
    assert interval(np.array([np.nan, 1.0, 3.0]), 2.0, level=1.0) == (1.0, 3.0)
