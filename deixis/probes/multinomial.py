"""Logistic regression with two or more classes by a truncated Newton method, for many targets at once, in a row space.

The coordinates carry a last column of ones whose weight is the intercept: ``place`` counts the axes and then the intercept.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from jaxtyping import Bool, Float

from deixis.probes.row_space import Array, RowSpace, like, namespace

TOLERANCE = 1e-5
"""Largest relative error of the coefficients at which a fit is finished."""
_FORCING = 0.03
"""Relative residual at which a Newton step is good enough."""
_NEWTON_STEPS, _CG_STEPS, _HALVINGS = 200, 500, 30

Coef = Float[Array, "subset place target cls"]
Scores = Float[Array, "subset train target cls"]
PerTarget = Float[Array, "subset target"]


def logistic(
    space: RowSpace, member: Float[Array, "subset train target cls"], alphas: Sequence[float]
) -> Iterator[tuple[Float[Array, "subset axis target cls"], Float[Array, "subset target cls"]]]:
    """Minimises ``sum of weighted log losses + alpha / 2 |B|^2``, intercepts free, as scikit-learn's ``LogisticRegression`` does.

    From the largest penalty to the smallest, each fit starting where those before it lead to. The Newton steps are solved by
    conjugate gradients, preconditioned by the Hessian that there would be if all items had the same, mean class covariance:
    along the axes of the row space it is diagonal but for the few classes. A fit ends where its gradient bounds the error of its
    coefficients: ``|error| <= |gradient| / alpha``, because the curvature is nowhere below ``alpha``.

    With two classes scikit-learn penalises the difference of their weights, which here are half of it each: twice the penalty.
    Classes without training items are never chosen.
    """
    problem, start = _problem(space, member)
    found: dict[float, Coef] = {}
    for alpha in sorted(set(alphas), reverse=True):
        posed = replace(problem, penalty=problem.penalty * alpha)
        found[alpha] = _fit(posed, _start(posed, start, found, alpha))
    xp = namespace(member)
    for alpha in alphas:
        coef, intercept = found[alpha][:, :-1], found[alpha][:, -1] + problem.barred[:, 0]
        yield xp.asarray(coef, dtype=member.dtype), xp.asarray(intercept, dtype=member.dtype)


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Weighted log losses plus ``penalty / 2 |coef|^2``, for each training set and target."""

    rows: Float[Array, "subset train place"]
    quick: Float[Array, "subset train place"]
    """The same in float32: the Newton step need not be exact, only what it leads to."""
    length: Float[Array, "subset place 1 1"]
    """Weighted sum of squares of each column."""
    weight: Float[Array, "subset train 1 1"]
    member: Float[Array, "subset train target cls"]
    barred: Float[Array, "subset 1 target cls"]
    """Minus infinity for classes without training items, else 0."""
    penalty: Float[Array, "subset place target 1"]
    """0 for the intercept."""

    def only(self, live: Array) -> "_Problem":
        """The same for some of the targets."""
        return replace(self, member=self.member[:, :, live], barred=self.barred[:, :, live], penalty=self.penalty[:, :, live])

    def share(self, scores: Scores) -> Scores:
        """Probabilities of the classes."""
        xp = namespace(scores)
        scores = scores + self.barred
        found = xp.exp(scores - xp.amax(scores, -1)[..., None])
        return found / found.sum(-1)[..., None]

    def loss(self, scores: Scores, coef: Coef) -> PerTarget:
        """What is minimised."""
        xp = namespace(scores)
        # Minus the log probability of the right class, to the last digit also where it is all but certain.
        ahead = scores + self.barred - (scores * self.member).sum(-1)[..., None]
        top = xp.amax(ahead, -1)
        rival = xp.exp(ahead - top[..., None])
        surprise = xp.where(top > 0, top + xp.log(rival.sum(-1)), xp.log1p((rival * (1 - self.member)).sum(-1)))
        return (self.weight[..., 0] * surprise).sum(1) + (self.penalty * coef**2).sum(-1).sum(1) / 2

    def gradient(self, share: Scores, coef: Coef) -> Coef:
        """Of the loss."""
        return _product(self.rows.swapaxes(1, 2), self.weight * (share - self.member)) + self.penalty * coef


