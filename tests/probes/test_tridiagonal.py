"""Tridiagonal reductions against the matrices they stand for."""

import numpy as np
import pytest

from deixis.probes.tridiagonal import Tridiagonal


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_reduction_solves_what_the_matrix_solves(dtype):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 60)).astype(dtype)
    matrix, right = Z @ Z.T, rng.normal(size=(40, 3)).astype(dtype)
    reduced = Tridiagonal.of(matrix.copy())
    tight = np.diag(reduced.diagonal) + np.diag(reduced.beside, 1) + np.diag(reduced.beside, -1)
    back = reduced.turned(reduced.turned(tight, back=True).T, back=True)
    tolerance = 1e-4 if dtype is np.float32 else 1e-11
    np.testing.assert_allclose(back, matrix, atol=tolerance * np.abs(matrix).max())
    np.testing.assert_allclose(reduced.turned(reduced.turned(right), back=True), right, atol=tolerance)


def test_a_matrix_with_an_eigenvalue_below_zero_has_no_factors():
    reduced = Tridiagonal.of(np.diag([3.0, 2.0, -1.0]) + 0.1)
    assert reduced.factors(0.5) is None
    assert reduced.factors(2.0) is not None
