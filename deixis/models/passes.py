"""One forward pass over a batch of prompts, and what continues from its cache."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from deixis.models.vlm import VLM

_CACHE_NAMES = ("cache", "past_key_values")


@dataclass
class PromptPass:
    """The state of a model after it has read a batch of left-padded prompts."""

    vlm: VLM
    logits: Float[Tensor, "batch vocab"]
    """At the last prompt position, float32 (float64 for a model in it)."""
    cache: Any
    """Keys and values of the prompts; continuing adds to it. None where they were not kept."""
    mask: Int[Tensor, "batch position"]
    shift: Int[Tensor, "batch 1"]
    """How far a token's rotary position lies from its number in the row: pictures take fewer positions than tokens, and a batch
    without pictures is numbered from its padding on."""
    beside: dict[str, Tensor] = field(default_factory=dict)
    """Inputs with an entry for each position that a further token takes over from the last one."""

    @classmethod
    def run(cls, vlm: VLM, inputs: Mapping[str, Any], *, keep_cache: bool = True) -> "PromptPass":
        """Run the model once over the prompts, as bare as it can be run.

        Args:
            vlm: The model.
            inputs: Of :meth:`deixis.models.VLM.prepare`, or of :meth:`deixis.models.features.VisionFeatures.instead_of_pixels`.
            keep_cache: Whether something is to continue from this pass. Without, no keys and values outlive their layer.
        """
        vlm.reset()
        keep = {"logits_to_keep": 1} if "logits_to_keep" in vlm.accepts else {}
        output = vlm.model(**inputs, **keep, use_cache=keep_cache)
        mask = inputs["attention_mask"].long()
        cache = next(output[name] for name in _CACHE_NAMES if output.get(name) is not None) if keep_cache else None
        beside = {name: inputs[name][:, -1:] for name in vlm.family.carried if name in inputs}
        return cls(vlm, _exact(output.logits[:, -1]), cache, mask, _rope_shift(vlm, inputs), beside)

    def extended(self, tokens: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token vocab"]:
        """Read more tokens in each row (this moves the state on) and return the logits behind each of them, as precise.

        Raises:
            ValueError: The pass was made without a cache.
        """
        if self.cache is None:
            raise ValueError("nothing can continue from a pass that kept no cache; run it with keep_cache=True.")
        self.mask = torch.cat([self.mask, torch.ones_like(tokens)], dim=1)
        # Numbered from the mask, never from the width of the batch: padding would otherwise shift every row that has some.
        positions = (self.mask.cumsum(dim=1) - 1)[:, -tokens.shape[1] :] + self.shift
        output = self.vlm.model(
            input_ids=tokens,
            attention_mask=self.mask,
            position_ids=positions,
            use_cache=True,
            **{_cache_argument(self.vlm): self.cache},
            **{name: value.repeat_interleave(tokens.shape[1], dim=1) for name, value in self.beside.items()},
        )
        logits = _exact(output.logits)
        self.logits = logits[:, -1]
        return logits

    def rows(self, indices: Sequence[int]) -> "PromptPass":
        """A copy of some rows, in this order and as often as they are named; this state stays where it is."""
        at = torch.tensor(list(indices), device=self.mask.device)
        cache = copy.deepcopy(self.cache)
        cache.reorder_cache(at)  # unlike batch_select_indices, every kind of layer has it
        beside = {name: value[at] for name, value in self.beside.items()}
        return PromptPass(self.vlm, self.logits[at.to(self.logits.device)], cache, self.mask[at], self.shift[at], beside)


def _exact(logits: Tensor) -> Tensor:
    return logits.to(torch.promote_types(torch.float32, logits.dtype))


def _cache_argument(vlm: VLM) -> str:
    return next(name for name in _CACHE_NAMES if name in vlm.accepts)


def _rope_shift(vlm: VLM, inputs: Mapping[str, Tensor]) -> Int[Tensor, "batch 1"]:
    """How the pass just made numbered its positions, so that what follows is numbered alike."""
    mask = inputs["attention_mask"].long()
    if vlm.family.keeps_positions is not None:
        deltas = vlm.model.get_submodule(vlm.family.keeps_positions).rope_deltas
        if deltas is not None:  # None after a batch without pictures
            return deltas.to(mask.device).reshape(-1, 1).long()
    if "position_ids" in inputs:
        return mask.new_full((len(mask), 1), vlm.family.first_position)
    # Left to itself, a model numbers the columns of the batch, padding included.
    return (mask == 0).sum(dim=1, keepdim=True)
