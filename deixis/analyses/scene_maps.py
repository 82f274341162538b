"""Maps of attention compared over scenes: how alike they are, and whether they follow the object."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

if TYPE_CHECKING:
    from deixis.activations.attention import AttentionRecord

Maps = Float[np.ndarray, "scene token column"]
"""A scene's mean weights on its image tokens; a column is one head of one layer."""


@dataclass(frozen=True, eq=False)
class SceneMaps:
    """The maps of the scenes whose pictures have the same grid of tokens."""

    scenes: tuple[str, ...]
    maps: Maps
    marked: Bool[np.ndarray, "scene token"]
    """Tokens that show part of the object."""

    @classmethod
    def of(cls, record: "AttentionRecord", items: Sequence[int], scenes: Sequence[str], query: str) -> "SceneMaps | None":
        """Average the maps of each scene's items; None where no two scenes have the same grid.

        Args:
            record: With maps.
            items: Numbers of the items that count.
            scenes: The scene of each of them.
            query: A role.
        """
        tokens = record.tokens
        keys = [tokens.boxes[tokens.of(n)].tobytes() for n in items]
        grid = max(dict.fromkeys(keys), key=keys.count, default=b"")
        chosen = [(n, scene) for n, scene, key in zip(items, scenes, keys, strict=True) if key == grid and tokens.counts[n] > 1]
        names = tuple(dict.fromkeys(scene for _, scene in chosen))
        if len(names) < 2:
            return None
        maps = record.maps(query)
        total = np.zeros((len(names), int(tokens.counts[chosen[0][0]]), maps.shape[1] * maps.shape[2]), np.float32)
        marked = np.zeros(total.shape[:2], bool)
        place = {name: k for k, name in enumerate(names)}
        for n, scene in chosen:
            total[place[scene]] += maps[tokens.of(n)].reshape(total.shape[1], -1).astype(np.float32)
            marked[place[scene]] |= tokens.marked[tokens.of(n)]
        sizes = np.bincount([place[scene] for _, scene in chosen], minlength=len(names))
        return cls(names, total / sizes[:, None, None], marked)

    def matched(self) -> tuple[Float[np.ndarray, "scene column"], Float[np.ndarray, "scene column"]]:
        """Weight on the object's tokens, and on the same tokens in the scenes whose object lies elsewhere.

        A head that looks at one place whatever is there has the same on both. NaN where every object overlaps this one.
        """
        own = np.einsum("st,stc->sc", self.marked.astype(np.float32), self.maps)
        elsewhere = ~(self.marked.astype(int) @ self.marked.T.astype(int) > 0)
        other = np.full_like(own, np.nan)
        for scene, apart in enumerate(elsewhere):
            if self.marked[scene].any() and apart.any():
                other[scene] = self.maps[apart][:, self.marked[scene]].sum(axis=1).mean(axis=0)
        own[~self.marked.any(axis=1)] = np.nan
        return own, other


FLAT = 2e-3
"""Standard deviation over mean of a map below which it counts as flat: float16 rounds by a quarter of that."""
FAINT = 1e-6
"""Mean weight below which float16 has too few digits to hold a map."""


def likeness(maps: Maps) -> Float[np.ndarray, "column scene scene"]:
    """Correlation, over tokens, between every two rows of maps, for each column; NaN where a map is flat."""
    columns = np.moveaxis(maps, 2, 0).astype(np.float64)
    mean = columns.mean(axis=2, keepdims=True)
    centred = columns - mean
    norm = np.linalg.norm(centred, axis=2, keepdims=True)
    shaped = (norm > FLAT * mean * maps.shape[1] ** 0.5) & (mean > FAINT)
    unit = np.divide(centred, norm, out=np.full_like(centred, np.nan), where=shaped)
    return unit @ np.swapaxes(unit, 1, 2)


def mean_of_pairs(alike: Float[np.ndarray, "scene scene"], times: Float[np.ndarray, "draw scene"]) -> Float[np.ndarray, " draw"]:
    """Mean over pairs of different scenes when each scene is taken so many times; copies of one scene make no pair."""
    n = times.sum(axis=1)
    own = np.diagonal(alike)
    total = np.einsum("ds,st,dt->d", times, alike, times) - (times**2) @ own
    return total / (n**2 - (times**2).sum(axis=1))


def shuffled_pairs(maps: Float[np.ndarray, "scene token"], draws: int, rng: np.random.Generator) -> Float[np.ndarray, " draw"]:
    """Mean correlation over pairs of scenes when every map's tokens are shuffled: what maps so uneven share by chance."""
    centred = maps - maps.mean(axis=1, keepdims=True)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    found = np.empty(draws)
    n = len(maps)
    for draw in range(draws):
        total = rng.permuted(unit, axis=1).sum(axis=0)
        found[draw] = (total @ total - n) / (n * (n - 1))
    return found


def follows_picture(
    ours: Float[np.ndarray, "scene token column"],
    theirs: Float[np.ndarray, "scene token column"],
    draws: int,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, " column"], Float[np.ndarray, " column"]]:
    """Whether maps have to do with their picture: two maps of one picture, against maps of two pictures.

    ``ours`` and ``theirs`` are maps of the same scenes under different questions. The gain is the mean correlation of true pairs
    less that of all others; under the null, in which a map has nothing to do with its picture, the pairs can be shuffled. A gain
    below zero is a head that looks at one picture in opposite ways under the two questions: the test has two sides.

    Returns:
        The gain of each column and its permutation p-value; NaN where maps are flat.
    """
    n, columns = len(ours), ours.shape[2]
    orders = np.array([rng.permutation(n) for _ in range(draws)])
    gain, p_value = np.full(columns, np.nan), np.full(columns, np.nan)
    for column in range(columns):
        alike = likeness(np.concatenate([ours[:, :, [column]], theirs[:, :, [column]]]))[0, :n, n:]
        if not np.isfinite(alike).all():
            continue
        true = np.diagonal(alike).mean()
        gain[column] = true - (alike.sum() - n * true) / (n * (n - 1))
        shuffled = alike[np.arange(n), orders].mean(axis=1) - alike.mean()
        p_value[column] = ((np.abs(shuffled) >= abs(true - alike.mean()) - 1e-12).sum() + 1) / (draws + 1)
    return gain, p_value
