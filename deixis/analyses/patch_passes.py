"""The forward passes of a patch sweep: every site, layer and role of every pair, batch by batch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from deixis.activations.options import need_whole_strings, option_logits
from deixis.activations.passes import PromptPass
from deixis.analyses.patch_pairs import Pair
from deixis.analyses.run_edits import bare_pass
from deixis.hooks.batches import Batch, Where, laid_over
from deixis.hooks.edit import put_at
from deixis.hooks.edit_sites import read_step, site_layers, write_step
from deixis.hooks.errors import NoSuchSiteError
from deixis.hooks.resume import Prefix
from deixis.hooks.tracing import Step, Traced, run_steps
from deixis.models import VLM
from deixis.models.layout import PICTURE_ROLES
from deixis.models.sites import SITES

if TYPE_CHECKING:
    from deixis.benchmarks import Item


@dataclass(frozen=True)
class Cell:
    """Where a patch is made; ``layer`` None is the whole block of image tokens at every layer, the positive control."""

    site: str
    layer: int | None
    role: str


@dataclass(frozen=True)
class Patched:
    """Option logits of some pairs; options that a language lacks are NaN."""

    donor: Float[np.ndarray, "pair option"]
    receiver: Float[np.ndarray, "pair option"]
    edited: Float[np.ndarray, "cell pair option"]
    passes: int
    """Forward passes that were made, of one batch each."""


def cells_of(vlm: VLM, sites: Sequence[str], layers: Sequence[int] | str, roles: Sequence[str]) -> tuple[Cell, ...]:
    """Every cell of a sweep, the positive control last.

    Raises:
        NoSuchSiteError: No such site, or a layer that none of the sites has.
    """
    has = {site: site_layers(vlm, site) for site in sites}
    if not isinstance(layers, str):
        missing = [layer for layer in layers if not any(layer in found for found in has.values())]
        if missing or not len(layers):
            listed = "; ".join(f"{site} has {found[0]} to {found[-1]}" for site, found in has.items())
            raise NoSuchSiteError(f"layers={list(layers)} must be some of the model's: {listed}.")
        has = {site: [layer for layer in found if layer in layers] for site, found in has.items()}
    elif layers != "all":
        raise NoSuchSiteError(f"layers={layers!r} is neither 'all' nor a list of numbers.")
    cells = [Cell(site, layer, role) for site in sites for layer in has[site] for role in roles if _has(site, role)]
    return (*cells, Cell("resid", None, "image"))


def _has(site: str, role: str) -> bool:
    return not SITES[site].vision or role.partition(":")[0] in PICTURE_ROLES


def patched(vlm: VLM, pairs: Sequence[Pair], cells: Sequence[Cell], batch_size: int, reuse: bool, remote: bool | str) -> Patched:
    """Run every cell for every pair."""
    most = max(len(pair.receiver.options) for pair in pairs)
    order = sorted(range(len(pairs)), key=lambda k: (pairs[k].receiver.task, pairs[k].receiver.language))
    donor, receiver = (np.full((len(pairs), most), np.nan) for _ in range(2))
    edited = np.full((len(cells), len(pairs), most), np.nan)
    passes = 0
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        with torch.inference_mode():
            found = _chunk(vlm, [pairs[k] for k in chosen], cells, reuse, remote)
        width = found.donor.shape[1]
        donor[chosen, :width], receiver[chosen, :width] = found.donor, found.receiver
        edited[:, chosen, :width] = found.edited
        passes += found.passes
    return Patched(donor, receiver, edited, passes)


def _chunk(vlm: VLM, pairs: Sequence[Pair], cells: Sequence[Cell], reuse: bool, remote: bool | str) -> Patched:
    receivers = Batch(vlm, tuple(pair.receiver for pair in pairs))
    donors = Batch(vlm, tuple(pair.donor for pair in pairs))
    whole = any(need_whole_strings(vlm, item.options) for item in receivers.items)
    skipped = vlm.family.optional_layers(vlm, receivers.inputs) if vlm.family.optional_layers is not None else ()
    places = {
        key: laid_over(key[1], receivers, donors, key[0]) for key in dict.fromkeys((cell.site, cell.role) for cell in cells)
    }
    held, given = _donors(vlm, donors, cells, places, skipped, whole, remote)
    scorer = _Scorer.of(vlm, receivers, whole, remote)
    prefix = Prefix.of(vlm, receivers.inputs, remote) if reuse and not whole and not skipped else None
    plain = (
        scorer.of_traced(run_steps(vlm, receivers.inputs, [], cache=whole, remote=remote))
        if prefix is None
        else scorer.read(prefix.logits)
    )
    if prefix is not None and not prefix.holds(remote):
        prefix = None
    edited = [_edited(vlm, cell, places, held, scorer, prefix, receivers, skipped) for cell in cells]
    return Patched(
        donor=_array(given), receiver=_array(plain), edited=np.stack([_array(rows) for rows in edited]), passes=2 + len(cells)
    )


def _donors(
    vlm: VLM,
    donors: Batch,
    cells: Sequence[Cell],
    places: dict[tuple[str, str], tuple[Where, Where]],
    skipped: Sequence[int],
    whole: bool,
    remote: bool | str,
) -> tuple[dict[Cell, Any], list[list[float]]]:
    """What the donors hold at every cell, from one pass, and their option logits."""
    every = [Cell("resid", layer, "image") for layer in _blocks(vlm, skipped)]
    wanted = [*(cell for cell in cells if cell.layer is not None and cell.layer not in skipped), *every]
    roles: dict[tuple[str, int], list[str]] = {}
    for cell in wanted:
        known = roles.setdefault((cell.site, cell.layer or 0), [])
        if cell.role not in known:
            known.append(cell.role)
    steps = [
        read_step(vlm, site, layer, partial(_each, where=[places[site, role][1] for role in mine]))
        for (site, layer), mine in roles.items()
    ]
    traced = run_steps(vlm, donors.inputs, steps, cache=whole, remote=remote)
    held = {
        Cell(site, layer, role): value
        for ((site, layer), mine), values in zip(roles.items(), traced.seen, strict=True)
        for role, value in zip(mine, values, strict=True)
    }
    return held, _Scorer.of(vlm, donors, whole, remote).of_traced(traced)


def _each(hidden: Any, where: Sequence[Where]) -> tuple[Any, ...]:
    return tuple(place.of(hidden) for place in where)


def _blocks(vlm: VLM, skipped: Sequence[int]) -> list[int]:
    return [layer for layer in range(vlm.n_layers) if layer not in skipped]


@dataclass(frozen=True)
class _Scorer:
    """Turns last-position logits into option logits, or whole strings where first tokens can't tell options apart."""

    vlm: VLM
    items: "tuple[Item, ...]"
    state: PromptPass | None
    whole: bool
    remote: bool | str

    @classmethod
    def of(cls, vlm: VLM, batch: Batch, whole: bool, remote: bool | str) -> "_Scorer":
        return cls(vlm, batch.items, bare_pass(vlm, batch.inputs) if whole else None, whole, remote)

    def read(self, logits: Any) -> list[list[float]]:
        mask = logits.new_zeros((len(logits), 1)).long()
        return option_logits(PromptPass(self.vlm, logits, None, mask, mask), self.items)

    def of_traced(self, traced: Traced) -> list[list[float]]:
        if self.state is None:
            return self.read(traced.logits)
        changed = replace(self.state, logits=traced.logits, cache=traced.cache, mask=self.state.mask.clone())
        return option_logits(changed, self.items)


def _edited(
    vlm: VLM,
    cell: Cell,
    places: dict[tuple[str, str], tuple[Where, Where]],
    held: dict[Cell, Any],
    scorer: _Scorer,
    prefix: Prefix | None,
    receivers: Batch,
    skipped: Sequence[int],
) -> list[list[float]]:
    layers = _blocks(vlm, skipped) if cell.layer is None else [cell.layer]
    if layers == [layer for layer in layers if layer in skipped]:  # a layer that does not run for these items
        return [[float("nan")] * len(item.options) for item in receivers.items]
    where = places[cell.site, cell.role][0]
    steps: list[Step] = [
        write_step(vlm, cell.site, layer, partial(put_at, where=where, values=held[Cell(cell.site, layer, cell.role)]))
        for layer in layers
    ]
    if prefix is not None and not SITES[cell.site].vision:
        return scorer.of_traced(prefix.run(steps, layers[0], scorer.remote))
    return scorer.of_traced(run_steps(vlm, receivers.inputs, steps, cache=scorer.whole, remote=scorer.remote))


def _array(rows: Sequence[Sequence[float]]) -> Float[np.ndarray, "pair option"]:
    most = max(map(len, rows))
    return np.array([[*row, *[np.nan] * (most - len(row))] for row in rows])
