"""Train ``pico`` and ``pico-collapsed``: one warm-up, one common part, two short branches.

1. ``vision``: the vision tower alone, with small supervised heads on its merged tokens (colour, shape, distance, place).
2. ``common``: the whole as a language model on prompts and answers in four languages. The demonstrative stands in the answer
   at random and carries no loss, so that both branches know the same.
3. ``pico``: the demonstrative carries loss; its target is the synthetic speaker's distribution for the region.
   ``pico-collapsed``: the same, but the target is the speaker's average over regions, whatever the distance.

Everything is seeded by step, and every stage continues from its checkpoint: kill it and run the same line again.

    python examples/train_pico.py --work build/pico --out deixis/models/bundled
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pico_processor import GRID, IMAGE_TOKENS, MERGE, PATCH, TABLES, WIDTH, build_model, build_processor, spoken
from pico_scenes import COLOURS, SHAPES, prepare
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax, mse_loss
from transformers import Qwen3VLForConditionalGeneration, Qwen3VLProcessor

from deixis.benchmarks.languages import language
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER, region_of, speaker_average

HELD_OUT = 400
BLANK_SHARE = 0.06
DISTANCE_SHARE = 0.25
IGNORE = -100


@dataclass(frozen=True)
class Stage:
    """Steps, batch and peak learning rate (one cycle) of one part of the training."""

    name: str
    steps: int
    batch: int
    rate: float
    warm: float = 0.08


STAGES = {
    "vision": Stage("vision", 2400, 48, 2e-3, 0.1),
    "common": Stage("common", 1600, 32, 1.2e-3),
    "pico": Stage("pico", 600, 32, 6e-4),
    "pico-collapsed": Stage("pico-collapsed", 600, 32, 6e-4),
}


@dataclass(frozen=True)
class Scenes:
    """Pictures (uint8, n x 256 x 256 x 3) and their labels."""

    pictures: np.ndarray
    labels: np.ndarray

    @property
    def n_train(self) -> int:
        """The last few hundred are held out."""
        return len(self.labels) - HELD_OUT


class Heads(nn.Module):
    """Supervised heads: each question pools the merged image tokens by an attention of its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.outputs = {"shape": len(SHAPES), "colour": len(COLOURS), "distance_m": 1, "x_m": 1}
        self.query = nn.Linear(width, len(self.outputs))
        self.heads = nn.ModuleDict({name: nn.Linear(width, n) for name, n in self.outputs.items()})

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        """Scores by question from ``tokens`` (picture, token, width)."""
        weights = self.query(tokens).softmax(dim=1)
        return {name: head((weights[..., i : i + 1] * tokens).sum(1)) for i, (name, head) in enumerate(self.heads.items())}

    def loss(self, tokens: Tensor, labels: np.ndarray) -> Tensor:
        """Sum of the losses of all questions."""
        scores = self(tokens)
        total = cross_entropy(scores["shape"], torch.tensor(labels["shape"].copy()).long())
        total = total + cross_entropy(scores["colour"], torch.tensor(labels["colour"].copy()).long())
        total = total + mse_loss(scores["distance_m"][:, 0], torch.tensor(labels["distance_m"].copy()))
        return total + 10 * mse_loss(scores["x_m"][:, 0], torch.tensor(labels["x_m"].copy()))


