"""Directions to steer along: from a probe of a target, or between two groups of items."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from deixis.analyses.probe_data import choose_items, probe_data
from deixis.hooks.direction import Direction
from deixis.probes import RidgeProbe

if TYPE_CHECKING:
    from deixis.activations import Run

ALONG = ("pattern", "weights")
PENALTIES = tuple(10.0**power for power in range(-3, 6))
"""Times the number of items: features are standardised."""
_FOLDS = 5


def probe_direction(
    run: "Run",
    target: str,
    *,
    layer: int,
    role: str = "answer",
    site: str = "resid",
    along: str = "pattern",
    task: str | None = None,
    language: str | None = None,
) -> Direction:
    """The direction along which a ridge probe's reading of a target grows by one unit.

    Both kinds move the reading by exactly one unit. ``weights`` is the shortest such step, w / |w|^2; it may lead where no
    activation lies. ``pattern`` is the way in which activations really change with the reading, cov(x, w x) / var(w x)
    (Haufe et al. 2014, eq. 6).

    Args:
        run: Of the model that is to be steered.
        target: A numeric target of its items, such as ``distance_m``.
        layer: A recorded layer.
        role: At which token positions; the same vector is added to each of its tokens.
        site: A recorded site.
        along: ``pattern`` or ``weights``.
        task: Of the items; None for ``demonstrative`` where there are several.
        language: Of the items; None for all.

    Raises:
        ValueError: ``along`` is neither; the run does not hold what was asked for.
        DirectionError: No linear probe finds the target: on scenes that it has not seen its R2 is not above 0.
    """
    from deixis.hooks.errors import DirectionError

    if along not in ALONG:
        raise ValueError(f"along={along!r} is not one of: {', '.join(map(repr, ALONG))}.")
    chosen = choose_items(run, target, groups="scene", types="figure", condition="real", task=task)
    data = probe_data(run, chosen, site=site, layer=layer, role=role, language=language)
    mean, scale = data.X.mean(axis=0), data.X.std(axis=0)
    scale = np.where(scale > 1e-6 * np.abs(data.X).max(), scale, np.inf)
    features = (data.X - mean) / scale
    _, groups = np.unique(np.asarray(data.groups), return_inverse=True)
    penalty, score = _penalty(features, data.target, groups)
    if not score > 0:
        raise DirectionError(
            f"no linear probe finds {target} at {site} {layer}, role {role!r} (R2 {score:.2f} on unseen scenes), so there is no "
            "direction; choose another layer or role."
        )
    weights = RidgeProbe(alpha=penalty).fit(features, data.target).coef_ / scale
    if along == "weights":
        vector = weights / (weights @ weights)
    else:
        reading = (data.X - mean) @ weights
        vector = (data.X - mean).T @ reading / (reading @ reading)
    return _direction(run, vector, mean, target, site, layer, role)


def contrast_direction(
    run: "Run", group: str, first: str, second: str, *, layer: int, role: str = "answer", site: str = "resid"
) -> Direction:
    """The difference of two groups' means, such as of red and blue figures: a direction that another target has no part in.

    Raises:
        ValueError: The run's real items have no such group or value.
    """
    items = list(run.items)
    known = sorted({item.groups[group] for item in items if group in item.groups})
    for value in (first, second):
        if value not in known:
            raise ValueError(f"{value!r} is no {group} of these items; there are: {', '.join(map(repr, known)) or 'none'}.")
    rows = np.asarray(run.activations(site, layer, role), dtype=np.float64)
    usable = [n for n, item in enumerate(items) if item.condition == "real" and np.isfinite(rows[n]).all()]
    means = {v: rows[[n for n in usable if items[n].groups.get(group) == v]].mean(axis=0) for v in (first, second)}
    name = f"{group}: {second} to {first}"
    return _direction(run, means[first] - means[second], rows[usable].mean(axis=0), name, site, layer, role)


def _direction(
    run: "Run",
    vector: Float[np.ndarray, " width"],
    mean: Float[np.ndarray, " width"],
    target: str,
    site: str,
    layer: int,
    role: str,
) -> Direction:
    info: dict[str, Any] = dict(run.info)
    return Direction(
        target=target,
        unit="m" if target.endswith("_m") else "",
        vector=vector,
        mean=mean,
        site=site,
        layer=layer,
        role=role,
        model=str(info["model"]),
        revision=info.get("revision"),
        weights=info.get("weights"),
    )


def _penalty(
    X: Float[np.ndarray, "item feature"], y: Float[np.ndarray, " item"], groups: Int[np.ndarray, " item"]
) -> tuple[float, float]:
    """The penalty with the best R2 on scenes that were left out, and that R2."""
    fold = np.random.default_rng(0).permutation(groups.max() + 1)[groups] % _FOLDS
    scores = {}
    for penalty in PENALTIES:
        left = np.empty_like(y)
        for number in range(_FOLDS):
            train, test = fold != number, fold == number
            if test.any():
                left[test] = RidgeProbe(alpha=penalty * float(train.sum())).fit(X[train], y[train]).predict(X[test])
        scores[penalty] = 1 - float(((left - y) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    best = max(scores, key=lambda penalty: scores[penalty])
    return best * len(y), scores[best]
