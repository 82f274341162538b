"""Distances between distributions, by closed forms and by scipy; bootstraps by their limits."""

from itertools import product
from math import comb, log2, sqrt

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from deixis.analyses.distributions import bootstrap_means, interval, js_distance, option_table, sampling_noise
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
