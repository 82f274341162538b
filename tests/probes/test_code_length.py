"""Online code lengths against what they must be."""

import numpy as np
import pytest
from scipy.stats import t as student

from deixis.probes.code_length import SHARES, _class_bits, _value_bits, code_length
from deixis.probes.nested import METHODS

ALPHAS = (0.1, 10.0, 1000.0)


def bits(X: np.ndarray, y: np.ndarray, name: str, group: np.ndarray | None = None, n_orders: int = 4, seed: int = 0):
    group = np.arange(len(y)) if group is None else group
    return code_length(X, y, group, METHODS[name], ALPHAS, n_orders, np.random.default_rng(seed))


def test_noise_costs_no_less_than_knowing_nothing_and_little_more():
    rng = np.random.default_rng(0)
    classes = [bits(rng.normal(size=(120, 8)), rng.permutation(np.arange(120) % 3), "discriminant") for _ in range(6)]
    assert {round(c.baseline, 6) for c in classes} == {round(np.log2(3), 6)}
    assert np.mean([c.bits for c in classes]) == pytest.approx(np.log2(3), abs=0.12)
    values = [bits(rng.normal(size=(120, 8)), rng.normal(size=120), "ridge") for _ in range(6)]
    assert values[0].baseline == pytest.approx(0.5 * np.log2(2 * np.pi * np.e))
    assert np.mean([v.bits for v in values]) == pytest.approx(2.05, abs=0.15)


def test_a_gaussian_code_comes_close_to_its_entropy():
    """A target that is known up to noise of a tenth of its deviation can be told in log2(10) bits less."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    y = X[:, 0] + 0.1 * rng.normal(size=2000)
    found = bits(X, y, "ridge", n_orders=2)
    assert found.bits == pytest.approx(found.baseline + np.log2(0.1 / np.sqrt(1.01)), abs=0.05)


def test_classes_that_are_plain_cost_little_more_than_the_first_blocks():
    rng = np.random.default_rng(0)
    codes = np.arange(1000) % 3
    X = np.eye(3)[codes] + 0.05 * rng.normal(size=(1000, 3))
    assert bits(X, codes, "discriminant").bits < 0.08


def test_a_code_among_many_idle_features_costs_more_though_it_is_decoded_as_well_in_the_end():
    """How many items it takes to learn: what the code length adds to the score (Voita and Titov 2020)."""
    rng = np.random.default_rng(0)
    codes = np.arange(300) % 2
    X = rng.normal(size=(300, 80))
    X[:, 0] += 6 * codes
    assert bits(X[:, :3], codes, "discriminant").bits < bits(X, codes, "discriminant").bits - 0.1


def test_nothing_is_learned_from_the_item_s_own_group():
    """Groups share a fingerprint and a random label: within blocks and folds a group must not tell its own label."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 5)
    codes = rng.permutation(np.arange(40) % 2)[group]
    fingerprint = rng.normal(size=(40, 60))[group] + 0.05 * rng.normal(size=(200, 60))
    assert bits(fingerprint, codes, "discriminant", group).bits > 0.93
    assert bits(fingerprint, codes, "discriminant").bits < 0.75  # and would, were every item a group


def test_blocks_end_where_the_paper_ends_them():
    assert SHARES == (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)


def test_the_bits_of_values_are_those_of_student_s_density():
    known = np.arange(30) < 20
    rng = np.random.default_rng(0)
    target, predicted = rng.normal(size=30), rng.normal(size=(2, 30))
    predicted[1] = target + 0.1 * predicted[1]  # the better penalty
    scale = np.sqrt(((target - predicted[1])[known] ** 2).mean())
    want = -np.log2(student.pdf((target - predicted[1])[~known] / scale, 19) / scale).sum()
    assert _value_bits(predicted, target, known, 20) == pytest.approx(want)


def test_a_class_that_was_never_seen_costs_what_smoothing_leaves_it():
    scores = np.zeros((1, 12, 3))
    scores[..., 2] = -np.inf
    codes = np.array([0, 1] * 5 + [2, 2])
    known = np.arange(12) < 10
    # No temperature helps on these scores: two classes get half of 1 - e each, and e / 3 on top.
    assert _class_bits(scores, codes, known, 9) == pytest.approx(2 * -np.log2(0.1 / 3))


@pytest.mark.parametrize("name", ["logistic", "mean_difference"])
def test_other_classifiers_have_a_code_length_too(name):
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + 4 * codes[:, None]
    assert bits(X, codes, name, n_orders=1).bits < 0.6
