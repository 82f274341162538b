"""Which frame the answers follow: the anchors', as the question asks, or the picture's own left, right, up and down.

In a layout question of the direction Space2Num the options name two places for the target. Two readers of the picture each take
one of them for the more likely:

- the *anchor* reader knows where the target is in the anchors' frame, and takes the right place;
- the *image* reader lays the picture over the map without turning it: right in the picture is x, up is y, the middle of the first
  anchor's box lies where the map has it, and the scale is such that the anchors' middles are as far apart as on the map. It takes
  the nearer of the two places. So reasons a model that writes "on the left of the picture, so its x is smaller" (SpaceNum,
  arXiv 2605.23898, section 3.3).

The model's log-odds between the two places are regressed on the sides that the two readers take. The frame lies at any angle to
the camera, so that the two sides are nearly independent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from deixis.analyses.behaviour_scores import rng_of
from deixis.analyses.distributions import interval, option_table, scene_of
from deixis.analyses.frames_plot import plot_answer_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.benchmarks import Item

READERS = ("anchor", "image")
RESULTS = ("anchor frame", "image frame", "both", "neither", "undecided")
LEAST = 0.2
"""Weight, in nats of log-odds, below which a reader's side counts for nothing: it moves an even choice to 45 or 55 percent."""
COLUMNS = (
    *("model", "items", "frame", "weight", "low", "high", "followed", "agreement", "agreement_low", "agreement_high"),
    *("correlation", "least", "result", "n_items", "n_scenes"),
)
EVIDENCE_COLUMNS = ("item", "scene", "map", "scale", "log_odds", "corrected", "anchor", "image")
ALL = "all"
_AXES = {"1D": 1, "2D": 2, "3D": 2}
"""Coordinates in which the two places are compared; height is no place, everything stands on the ground."""


