"""One head's attention over one picture."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from deixis.activations.errors import RunError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.benchmarks import Item


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The mean weight of a role's queries on every token of one picture."""

    model: str
    site: str
    item: "Item"
    layer: int
    head: int | None
    """None for the mean over heads."""
    query: str
    picture: int
    weights: Float[np.ndarray, " token"]
    boxes: Float[np.ndarray, "token 4"]
    marked: Bool[np.ndarray, " token"]

    def to_frame(self) -> "pd.DataFrame":
        """One row per image token: ``model item site layer head query picture left top right bottom object weight``."""
        import pandas as pd

        frame = pd.DataFrame(self.boxes, columns=["left", "top", "right", "bottom"])
        first = {"model": self.model, "item": self.item.id, "site": self.site, "layer": self.layer, "head": self.head}
        for place, (name, value) in enumerate((first | {"query": self.query, "picture": self.picture}).items()):
            frame.insert(place, name, value)
        return frame.assign(object=self.marked, weight=self.weights)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Over the picture, with the object's box; see :func:`deixis.analyses.plot_attention_map`."""
        from deixis.analyses.attention_plots import plot_attention_map

        boxes = [box for box in self.item.objects if box.image == self.picture]
        ax = plot_attention_map(self.to_frame(), self.item.images[self.picture].load(), boxes, ax=ax)
        head = "mean over heads" if self.head is None else f"head {self.head}"
        ax.set_title(f"{self.query}, layer {self.layer}, {head}")
        return ax


def attention_map(
    run: "Run",
    item: str | int,
    layer: int,
    head: int | None = None,
    *,
    query: str | None = None,
    picture: int = 0,
    site: str = "attention",
) -> AttentionMap:
    """Where on a picture a head's attention lay.

    Args:
        run: Recorded with attention maps.
        item: Its id, or its number in the run.
        layer: A recorded layer.
        head: None for the mean over the layer's heads.
        query: Whose queries; None for the first that was recorded.
        picture: Which of the item's pictures, from 0.
        site: ``"attention"`` or ``"vision_attention"``.

    Raises:
        RunError: There is no such item, layer, head or picture, or no map was kept.
    """
    record = run.attention(site)
    query = record.queries[0] if query is None else query
    items = list(run.items)
    ids = [one.id for one in items]
    number = ids.index(item) if isinstance(item, str) and item in ids else item
    if not isinstance(number, int) or not 0 <= number < len(items):
        raise RunError(f"item={item!r} is not in this run, which has {len(items)} items, such as {ids[0]!r}.")
    if layer not in record.layers:
        raise RunError(f"layer={layer} was not recorded at {site}; this run holds: {', '.join(map(str, record.layers))}.")
    mine = record.tokens.of(number)
    shown = record.tokens.pictures[mine] == picture
    if not shown.any():
        raise RunError(f"item {ids[number]!r} has no picture {picture}; it has {len(items[number].images)}.")
    weights = record.maps(query)[mine, record.layers.index(layer)][shown].astype(float)
    heads = np.flatnonzero(np.isfinite(weights).all(axis=0))
    if not len(heads) or (head is not None and head not in heads):
        has = f"the heads 0 to {heads[-1]}" if len(heads) else "no softmax attention, or did not run"
        raise RunError(f"head={head} is not at layer {layer}, which has {has}.")
    return AttentionMap(
        model=record.model,
        site=site,
        item=items[number],
        layer=layer,
        head=head,
        query=query,
        picture=picture,
        weights=weights[:, heads].mean(axis=1) if head is None else weights[:, head],
        boxes=record.tokens.boxes[mine][shown],
        marked=record.tokens.marked[mine][shown],
    )
