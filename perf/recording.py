"""What recording costs, in bare forward passes, beside other ways to the same activations.

A random Qwen3-VL of width 512 with 12 layers, float32, items of about 600 tokens of which 256 show a picture, four to a batch.
The bare pass prepares the items and runs the model over them, as anybody must. The rows:

a. bare
b. ``record`` of the answer position at all layers, to disk, with the options' logits
c. the same with the means over the object's and the picture's tokens
d. ``record`` of every image token at all layers, to disk
e. transformers' ``output_hidden_states``, the answer position taken from it
f. nnsight, tracing the answer position of the same layers
g. TransformerLens' bridge, caching the same layers, if it is installed

e to g keep what they read in memory and write nothing. Each has a copy of the model of its own: some leave something behind in
it. What ``record`` does once a run (hash of the weights, header, lock, view) is measured apart. Writing alone is set beside
``dd`` with an fsync of as many bytes to the same disk. Where there is a GPU, all this is measured there too, on 28 layers of
width 2048 in bfloat16, by wall time.
"""

import copy
import gc
import importlib.util
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from attention import Passes, model
from harness import Comparison, arguments, compare, compare_all, save, threads_set, timed
from torch import Tensor

import deixis as dx
from deixis.activations.recorder import Recorder
from deixis.activations.shards import BatchRecord, ShardWriter, shard_path
from deixis.benchmarks import Item
from deixis.benchmarks.images import UniformImage
from deixis.hooks import Seen, Watch
from deixis.models import VLM

N, BATCH = 8, 4
COST = "cost in bare passes (CPU time, log scale; red: asked for)"


def items_of(vlm: VLM, tokens: int, n: int = N) -> dx.Items:
    """As many items of so many tokens, each with a picture of its own."""
    one = Passes(vlm, tokens).items[0]
    pictures = [UniformImage(width=512, height=512, grey=40 + 20 * number) for number in range(n)]
    return dx.Items(replace(one, id=f"perf/{number}", images=(picture,)) for number, picture in enumerate(pictures))


class Recording:
    """The recording of a run's items, again and again: all that grows with their number."""

    def __init__(self, vlm: VLM, items: dx.Items, folder: Path, **kept: Any) -> None:
        self._vlm, self._items, self._kept = vlm, items, kept
        self.run = dx.record(vlm, items, folder, batch_size=BATCH, answers=False, progress=False, **kept)

    def __call__(self) -> None:
        """Record once more."""
        for number in range(self.run.n_shards):
            shard_path(self.run.path, number).unlink()
        recorder = Recorder(self._vlm, self._items, Watch(self._vlm, **self._kept), self.run)
        with recorder.at_work():
            for number in range(self.run.n_shards):
                recorder.shard(number, lambda _: None)

    @property
    def bytes(self) -> int:
        """On disk."""
        return sum(path.stat().st_size for path in (self.run.path / "shards").glob("*.h5"))


def bare(vlm: VLM, items: dx.Items) -> Callable[[], None]:
    """Prepare and run, nothing else."""

    @torch.inference_mode()
    def work() -> None:
        for batch in batches_of(items):
            vlm.reset()
            vlm.model(**vlm.prepare(batch), use_cache=False, logits_to_keep=1).logits.cpu()  # done when they are there

    return work


def batches_of(items: dx.Items) -> list[list[Item]]:
    """As ``record`` makes them."""
    return [list(items[start : start + BATCH]) for start in range(0, len(items), BATCH)]


def copied(vlm: VLM) -> VLM:
    """The same model in memory of its own."""
    return replace(vlm, model=copy.deepcopy(vlm.model))


def hidden_states(vlm: VLM, items: dx.Items) -> Callable[[], Any]:
    """What most scripts do."""

    def read(batch: list[Item]) -> list[Tensor]:
        output = vlm.model(**vlm.prepare(batch), use_cache=False, logits_to_keep=1, output_hidden_states=True)
        return [hidden[:, -1] for hidden in output.hidden_states]

    return _each_batch(vlm, items, read)