@dataclass(frozen=True, kw_only=True)
class AnswerFrame:
    """Which frame a model's answers to layout questions follow, with the evidence."""

    model: str
    _rows: "pd.DataFrame"
    _evidence: "pd.DataFrame"

    def __repr__(self) -> str:
        return f"AnswerFrame({self.model!r}: {self.result}; .to_frame(), .evidence(), .plot())"

    @property
    def result(self) -> str:
        """Over all items: one of :data:`RESULTS`."""
        return str(self._rows["result"].iloc[0])

    def to_frame(self) -> "pd.DataFrame":
        """Two rows, ``anchor`` and ``image``, over all items and again for each map and each scale; the columns are ``COLUMNS``.

        ``weight``: nats of log-odds by which the reader's side moves the choice, the other reader's held fixed; ``low, high``
        95 % over scenes. ``followed``: ``yes`` if the interval lies above 0 and reaches :data:`LEAST`; ``no`` if it lies below
        :data:`LEAST` (``against`` if it also lies below its negative); else ``open``. ``agreement``: how often the model's choice
        is the reader's side where the two readers differ. ``correlation`` of the two readers' sides. ``result``: the frames that
        are followed, ``neither`` if both are not, ``undecided`` if none is followed and one is open.
        """
        return self._rows.copy()

    def evidence(self) -> "pd.DataFrame":
        """One row per item that counts.

        ``log_odds`` of the place with the larger x over the other, ``corrected`` for the letters' mean logits, and the side that
        each reader takes (1 the larger x, -1 the other).
        """
        return self._evidence.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`deixis.analyses.frames_plot.plot_answer_frame`."""
        return plot_answer_frame(self.to_frame(), ax)


def answer_frame(
    run: "Run",
    *,
    condition: str = "real",
    where: Mapping[str, str] | None = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> AnswerFrame:
    """Decide which coordinate frame a model's answers to layout questions follow.

    For item i let P and Q be the two places among its options, P the one with the larger x; an option's place is the middle of
    its box on the ground. With the option logits ``l``, of which each letter's mean over all items with as many options is taken
    off, the log-odds are ``y = log(sum over P's options of exp l) - log(sum over Q's)``. A reader that believes the target at
    ``e`` takes the side ``s = sign((e - (P + Q) / 2) . (P - Q))``. Least squares give ``y = a + w_anchor s_anchor + w_image
    s_image``; the intercept is the model's preference for large numbers. Maps of one dimension compare x alone, and count only
    where the position alone is wrong: there the size says nothing.

    Args:
        run: With items of ``dx.spacenum("layout", directions=("space2num",))``.
        condition: Of the items.
        where: Further groups and the value that an item must have in each.
        n_boot: Bootstrap draws of the scenes.
        seed: Of these.

    Raises:
        ValueError: The run holds no such items, or their boxes were not kept; a logit is not finite; fewer than three scenes.
    """
    import pandas as pd

    wanted = {
        item.id: item
        for item in run.items
        if item.task == "layout-space2num"
        and item.condition == condition
        and all(item.groups.get(name) == value for name, value in (where or {}).items())
    }
    evidence = pd.DataFrame(list(_evidence(run, wanted)), columns=list(EVIDENCE_COLUMNS))
    if evidence["scene"].nunique() < _FEWEST:
        raise ValueError(
            f"the run holds {evidence['scene'].nunique()} scenes of layout-space2num items with boxes in the condition "
            f"{condition!r}; at least {_FEWEST} are needed: record dx.spacenum('layout', directions=('space2num',))."
        )
    model = str(run.info["model"])
    rows = [
        {"model": model, "items": name} | row
        for name, part in _parts(evidence)
        for row in _weights(part, n_boot, rng_of(seed, "frames", name))
    ]
    return AnswerFrame(model=model, _rows=pd.DataFrame(rows, columns=list(COLUMNS)), _evidence=evidence)


_FEWEST = 3


def _parts(evidence: "pd.DataFrame") -> "Iterator[tuple[str, pd.DataFrame]]":
    yield ALL, evidence
    for column in ("map", "scale"):
        for name, part in evidence.groupby(column, sort=False):
            if len(part) < len(evidence) and part["scene"].nunique() >= _FEWEST:
                yield str(name), part


def _evidence(run: "Run", wanted: "Mapping[str, Item]") -> Iterator[tuple[Any, ...]]:
    options = option_table(run)
    options = options[options["item"].isin(wanted)]
    size = options.groupby("item")["option"].transform("size")
    centred = options["logit"] - options.groupby([size, "option"])["logit"].transform("mean")
    for name, part in options.assign(centred=centred).groupby("item", sort=False):
        item = wanted[str(name)]
        sides = readers_sides(item)
        if sides is None:
            continue
        upper = np.array(sides.upper)
        raw, corrected = (_log_odds(part[column].to_numpy(float), upper) for column in ("logit", "centred"))
        yield item.id, scene_of(item), item.groups["map"], item.groups["scale"], raw, corrected, sides.anchor, sides.image


def _log_odds(logits: Float[np.ndarray, " option"], upper: np.ndarray) -> float:
    return float(np.logaddexp.reduce(logits[upper]) - np.logaddexp.reduce(logits[~upper]))


@dataclass(frozen=True)
class Sides:
    """What the two readers make of an item."""

    upper: tuple[bool, ...]
    """Of each option, in the order of the letters: whether it names the place with the larger x."""
    anchor: float
    image: float


def readers_sides(item: "Item") -> Sides | None:
    """The two places among an item's options, and the side that each reader takes: 1 the larger x, -1 the other.

    Returns:
        None where the options differ in more or less than two places of all sizes, or the picture doesn't show the anchors.
    """
    placements = item.facts.get("placements", ())
    kinds = [placement["kind"] for placement in placements]
    if sorted(kinds) not in (["correct", "position"], sorted(("correct", "position", "size", "both"))):
        return None
    axes = _AXES[item.groups["map"]]
    places = np.array([_middle(placement, "target")[:axes] for placement in placements])
    right = places[kinds.index("correct")]
    wrong = places[kinds.index("position")]
    upper, lower = (right, wrong) if right[0] > wrong[0] else (wrong, right)
    read = _as_the_picture_lies(item, placements[kinds.index("correct")])
    if read is None or upper[0] == lower[0]:
        return None
    return Sides(
        upper=tuple(bool(np.linalg.norm(place - upper) < np.linalg.norm(place - lower)) for place in places),
        anchor=1.0 if right[0] > wrong[0] else -1.0,
        image=float(np.sign((read[:axes] - (upper + lower) / 2) @ (upper - lower))),
    )


def _middle(placement: Mapping[str, Any], role: str) -> Float[np.ndarray, " xyz"]:
    """Of an object's box in the anchors' frame."""
    box = next(thing["box"] for thing in placement["objects"] if thing["role"] == role)
    return np.asarray(box, float).mean(axis=0)


def _as_the_picture_lies(item: "Item", placement: Mapping[str, Any]) -> Float[np.ndarray, " xy"] | None:
    """Where the image reader takes the target to be, in the map's metres."""
    boxes = {box.name: box for box in item.objects if box.image == 0}
    if not {"anchor_a", "anchor_b", "target"} <= set(boxes):
        return None
    seen = {name: np.array([box.left + box.right, -(box.top + box.bottom)]) / 2 for name, box in boxes.items()}
    first, second = (_middle(placement, role)[:2] for role in ("anchor_a", "anchor_b"))
    apart = np.linalg.norm(seen["anchor_b"] - seen["anchor_a"])
    if apart == 0:
        return None
    return first + (seen["target"] - seen["anchor_a"]) * np.linalg.norm(second - first) / apart


