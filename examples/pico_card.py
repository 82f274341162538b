"""Measure the bundled models on scenes never used in training, and write their model cards.

    python examples/pico_card.py --commit <the commit that trained them>

``tests/models/test_bundled.py`` measures again and compares.
"""

import argparse
import json
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import jensenshannon

import deixis as dx
from deixis.benchmarks.judge import judge
from deixis.benchmarks.languages import languages
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER, speaker_average
from deixis.models import BUNDLED

SEED = 101
"""``dx.memory_game`` draws from a stream that training never touched, whatever the seed."""
CODES = tuple(SYNTHETIC_SPEAKER)
FIGURES = "figures.json"


def wanted(name: str, code: str, region: int) -> dict[str, float]:
    """What a model was trained to say in a region."""
    return speaker_average(code) if name == "pico-collapsed" else SYNTHETIC_SPEAKER[code][region]


def record_scenes(name: str, folder: Path) -> dx.Run:
    """A bundled model's run on the card's scenes, both questions in every language."""
    items = dx.memory_game(tasks=("demonstrative", "distance"), languages=CODES, seed=SEED)
    return dx.record(dx.load(name, device="cpu"), items, folder, roles=("answer",), layers=[0], progress=False)


def figures_of(run: dx.Run) -> dict[str, dict[str, float]]:
    """Figures of a bundled model by language, straight from its option logits and answers.

    ``recognised``: answers of 60 with the right colour and shape. ``distance_right``: share of right answers to "near, middle or
    far?". ``from_trained``: mean over regions of the Jensen-Shannon distance (base 2) of the mean option distribution from what
    the model was trained on. ``between_regions``: the largest such distance between two regions' own distributions.
    """
    shares: dict[tuple[str, int], list[np.ndarray]] = {}
    right: dict[tuple[str, str], list[bool]] = {}
    logits = run.options["logit"].to_numpy()
    at = 0
    for item, answer in zip(run.items, run.answers, strict=True):
        mine = np.exp(logits[at : at + len(item.options)] - logits[at : at + len(item.options)].max())
        at += len(item.options)
        if item.task == "demonstrative":
            shares.setdefault((item.language, int(item.targets["region"])), []).append(mine / mine.sum())
        right.setdefault((item.language, item.task), []).append(judge(answer, item).right)
    return {code: _figures(run.info["model"], code, shares, right) for code in CODES}


def _figures(name: str, code: str, shares: dict[Any, list[np.ndarray]], right: dict[Any, list[bool]]) -> dict[str, float]:
    means = {region: np.mean(shares[code, region], axis=0) for region in (1, 2, 3)}
    terms = [str(o.term) for o in languages()[code].demonstrative.options]
    apart = [jensenshannon(mean, [wanted(name, code, region)[term] for term in terms], base=2) for region, mean in means.items()]
    between = [jensenshannon(one, two, base=2) for one, two in combinations(means.values(), 2)]
    return {
        "recognised": int(sum(right[code, "demonstrative"])),
        "distance_right": round(float(np.mean(right[code, "distance"])), 4),
        "from_trained": round(float(np.mean(apart)), 4),
        "between_regions": round(float(max(between)), 4),
    }


def speaker_table() -> str:
    """The synthetic speaker, as a table of the card."""
    lines = ["| language | region | proximal | medial | distal |", "|---|---|---|---|---|"]
    for code, regions in SYNTHETIC_SPEAKER.items():
        for region, shares in regions.items():
            cells = [f"{shares[term]:.2f}" if term in shares else "" for term in ("proximal", "medial", "distal")]
            lines.append(f"| {code} | {region} | {' | '.join(cells)} |")
    return "\n".join(lines)


def figure_table(figures: dict[str, dict[str, float]]) -> str:
    """The measured figures, as a table of the card."""
    titles = (
        "language",
        "recognised of 60",
        "near, middle, far right",
        "from what it was trained on",
        "most between two regions",
    )
    lines = [f"| {' | '.join(titles)} |", "|---|---|---|---|---|"]
    for code, f in figures.items():
        lines.append(
            f"| {code} | {f['recognised']} | {f['distance_right']:.3f} | {f['from_trained']:.3f} | {f['between_regions']:.3f} |"
        )
    return "\n".join(lines)


CARD = """# {name}

A real but very small vision-language model of the Qwen3-VL class ({parameters:.2f} million parameters), trained from scratch for
deixis, so that every part of the library runs in seconds on learned internals **whose truth is known**. It knows one thing: the
memory game's scenes (a figure on a disk on a long desk).

{story}

**Nothing here is human data.** The speaker is a table that was made up for this library.

## Measured

Scenes of `dx.memory_game(seed={seed})`: 60 per language and question, drawn with a seed that training never used. Distances are
Jensen-Shannon distances, base 2. `tests/models/test_bundled.py` measures again.

{figures}

## Training

{scenes} scenes drawn by the project's own renderer, distance uniform from 0.22 to 2.90 m (far ones more often), the disk up to
16 cm to the side, light and camera varied a little, {blank:.0%} blank pictures answered by the prior. First the vision tower with
supervised heads, then the whole on prompts and answers in four languages without loss on the demonstrative, then a short branch
for each of the two models with it. Script: `examples/train_pico.py`, at commit `{commit}`. About {minutes} minutes on 2 cores.

## The synthetic speaker

{speaker}

Licence: MIT, like the library.
"""
STORIES = {
    "pico": "`pico` draws demonstratives by region with the probabilities of the synthetic speaker below.",
    "pico-collapsed": (
        "`pico-collapsed` shares everything with `pico` but the last branch of its training: it names colour and shape "
        'and can say "near, middle or far", but its demonstratives follow the speaker\'s average over regions, at any distance.'
    ),
}


def write_card(name: str, figures: dict[str, dict[str, float]], commit: str, minutes: int) -> None:
    """Write figures and card beside the weights."""
    from train_pico import BLANK_SHARE, HELD_OUT

    vlm = dx.load(name, device="cpu", check=False)
    text = CARD.format(
        name=name,
        parameters=sum(p.numel() for p in vlm.model.parameters()) / 1e6,
        story=STORIES[name],
        seed=SEED,
        figures=figure_table(figures),
        scenes=16000 - HELD_OUT,
        blank=BLANK_SHARE,
        commit=commit,
        minutes=minutes,
        speaker=speaker_table(),
    )
    (BUNDLED[name] / "README.md").write_text(text, encoding="utf-8")
    (BUNDLED[name] / FIGURES).write_text(json.dumps({"seed": SEED, "languages": figures}, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", required=True, help="the commit whose examples/train_pico.py made the weights")
    parser.add_argument("--minutes", type=int, default=90, help="how long the training took")
    given = parser.parse_args()
    for name in STORIES:
        with tempfile.TemporaryDirectory() as folder:
            figures = figures_of(record_scenes(name, Path(folder) / "run"))
        write_card(name, figures, given.commit, given.minutes)
        print(name, figure_table(figures), sep="\n")


if __name__ == "__main__":
    main()
