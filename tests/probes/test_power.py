"""The smallest effect that can be seen, against simulated tests."""

import warnings

import numpy as np
import pytest

from deixis.probes import TooFewItemsWarning, cross_validate_probe, smallest_effect
from deixis.probes.power import told_of_few, warn_of_few

QUICK = {"n_bootstrap": 0, "n_controls": 0, "n_permutations": 0, "n_orders": 0}


@pytest.mark.parametrize("n", [12, 19, 60])
def test_a_correlation_of_that_size_is_found_in_four_of_five_samples(n):
    rng = np.random.default_rng(0)
    r = np.sqrt(smallest_effect("regression", n))
    x = rng.normal(size=(4000, n))
    y = r * x + np.sqrt(1 - r**2) * rng.normal(size=(4000, n))
    seen = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(x, y, strict=True)])
    null = np.array([np.corrcoef(a, rng.permutation(b))[0, 1] for a, b in zip(x, y, strict=True)])
    assert (seen > np.quantile(null, 0.95)).mean() == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(("n", "k"), [(18, 2), (60, 3)])
def test_a_share_of_right_answers_of_that_size_is_found_about_as_often(n, k):
    rng = np.random.default_rng(0)
    found = rng.binomial(n, smallest_effect("classification", n, k), size=20000) / n
    null = rng.binomial(n, 1 / k, size=20000) / n
    assert (found > np.quantile(null, 0.95)).mean() == pytest.approx(0.8, abs=0.12)  # counts are coarse


def test_fewer_groups_than_twenty_are_warned_of_with_the_smallest_effect():
    rng = np.random.default_rng(0)
    with pytest.warns(TooFewItemsWarning, match=r"only 12 groups: a true R2 below 0.46 would be missed more than once in five"):
        cross_validate_probe(rng.normal(size=(12, 3)), rng.normal(size=12), np.arange(12), **QUICK)
    with pytest.warns(TooFewItemsWarning, match=r"a true balanced accuracy below 0.86 .* give at least 20 groups"):
        cross_validate_probe(rng.normal(size=(12, 3)), np.arange(12) % 2, np.arange(12), **QUICK)


def test_hardly_any_groups_can_show_nothing_but_perfection():
    assert smallest_effect("regression", 3) == 1.0
    assert smallest_effect("classification", 2, 2) == 1.0


def test_warnings_are_collected_once_each_and_others_go_on():
    with pytest.warns(RuntimeWarning, match="something else"), told_of_few() as said:  # noqa: PT031
        for _ in range(2):
            warn_of_few("regression", 12)
        warnings.warn("something else", RuntimeWarning, stacklevel=1)
    assert len(said) == 1
    assert said[0].startswith("only 12 groups")


def test_collected_warnings_do_not_depend_on_filters_and_end_with_the_block():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with told_of_few() as outer:
            with told_of_few() as inner:
                warnings.resetwarnings()  # as a library may, when it is imported
                warnings.simplefilter("ignore")
                warn_of_few("regression", 12)
            warn_of_few("classification", 5, 3)
    assert [len(inner), len(outer)] == [1, 1]
    assert outer[0].startswith("only 5 groups")
    with pytest.warns(TooFewItemsWarning, match="only 12 groups"):
        warn_of_few("regression", 12)
