"""Recorder: from the items of one shard to the shard on disk."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import takewhile
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from deixis.activations.background import BackgroundWriter
from deixis.activations.batching import MemoryRule, empty_cache, grown, running_order
from deixis.activations.errors import NonFiniteError
from deixis.activations.options import need_whole_strings, option_logits
from deixis.activations.passes import PromptPass, written_answers
from deixis.activations.run import Run
from deixis.activations.shards import BatchRecord, Shard, shard_path
from deixis.benchmarks import Item, Items, Option
from deixis.hooks import SITES, AttentionWatch, Seen, Watch
from deixis.models import VLM
from deixis.models.features import VisionFeatures
from deixis.models.lengths import PromptLengths

SHARED = 0.25
"""Pictures that items have seen before, as a share of all they show, from which features are kept."""


class Recorder:
    """Records shards of one run, in batches that fit the device's memory."""

    def __init__(
        self, vlm: VLM, items: Items, watch: Watch, run: Run, attention: AttentionWatch | None = None, stride: int = 1
    ) -> None:
        self._stride = stride  # from one shard of this recorder's to the next
        self._vlm, self._items, self._watch, self._run = vlm, items, watch, run
        self._attention = attention
        self._auto = run.settings["batch_size"] == "auto"
        self._rule, self._lengths = MemoryRule.of(vlm, watch), PromptLengths(vlm)
        self._limits: dict[int, int] = {}  # what each shard of ours left for those after it
        self._whole: dict[tuple[Option, ...], bool] = {}  # few sets of options serve many items
        self._features = VisionFeatures(vlm) if shares_pictures(vlm, items, watch, attention) else None
        self._writer = BackgroundWriter()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Around :meth:`shard`: afterwards all shards are on disk, and the model keeps what it kept of earlier passes."""
        with self._vlm.undisturbed(), self._writer:
            yield

    def shard(self, number: int, advance: Callable[[int], None]) -> None:
        """Record one shard; it is written meanwhile and a little longer. ``advance`` hears how many items each batch brought."""
        per_shard, limit = self._run.settings["shard_items"], self._limit_after(number - self._stride)
        items = list(self._items[number * per_shard : (number + 1) * per_shard])
        size = min(limit, grown(number, per_shard)) if self._auto else self._run.settings["batch_size"]
        lengths = self._lengths.of(items) if size > 1 else [0] * len(items)
        if self._auto:
            size = self._rule.largest(size, max(lengths))
        pictures = [len(item.images) for item in items]
        order = running_order(lengths, pictures, size, mixes_counts=self._vlm.family.mixes_counts)
        self._writer.begin(shard_path(self._run.path, number), *self._run.marks(number), order)
        at = 0
        while at < len(order):
            batch = self._together([items[place] for place in order[at : at + size]])
            self._writer.wait_for_room()
            recorded = self._attempt(batch)
            if recorded is None:
                self._writer.give_room_back()
                size = limit = len(batch) // 2
                continue
            self._writer.add(recorded)
            del recorded
            at += len(batch)
            advance(len(batch))
        self._limits[number] = limit if self._auto else size
        self._writer.finish(self._limits[number])

    def _together(self, batch: list[Item]) -> list[Item]:
        """The first of them that may share a batch: in some families only items with equally many pictures."""
        if self._vlm.family.mixes_counts:
            return batch
        return list(takewhile(lambda item: len(item.images) == len(batch[0].images), batch))

    def _limit_after(self, number: int) -> int:
        """The batch size that memory allowed at the end of the shard before; a resumed run finds it there."""
        path = shard_path(self._run.path, number)
        if number in self._limits:
            return self._limits[number]
        if not self._auto or number < 0 or not path.exists():
            return self._run.settings["shard_items"]
        with Shard(path) as shard:
            return shard.next_batch_size

    def _attempt(self, batch: list[Item]) -> BatchRecord | None:
        """The batch's record, or None if memory ran out and half as many items may do."""
        try:
            return self._recorded(batch)
        except torch.OutOfMemoryError as error:
            if not self._auto or len(batch) == 1:
                way_out = "free memory on the device" if len(batch) == 1 else "use a smaller batch_size, or 'auto'"
                error.add_note(f"{len(batch)} items from {batch[0].id!r} need more; {way_out}, then run the same call again.")
                raise
        # Behind the handler on purpose: within it, the exception still holds the pass's tensors.
        empty_cache(self._vlm.device)
        return None

    @torch.inference_mode()
    def _recorded(self, batch: list[Item]) -> BatchRecord:
        settings = self._run.settings
        inputs = prepared = self._vlm.prepare(batch)
        if self._features is not None:
            inputs = self._features.instead_of_pixels(prepared, batch)
        if not wants_logits(settings) and self._attention is None:
            with self._watch as watch:
                watch.expect(prepared, batch)
                return self._checked(watch.run(inputs), batch)
        whole = [settings.get("options", True) and self._needs_whole(item) for item in batch]
        try:
            with self._watch as watch:
                watch.expect(prepared, batch)  # may run a small pass of its own, which the attention is not to hear
                with self._attention or nullcontext() as attention:
                    if attention is not None:
                        attention.follow(prepared, batch)
                    writes = settings["answers"] and settings["max_new_tokens"] > 1
                    state = PromptPass.run(self._vlm, inputs, keep_cache=writes or any(whole))
                    attended = {} if attention is None else attention.read()
                seen = watch.read()
            record = self._checked(seen, batch)
            check_logits(state.logits, batch)
            logits = option_logits(state, batch, whole=whole) if settings.get("options", True) else None
            answers = written_answers(state, settings["max_new_tokens"]) if settings["answers"] else None
        finally:
            self._vlm.reset()
        return replace(record, logits=logits, whole=whole, answers=answers, attention=attended)

    def _checked(self, seen: Mapping[tuple[str, int, str], Seen], batch: Sequence[Item]) -> BatchRecord:
        """The activations of a batch, once they are known to be numbers."""
        check_finite(seen, batch, pooled=self._watch.pool is not None)
        may_skip = self._vlm.family.optional_layers is not None
        return BatchRecord(seen=seen, n_items=len(batch), pooled=self._watch.pool is not None, may_skip=may_skip)

    def _needs_whole(self, item: Item) -> bool:
        if item.options not in self._whole:
            self._whole[item.options] = need_whole_strings(self._vlm, item.options)
        return self._whole[item.options]