def _problem(space: RowSpace, member: Float[Array, "subset train target cls"]) -> tuple[_Problem, Coef]:
    """The problem at a penalty of 1, and its solution at an endless one: the classes' log frequencies.

    In float64 whatever comes: in float32 the certainty of an answer, one less its probability, soon has no digit left.
    """
    xp = namespace(member)
    train, length, weight, member = (
        xp.asarray(part, dtype=xp.float64) for part in (space.train, space.length, space.weight, member)
    )
    rows = xp.concatenate([train, xp.ones_like(train[:, :, :1])], 2)
    length = xp.concatenate([length, weight.sum(1)[:, None]], 1)[:, :, None, None]
    weight = weight[:, :, None, None]
    size = (weight * member).sum(1)
    present = size > 0
    level = xp.where(present, xp.log(xp.where(present, size, 1.0)), 0.0)
    level = xp.where(present, level - (level.sum(-1) / present.sum(-1))[..., None], 0.0)
    start = 0.0 * length * level[:, None]
    start[:, -1] = level
    penalty = 0.0 * start[..., :1] + (1.0 + (present.sum(-1) == 2))[:, None, :, None]
    penalty[:, -1] = 0.0
    barred = xp.where(present, 0.0 * level, -np.inf)[:, None]
    quick = xp.asarray(rows, dtype=xp.float32)
    return (
        _Problem(rows=rows, quick=quick, length=length, weight=weight, member=member, barred=barred, penalty=penalty),
        start,
    )


def _start(problem: _Problem, first: Coef, found: dict[float, Coef], alpha: float) -> Coef:
    """The last solution, or the line through the last two (over the penalty's logarithm) where that is better."""
    if len(found) < 2:
        return found[next(iter(found))] if found else first
    (far, before), (near, last) = list(found.items())[-2:]
    ahead = last + (last - before) * (log(near / alpha) / log(far / near))
    losses = [problem.loss(_product(problem.rows, coef), coef) for coef in (last, ahead)]
    return namespace(last).where((losses[1] < losses[0])[:, None, :, None], ahead, last)


def _fit(problem: _Problem, coef: Coef) -> Coef:
    """The optimum, from a start.

    Raises:
        ArithmeticError: It was not reached; convexity promises that this does not happen but by rounding.
    """
    coef = coef + 0.0
    live = like(np.arange(coef.shape[2]), problem.weight)
    for _ in range(_NEWTON_STEPS):
        part, here = problem.only(live), coef[:, :, live]
        scores = _product(part.rows, here)
        share = part.share(scores)
        gradient = part.gradient(share, here)
        done = _done(part, here, gradient, share)
        if bool(done.all()):
            return coef
        step, along = _newton_step(part, gradient, share, ~done)
        coef[:, :, live] = here + _step_length(part, here, step, scores, along, gradient)[:, None, :, None] * step
        live = live[~done.all(0)]
    raise ArithmeticError(f"logistic regression took more than {_NEWTON_STEPS} Newton steps; use larger penalties.")


def _done(problem: _Problem, coef: Coef, gradient: Coef, share: Scores) -> Bool[Array, "subset target"]:
    """Whether the coefficients are within the tolerance, or the gradient is nothing but rounding."""
    xp = namespace(share)
    pull, size = (xp.sqrt((part[:, :-1] ** 2).sum(-1).sum(1)) for part in (gradient, problem.penalty * coef))
    residual = (problem.weight * (share - problem.member) ** 2).sum(-1).sum(1)
    rounding = 4 * xp.finfo(share.dtype).eps * xp.sqrt(residual * problem.length.sum(1)[:, 0])
    curvature = (problem.weight * share * (1 - share)).sum(1)
    level = (abs(gradient[:, -1]) <= TOLERANCE * curvature + rounding[..., None]).all(-1)
    return (pull <= TOLERANCE * size + rounding) & level


