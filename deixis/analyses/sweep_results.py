"""What a layer sweep returns: the probe of every layer, and the layer that other folds chose."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from deixis.analyses.sweep_plot import plot_layer_sweep
from deixis.probes import ProbeScores
from deixis.probes.scores import ERRORS, SCORES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# fmt: off
COLUMNS = (
    "model", "target", "role", "site", "layer", "language", "condition", "metric", "score", "low", "high", "chance", "control",
    "selectivity", "p_value", "nuisance", "residual", "untrained", "blank", "bits", "n_items", "n_groups",
)
# fmt: on
"""Of the frame, in order."""


def among(name: str, value: str | None, options: Sequence[str]) -> str:
    """``value``, if it is one of the options; else an error that lists them."""
    if value not in options or value is None:
        raise ValueError(f"{name}={value!r} is not one of: {', '.join(map(repr, options))}.")
    return value


@dataclass(frozen=True, kw_only=True)
class LayerScores:
    """The probe of one layer."""

    layer: int
    language: str
    """``all`` where languages are pooled."""
    scores: ProbeScores
    p_value: Float[np.ndarray, " metric"]
    """Against the best of all layers of the sweep in each permutation; NaN if none were run."""
    untrained: Float[np.ndarray, " metric"]
    """Score from a model of the same architecture with random weights; NaN without its run."""
    blank: Float[np.ndarray, " metric"]
    """Score from the same questions about a blank picture; NaN without such items."""
    n_missing: int
    """Items left out because they have no token of the role."""

    def to_frame(self) -> "pd.DataFrame":
        """A row per metric."""
        return self.scores.to_frame().assign(
            layer=self.layer, language=self.language, p_value=self.p_value, untrained=self.untrained, blank=self.blank
        )


@dataclass(frozen=True, kw_only=True)
class BestLayer:
    """The layer that holds a target best, and a score that the choice has not flattered."""

    model: str
    target: str
    role: str
    site: str
    language: str
    condition: str
    metric: str
    layer: int
    """Chosen by most folds; the earliest of several."""
    score: float
    """On each fold, of the layer that the other folds chose."""
    by_fold: tuple[int, ...]
    """The layer chosen for each fold."""

    def to_frame(self) -> "pd.DataFrame":
        """One row, first column ``model``; ``by_fold`` as text."""
        import pandas as pd

        return pd.DataFrame([vars(self) | {"by_fold": " ".join(map(str, self.by_fold))}])

    def __str__(self) -> str:
        chosen = ", ".join(map(str, self.by_fold))
        return (
            f"{self.model}: {self.target} is decoded best at {self.site} layer {self.layer} (role {self.role}, language "
            f"{self.language}): {self.metric} {self.score:.3f} on folds that had no part in the choice; folds chose {chosen}"
        )


@dataclass(frozen=True, kw_only=True)
class LayerSweep:
    """A probe's scores at every layer of one model."""

    model: str
    target: str
    role: str
    site: str
    condition: str
    cells: tuple[LayerScores, ...]
    """By language, then layer."""

    def __repr__(self) -> str:
        layers = [cell.layer for cell in self.cells]
        where = f"role {self.role}, {self.site} {min(layers)} to {max(layers)}"
        return f"LayerSweep({self.model!r}, {self.target}, {where}; .to_frame(), .best(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per language, layer and metric; the columns are ``COLUMNS``, those of controls that were not run NaN.

        ``p_value`` is corrected for the number of layers: in each permutation the best layer counts. ``bits`` is the same in the
        rows of all metrics; ``log2 K`` for K classes, 2.05 for values, is knowing nothing.
        ``selectivity`` is the score less the control, for errors the control less the score: positive is better. ``mae`` and its
        ``low``, ``high``, ``chance`` and ``control`` are in the target's unit.
        """
        import pandas as pd

        same = {"model": self.model, "target": self.target, "role": self.role, "site": self.site, "condition": self.condition}
        rows = [same | row for cell in self.cells for row in cell.to_frame().to_dict("records")]
        return pd.DataFrame(rows).reindex(columns=list(COLUMNS))

    def best(self, metric: str | None = None, language: str | None = None) -> BestLayer:
        """Choose the layer without the items it is scored on.

        For every fold, the layer with the best score on the other folds is chosen, by probes that saw nothing of that fold
        (neither for fitting nor for their penalty), and its predictions for the fold are kept; the score is that of all kept
        predictions. The best of many layers' scores would be too good by chance.

        Args:
            metric: None for ``balanced_accuracy`` or ``r2``.
            language: One of the sweep's; None for the only one.

        Raises:
            ValueError: No such metric or language, or several languages and none chosen.
        """
        spoken = tuple(dict.fromkeys(cell.language for cell in self.cells))
        language = among("language", spoken[0] if language is None and len(spoken) == 1 else language, spoken)
        cells = [cell for cell in self.cells if cell.language == language]
        metrics = cells[0].scores.metrics
        metric = among("metric", metric or metrics[0], metrics)
        inner = np.stack([cell.scores.inner[:, metrics.index(metric)] for cell in cells])
        chosen = (-inner if metric in ERRORS else inner).argmax(axis=0)
        kept = [(cells[best].scores, cells[best].scores.fold == fold) for fold, best in enumerate(chosen)]
        truth = np.concatenate([scores.truth[rows] for scores, rows in kept])
        predicted = np.concatenate([scores.predicted[rows] for scores, rows in kept])
        by_fold = tuple(cells[best].layer for best in chosen)
        return BestLayer(
            model=self.model,
            target=self.target,
            role=self.role,
            site=self.site,
            language=cells[0].language,
            condition=self.condition,
            metric=metric,
            layer=min(by_fold, key=lambda layer: (-Counter(by_fold)[layer], layer)),
            score=float(SCORES[metric](predicted, truth, np.ones(len(truth)))),
            by_fold=by_fold,
        )

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the first metric: ``plot_layer_sweep(self.to_frame(), ax)``."""
        return plot_layer_sweep(self.to_frame(), ax)
