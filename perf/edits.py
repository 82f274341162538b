"""What a patch sweep costs, as a ratio to the bare forward passes that it needs.

Two models: pico with its own memory-game pairs, and a random Qwen3-VL of width 512 with 12 layers. Every layer is patched at
four roles. "Needed" are as many bare forward passes (no hooks, no nnsight, no cache, the same prepared batches) as the sweep
makes. Measured are the sweep with every pass run whole, and the sweep as it runs by default: each pass starts at the block that
is edited, with what the unedited pass held there, and without the vision tower.
"""

from collections.abc import Callable
from typing import Any

import torch
from attention import model
from harness import arguments, compare, save

import deixis as dx
from deixis.analyses.patch_sweep import patch_sweep
from deixis.hooks.batches import Batch
from deixis.models import VLM

ROLES = ("object", "background", "text", "answer")
BATCH = 8


def bare(vlm: VLM, pairs: Any, passes: int) -> Callable[[], None]:
    """As many bare passes over the receivers as a sweep makes."""
    receivers = [pair.receiver for pair in pairs]
    batches = [Batch(vlm, tuple(receivers[start : start + BATCH])).inputs for start in range(0, len(receivers), BATCH)]

    def run() -> None:
        for inputs in batches:
            for _ in range(passes // len(batches)):
                vlm.reset()
                with torch.inference_mode():
                    vlm.model(**inputs, use_cache=False, logits_to_keep=1)

    return run


def main() -> None:
    options = arguments(__doc__ or "")
    rounds = options.rounds or (2 if options.quick else 7)
    layers = 3 if options.quick else 12
    found = []
    for name, vlm, n in (("pico", dx.load("pico"), 4), (f"{layers} layers of width 512", model(layers), 1)):
        pairs = dx.near_far_pairs(languages=("en",), n=n, size=256, seed=1)
        passes = patch_sweep(vlm, pairs, roles=ROLES, batch_size=BATCH).logits.passes
        needed = bare(vlm, pairs, passes)

        def sweep(reuse: bool, vlm: VLM = vlm, pairs: Any = pairs) -> Callable[[], Any]:
            return lambda: patch_sweep(vlm, pairs, roles=ROLES, batch_size=BATCH, reuse=reuse)

        for label, reuse, target in (("every pass whole", False, 1.15), ("from the edited block on", True, None)):
            found.append(
                compare(
                    f"patch sweep, {name}, {label}",
                    needed,
                    sweep(reuse),
                    labels=("bare passes", f"patch_sweep(reuse={reuse})"),
                    threads=options.threads,
                    rounds=rounds,
                    target=target,
                    note=f"the ratio is what the sweep costs, in the {passes} bare passes of up to {BATCH} pairs that it needs",
                )
            )
    save("edits", found, options.out)


if __name__ == "__main__":
    main()
