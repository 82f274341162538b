"""Train ``pico-space``: the network of ``pico`` on one slice of SpaceNum, turning the head up and down.

1. ``match``: the language model alone, on prompts without pictures that state the magnitude: it learns to look it up among the
   options, with a head at the end of each option that says whether this is the one.
2. ``pitch``: the vision tower alone, with a small supervised head that reads the camera's pitch off one picture.
3. ``space``: the whole on the benchmark's own prompts: two pictures and "how large was the action?", or five and "which of the
   others do you see afterwards?". The heads go on teaching: the pitch at the image tokens and behind each picture, the signed
   magnitude at the answer position, and the right option at its own end.

The rooms are those of ``dx.spacenum`` at seeds that nothing else uses. Everything is seeded by step, and all stages continue
from their checkpoints: kill it and run the same line again.

    python examples/train_pico_space.py --work build/pico-space --out deixis/models/bundled
"""

import argparse
import sys
import time
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pico_processor import MERGE, PATCH, WIDTH, build_model, build_processor
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from train_pico import Stage, check_patches, chunks, grids, kept_processor, patches, pooled_tokens, run_stage
from transformers import Qwen3VLForConditionalGeneration, Qwen3VLProcessor

import deixis as dx
from deixis.benchmarks.items import IMAGE_MARK
from deixis.benchmarks.spacenum.options import lettered, lettered_pictures
from deixis.benchmarks.spacenum.prompts import magnitude_text, transition_prompt

