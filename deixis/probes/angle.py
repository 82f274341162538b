"""Circular targets: headings, rotations, hours."""

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from deixis.probes.checks import Setting, check_alpha
from deixis.probes.ridge import RidgeProbe
from deixis.probes.row_space import plain


class AngleProbe(RegressorMixin, BaseEstimator):
    """Ridge regression on cosine and sine of the target; the prediction is the angle of what the two say.

    An angle has no smallest value: 350 and 10 degrees are 20 apart, which regression on the number itself cannot know (Mardia and
    Jupp 2000, *Directional Statistics*, ch. 11).

    Args:
        alpha: Weight of the penalty, at least 0; see :class:`RidgeProbe`.
        period: Where the target begins again, in its own unit: 360 for degrees.

    Attributes:
        coef_: ``(2, feature)``: for the cosine, for the sine.
        intercept_: ``(2,)``.
    """

    def __init__(self, alpha: Setting = 1.0, period: Setting = 360.0) -> None:
        self.alpha = alpha
        self.period = period

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A target that is no angle is taken for one.
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> "AngleProbe":
        """Learn from ``X (item, feature)``, ``y (item,)`` in units of which ``period`` make a full turn; any turn will do.

        Raises:
            ValueError: ``alpha`` is negative; ``period`` is not above 0; ``X`` or ``y`` is not finite; their lengths differ.
        """
        check_alpha(self.alpha, zero=True)
        if not isinstance(self.period, (int, float)) or not 0 < self.period < np.inf:
            raise ValueError(f"period={self.period!r} must be a finite number above 0, such as 360 for degrees.")
        X, y = validate_data(self, plain(X), plain(y), y_numeric=True, dtype=np.float64)
        ridge = RidgeProbe(alpha=self.alpha).fit(X, self._point(y.astype(np.float64)))
        self.coef_, self.intercept_ = ridge.coef_, ridge.intercept_
        return self

    def predict(self, X: Any) -> Float[np.ndarray, " item"]:
        """Angles from 0 up to ``period``.

        Raises:
            sklearn.exceptions.NotFittedError: ``fit`` was not called.
        """
        cosine, sine = self.vector(X).T
        return np.arctan2(sine, cosine) / (2 * np.pi) * self.period % self.period

    def vector(self, X: Any) -> Float[np.ndarray, "item 2"]:
        """Decoded cosine and sine. The length tells how sure the direction is: it falls to 0 where nothing is known."""
        check_is_fitted(self)
        return validate_data(self, plain(X), reset=False, dtype=np.float64) @ self.coef_.T + self.intercept_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """One minus the predictions' over the mean direction's mean of ``1 - cos(error)``: 1 exact, 0 no better than one angle.

        It is what R2 is for numbers: ``1 - cos`` is half the squared distance on the circle, which the mean direction minimises.
        """
        turn = 2 * np.pi / self.period
        truth = np.asarray(plain(y), dtype=np.float64)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        mean = self._point(truth).T @ weight
        spread = weight.sum() - np.hypot(*mean)
        error = weight @ (1 - np.cos((self.predict(X) - truth) * turn))
        return float(1 - error / spread) if spread > 0 else float(error == 0)

    def _point(self, y: Float[np.ndarray, " item"]) -> Float[np.ndarray, "item 2"]:
        angle = y * (2 * np.pi / self.period)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
