"""The tuned lens (Belrose et al. 2023, arXiv 2303.08112): a translator for each layer, into what the last one holds.

Before the model's own norm and head each layer's vector h goes through h + A h + b. Here A and b are fitted to predict the vector
that enters the final norm, by ridge regression with the penalty chosen on scenes left out, and not by gradient steps on the KL
divergence: that has one solution, needs no learning rate, and works from a run's stored vectors. What counts, the KL to
the model's own final distribution, is reported on items that had no part in the fit, beside the plain lens's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from deixis.analyses.style import MUTED, SERIES, axes
from deixis.probes import RidgeProbe

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.benchmarks import Item
    from deixis.models import VLM

COLUMNS = ("model", "layer", "role", "lens", "kl", "low", "high", "n_items", "n_fitted")
LENS_COLUMNS = ("model", "item", "layer", "role", "option", "term", "logit", "prob", "plain_prob")
PENALTIES = tuple(10.0**power for power in range(-4, 3))
"""Times the number of fitted items; features are standardised."""


@dataclass(frozen=True)
class TunedLens:
    """Translators fitted on some scenes, and how well they read the others."""

    model: str
    role: str
    layers: tuple[int, ...]
    fitted: tuple[str, ...]
    """Scenes that the translators were fitted on."""
    matrix: Float[np.ndarray, "layer width width"]
    bias: Float[np.ndarray, "layer width"]
    """``translated = h + h @ matrix + bias``, float64."""
    _kl: "pd.DataFrame"
    _options: "pd.DataFrame"

    def __repr__(self) -> str:
        where = f"role {self.role}, layers {self.layers[0]} to {self.layers[-1]}"
        return f"TunedLens({self.model!r}, {where}; .to_frame(), .options(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per layer and lens (``tuned``, ``plain``): mean KL divergence in bits from the model's final distribution.

        KL(final || lens) over the whole vocabulary, over the items of scenes that had no part in the fit; ``low`` and
        ``high`` are 95 % bootstrap bounds over these scenes.
        """
        return self._kl.copy()

    def options(self) -> "pd.DataFrame":
        """One row per held-out item, layer and option: the tuned lens's logit and probability, and the plain lens's probability.

        Options as in :func:`deixis.logit_lens`, by their first tokens.
        """
        return self._options.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_tuned_lens`."""
        return plot_tuned_lens(self.to_frame(), ax)


def tuned_lens(
    run: "Run", vlm: "VLM", *, role: str = "answer", share: float = 0.5, n_boot: int = 1000, seed: int = 0
) -> TunedLens:
    """Fit a translator for every recorded layer on some of the scenes, and read the others through it.

    Args:
        run: Recorded with the site ``resid`` up to the final norm.
        vlm: The model of the run.
        role: A role of one token, such as ``answer``.
        share: Of the scenes, for the fit.
        n_boot: Bootstrap draws over the other scenes.
        seed: Of these, and of the choice of scenes.

    Raises:
        ValueError: The last layer was not recorded, another model, too few scenes, or a role of several tokens.
    """
    from deixis.activations.settings import weights_fingerprint

    if run.info.get("weights") not in (None, weights_fingerprint(vlm.model)):
        raise ValueError(f"the run was recorded with other weights than those of {vlm.name}; pass the model that was recorded.")
    layers = tuple(run.layers("resid"))
    if vlm.n_layers not in layers:
        raise ValueError(f"resid {vlm.n_layers}, the input of the final norm, was not recorded; record with layers='all'.")
    if role not in ("answer", "bos"):
        raise ValueError(f"role={role!r} holds a mean over tokens, which no model computes from; use 'answer'.")
    items = [item for item in run.items if item.condition == "real"]
    places = [number for number, item in enumerate(run.items) if item.condition == "real"]
    scenes = np.array([item.groups.get("scene", item.id) for item in items])
    distinct = np.random.default_rng((seed, 7)).permutation(np.unique(scenes))
    cut = round(share * len(distinct))
    if not 5 <= cut <= len(distinct) - 2:
        raise ValueError(f"{len(distinct)} scenes and share={share} leave {cut} for the fit; at least 5, and 2 for the test.")
    train = np.isin(scenes, distinct[:cut])
    vectors = np.stack([np.asarray(run.resid(layer, role), np.float64)[places] for layer in layers])
    last = vectors[layers.index(vlm.n_layers)]
    solved = [_translator(layer[train], last[train], scenes[train], seed) for layer in vectors]
    matrix, bias = np.stack([m for m, _ in solved]), np.stack([b for _, b in solved])
    tuned = vectors + np.einsum("lnd,lde->lne", vectors, matrix) + bias[:, None]
    test = ~train
    kl = _divergences(vlm, {"tuned": tuned[:, test], "plain": vectors[:, test]}, last[test])
    held = [item for item, chosen in zip(items, test, strict=True) if chosen]
    frame = _kl_frame(vlm.name, role, layers, kl, scenes[test], int(train.sum()), n_boot, seed)
    options = _option_frame(vlm, role, layers, tuned[:, test], vectors[:, test], held)
    return TunedLens(vlm.name, role, layers, tuple(sorted(distinct[:cut])), matrix, bias, frame, options)


def _translator(
    X: Float[np.ndarray, "item width"], Y: Float[np.ndarray, "item width"], scenes: np.ndarray, seed: int
) -> tuple[Float[np.ndarray, "width width"], Float[np.ndarray, " width"]]:
    """Ridge regression of what is still missing, Y - X, on X; at the last layer there is nothing to add."""
    scale = X.std(axis=0)
    scale = np.where(scale > 1e-9 * max(np.abs(X).max(), 1e-300), scale, np.inf)
    features, wanted = X / scale, Y - X
    _, index = np.unique(scenes, return_inverse=True)
    fold = np.random.default_rng((seed, 8)).permutation(index.max() + 1)[index] % 5
    errors = []
    for penalty in PENALTIES:
        left = 0.0
        for number in range(5):
            rest, out = fold != number, fold == number
            probe = RidgeProbe(alpha=penalty * float(rest.sum())).fit(features[rest], wanted[rest])
            left += float(((probe.predict(features[out]) - wanted[out]) ** 2).sum())
        errors.append(left)
    probe = RidgeProbe(alpha=PENALTIES[int(np.argmin(errors))] * len(X)).fit(features, wanted)
    return (probe.coef_ / scale).T, np.asarray(probe.intercept_)


def _divergences(
    vlm: "VLM", read: dict[str, Float[np.ndarray, "layer item width"]], last: Float[np.ndarray, "item width"]
) -> dict[str, Float[np.ndarray, "layer item"]]:
    """KL(final || lens) in bits, over the whole vocabulary."""
    import torch

    def log_probs(rows: Float[np.ndarray, "item width"]) -> torch.Tensor:
        return vlm.logits(torch.from_numpy(np.ascontiguousarray(rows)).float()).double().cpu().log_softmax(dim=-1)

    final = log_probs(last)
    return {
        name: np.stack([((final.exp() * (final - log_probs(layer))).sum(dim=-1) / np.log(2)).numpy() for layer in vectors])
        for name, vectors in read.items()
    }


def _kl_frame(
    model: str,
    role: str,
    layers: Sequence[int],
    kl: dict[str, Float[np.ndarray, "layer item"]],
    scenes: np.ndarray,
    n_fitted: int,
    n_boot: int,
    seed: int,
) -> "pd.DataFrame":
    import pandas as pd

    distinct, index = np.unique(scenes, return_inverse=True)
    even = np.full(len(distinct), 1 / len(distinct))
    times = np.random.default_rng((seed, 9)).multinomial(len(distinct), even, size=n_boot)[:, index]
    times = times / times.sum(axis=1, keepdims=True)
    rows = []
    for name, values in kl.items():
        low, high = np.quantile(values @ times.T, [0.025, 0.975], axis=1)
        rows += [
            (model, layer, role, name, float(values[k].mean()), float(low[k]), float(high[k]), values.shape[1], n_fitted)
            for k, layer in enumerate(layers)
        ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _option_frame(
    vlm: "VLM",
    role: str,
    layers: Sequence[int],
    tuned: Float[np.ndarray, "layer item width"],
    plain: Float[np.ndarray, "layer item width"],
    items: "Sequence[Item]",
) -> "pd.DataFrame":
    import pandas as pd

    from deixis.analyses.distributions import softmax_within
    from deixis.analyses.logit_lens import ChosenOptions

    chosen = ChosenOptions.of(items, vlm)
    parts = []
    for k, layer in enumerate(layers):
        logits, others = (chosen.logits(rows[k], vlm) for rows in (tuned, plain))
        parts.append(
            pd.DataFrame(
                {
                    "model": vlm.name,
                    "item": [chosen.items[n] for n in chosen.owner],
                    "layer": layer,
                    "role": role,
                    "option": chosen.labels,
                    "term": chosen.terms,
                    "logit": logits,
                    "prob": softmax_within(chosen.owner, logits),
                    "plain_prob": softmax_within(chosen.owner, others),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)[list(LENS_COLUMNS)]


def plot_tuned_lens(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """KL divergence from the final distribution over layers, of the tuned and of the plain lens, with their intervals.

    Args:
        frame: From :meth:`TunedLens.to_frame`, of one model.
        ax: Where to draw; None makes a figure.
    """
    from matplotlib.ticker import MaxNLocator

    ax = axes(ax)
    for name, colour in (("tuned", SERIES[0]), ("plain", MUTED)):
        rows = frame[frame["lens"] == name].sort_values("layer")
        ax.plot(rows["layer"], rows["kl"], color=colour, marker="o", markersize=4, label=f"{name} lens")
        ax.fill_between(rows["layer"], rows["low"], rows["high"], color=colour, alpha=0.18, linewidth=0)
    ax.set_xlabel("layer (residual stream entering block)")
    ax.set_ylabel("KL from the final distribution (bits)")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax
