"""Start a pass at a later block: what an edit there cannot have changed is not computed again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from deixis.hooks.edit_sites import read_step, write_step
from deixis.hooks.tracing import Remote, Step, Traced, run_steps
from deixis.models import VLM
from deixis.models.sites import DECODER, TOWER

_FIRST, _LAST = -1, 9
"""Places before and behind every site of a block."""


@dataclass(frozen=True)
class Prefix:
    """An unedited pass over a batch, kept so that edited ones can start from any of its blocks."""

    vlm: VLM
    inputs: Mapping[str, Tensor]
    logits: Float[Tensor, "batch vocab"]
    """Of the unedited pass, at the last position."""
    entered: tuple[Float[Tensor, "batch position width"], ...]
    """What each block received, and the final norm."""
    tower: tuple[Any, ...]
    """What each block of the vision tower returned."""
    tuples: bool
    """Whether decoder blocks return a tuple."""

    @classmethod
    def of(cls, vlm: VLM, inputs: Mapping[str, Tensor], remote: Remote = False) -> "Prefix":
        """Run the batch once and keep what passes need that start later."""
        towers = list(vlm.vision_block_modules) if vlm.family.vision_blocks is not None and "pixel_values" in inputs else []
        steps = [
            Step(name=f"vision {number}", module=block, place=(TOWER, number, _LAST), act=_returned)
            for number, block in enumerate(towers)
        ]
        steps += [read_step(vlm, "resid", layer, torch.clone) for layer in range(vlm.n_layers + 1)]
        steps.append(Step(name="block 0", module=vlm.blocks[0], place=(DECODER, 0, _LAST), act=_returns_tuple))
        traced = run_steps(vlm, inputs, steps, remote=remote)
        n = len(towers)
        return cls(vlm, inputs, traced.logits, traced.seen[n:-1], traced.seen[:n], traced.seen[-1])

    def run(self, steps: Sequence[Step], start: int, remote: Remote = False) -> Traced:
        """A pass that starts at block ``start`` (L: at the final norm) with what that block received in the unedited pass."""
        skips = [
            Step(name=f"vision {number}", module=block, place=(TOWER, number, _FIRST), act=partial(_skip, value=value))
            for (number, block), value in zip(enumerate(self._towers), self.tower, strict=True)
        ]
        held = self.entered[start]
        passed = (held,) if self.tuples else held
        skips += [
            Step(
                name=f"block {layer}",
                module=self.vlm.blocks[layer],
                place=(DECODER, layer, _FIRST),
                act=partial(_skip, value=passed),
            )
            for layer in range(start)
        ]
        entry = write_step(self.vlm, "resid", start, partial(_instead, value=held))
        return run_steps(self.vlm, self.inputs, [*skips, entry, *steps], remote=remote)

    @property
    def _towers(self) -> list[Any]:
        return list(self.vlm.vision_block_modules) if self.tower else []

    def holds(self, remote: Remote = False) -> bool:
        """Whether a pass that starts half-way gives the unedited logits: blocks that share state with earlier ones do not."""
        resumed = self.run([], self.vlm.n_layers // 2, remote).logits
        return bool(torch.allclose(resumed, self.logits, rtol=1e-4, atol=1e-4 * float(self.logits.std())))


def _returned(envoy: Any) -> Any:
    return envoy.output


def _returns_tuple(envoy: Any) -> bool:
    return isinstance(envoy.output, tuple)


def _skip(envoy: Any, value: Any) -> None:
    envoy.skip(value)


def _instead(_: Tensor, value: Tensor) -> Tensor:
    return value
