"""Row spaces: an isometry of what the training items span, for training sets of unequal size."""

import numpy as np
import pytest
import torch

from deixis.probes.row_space import Split, like, namespace, plain, row_basis, row_space, standardised


def spaces(X, weight):
    return [(split, items, row_space(items)) for _, split, items in standardised(X, weight)]


def example(width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, size=(3, 30)).astype(float)
    weight[1, :12] = 0
    return rng.normal(size=(30, width)) * rng.uniform(0.1, 9, size=width) + 4, weight


@pytest.mark.parametrize("width", [6, 50])
def test_products_of_items_are_those_of_their_standardised_features(width):
    X, weight = example(width)
    ((split, _, space),) = spaces(X, weight)
    for s, times in enumerate(weight):
        rows = np.repeat(np.arange(30), times.astype(int))
        Z = (X - X[rows].mean(axis=0)) / X[rows].std(axis=0)
        mine, held = split.weight[s] > 0, split.is_held[s] > 0
        np.testing.assert_array_equal(split.rows[s][mine], np.flatnonzero(times))
        np.testing.assert_array_equal(split.held[s][held], np.flatnonzero(times == 0))
        inside, outside = space.train[s][mine], space.test[s][held]
        np.testing.assert_allclose(inside @ inside.T, Z[times > 0] @ Z[times > 0].T, atol=1e-9)
        np.testing.assert_allclose(outside @ inside.T, Z[times == 0] @ Z[times > 0].T, atol=1e-9)
        spread = (inside.T * times[times > 0]) @ inside
        np.testing.assert_allclose(spread, np.diag(space.length[s]), atol=1e-8 * space.length[s].max())


@pytest.mark.parametrize("width", [6, 50])
def test_weights_along_the_axes_predict_what_the_same_weights_of_the_features_predict(width):
    X, weight = example(width)
    ((split, _, space),) = spaces(X, weight)
    coef = np.random.default_rng(1).normal(size=(3, space.length.shape[1], 2))
    features = space.features(coef)
    for s in range(3):
        held = split.is_held[s] > 0
        expected = (X[split.held[s][held]] - space.centre[s]) @ features[s]
        np.testing.assert_allclose(space.predict(coef)[s][held], expected, atol=1e-9)


def test_an_outlier_leaves_the_deviation_of_the_sets_without_it_exact():
    X, _ = example(6)
    expected = X[1:].std(axis=0)
    X[0] = 1e12
    ((_, items, _),) = spaces(X, (np.arange(30) > 0).astype(float)[None])
    np.testing.assert_allclose(1 / items.inverse[0], expected, rtol=1e-12)


def test_constant_features_have_no_part_in_it():
    X, weight = example(6)
    X[:, 2] = 1e6 + 1e-3 * np.arange(30)
    ((_, items, _),) = spaces(X, weight)
    assert (items.inverse[:, 2] == 0).all()
    assert (items.span[:, :, 2] == 0).all()


def test_a_set_that_predicts_nothing_is_none_the_less_a_set():
    split = Split.of(np.ones((1, 4)))
    assert split.held.shape == (1, 0)
    assert split.rows.tolist() == [[0, 1, 2, 3]]


def test_a_basis_of_the_rows_keeps_the_rows():
    X = np.random.default_rng(0).normal(size=(5, 20))
    rows, back = row_basis(X)
    assert rows.shape == (5, 5)
    np.testing.assert_allclose(rows @ back, X, atol=1e-12)
    np.testing.assert_allclose(back @ back.T, np.eye(5), atol=1e-12)


def test_arrays_go_to_the_kind_of_their_model_and_back():
    model = torch.ones(2, dtype=torch.float64)
    assert namespace(model) is torch
    assert like(np.ones(2, dtype=np.float32), model).dtype == torch.float64
    assert like(np.arange(2), model).dtype == torch.int64
    assert plain(torch.ones(2, dtype=torch.bfloat16)).dtype == np.float32
    assert plain([1, 2]) == [1, 2]