def shares_pictures(vlm: VLM, items: Items, watch: Watch, attention: AttentionWatch | None) -> bool:
    """Whether pictures go through the vision tower once for all the items that show them.

    That is where it saves a good part of the tower's work (:data:`SHARED`), as each picture is prepared once more for it. Not
    where the tower itself is watched, which has to run for every item then.
    """
    tower = any(SITES[site].vision for site in watch.sites)
    if attention is not None:
        tower |= attention.plan.vision or attention.plan.spread
    if tower or not vlm.family.vision_cache:
        return False
    shown = [image.sha256 for item in items for image in item.images]
    return bool(shown) and len(shown) - len(set(shown)) >= SHARED * len(shown)


def wants_logits(settings: Mapping[str, Any]) -> bool:
    """Whether a run keeps anything that comes behind the last layer."""
    return bool(settings.get("options", True) or settings["answers"])


def check_logits(logits: Float[Tensor, "batch vocab"], batch: Sequence[Item]) -> None:
    """Refuse logits that are NaN or plus infinity: the largest of them would not be an answer.

    Raises:
        NonFiniteError: The message names the item.
    """
    bad = (logits.isnan() | logits.isposinf()).any(dim=-1)
    if bool(bad.any()):
        raise NonFiniteError(
            f"the model's logits are NaN or infinite for item {batch[int(bad.int().argmax())].id!r}; "
            "load the model in a wider dtype (bfloat16 or float32), or check its weights."
        )


def check_finite(seen: Mapping[tuple[str, int, str], Seen], batch: Sequence[Item], *, pooled: bool) -> None:
    """Refuse activations that are NaN or infinite, at tokens that are there.

    Raises:
        NonFiniteError: The message names site, layer, role and item.
    """
    for (site, layer, role), found in seen.items():
        if not found.ran:  # the batch passes this layer by: NaN is what it means
            continue
        finite = torch.isfinite(found.values).all(dim=-1)
        owners = torch.arange(len(batch))
        if pooled:
            finite |= found.counts == 0
        else:
            owners = owners.repeat_interleave(found.counts)
        if not bool(finite.all()):
            item = batch[int(owners[~finite][0])]
            raise NonFiniteError(
                f"{site} at layer {layer}, role {role!r}, is NaN or infinite for item {item.id!r}; "
                "load the model in a wider dtype (bfloat16 or float32), or leave the item out."
            )