def _weights(part: "pd.DataFrame", n_boot: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """The row of each reader."""
    sides = part[list(READERS)].to_numpy(float)
    scenes, index = np.unique(part["scene"].to_numpy(str), return_inverse=True)
    design = np.column_stack([np.ones(len(part)), sides])
    times = rng.multinomial(len(scenes), np.full(len(scenes), 1 / len(scenes)), size=n_boot)
    weights = _least_squares(design, part["corrected"].to_numpy(float), index, times)
    whole = _least_squares(design, part["corrected"].to_numpy(float), index, np.ones((1, len(scenes))))[0]
    apart = sides[:, 0] != sides[:, 1]
    chosen = np.sign(part["corrected"].to_numpy(float))
    varied = (sides.std(axis=0) > 0).all()
    shared = {
        "correlation": float(np.corrcoef(sides.T)[0, 1]) if varied else float("nan"),
        "least": LEAST,
        "n_items": len(part),
        "n_scenes": len(scenes),
    }
    rows = []
    for number, reader in enumerate(READERS):
        low, high = interval(weights[:, 1 + number], float(whole[1 + number]))
        agrees = ((chosen == sides[:, number]) + 0.5 * (chosen == 0)).astype(float)
        agreement = float(agrees[apart].mean()) if apart.any() else float("nan")
        drawn = _shares(agrees, apart, index, times)
        span = dict(zip(("agreement_low", "agreement_high"), interval(drawn, agreement), strict=True))
        row = {"frame": reader, "weight": float(whole[1 + number]), "low": low, "high": high, "agreement": agreement}
        rows.append(shared | row | span | {"followed": followed(low, high)})
    return [row | {"result": result_of([row["followed"] for row in rows])} for row in rows]


def _least_squares(
    design: Float[np.ndarray, "item column"],
    values: Float[np.ndarray, " item"],
    scene: np.ndarray,
    times: np.ndarray,
) -> Float[np.ndarray, "draw column"]:
    """Weights when each scene is taken so many times: the normal equations, summed scene by scene."""
    n, columns = times.shape[1], design.shape[1]
    gram, moment = np.zeros((n, columns, columns)), np.zeros((n, columns))
    np.add.at(gram, scene, design[:, :, None] * design[:, None, :])
    np.add.at(moment, scene, design * values[:, None])
    grams = np.tensordot(times, gram, axes=1)
    # A draw in which the readers agree everywhere gives the pair's shortest solution.
    return (np.linalg.pinv(grams, hermitian=True) @ (times @ moment)[:, :, None])[:, :, 0]


def _shares(
    agrees: Float[np.ndarray, " item"], counted: np.ndarray, scene: np.ndarray, times: np.ndarray
) -> Float[np.ndarray, " draw"]:
    n = times.shape[1]
    hits = times @ np.bincount(scene, agrees * counted, minlength=n)
    size = times @ np.bincount(scene, counted.astype(float), minlength=n)
    return np.divide(hits, size, out=np.full(len(times), np.nan), where=size > 0)


def followed(low: float, high: float) -> str:
    """Whether a weight with this interval counts: ``yes``, ``no``, ``against`` or ``open``."""
    if low > 0 and high >= LEAST:
        return "yes"
    if high < LEAST:
        return "against" if high < 0 and low <= -LEAST else "no"
    return "open"


def result_of(followed: Sequence[str]) -> str:
    """What the two readers' weights mean together, the anchor reader's first."""
    anchor, image = (one == "yes" for one in followed)
    if anchor or image:
        return "both" if anchor and image else "anchor frame" if anchor else "image frame"
    return "undecided" if "open" in followed else "neither"