def nnsight_trace(vlm: VLM, items: dx.Items) -> Callable[[], Any]:
    """The blocks' inputs in a trace."""
    import nnsight

    wrapped = nnsight.NNsight(vlm.model)
    decoder = wrapped.model.language_model

    def read(batch: list[Item]) -> list[Tensor]:
        kept: list[Tensor] = []
        inputs: dict[str, Any] = vlm.prepare(batch)
        with wrapped.trace(**inputs, use_cache=False, logits_to_keep=1):
            kept = nnsight.save([])
            for block in decoder.layers:
                kept.append(block.input[:, -1])
            kept.append(decoder.norm.input[:, -1])
        return kept

    return _each_batch(vlm, items, read)


def transformer_lens(vlm: VLM, items: dx.Items) -> Callable[[], Any]:
    """The blocks' inputs in the cache of its bridge."""
    from transformer_lens.model_bridge import TransformerBridge  # pyright: ignore[reportMissingImports]

    bridge = TransformerBridge.boot_transformers("perf", hf_model=vlm.model, tokenizer=vlm.tokenizer)
    names = [f"blocks.{layer}.hook_in" for layer in range(vlm.n_layers)] + ["ln_final.hook_in"]

    def read(batch: list[Item]) -> list[Tensor]:
        inputs = vlm.prepare(batch)
        _, cache = bridge.run_with_cache(inputs.pop("input_ids"), names_filter=names, **inputs)
        return [cache[name][:, -1] for name in names]

    return _each_batch(vlm, items, read)


def _each_batch(vlm: VLM, items: dx.Items, read: Callable[[list[Item]], list[Tensor]]) -> Callable[[], np.ndarray]:
    """Read the answer position at all layers, batch by batch, to one array of layers by items."""

    @torch.inference_mode()
    def work() -> np.ndarray:
        parts = []
        for batch in batches_of(items):
            vlm.reset()
            parts.append(torch.stack(read(batch)).float().cpu())
        return torch.cat(parts, dim=1).numpy()

    return work


PEERS = {"transformers, output_hidden_states": hidden_states, "nnsight, trace": nnsight_trace}


def peers(vlm: VLM, items: dx.Items, expected: np.ndarray) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """Other ways to row b's activations, each seen to give them, and why others are left out."""
    ways, left_out = dict(PEERS), {}
    if importlib.util.find_spec("transformer_lens"):
        ways["TransformerLens, run_with_cache"] = transformer_lens
    else:
        left_out["TransformerLens"] = "not installed: pip install transformer-lens"
    works = {}
    for name, way in ways.items():
        work = way(copied(vlm), items)
        far = float(np.abs(work()[:-1] - expected[:-1]).max())  # the last of output_hidden_states has been normed
        if far > 1e-3 * max(1.0, float(np.abs(expected).max())):
            raise SystemExit(f"{name} gives other activations than record at the answer position, by up to {far}.")
        works[name] = work
    return works, left_out


def comparison(name: str, ours: str, base: list, times: list, threads: int, target: float | None = None) -> Comparison:
    """A row of the table out of the rounds."""
    (ours_cpu, ours_wall), (theirs_cpu, theirs_wall) = (tuple(zip(*found, strict=True)) for found in (base, times))
    return Comparison(
        name=name,
        ours=ours,
        theirs=name.removeprefix(f"{ours} against "),
        threads=threads,
        target=target,
        ours_cpu=ours_cpu,
        ours_wall=ours_wall,
        theirs_cpu=theirs_cpu,
        theirs_wall=theirs_wall,
    )


def beside_dd(seen: Any, folder: Path, options: Any) -> Comparison:
    """Writing alone, without the model: a shard of batches that are there, against ``dd`` with fsync of as many bytes."""
    batches = 2 if options.quick else 8
    n = BATCH * batches
    record = BatchRecord(seen, BATCH, logits=[[0.0]] * BATCH, whole=[False] * BATCH, pooled=False)

    def write() -> None:
        with ShardWriter(folder / "written.h5", n) as writer:
            for _ in range(batches):
                writer.add(record)
            writer.finish(BATCH)

    write()
    size = (folder / "written.h5").stat().st_size
    command = ["dd", "if=/dev/zero", f"of={folder / 'dd'}", "bs=1M", f"count={-(-size >> 20)}", "conv=fsync", "status=none"]
    name = f"writing {size / 1e6:.0f} MB, as a share of dd's rate (wall time)"
    rounds = options.rounds or (5 if options.quick else 15)
    return compare(
        name,
        write,
        lambda: subprocess.run(command, check=True),  # noqa: S603
        labels=("ShardWriter", "dd conv=fsync"),
        threads=options.threads,
        rounds=rounds,
        target=0.7,
    )


