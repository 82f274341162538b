"""Recorder: from the items of one shard to the shard on disk."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import takewhile

import torch
from jaxtyping import Float
from torch import Tensor

from deixis.activations.errors import NonFiniteError
from deixis.activations.options import need_whole_strings, option_logits
from deixis.activations.passes import PromptPass, written_answers
from deixis.activations.run import Run
from deixis.activations.shards import BatchRecord, Shard, ShardWriter, shard_path
from deixis.benchmarks import Item, Items
from deixis.hooks import AttentionWatch, Seen, Watch
from deixis.models import VLM

AUTO_BATCH = 16
"""Items per forward pass to begin with, where the user leaves it to us."""


class Recorder:
    """Records shards of one run, in batches that fit the device's memory."""

    def __init__(
        self, vlm: VLM, items: Items, watch: Watch, run: Run, attention: AttentionWatch | None = None, stride: int = 1
    ) -> None:
        self._stride = stride  # from one shard of this recorder's to the next
        self._vlm, self._items, self._watch, self._run = vlm, items, watch, run
        self._attention = attention
        self._auto = run.settings["batch_size"] == "auto"
        self._first_size = AUTO_BATCH if self._auto else run.settings["batch_size"]

    def undisturbed(self) -> AbstractContextManager[None]:
        """The model keeps its positions of an earlier pass; see :meth:`deixis.models.VLM.undisturbed`."""
        return self._vlm.undisturbed()

    def shard(self, number: int, advance: Callable[[int], None]) -> None:
        """Record one shard, in item order; ``advance`` hears how many items each batch brought."""
        size = self._size_after(number - self._stride)
        per_shard = self._run.settings["shard_items"]
        at, end = number * per_shard, min(len(self._items), (number + 1) * per_shard)
        with ShardWriter(shard_path(self._run.path, number), *self._run.marks(number)) as writer:
            while at < end:
                batch = self._together(list(self._items[at : min(at + size, end)]))
                recorded = self._attempt(batch)
                if recorded is None:
                    size = len(batch) // 2
                    continue
                writer.add(recorded)
                at += len(batch)
                advance(len(batch))
            writer.finish(size)

    def _together(self, batch: list[Item]) -> list[Item]:
        """The first of them that may share a batch: in some families only items with equally many pictures."""
        if self._vlm.family.mixes_counts:
            return batch
        return list(takewhile(lambda item: len(item.images) == len(batch[0].images), batch))

    def _size_after(self, number: int) -> int:
        """The batch size at the end of its shard before, so that a resumed run makes the batches of an undisturbed one."""
        path = shard_path(self._run.path, number)
        if not self._auto or number < 0 or not path.exists():
            return self._first_size
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
        if self._vlm.device.type == "cuda":
            torch.cuda.empty_cache()
        return None

    @torch.no_grad()
    def _recorded(self, batch: list[Item]) -> BatchRecord:
        inputs = self._vlm.prepare(batch)
        try:
            with self._watch as watch:
                watch.expect(inputs, batch)  # may run a small pass of its own, which the attention is not to hear
                with self._attention or nullcontext() as attention:
                    if attention is not None:
                        attention.follow(inputs, batch)
                    state = PromptPass.run(self._vlm, inputs)
                    attended = {} if attention is None else attention.read()
                seen = watch.read()
            check_finite(seen, batch, pooled=watch.pool is not None)
            check_logits(state.logits, batch)
            logits = option_logits(state, batch)
            whole = [need_whole_strings(self._vlm, item.options) for item in batch]
            limit = self._run.settings["max_new_tokens"]
            answers = written_answers(state, limit) if self._run.settings["answers"] else None
        finally:
            self._vlm.reset()
        may_skip = self._vlm.family.optional_layers is not None
        return BatchRecord(seen=seen, logits=logits, whole=whole, answers=answers, may_skip=may_skip, attention=attended)


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