def _newton_step(problem: _Problem, gradient: Coef, share: Scores, live: Bool[Array, "subset target"]) -> tuple[Coef, Scores]:
    """Minus the Hessian's inverse times the gradient, by conjugate gradients, and its scores; 0 where not ``live``."""
    xp = namespace(share)
    size = xp.sqrt(_dot(gradient, gradient))
    unit = xp.where(live & (size > 0), 1 / xp.where(size > 0, size, 1.0), 0.0)[:, None, :, None]
    precondition = _preconditioner(problem, share)
    residual = -gradient * unit
    step, along = 0.0 * residual, 0.0 * share
    ready = precondition(residual)
    direction, norm = ready, _dot(residual, ready)
    goal = _FORCING**2 * norm
    for _ in range(_CG_STEPS):
        live = live & (norm > goal)
        if not bool(live.any()):
            break
        scores = _product(problem.quick, direction)
        bent = share * scores
        bent = problem.weight * (bent - share * bent.sum(-1)[..., None])
        image = _product(problem.quick.swapaxes(1, 2), bent) + problem.penalty * direction
        length = xp.where(live, norm / xp.where(live, _dot(direction, image), 1.0), 0.0)[:, None, :, None]
        step, along, residual = step + length * direction, along + length * scores, residual - length * image
        ready = precondition(residual)
        before, norm = norm, _dot(residual, ready)
        direction = ready + xp.where(live, norm / xp.where(live, before, 1.0), 0.0)[:, None, :, None] * direction
    back = size[:, None, :, None]
    return step * back, along * back


def _preconditioner(problem: _Problem, share: Scores) -> Callable[[Coef], Coef]:
    """Multiplication by the inverse of the Hessian that there would be if all items had the mean class covariance."""
    xp = namespace(share)
    weighted = xp.moveaxis(problem.weight * share, 1, -1)
    unit = like(np.eye(share.shape[-1]), problem.weight)
    covariance = weighted.sum(-1)[..., None] * unit - weighted @ xp.moveaxis(share, 1, 2)
    spread, turn = xp.linalg.eigh(covariance / problem.weight.sum(1)[..., None])
    # All classes' scores may rise together: no curvature but the penalty's, and none at all for the intercepts.
    spread = spread * (spread > 1e-12)
    scale = xp.moveaxis(problem.length * spread[:, None] + problem.penalty, 1, 2)
    over = xp.where(scale > 0, 1 / xp.where(scale > 0, scale, 1.0), 0.0)
    return lambda coef: xp.moveaxis(((xp.moveaxis(coef, 1, 2) @ turn) * over) @ turn.swapaxes(-1, -2), 2, 1)


def _step_length(problem: _Problem, coef: Coef, step: Coef, scores: Scores, along: Scores, gradient: Coef) -> PerTarget:
    """The first of 1, 1/2, 1/4, ... that lowers the loss as much as it should (Armijo 1966)."""
    xp = namespace(scores)
    start, slope = problem.loss(scores, coef), _dot(gradient, step)
    slack = 64 * xp.finfo(scores.dtype).eps * start
    length = xp.ones_like(slope)
    for _ in range(_HALVINGS):
        moved = length[:, None, :, None]
        poor = problem.loss(scores + moved * along, coef + moved * step) > start + 1e-4 * length * slope + slack
        if not bool(poor.any()):
            break
        length = xp.where(poor, length / 2, length)
    return length


def _product(
    rows: Float[Array, "subset row column"], values: Float[Array, "subset column target cls"]
) -> Float[Array, "subset row target cls"]:
    xp = namespace(rows)
    flat = xp.asarray(rows @ xp.asarray(values.reshape(*values.shape[:2], -1), dtype=rows.dtype), dtype=values.dtype)
    return flat.reshape(*flat.shape[:2], *values.shape[2:])


def _dot(one: Coef, other: Coef) -> PerTarget:
    return (one * other).sum(-1).sum(1)
