"""What recording will take, by arithmetic: disk, forward FLOPs, hours; known before anything runs."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.activations.batching import AUTO_BATCH
from deixis.activations.recording import shard_items
from deixis.activations.shards import CHUNK_BYTES, counts_name
from deixis.activations.size import ModelSize, model_size
from deixis.benchmarks import Item, Items
from deixis.hooks import SITES, AttentionPlan, AttentionWatch, Watch
from deixis.hooks.attention_stats import STATISTICS
from deixis.hooks.choices import SINGLE_ROLES
from deixis.hooks.pooling import Positions
from deixis.models import VLM
from deixis.models.outline import is_outline

if TYPE_CHECKING:
    import pandas as pd

_PER_DATASET, _PER_GROUP = 650, 236
"""Bytes that an HDF5 file of this layout spends on each dataset beside its chunks, and on each group; measured, see the tests."""
_PER_CHUNK = 4 + 12
"""Its Fletcher-32 sum, and its place in the index."""


@dataclass(frozen=True)
class DiskPart:
    """What one kind of array takes on disk, over all shards."""

    what: str
    """Site and role, or what else a shard holds."""
    arrays: int
    """Arrays in each shard: for activations one a layer."""
    rows: float
    """Rows an item, on average over the sample."""
    row_bytes: int
    """Bytes of one row of one array."""
    bytes: float
    """Over all items, arrays and shards, with what the file format adds."""


@dataclass(frozen=True)
class Estimate:
    """What recording items from a model will take; :func:`estimate` makes it."""

    model: str
    n_items: int
    n_sampled: int
    """Items that were prepared to count tokens, spread over the set."""
    tokens_mean: float
    tokens_most: int
    """The longest prompt of the sample."""
    image_tokens_mean: float
    n_shards: int
    disk: tuple[DiskPart, ...]
    free_bytes: int
    """Where the run is to lie."""
    size: ModelSize
    flop_vision: float
    """Of the vision tower, over all items."""
    flop_prompt: float
    """Of the decoder over the prompts."""
    flop_answers: float
    """Of the decoder over the written answers, if each is as long as allowed: an upper bound."""
    tflops: float
    """The rate that ``hours`` is at, in 10^12 operations a second."""

    @property
    def bytes(self) -> float:
        """On disk, all shards together."""
        return sum(part.bytes for part in self.disk)

    @property
    def flop(self) -> float:
        """Floating-point operations of all forward passes; a multiplication and an addition are two."""
        return self.flop_vision + self.flop_prompt + self.flop_answers

    @property
    def hours(self) -> float:
        """On one device at :attr:`tflops`; n ranks take an n-th."""
        return self.flop / (self.tflops * 1e12) / 3600

    @property
    def fits(self) -> bool:
        """Whether the run has room on its disk."""
        return self.bytes < self.free_bytes

    def to_frame(self) -> "pd.DataFrame":
        """One row per kind of array: ``model what arrays rows row_bytes bytes``."""
        import pandas as pd

        names = [field.name for field in fields(DiskPart)]
        frame = pd.DataFrame([[getattr(part, name) for name in names] for part in self.disk], columns=pd.Index(names))
        frame.insert(0, "model", self.model)
        return frame


def estimate(
    vlm: VLM,
    items: Items,
    path: str | Path = ".",
    sites: Sequence[str] = ("resid",),
    layers: Sequence[int] | Mapping[str, Sequence[int] | str] | str = "all",
    roles: Sequence[str] = ("answer", "object", "image"),
    pool: str | None = "mean",
    attention: bool | Sequence[str] | AttentionPlan = False,
    answers: bool = True,
    batch_size: int | str = "auto",
    max_new_tokens: int = 16,
    sample: int = 32,
    tflops: float = 100.0,
    options: bool = True,
) -> Estimate:
    r"""Work out what :func:`deixis.record` with the same arguments will take.

    Tokens are counted by preparing ``sample`` items spread evenly over the set. For a decoder of L layers with N parameters in
    its blocks (of a mixture of experts those that a token meets) and attention of total width d, a prompt of T tokens costs
    2 N T + 2 L d T^2 operations (Kaplan et al. 2020, arXiv 2001.08361, equation 2.2), and 2 V D for the logits of its last
    position. The vision tower is taken the same way with 4 L d P^2 for P patches that all see each other; windows make it less.
    Padding, attention statistics and what is not multiplication of matrices are left out.

    Args:
        vlm: The model, or its :func:`~deixis.models.outline.outline`, which needs no weights.
        items: What to ask it.
        path: Where the run is to lie; its disk's free space is asked for.
        sites: See :func:`deixis.record`, as for all arguments down to ``max_new_tokens``.
        layers: The layers.
        roles: The token positions.
        pool: ``"mean"`` or None.
        attention: The attention statistics.
        answers: Whether answers are written.
        batch_size: Items a pass; it decides how many go into a shard.
        max_new_tokens: The longest answer, in tokens.
        sample: How many items to prepare.
        tflops: What the device does in practice, in 10^12 operations a second: some 40 % of its data sheet's number.
        options: Whether the options' logits are kept; without them, answers and attention, only the blocks up to the last watched
            layer count.

    Raises:
        ValueError: An argument is outside what it allows, or the width of a site in the vision tower is asked of an outline.
    """
    if not len(items):
        raise ValueError("there are no items to estimate; pass at least one.")
    if sample < 1 or not tflops > 0:
        raise ValueError(f"sample={sample} and tflops={tflops} must both be above 0.")
    watch = Watch(vlm, sites=sites, layers=layers, roles=roles, pool=pool)
    chosen = [items[int(at)] for at in np.unique(np.linspace(0, len(items) - 1, min(sample, len(items))).round())]
    counted = [_counted(vlm, watch, item) for item in chosen]
    tokens, patches = np.array([c["tokens"] for c in counted]), np.array([c["patches"] for c in counted])
    per_shard = shard_items(pool, batch_size)
    batch = min(AUTO_BATCH if batch_size == "auto" else int(batch_size), len(items))
    parts = [*_activations(vlm, watch, counted, chosen[0]), *_scores(chosen, answers, max_new_tokens, options)]
    counts = {counts_name(site, role) for site in watch.sites for role in watch.roles_at(site)}
    parts += [("counts", len(counts), 1.0, 4), ("batches", 1, 1 / batch, 4)]
    plan = AttentionPlan.of(attention)
    if plan is not None:
        parts += _attention(vlm, AttentionWatch(vlm, plan), float(np.mean([c["image"] for c in counted])))
    n_shards = -(-len(items) // per_shard)
    n_groups = len(watch.points) + len(watch.sites) + sum(SITES[site].vision for site in watch.sites)
    n_groups += 2 + options + answers + 4 * (plan is not None)  # the file's own, and that of the counts
    groups = DiskPart("groups", n_groups, 0.0, 0, float(n_groups * _PER_GROUP * n_shards))
    size, whole_pass = model_size(vlm), options or answers or plan is not None
    steps = max_new_tokens - 1 if answers else 0
    return Estimate(
        model=vlm.name,
        n_items=len(items),
        n_sampled=len(chosen),
        tokens_mean=float(tokens.mean()),
        tokens_most=int(tokens.max()),
        image_tokens_mean=float(np.mean([c["image"] for c in counted])),
        n_shards=n_shards,
        disk=(*(_on_disk(part, len(items), per_shard, batch) for part in parts), groups),
        free_bytes=shutil.disk_usage(_existing(Path(path))).free,
        size=size,
        flop_vision=len(items) * float(np.mean(size.of_patches(patches))),
        flop_prompt=len(items) * float(np.mean(size.of_prompt(tokens, None if whole_pass else _blocks_run(watch)))),
        flop_answers=len(items) * float(np.mean(size.of_answer(tokens, steps))),
        tflops=float(tflops),
    )


_Part = tuple[str, int, float, int]
"""What, arrays, rows an item, bytes a row."""


def _blocks_run(watch: Watch) -> int:
    """Decoder blocks that run before everything watched has been seen."""
    seen_by = (layer + (site != "resid") for site, layer in watch.points if not SITES[site].vision)
    return max(seen_by, default=0)


def _counted(vlm: VLM, watch: Watch, item: Item) -> dict[str, Any]:
    """Tokens and patches of one item, and how many rows each watched site and role has of it."""
    inputs = vlm.prepare([item])
    roles, layout = vlm.token_roles(inputs, [item]), vlm.layout(inputs, [item])
    masks = layout.token_roles([item])
    rows: dict[tuple[str, str], int] = {}
    for site in watch.sites:
        for role in watch.roles_at(site):
            if not SITES[site].vision:
                rows[site, role] = int(roles[role].sum()) if role in roles else 0
            elif role in masks:
                rows[site, role] = int(Positions.of_rows(layout.token_of_row(site), masks[role], layout.item, 1).counts[0])
            else:
                rows[site, role] = 0
    image = int(roles["image"].sum())
    try:
        SITES["vision"].layers(vlm)
        patches = len(layout.token_of_row("vision")) if item.images else 0
    except ValueError:  # a family without a tower
        patches = image
    return {"tokens": int(inputs["attention_mask"].sum()), "patches": patches, "image": image, "rows": rows}


def _activations(vlm: VLM, watch: Watch, counted: Sequence[Mapping[str, Any]], example: Item) -> Iterator[_Part]:
    width_of = _widths(vlm, watch, example)
    own = vlm.model.dtype.itemsize
    for site in watch.sites:
        for role in watch.roles_at(site):
            single = role in SINGLE_ROLES
            rows = 1.0 if watch.pool is not None or single else float(np.mean([c["rows"][site, role] for c in counted]))
            itemsize = own if watch.pool is None or single else 4
            yield f"{site}/{role}", len(watch.layers(site)), rows, width_of[site] * itemsize


def _widths(vlm: VLM, watch: Watch, example: Item) -> dict[str, int]:
    """The width of each watched site; those of the tower are seen in one pass."""
    found = {site: vlm.d_model for site in watch.sites if not SITES[site].vision}
    if "head" in found:
        found["head"] = max(getattr(vlm.out_proj_of(layer), "in_features", 0) for layer in watch.layers("head"))
    tower = [site for site in watch.sites if SITES[site].vision]
    if not tower:
        return found
    if is_outline(vlm):
        raise ValueError(f"sites holds {tower[0]}, whose width only a pass tells; estimate it with the loaded model.")
    import torch

    inputs = vlm.prepare([example])
    vlm.reset()
    with Watch(vlm, sites=tower, roles=("image",)) as seeing, torch.no_grad():
        seeing.expect(inputs, [example])
        vlm.model(**inputs)
        seen = seeing.read()
    vlm.reset()
    return found | {site: value.values.shape[1] for (site, _, _), value in seen.items()}


def _scores(chosen: Sequence[Item], answers: bool, max_new_tokens: int, options: bool) -> Iterator[_Part]:
    if options:
        yield "options", 1, float(np.mean([len(item.options) for item in chosen])), 4
        yield "options (per item)", 2, 1.0, 4
    if answers:
        # As if every answer were the longest option, written out; nobody knows before it is written.
        yield "answers", 1, float(np.mean([_answer_bytes(item, max_new_tokens) for item in chosen])), 1
        yield "answers (per item)", 1, 1.0, 4


def _answer_bytes(item: Item, max_new_tokens: int) -> int:
    longest = max(len(form.encode()) for option in item.options for form in option.forms)
    return min(longest, 4 * max_new_tokens)  # a sign of UTF-8 has at most 4 bytes


def _attention(vlm: VLM, watch: AttentionWatch, image_tokens: float) -> Iterator[_Part]:
    settings = watch.settings()
    heads = {"attention": vlm.n_heads}
    vision = getattr(vlm.model.config, "vision_config", None)
    heads["vision_attention"] = next(
        (n for key in ("num_heads", "num_attention_heads") if (n := getattr(vision, key, None))), vlm.n_heads
    )
    for site, found in settings["sites"].items():
        cells = len(found["layers"]) * heads[site] * len(found["queries"])
        yield f"{site}/values", 1, 1.0, cells * len(STATISTICS) * 4
        if settings["maps"]:
            yield f"{site}/maps", 1, image_tokens, cells * 2
    yield "image_tokens", 4, image_tokens, 6
    if settings["spread"]:
        yield "peaks", 2, image_tokens, (vlm.n_layers + 1) * 3
        yield "peaks and likeness (per item)", 5, 1.0, (vlm.n_layers + 1) * 4


def _on_disk(part: _Part, n_items: int, per_shard: int, batch: int) -> DiskPart:
    """A part over all shards, each array in chunks as :class:`~deixis.activations.shards.ShardWriter` lays them out."""
    what, arrays, rows, row_bytes = part

    def one(items: int) -> float:
        total = rows * items
        first = rows * min(batch, items)
        expected = max(items, -(-first * items // max(1, min(batch, items))))
        chunk = max(1.0, min(expected, CHUNK_BYTES // max(1, row_bytes)))
        return -(-total // chunk) * (chunk * row_bytes + _PER_CHUNK) + _PER_DATASET

    full, rest = divmod(n_items, per_shard)
    total = arrays * (full * one(per_shard) + (one(rest) if rest else 0.0))
    return DiskPart(what=what, arrays=arrays, rows=rows, row_bytes=row_bytes, bytes=float(total))


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    path = path.resolve()
    return next(place for place in (path, *path.parents) if place.exists())
