"""The truncated Newton method: its optimum by the gradient, its extremes, and what it does where it cannot get there."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from deixis.probes import multinomial
from deixis.probes.row_space import row_space, standardised


def problem(n: int = 40, width: int = 12, n_classes: int = 3, shift: float = 1.0):
    """The row space of one training set (four fifths of the items) and its classes' indicators."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, width)) + shift * rng.normal(size=(n_classes, width))[y]
    ((_, split, items),) = standardised(X, (np.arange(n) % 5 > 0).astype(float)[None])
    return row_space(items), np.eye(n_classes)[y][split.rows][:, :, None]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
def test_the_gradient_of_the_objective_vanishes_at_the_solution(n_classes, alpha):
    space, member = problem(n_classes=n_classes)
    ((coef, intercept),) = multinomial.logistic(space, member, (alpha,))
    coef, intercept, rows = coef[0, :, 0], intercept[0, 0], space.train[0]
    surplus = softmax(rows @ coef + intercept, axis=1) - member[0, :, 0]
    penalty = 2 * alpha if n_classes == 2 else alpha
    gradient = rows.T @ surplus + penalty * coef
    assert np.linalg.norm(gradient) <= 1e-5 * penalty * np.linalg.norm(coef)
    np.testing.assert_allclose(surplus.sum(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(coef.sum(axis=1), 0, atol=1e-6 * np.abs(coef).max())


def test_the_order_of_the_penalties_does_not_matter_and_each_is_given_once_for_every_time_it_is_named():
    space, member = problem()
    rising = [coef for coef, _ in multinomial.logistic(space, member, (0.01, 1.0, 100.0, 1.0))]
    falling = [coef for coef, _ in multinomial.logistic(space, member, (100.0, 1.0, 0.01))]
    for one, other in zip(rising[:3], falling[::-1], strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5 * np.abs(other).max())
    np.testing.assert_array_equal(rising[1], rising[3])


def test_classes_that_separate_widely_are_fitted_at_the_smallest_penalties():
    space, member = problem(shift=8.0)
    for coef, intercept in multinomial.logistic(space, member, (1e-8, 1e-4)):
        scores = space.train[0] @ coef[0, :, 0] + intercept[0, 0]
        assert np.isfinite(coef).all()
        assert (scores.argmax(axis=1) == member[0, :, 0].argmax(axis=1)).all()


def test_the_loss_of_certain_answers_keeps_its_digits():
    space, member = problem()
    posed, start = multinomial._problem(space, member)
    scores = 60.0 * member - 60.0 * (1 - member)
    got = posed.loss(scores, 0 * start)
    expected = np.log1p(2 * np.exp(-120.0)) * member.shape[1]
    assert got[0, 0] == pytest.approx(expected, rel=1e-12)
    scores = np.random.default_rng(1).normal(size=member.shape)
    expected = -(log_softmax(scores[0, :, 0], axis=1) * member[0, :, 0]).sum()
    assert posed.loss(scores, 0 * start)[0, 0] == pytest.approx(expected)


def test_a_fit_that_does_not_arrive_says_so(monkeypatch):
    monkeypatch.setattr(multinomial, "_NEWTON_STEPS", 1)
    space, member = problem()
    with pytest.raises(ArithmeticError, match="took more than 1 Newton steps; use larger penalties"):
        list(multinomial.logistic(space, member, (0.01,)))


def test_a_step_that_would_raise_the_loss_is_shortened():
    space, member = problem()
    posed, start = multinomial._problem(space, member)
    scores = multinomial._product(posed.rows, start)
    gradient = posed.gradient(posed.share(scores), start)
    step = -50.0 * gradient
    along = multinomial._product(posed.rows, step)
    length = multinomial._step_length(posed, start, step, scores, along, gradient)[0, 0]
    assert 0 < length < 1
    assert posed.loss(scores + length * along, start + length * step)[0, 0] < posed.loss(scores, start)[0, 0]
