"""Attention as a run keeps it.

A shard holds, item by item, ``attention/values`` (item layer head query statistic, float32) and, token by token over the items'
image tokens, ``attention/maps`` (token layer head query, float16: the mean weight on each). ``image_tokens/`` says how many
tokens each item has, and what each shows. ``peaks/`` and ``likeness/`` hold what sinks and rank collapse are seen by; see
:mod:`deixis.hooks.spread`. The vision tower's attention lies under ``vision_attention/`` in the same way.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from deixis.activations.errors import RunError
from deixis.activations.shards import offsets_of
from deixis.hooks.attention_stats import STATISTICS

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations.run import Run


@dataclass(frozen=True, eq=False)
class ImageTokenTable:
    """The image tokens of all items, end to end."""

    counts: Int[np.ndarray, " item"]
    boxes: Float[np.ndarray, "token 4"]
    """Left, top, right, bottom in the picture's original pixels; NaN where a token shows none."""
    pictures: Int[np.ndarray, " token"]
    """The picture within its item, from 0."""
    marked: Bool[np.ndarray, " token"]
    """Whether it shows part of an object's box."""

    @cached_property
    def offsets(self) -> Int[np.ndarray, " boundary"]:
        """Item i has the tokens ``offsets[i]`` to ``offsets[i + 1]``."""
        return offsets_of(self.counts)

    def of(self, item: int) -> slice:
        """The tokens of one item."""
        return slice(int(self.offsets[item]), int(self.offsets[item + 1]))

    @cached_property
    def owners(self) -> Int[np.ndarray, " token"]:
        """The item of each token."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


@dataclass(frozen=True, eq=False)
class PeakTable:
    """How far the largest activation of each token stands out in the residual stream.

    A layer is the stream entering that block, the last one what enters the final norm.
    phi is max |x| / rms(x); dim is where it lies.
    """

    phi: Float[np.ndarray, "token layer"]
    dim: Int[np.ndarray, "token layer"]
    bos_phi: Float[np.ndarray, "item layer"]
    bos_dim: Int[np.ndarray, "item layer"]
    vision_phi: Float[np.ndarray, " token"]
    """The largest phi among the rows of the vision tower that feed a token; NaN where the family has none."""
    width: int
    """Of the residual stream: phi is at most its square root."""
    vision_width: int
    """Of the rows of the vision tower; 0 where the family has none."""


@dataclass(frozen=True, eq=False)
class AttentionRecord:
    """The attention statistics of one run at one site; :meth:`deixis.activations.Run.attention` reads it."""

    run: "Run"
    site: str
    layers: tuple[int, ...]
    queries: tuple[str, ...]

    @property
    def model(self) -> str:
        """The model's name."""
        return self.run.settings["model"]

    @cached_property
    def values(self) -> Float[np.ndarray, "item layer head query statistic"]:
        """All statistics, in the order of :data:`~deixis.hooks.attention_stats.STATISTICS`."""
        return self.run.array(f"{self.site}/values")

    def statistic(self, name: str, query: str = "answer") -> Float[np.ndarray, "item layer head"]:
        """One statistic of one role's queries.

        Raises:
            RunError: The role was not recorded, or there is no such statistic.
        """
        if name not in STATISTICS:
            raise RunError(f"statistic {name!r} is not one of: {', '.join(STATISTICS)}.")
        return self.values[:, :, :, self.place_of(query), STATISTICS.index(name)]

    def place_of(self, query: str) -> int:
        """Where a role stands among the recorded ones.

        Raises:
            RunError: It was not recorded.
        """
        if query not in self.queries:
            raise RunError(f"query={query!r} was not recorded at {self.site}; this run holds: {', '.join(self.queries)}.")
        return self.queries.index(query)

    @cached_property
    def tokens(self) -> ImageTokenTable:
        """What the image tokens show."""
        parts = [self.run.array(f"image_tokens/{name}") for name in ("count", "box", "picture", "object")]
        return ImageTokenTable(parts[0], parts[1], parts[2], parts[3].astype(bool))

    @property
    def has_maps(self) -> bool:
        """Whether the weights on single image tokens were kept."""
        return bool(self.run.settings["attention"]["maps"])

    def maps(self, query: str = "answer") -> Shaped[np.ndarray, "token layer head"]:
        """The mean weight of a role's queries on every image token, float16; see :attr:`tokens`.

        Raises:
            RunError: The run was recorded without maps, or without this role.
        """
        place = self.place_of(query)
        if not self.has_maps:
            raise RunError("this run was recorded without attention maps; record it with AttentionPlan(maps=True).")
        return self._maps[:, :, :, place]

    @cached_property
    def _maps(self) -> Shaped[np.ndarray, "token layer head query"]:
        return self.run.array(f"{self.site}/maps")

    @property
    def has_spread(self) -> bool:
        """Whether peaks and likeness were kept."""
        return bool(self.run.settings["attention"]["spread"])

    @cached_property
    def peaks(self) -> PeakTable:
        """What sinks are seen by.

        Raises:
            RunError: The run was recorded without.
        """
        self._check_spread()
        read = {name: self.run.array(f"peaks/{name}") for name in ("phi", "dim", "bos_phi", "bos_dim", "vision_phi")}
        widest = int(self.run.array("peaks/vision_width").max())
        return PeakTable(**read, width=int(self.run.settings["d_model"]), vision_width=widest)

    def likeness(self) -> tuple[Float[np.ndarray, "item layer"], Float[np.ndarray, "item layer"]]:
        """Mean pairwise cosine and effective rank of each item's image tokens entering each block.

        Raises:
            RunError: The run was recorded without.
        """
        self._check_spread()
        return self.run.array("likeness/cosine"), self.run.array("likeness/rank")

    def _check_spread(self) -> None:
        if not self.has_spread:
            raise RunError("this run was recorded without peaks and likeness; record it with AttentionPlan(spread=True).")

    def to_frame(self) -> "pd.DataFrame":
        """One row per item, layer, head and query, a column per statistic; heads that a layer lacks are left out."""
        import pandas as pd

        values = self.values
        items, layers, heads, queries, _ = values.shape
        index = pd.MultiIndex.from_product(
            [[item.id for item in self.run.items], list(self.layers), range(heads), list(self.queries)],
            names=["item", "layer", "head", "query"],
        )
        frame = pd.DataFrame(values.reshape(items * layers * heads * queries, -1), index=index, columns=list(STATISTICS))
        frame = frame.reset_index().dropna(subset=["max_weight"]).reset_index(drop=True)
        frame.insert(1, "site", self.site)
        frame.insert(0, "model", self.model)
        return frame


def attention_record(run: "Run", site: str = "attention") -> AttentionRecord:
    """The attention of a run.

    Raises:
        RunError: It was recorded without attention, or without this site.
    """
    settings: dict[str, Any] | bool | None = run.settings.get("attention")
    if not isinstance(settings, dict):
        raise RunError(
            "this run was recorded without attention; record it again, elsewhere, with attention=True "
            "(deixis record --attention)."
        )
    if site not in settings["sites"]:
        raise RunError(f"site={site!r} was not recorded; this run holds attention at: {', '.join(settings['sites'])}.")
    found = settings["sites"][site]
    return AttentionRecord(run, site, tuple(found["layers"]), tuple(found["queries"]))
