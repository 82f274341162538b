"""Ridge regression of larger problems: one reduction to a tridiagonal matrix serves every penalty, target and permutation.

``A = Q T Q'`` with ``T`` tridiagonal costs a third of an eigendecomposition or less, and ``(T + alpha) x = b`` is solved in a few
operations per entry (Golub and Van Loan, *Matrix Computations*, 4th ed., 8.3.1 and 4.3.6; Elden 1977, BIT 17:134, does it for
ridge regression by way of the features' bidiagonal form).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_lapack_funcs

from deixis.probes.row_space import Standardised

LARGE = 128
"""Rows of the matrix from which on this is quicker than eigendecompositions of many at a time."""

Solution = tuple[Float[np.ndarray, "subset axis target output"], Float[np.ndarray, "subset target output"]]


@dataclass(frozen=True, kw_only=True)
class Tridiagonal:
    """A symmetric matrix as ``Q T Q'``."""

    diagonal: Float[np.ndarray, " axis"]
    beside: Float[np.ndarray, " gap"]
    _reflectors: Float[np.ndarray, "gap gap"]
    _factors: Float[np.ndarray, " gap"]

    @classmethod
    def of(cls, matrix: Float[np.ndarray, "axis axis"]) -> "Tridiagonal":
        """Reduce a symmetric matrix; it is overwritten."""
        sytrd, sytrd_lwork = get_lapack_funcs(("sytrd", "sytrd_lwork"), (matrix,))
        size = int(sytrd_lwork(len(matrix), lower=1)[0])
        # Transposed, the symmetric matrix is already in the order that LAPACK wants: no copy.
        reduced, diagonal, beside, factors, _ = sytrd(matrix.T, lower=1, lwork=size, overwrite_a=True)
        return cls(diagonal=diagonal, beside=beside, _reflectors=np.asfortranarray(reduced[1:, :-1]), _factors=factors)

    def turned(self, values: Float[np.ndarray, "axis column"], *, back: bool = False) -> Float[np.ndarray, "axis column"]:
        """``Q' values`` or, ``back``, ``Q values``."""
        (ormqr,) = get_lapack_funcs(("ormqr",), (self._reflectors,))
        found = np.array(values, order="F")
        work = 64 * max(found.shape[1], 1)
        found[1:] = ormqr("L", "N" if back else "T", self._reflectors, self._factors, found[1:], lwork=work)[0]
        return found

    def factors(self, alpha: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Of ``T + alpha``; None if rounding has left that matrix with an eigenvalue that is not above 0."""
        (pttrf,) = get_lapack_funcs(("pttrf",), (self.diagonal,))
        diagonal, beside, failed = pttrf(self.diagonal + self.diagonal.dtype.type(alpha), self.beside)
        return None if failed else (diagonal, beside)


@dataclass(frozen=True, kw_only=True)
class Turned:
    """Items in the basis in which their products are tridiagonal, or in that of the standardised features."""

    test: Float[np.ndarray, "subset test axis"]
    """Items to be predicted."""
    centre: Float[np.ndarray, "subset feature"]
    """Mean of the features as they were given."""
    inverse: Float[np.ndarray, "subset feature"]
    """One over their deviation; 0 for those that are constant."""
    _standardised: Callable[[Float[np.ndarray, "subset axis column"]], Float[np.ndarray, "subset feature column"]]

    def features(self, coef: Float[np.ndarray, "subset axis column"]) -> Float[np.ndarray, "subset feature column"]:
        """Weights along the axes as weights of the features as they were given."""
        return self.inverse[:, :, None] * self._standardised(coef)

    def predict(self, coef: Float[np.ndarray, "subset axis column"]) -> Float[np.ndarray, "subset test column"]:
        """What weights along the axes say about the items to be predicted."""
        return self.test @ coef


def tridiagonal_ridge(
    items: Standardised, Y: Float[np.ndarray, "subset train target output"], alphas: Sequence[float]
) -> tuple[Turned, Iterator[Solution]] | None:
    """Ridge regression on ``Y`` (see ``linear_fits.ridge``); None where a penalty drowns in rounding.

    Works on ``Z Z'`` or ``Z' Z``, whichever is smaller. Few targets are turned back to the features, for all penalties together;
    many are left as they are and the items to be predicted are turned, once.
    """
    across = items.span.shape[2] > items.span.shape[1]
    flat = Y.reshape(*Y.shape[:2], -1)
    level = (items.weight[:, None, :] @ flat)[:, 0] / items.weight.sum(1)[:, None]
    right = np.sqrt(items.weight)[:, :, None] * (flat - level[:, None, :])
    reduced = [Tridiagonal.of(Z @ Z.T if across else Z.T @ Z) for Z in items.span]
    factors = list[list[tuple[np.ndarray, np.ndarray]]]()
    for matrix in reduced:
        found = [matrix.factors(alpha) for alpha in alphas]
        factors.append([factor for factor in found if factor is not None])
        if len(factors[-1]) < len(alphas):
            return None
    if not across:
        right = items.span.swapaxes(1, 2) @ right
    turned = [matrix.turned(values) for matrix, values in zip(reduced, right, strict=True)]

    def standardised(coef: Float[np.ndarray, "subset axis column"]) -> Float[np.ndarray, "subset feature column"]:
        back = np.stack([matrix.turned(values, back=True) for matrix, values in zip(reduced, coef, strict=True)])
        return items.span.swapaxes(1, 2) @ back if across else back

    def solutions() -> Iterator[Float[np.ndarray, "subset axis column"]]:
        (pttrs,) = get_lapack_funcs(("pttrs",), (right,))
        for a in range(len(alphas)):
            yield np.stack([pttrs(*row[a], values)[0] for row, values in zip(factors, turned, strict=True)])

    shape, levels = Y.shape[2:], level.reshape(-1, *Y.shape[2:])
    if len(alphas) * flat.shape[2] <= items.test.shape[1]:
        together = standardised(np.concatenate(list(solutions()), axis=2))
        space = Turned(test=items.test, centre=items.centre, inverse=items.inverse, _standardised=lambda coef: coef)
        coefs = iter(np.split(together, len(alphas), axis=2))
    else:
        products = items.span @ items.test.swapaxes(1, 2) if across else items.test.swapaxes(1, 2)
        test = np.stack([matrix.turned(values).T for matrix, values in zip(reduced, products, strict=True)])
        space = Turned(test=test, centre=items.centre, inverse=items.inverse, _standardised=standardised)
        coefs = solutions()
    return space, ((coef.reshape(*coef.shape[:2], *shape), levels) for coef in coefs)