SIZE = 160
TOKENS = (SIZE // PATCH // MERGE) ** 2
SEED = 1_000_000
"""Of the training rooms; ``dx.spacenum`` is asked for these by nobody else."""
STEP_DEG, MOST_DEG = 10, 70
HELD_OUT = 60
LETTERS = "ABCD"
SCALE_DEG = 30.0
"""Pitches and magnitudes are divided by this before a head learns them."""
GATHERED, COMPARED = 2, 4
"""Blocks at whose entrance the heads listen: pitches behind the pictures, then what was made of them."""

STAGES = {
    "match": Stage("match", 600, 64, 1.5e-3, 0.1),
    "pitch": Stage("pitch", 1200, 48, 2e-3, 0.1),
    "space": Stage("space", 1400, 32, 1.2e-3),
}


@dataclass(frozen=True)
class Rooms:
    """Pictures (uint8, room x view x 160 x 160 x 3) and the pitch of each view, degrees, ten apart."""

    pictures: np.ndarray
    pitch: np.ndarray

    @property
    def n_train(self) -> int:
        """The last rooms are held out."""
        return len(self.pitch) - HELD_OUT


def views_of(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Room ``number``: uint8 (view, 160, 160, 3) and pitches in degrees: every multiple of ten from the start that was drawn."""
    items = dx.spacenum("transition", n=1, seed=SEED + number, size=SIZE, directions=("space2num",), actions=("rotate up",))
    image: Any = items[0].images[0]
    start = float(items[0].facts["poses"][0]["pitch_deg"])
    pitch = start + STEP_DEG * np.arange(MOST_DEG // STEP_DEG + 1)
    views = [replace(image, pose=replace(image.pose, pitch_deg=float(each))) for each in pitch]
    return np.stack([np.asarray(view.draw()) for view in views]), pitch


def prepare(folder: Path, n: int, workers: int) -> Rooms:
    """All rooms, drawn once; continues where an earlier call stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [number for number in range(n) if not (folder / f"{number}.npz").exists()]
    began = time.time()
    with get_context("spawn").Pool(workers) as pool:
        for count, number in enumerate(pool.imap_unordered(_draw_one, [(folder, number) for number in missing], chunksize=4)):
            if count % 100 == 99:
                print(f"rooms {number} {count + 1}/{len(missing)} {time.time() - began:.0f} s", file=sys.stderr, flush=True)
    kept = [np.load(folder / f"{number}.npz") for number in range(n)]
    return Rooms(np.stack([room["pictures"] for room in kept]), np.stack([room["pitch"] for room in kept]))


def _draw_one(job: tuple[Path, int]) -> int:
    folder, number = job
    pictures, pitch = views_of(number)
    part = folder / f"{number}.part.npz"
    np.savez(part, pictures=pictures, pitch=pitch)
    part.replace(folder / f"{number}.npz")
    return number


@dataclass(frozen=True)
class Question:
    """A prompt with its pictures (none where the magnitude is stated), the right letter, and what the heads learn from it."""

    prompt: str
    truth: str
    signed_deg: float
    pictures: np.ndarray = field(default_factory=lambda: np.empty((0, SIZE, SIZE, 3), np.uint8))
    pitch: np.ndarray = field(default_factory=lambda: np.empty(0))


def question(rooms: Rooms, room: int, rng: np.random.Generator) -> Question:
    """One item as ``dx.spacenum`` would ask it: up or down, from pictures to numbers or back."""
    views = rooms.pitch[room]
    sign = int(rng.choice([-1, 1]))
    steps = [int(k) for k in rng.choice(np.arange(1, len(views)), 4, replace=False)]
    direction = str(rng.choice(["space2num", "num2space"]))
    # All four ends must lie among the views, so that the start leaves room for the largest step.
    start = int(rng.integers(0, len(views) - max(steps)))
    start = start if sign > 0 else len(views) - 1 - start
    action = "rotate up" if sign > 0 else "rotate down"
    right_at = int(rng.integers(4))
    if direction == "space2num":
        texts = [magnitude_text(float(STEP_DEG * k), "deg") for k in steps]
        options = lettered(texts, right_at=right_at, rng=rng)
        prompt = transition_prompt(direction, action, None, options.options, 2)
        shown = [start, start + sign * steps[0]]
    else:
        options = lettered_pictures(4, 2, right_at=right_at, rng=rng)
        asked = magnitude_text(float(STEP_DEG * steps[0]), "deg")
        prompt = transition_prompt(direction, action, asked, options.options, 5)
        shown = [start, *(start + sign * steps[k] for k in options.order)]
    pictures = rooms.pictures[room][shown]
    return Question(prompt, options.truth, float(sign * STEP_DEG * steps[0]), pictures, views[shown])


def stated(rng: np.random.Generator) -> Question:
    """The question without pictures and with its answer in the text."""
    action = str(rng.choice(["rotate up", "rotate down"]))
    steps = rng.choice(np.arange(1, MOST_DEG // STEP_DEG + 1), 4, replace=False)
    texts = [magnitude_text(float(STEP_DEG * k), "deg") for k in steps]
    options = lettered(texts, right_at=int(rng.integers(4)), rng=rng)
    prompt = transition_prompt("space2num", f"{action} by {texts[0]}", None, options.options, 0)
    return Question(prompt, options.truth, float(STEP_DEG * steps[0] * (1 if action == "rotate up" else -1)))


def corpus() -> list[str]:
    """Prompts of the whole benchmark, that the tokenizer may know them all, and the letters."""
    items = dx.spacenum("transition", n=160, seed=SEED, size=SIZE) + dx.spacenum("layout", n=40, seed=SEED, scales=("desk",))
    return [item.prompt.replace(IMAGE_MARK, "") for item in items] + [f"{letter}\n" for letter in LETTERS] * 40


class Texts:
    """Prompts as token ids, as the processor would write them."""

    def __init__(self, processor: Qwen3VLProcessor) -> None:
        self.processor, self.tokenizer = processor, processor.tokenizer
        self.image, self.pad, self.end = processor.image_token_id, self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
        self.letters = [self.tokenizer(letter, add_special_tokens=False).input_ids for letter in LETTERS]
        if any(len(ids) != 1 for ids in self.letters):
            raise RuntimeError("a letter is more than one token; the tokenizer's corpus has changed.")
        self.behind = self.tokenizer.convert_tokens_to_ids("<|vision_end|>")
        self._known: dict[str, tuple[list[int], list[int]]] = {}

    def letter(self, letter: str) -> int:
        """Its one token."""
        return self.letters[LETTERS.index(letter)][0]

    def ids(self, prompt: str) -> tuple[list[int], list[int]]:
        """The whole prompt up to the answer, image tokens expanded; and where each option ends."""
        if prompt not in self._known:
            content: list[Any] = []
            for k, part in enumerate(prompt.split(IMAGE_MARK)):
                content += ([{"type": "image"}] if k else []) + ([{"type": "text", "text": part}] if part else [])
            message: list[Any] = [{"role": "user", "content": content}]
            text = self.processor.apply_chat_template(message, add_generation_prompt=True)
            text = text.replace("<|image_pad|>", "<|image_pad|>" * TOKENS)
            found = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            ends = [text.index("\n", text.index(f"\n{letter}. ") + 1) for letter in LETTERS]
            places = [next(k for k, (low, high) in enumerate(found.offset_mapping) if low <= end < high) for end in ends]
            self._known[prompt] = found.input_ids, places
        return self._known[prompt]


class Heads(nn.Module):
    """What is read off the inside while it learns; pitches and magnitudes in units of 30 degrees."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.pitch, self.behind = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 1)
        self.magnitude, self.right = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 1)

    def pitches(self, tokens: Tensor) -> Tensor:
        """From merged image tokens (picture, token, width)."""
        return self.pitch((self.query(tokens).softmax(dim=1) * tokens).sum(1))[:, 0]

    def loss(self, found: "Outcome", asked: list[Question]) -> Tensor:
        """Which option is right, the magnitude, and the pitches where there are pictures."""
        truth = torch.tensor([[letter == q.truth for letter in LETTERS] for q in asked]).float()
        signed = torch.tensor([q.signed_deg / SCALE_DEG for q in asked])
        loss = binary_cross_entropy_with_logits(self.right(found.options)[..., 0], truth)
        loss = loss + 0.5 * mse_loss(self.magnitude(found.answer)[:, 0], signed)
        if found.tokens is not None:
            pitch = torch.tensor(np.concatenate([q.pitch for q in asked]) / SCALE_DEG).float()
            loss = loss + 0.5 * mse_loss(self.pitches(found.tokens), pitch)
            loss = loss + 0.5 * mse_loss(self.behind(found.behind)[:, 0], pitch)
        return loss


@dataclass(frozen=True)
class Outcome:
    """What one pass over questions gave: logits of the letter and behind it, and what the heads read."""

    letters: Tensor
    end: Tensor
    tokens: Tensor | None
    behind: Tensor
    options: Tensor
    answer: Tensor


def run_questions(model: Qwen3VLForConditionalGeneration, texts: Texts, asked: list[Question]) -> Outcome:
    """Prompt and answer letter in one right-padded batch, as training sees them."""
    known = [texts.ids(q.prompt) for q in asked]
    rows = [[*ids, texts.letter(q.truth)] for (ids, _), q in zip(known, asked, strict=True)]
    ids = torch.full((len(rows), max(map(len, rows))), texts.pad)
    mask = torch.zeros_like(ids)
    for k, row in enumerate(rows):
        ids[k, : len(row)], mask[k, : len(row)] = torch.tensor(row), 1
    pictures = np.concatenate([q.pictures for q in asked])
    shown = {"pixel_values": patches(pictures), "image_grid_thw": grids(len(pictures), SIZE // PATCH)} if len(pictures) else {}
    kept: dict[str, Tensor] = {}
    blocks = model.model.language_model.layers
    handles = [
        model.model.visual.register_forward_hook(lambda _m, _a, out: kept.update(tokens=out.pooler_output.float())),
        *(
            blocks[number].register_forward_pre_hook(
                lambda _m, args, kwargs, name=name: kept.update({name: (args or (kwargs["hidden_states"],))[0].float()}),
                with_kwargs=True,
            )
            for name, number in (("gathered", GATHERED), ("compared", COMPARED))
        ),
    ]
    model.model.rope_deltas = None
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model.model(
            input_ids=ids, attention_mask=mask, mm_token_type_ids=(ids == texts.image).int(), use_cache=False, **shown
        ).last_hidden_state
        at, last = torch.arange(len(rows)), torch.tensor([len(row) - 2 for row in rows])
        logits = model.lm_head(torch.stack([hidden[at, last], hidden[at, last + 1]])).float()
    for handle in handles:
        handle.remove()
    tokens = kept["tokens"].reshape(len(pictures), TOKENS, -1) if len(pictures) else None
    options = kept["compared"][at[:, None], torch.tensor([places for _, places in known])]
    return Outcome(logits[0], logits[1], tokens, kept["gathered"][ids == texts.behind], options, kept["compared"][at, last])


def mirrored(pictures: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Left and right swapped half of the time, exposure changed by up to 8 %: neither tells the pitch."""
    turned = pictures[..., ::-1, :] if rng.random() < 0.5 else pictures
    return np.clip(turned * rng.uniform(0.92, 1.08), 0, 255).astype(np.uint8)


def train(work: Path, out: Path, n_rooms: int, workers: int, only: list[str]) -> None:
    """All stages, or those named."""
    torch.manual_seed(0)
    rooms = prepare(work / "rooms", n_rooms, workers)
    processor = kept_processor(work / "processor", lambda: build_processor(corpus(), SIZE))
    model, texts, heads = build_model(processor), Texts(processor), Heads()
    check_patches(processor, rooms.pictures[0, 0])

    def pitch_step(rng: np.random.Generator) -> Tensor:
        room = rng.integers(0, rooms.n_train, STAGES["pitch"].batch)
        view = rng.integers(0, rooms.pitch.shape[1], len(room))
        pictures = np.stack([mirrored(rooms.pictures[r, v], rng) for r, v in zip(room, view, strict=True)])
        wanted = torch.tensor(rooms.pitch[room, view] / SCALE_DEG).float()
        return mse_loss(heads.pitches(pooled_tokens(model, patches(pictures), len(pictures))), wanted)

    def answered(asked: list[Question]) -> Tensor:
        found = run_questions(model, texts, asked)
        right = torch.tensor([texts.letter(q.truth) for q in asked])
        loss = cross_entropy(found.letters, right) + 0.1 * cross_entropy(found.end, torch.full_like(right, texts.end))
        return loss + heads.loss(found, asked)

    def match_step(rng: np.random.Generator) -> Tensor:
        return answered([stated(rng) for _ in range(STAGES["match"].batch)])

    def space_step(rng: np.random.Generator) -> Tensor:
        asked = [question(rooms, int(rng.integers(rooms.n_train)), rng) for _ in range(STAGES["space"].batch)]
        asked = [replace(q, pictures=mirrored(q.pictures, rng)) for q in asked]
        return answered(asked) + 0.2 * answered([stated(rng) for _ in range(STAGES["space"].batch // 4)])

    visual = nn.ModuleDict({"visual": model.model.visual, "heads": heads})
    both = nn.ModuleDict({"model": model, "heads": heads})
    if "match" in only:
        run_stage(STAGES["match"], work, both, match_step, lambda: check_stated(model, texts))
    if "pitch" in only:
        both.load_state_dict(torch.load(work / "match.pt", weights_only=True)["modules"])
        run_stage(STAGES["pitch"], work, visual, pitch_step, lambda: check_pitch(model, heads, rooms))
    if "space" in only:
        both.load_state_dict(torch.load(work / "match.pt", weights_only=True)["modules"])
        visual.load_state_dict(torch.load(work / "pitch.pt", weights_only=True)["modules"])
        run_stage(STAGES["space"], work, both, space_step, lambda: check_answers(model, texts, rooms))
        model.eval()
        model.save_pretrained(out / "pico-space")
        processor.save_pretrained(out / "pico-space")


def check_pitch(model: Qwen3VLForConditionalGeneration, heads: Heads, rooms: Rooms) -> str:
    """Mean error of the head in rooms held out."""
    pictures, pitch = rooms.pictures[rooms.n_train :].reshape(-1, SIZE, SIZE, 3), rooms.pitch[rooms.n_train :].ravel()
    found = [heads.pitches(pooled_tokens(model, patches(pictures[s]), len(pictures[s]))).numpy() for s in chunks(len(pictures))]
    error = np.abs(np.concatenate(found) * SCALE_DEG - pitch)
    return f"error {error.mean():.2f} degrees (nine in ten below {np.quantile(error, 0.9):.2f})"


def check_stated(model: Qwen3VLForConditionalGeneration, texts: Texts) -> str:
    """Share of right letters where the magnitude is stated."""
    rng = np.random.default_rng(1)
    return f"right {right_letters(model, texts, [stated(rng) for _ in range(120)]).mean():.3f}"


def right_letters(model: Qwen3VLForConditionalGeneration, texts: Texts, asked: list[Question]) -> np.ndarray:
    """For each question whether the likeliest token is the right letter."""
    return np.array(
        [
            texts.letter(q.truth) == int(row.argmax())
            for s in chunks(len(asked), 40)
            for q, row in zip(asked[s], run_questions(model, texts, asked[s]).letters, strict=True)
        ]
    )


def check_answers(model: Qwen3VLForConditionalGeneration, texts: Texts, rooms: Rooms) -> str:
    """Share of right letters in rooms held out, by direction."""
    rng = np.random.default_rng(1)
    asked = [question(rooms, int(rng.integers(rooms.n_train, len(rooms.pitch))), rng) for _ in range(240)]
    right = right_letters(model, texts, asked)
    five = np.array([len(q.pictures) == 5 for q in asked])
    return f"space2num {right[~five].mean():.3f} num2space {right[five].mean():.3f} (of {(~five).sum()} and {five.sum()})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/pico-space"), help="rooms and checkpoints")
    parser.add_argument("--out", type=Path, default=Path("build/pico-space/out"), help="where the model is written")
    parser.add_argument("--rooms", type=int, default=800)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(STAGES), default=list(STAGES))
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    train(given.work, given.out, given.rooms, given.workers, given.only)


if __name__ == "__main__":
    main()