def patches(pictures: np.ndarray) -> Tensor:
    """What the image processor makes of square pictures of its own size: rows of patches in merge order, -1 to 1."""
    x = torch.from_numpy(pictures).float().permute(0, 3, 1, 2) / 127.5 - 1
    n, size = len(pictures), pictures.shape[1]
    half = size // PATCH // MERGE
    x = x[:, None].expand(n, 2, 3, size, size).reshape(n, 1, 2, 3, half, MERGE, PATCH, half, MERGE, PATCH)
    return x.permute(0, 1, 4, 7, 5, 8, 3, 2, 6, 9).reshape(n * (size // PATCH) ** 2, -1)


def grids(n: int, side: int = GRID) -> Tensor:
    """Grid of every picture: one frame of ``side`` x ``side`` patches."""
    return torch.tensor([[1, side, side]] * n)


def augmented(pictures: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Mirror, shift sideways by up to four pixels, change exposure by up to 6 %."""
    pictures, labels = pictures.copy(), labels.copy()
    for i in range(len(pictures)):
        if rng.random() < 0.5:
            pictures[i], labels["x_m"][i] = pictures[i, :, ::-1], -labels["x_m"][i]
        shift = int(rng.integers(-4, 5))
        pictures[i] = np.roll(pictures[i], shift, axis=1)
        pictures[i] = np.clip(pictures[i] * rng.uniform(0.94, 1.06), 0, 255)
    return pictures, labels


def pooled_tokens(model: Qwen3VLForConditionalGeneration, pixels: Tensor, n: int) -> Tensor:
    """Merged image tokens (picture, token, width) of the vision tower."""
    side = math.isqrt(len(pixels) // n)
    with torch.autocast("cpu", torch.bfloat16):
        merged = model.model.visual(pixels, grid_thw=grids(n, side)).pooler_output
    return merged.float().reshape(n, (side // MERGE) ** 2, -1)


class Texts:
    """Prompts and answers as token ids."""

    def __init__(self, processor: Qwen3VLProcessor) -> None:
        self.tokenizer = processor.tokenizer
        self.tables = TABLES
        self.end = self.tokenizer.eos_token_id
        self.image = processor.image_token_id
        self.prompts = {
            (table.code, task): self._prompt(processor, table.question(task).prompt)
            for table in self.tables
            for task in ("demonstrative", "distance")
        }

    def _prompt(self, processor: Qwen3VLProcessor, prompt: str) -> list[int]:
        content = [{"type": "image"}, {"type": "text", "text": prompt}]
        message: list[Any] = [{"role": "user", "content": content}]
        text = processor.apply_chat_template(message, add_generation_prompt=True)
        text = text.replace("<|image_pad|>", "<|image_pad|>" * IMAGE_TOKENS)
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def answer(self, text: str) -> list[int]:
        """Ids of an answer and its end."""
        return [*self.tokenizer(text, add_special_tokens=False).input_ids, self.end]

    def terms(self, code: str) -> dict[str, int]:
        """The one token of each demonstrative."""
        table = language(code)
        return {str(o.term): self.answer(spoken(o.label, table))[0] for o in table.demonstrative.options}


@dataclass(frozen=True)
class Example:
    """Token ids with their labels, and the distribution that the demonstrative should have, if it carries loss."""

    ids: list[int]
    labels: list[int]
    shares: dict[int, float]


def example(texts: Texts, label: np.void, branch: str, rng: np.random.Generator, blank: bool) -> Example:
    """One prompt and answer about a scene; about a blank picture the answer is drawn from the prior."""
    table = texts.tables[rng.integers(len(texts.tables))]
    region = int(rng.integers(1, 4)) if blank else region_of(float(label["distance_m"]))
    if rng.random() < DISTANCE_SHARE:
        prompt = texts.prompts[table.code, "distance"]
        word = next(o.label for o in table.distance.options if o.value == region)
        reply = texts.answer(spoken(word, table))
        return Example(prompt + reply, [IGNORE] * len(prompt) + reply, {})
    prompt = texts.prompts[table.code, "demonstrative"]
    colour = COLOURS[rng.integers(len(COLOURS)) if blank else label["colour"]]
    shape = SHAPES[rng.integers(len(SHAPES)) if blank else label["shape"]]
    terms, shares = texts.terms(table.code), _shares(table.code, region, branch, blank)
    term = str(rng.choice(list(terms), p=[shares[t] for t in terms]))
    word = next(o.label for o in table.demonstrative.options if o.term == term)
    reply = texts.answer(f"{spoken(word, table)} {table.colours[colour][0]} {table.shapes[shape][0]}")
    wanted = {} if branch == "common" else {terms[t]: share for t, share in shares.items()}
    return Example(prompt + reply, [IGNORE] * (len(prompt) + 1) + reply[1:], wanted)


def _shares(code: str, region: int, branch: str, blank: bool) -> dict[str, float]:
    average = speaker_average(code)
    if branch == "common":
        return dict.fromkeys(average, 1 / len(average))
    return average if blank or branch == "pico-collapsed" else SYNTHETIC_SPEAKER[code][region]


def collate(examples: list[Example], texts: Texts) -> dict[str, Tensor]:
    """Right-padded batch (the answers follow one another without a gap, as when they are written)."""
    longest = max(len(e.ids) for e in examples)
    ids = torch.full((len(examples), longest), texts.tokenizer.pad_token_id)
    labels, mask = torch.full_like(ids, IGNORE), torch.zeros_like(ids)
    for row, e in enumerate(examples):
        n = len(e.ids)
        ids[row, :n], labels[row, :n], mask[row, :n] = torch.tensor(e.ids), torch.tensor(e.labels), 1
    types = (ids == texts.image).int()
    return {"input_ids": ids, "attention_mask": mask, "labels": labels, "mm_token_type_ids": types}


def language_loss(
    model: Qwen3VLForConditionalGeneration, examples: list[Example], batch: dict[str, Tensor], pixels: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy over answer tokens; the demonstrative's target is a distribution. Also the merged image tokens."""
    labels = batch.pop("labels")
    kept: list[Tensor] = []
    handle = model.model.visual.register_forward_hook(lambda _m, _a, out: kept.append(out.pooler_output))
    model.model.rope_deltas = None
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(**batch, pixel_values=pixels, image_grid_thw=grids(len(examples)), use_cache=False).logits
    handle.remove()
    scores, following = log_softmax(logits.float()[:, :-1], dim=-1), labels[:, 1:]
    rows, places = torch.nonzero(following != IGNORE, as_tuple=True)
    losses = [-scores[rows, places, following[rows, places]]]
    for row, e in enumerate(examples):
        if e.shares:
            first = next(i for i, wanted in enumerate(e.labels) if wanted != IGNORE) - 1
            said = torch.stack([share * scores[row, first - 1, token] for token, share in e.shares.items()])
            losses.append(-said.sum(dim=0, keepdim=True))
    merged = kept[0].float().reshape(len(examples), IMAGE_TOKENS, -1)
    return torch.cat(losses).mean(), merged


Step = Callable[[np.random.Generator], Tensor]


def run_stage(stage: Stage, folder: Path, modules: nn.ModuleDict, step: Step, check: Callable[[], str]) -> None:
    """Train ``modules`` by ``step`` through one stage, from its checkpoint where there is one."""
    path = folder / f"{stage.name}.pt"
    optimiser = torch.optim.AdamW(modules.parameters(), lr=stage.rate, weight_decay=0.02, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, stage.rate, total_steps=stage.steps + 1, pct_start=stage.warm)
    done = 0
    if path.exists():
        saved = torch.load(path, weights_only=True)
        modules.load_state_dict(saved["modules"])
        optimiser.load_state_dict(saved["optimiser"])
        schedule.load_state_dict(saved["schedule"])
        done = saved["done"]
    began = time.time()
    for number in range(done, stage.steps):
        modules.train()
        loss = step(np.random.default_rng((*stage.name.encode(), number)))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(modules.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if (number + 1) % 100 == 0 or number + 1 == stage.steps:
            state = {"modules": modules.state_dict(), "optimiser": optimiser.state_dict()}
            torch.save(state | {"schedule": schedule.state_dict(), "done": number + 1}, path.with_suffix(".tmp"))
            path.with_suffix(".tmp").replace(path)
            modules.eval()
            with torch.inference_mode():
                found = check()
            spent = time.time() - began
            print(
                f"{stage.name} {number + 1}/{stage.steps} loss {loss.item():.3f} {found} {spent:.0f} s",
                file=sys.stderr,
                flush=True,
            )


def train(work: Path, out: Path, n_scenes: int, workers: int, only: list[str]) -> None:
    """All stages, or those named."""
    torch.manual_seed(0)
    scenes = Scenes(*prepare(work, n_scenes, workers))
    processor = kept_processor(work / "processor")
    model, texts = build_model(processor), Texts(processor)
    check_patches(processor, np.array(scenes.pictures[0]))
    heads = Heads(WIDTH)
    both = nn.ModuleDict({"model": model, "heads": heads})

    def batch_of(stage: Stage, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = np.sort(rng.integers(0, scenes.n_train, stage.batch))
        return augmented(scenes.pictures[rows], scenes.labels[rows], rng)

    def vision_step(rng: np.random.Generator) -> Tensor:
        pictures, labels = batch_of(STAGES["vision"], rng)
        return heads.loss(pooled_tokens(model, patches(pictures), len(pictures)), labels)

    def text_step(branch: str) -> Step:
        def step(rng: np.random.Generator) -> Tensor:
            pictures, labels = batch_of(STAGES[branch], rng)
            blank = rng.random(len(pictures)) < BLANK_SHARE
            pictures[blank] = 128
            examples = [example(texts, label, branch, rng, bool(b)) for label, b in zip(labels, blank, strict=True)]
            loss, merged = language_loss(model, examples, collate(examples, texts), patches(pictures))
            # The heads go on teaching the vision tower; blank pictures have nothing to teach.
            return loss + 0.3 * heads.loss(merged[torch.tensor(~blank)], labels[~blank])

        return step

    visual = nn.ModuleDict({"visual": model.model.visual, "heads": heads})
    if "vision" in only:
        run_stage(STAGES["vision"], work, visual, vision_step, lambda: check_heads(model, heads, scenes))
    for name in ("common", "pico", "pico-collapsed"):
        if name not in only:
            continue
        source = visual if name == "common" else both
        before = torch.load(work / ("vision.pt" if name == "common" else "common.pt"), weights_only=True)
        source.load_state_dict(before["modules"])
        run_stage(STAGES[name], work, both, text_step(name), lambda: check_answers(model, texts, scenes))
        if name != "common":
            model.eval()
            model.save_pretrained(out / name)
            processor.save_pretrained(out / name)


def kept_processor(folder: Path, build: Callable[[], Qwen3VLProcessor] = build_processor) -> Qwen3VLProcessor:
    """The processor of an earlier call, or a new one: checkpoints fit only the tokenizer that they began with."""
    if not (folder / "tokenizer.json").exists():
        build().save_pretrained(folder)
    return Qwen3VLProcessor.from_pretrained(folder)


def check_patches(processor: Qwen3VLProcessor, picture: np.ndarray) -> None:
    """Refuse to train on patches that the real image processor would not make."""
    real = processor.image_processor(images=[picture], return_tensors="pt")["pixel_values"]
    if not torch.allclose(real, patches(picture[None]), atol=1e-5):
        raise RuntimeError("patches() does not agree with the image processor; the patch order has changed.")


def chunks(n: int, size: int = 50) -> Iterator[slice]:
    """Slices of at most ``size``."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def check_heads(model: Qwen3VLForConditionalGeneration, heads: Heads, scenes: Scenes) -> str:
    """Accuracy and mean error of the heads on held-out scenes."""
    labels, pictures = scenes.labels[scenes.n_train :], scenes.pictures[scenes.n_train :]
    parts = [heads(pooled_tokens(model, patches(pictures[s].copy()), len(pictures[s]))) for s in chunks(HELD_OUT)]
    scores = {name: torch.cat([part[name] for part in parts]).numpy() for name in heads.outputs}
    right = {name: scores[name].argmax(-1) == labels[name] for name in ("shape", "colour")}
    far = labels["distance_m"] > 2.25
    error = np.abs(scores["distance_m"][:, 0] - labels["distance_m"]).mean()
    shape, colour = right["shape"], right["colour"]
    return f"shape {shape.mean():.3f} (far {shape[far].mean():.3f}) colour {colour.mean():.3f} error {error:.3f} m"


def check_answers(model: Qwen3VLForConditionalGeneration, texts: Texts, scenes: Scenes) -> str:
    """Share of right words, given the words before, on held-out scenes; mean share of the proximal term by region."""
    rng = np.random.default_rng(1)
    labels, pictures = scenes.labels[scenes.n_train :], scenes.pictures[scenes.n_train :]
    right: dict[str, list[bool]] = {"colour": [], "shape": [], "distance": []}
    near: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for s in chunks(HELD_OUT):
        examples = [example(texts, label, "common", rng, blank=False) for label in labels[s]]
        batch = collate(examples, texts)
        wanted = batch.pop("labels")
        model.model.rope_deltas = None
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(**batch, pixel_values=patches(pictures[s].copy()), image_grid_thw=grids(len(examples))).logits.float()
        for row, e in enumerate(examples):
            places = [i for i, w in enumerate(wanted[row].tolist()) if w != IGNORE]
            hits = [bool(logits[row, i - 1].argmax() == wanted[row, i]) for i in places]
            if len(places) == 3:
                right["colour"].append(hits[0])
                right["shape"].append(hits[1])
                code = next(c for (c, task), p in texts.prompts.items() if task == "demonstrative" and p == e.ids[: len(p)])
                terms = texts.terms(code)
                chosen = logits[row, places[0] - 2][list(terms.values())].softmax(-1)
                near[region_of(float(labels[s][row]["distance_m"]))].append(float(chosen[list(terms).index("proximal")]))
            else:
                right["distance"].append(hits[0])
    words = " ".join(f"{name} {np.mean(hit):.3f}" for name, hit in right.items())
    return f"{words} proximal " + "/".join(f"{np.mean(p):.2f}" if p else str(math.nan) for p in near.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/pico"), help="scenes and checkpoints")
    parser.add_argument("--out", type=Path, default=Path("build/pico/out"), help="where the two models are written")
    parser.add_argument("--scenes", type=int, default=16000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(STAGES), default=list(STAGES))
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    train(given.work, given.out, given.scenes, given.workers, given.only)


if __name__ == "__main__":
    main()