def measured(vlm: VLM, tokens: int, folder: Path, options: Any) -> tuple[list[Comparison], list[Comparison], dict[str, Any]]:
    """Rows b to g in bare passes, row b against e to g, and what else was measured."""
    items = items_of(vlm, tokens)
    rows = {
        "b. record answer": Recording(vlm, items, folder / "b", roles=("answer",)),
        "c. record answer, object, image": Recording(vlm, items, folder / "c"),
        "d. record every image token": Recording(vlm, items, folder / "d", roles=("image",), pool=None),
    }
    run = rows["b. record answer"].run
    others, left_out = peers(vlm, items, np.stack([run.resid(layer) for layer in run.layers()]))
    lettered = {f"{letter}. {name}": work for letter, (name, work) in zip("efg", others.items(), strict=False)}
    rounds = options.rounds or (3 if options.quick else 15)
    base, times = compare_all(bare(vlm, items), {**rows, **lettered}, threads=options.threads, rounds=rounds)
    targets = dict(zip(rows, (1.03, 1.05, 1.25), strict=True))
    costs = [comparison(name, "bare", base, found, options.threads, targets.get(name)) for name, found in times.items()]
    ours = times["b. record answer"]
    faster = [comparison(f"b. against {name}", "b.", ours, times[name], options.threads, 1.0) for name in lettered]
    once = timed(lambda: dx.record(vlm, items, folder / "once", batch_size=BATCH, answers=False, progress=False))[0]
    facts = {
        "device": str(vlm.device),
        "tokens": vlm.prepare([items[0]])["input_ids"].shape[1],
        "items_a_pass": BATCH,
        "bare_cpu_seconds": float(np.mean([cpu for cpu, _ in base])),
        "prepare_cpu_seconds": timed(lambda: vlm.prepare(list(items)))[0],
        "once_a_run_cpu_seconds": once - float(np.mean([cpu for cpu, _ in times["c. record answer, object, image"]])),
        "bytes_on_disk": {name: row.bytes for name, row in rows.items()},
        "left_out": left_out,
    }
    gc.collect()
    disk = beside_dd(_tokens(vlm, items), folder, options)
    # dd's CPU time is another process's: only the wall tells.
    facts["writing_as_share_of_dd"] = {"asked": 0.7, "mean, low, high": disk.ratio("wall"), "seconds": disk.ours_wall}
    return costs, faster, facts


def main() -> None:
    """Measure, print and save."""
    options = arguments(__doc__ or "")
    layers, tokens = (3, 300) if options.quick else (12, 600)
    models = {"recording": lambda: model(layers)}
    if torch.cuda.is_available():
        models["recording_gpu"] = _on_gpu
    for subject, make in models.items():
        with tempfile.TemporaryDirectory(dir=".") as name, threads_set(options.threads):
            costs, faster, facts = measured(make(), tokens, Path(name), options)
        save(subject, costs, options.out, axis=COST, **facts)
        save(f"{subject}_peers", faster, options.out)
        clock = "cpu" if subject == "recording" else "wall"
        for row in (*costs, *faster):  # the differences are in the second decimal
            print(f"{row.name}: " + f"[{{:.3f}}, {{:.3f}}, {{:.3f}}] of {clock} time: mean, low, high".format(*row.ratio(clock)))


def _on_gpu() -> VLM:
    made = model(28, width=2048, heads=32)
    made.model.to("cuda", torch.bfloat16)
    return made


@torch.inference_mode()
def _tokens(vlm: VLM, items: dx.Items) -> dict[tuple[str, int, str], Seen]:
    """Row d's activations of one batch."""
    (batch, *_) = batches_of(items)
    inputs = vlm.prepare(batch)
    with Watch(vlm, roles=("image",), pool=None) as watch:
        watch.expect(inputs, batch)
        return watch.run(inputs)


if __name__ == "__main__":
    main()
