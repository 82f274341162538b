"""Measure ``pico-space`` on rooms never used in training, and write its model card.

    python examples/pico_space_card.py --commit <the commit that trained it>

``tests/models/test_bundled_space.py`` measures again and compares.
"""

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path

import deixis as dx
from deixis.models import BUNDLED

SEED = 101
SIZE = 160
FIGURES = "figures.json"
TURNS = ("rotate up", "rotate down")
OTHERS = ("move forward", "move backward", "move left", "move right", "rotate left", "rotate right")
ROWS = {
    "trained, space2num": "rotate up / down, from two pictures to a number",
    "trained, num2space": "rotate up / down, from a number to one of four pictures",
    "other actions": "the other six actions, both directions",
    "layouts": "layouts on a desk, all maps, both directions",
}


def card_items(n: int) -> dict[str, dx.Items]:
    """The card's questions by row: ``n`` scenes of what it was trained for, half as many actions and a sixth as many layouts."""
    turns = dx.spacenum("transition", n=n, seed=SEED, size=SIZE, actions=TURNS)
    return {
        "trained, space2num": turns.filter(lambda item: item.groups["direction"] == "space2num"),
        "trained, num2space": turns.filter(lambda item: item.groups["direction"] == "num2space"),
        "other actions": dx.spacenum("transition", n=n // 2, seed=SEED, size=SIZE, actions=OTHERS),
        "layouts": dx.spacenum("layout", n=n // 6, seed=SEED, size=SIZE, scales=("desk",)),
    }


def figures_of(run: dx.Run) -> dict[str, float]:
    """Items, right answers by the largest option logit, chance, and the share of the letter answered most often."""
    best = run.options.loc[run.options.groupby("item")["logit"].idxmax()].set_index("item")["option"]
    chosen = [best[item.id] for item in run.items]
    return {
        "items": len(chosen),
        "right": sum(letter == item.truth for letter, item in zip(chosen, run.items, strict=True)),
        "chance": round(sum(1 / len(item.options) for item in run.items) / len(chosen), 4),
        "majority_letter": round(max(Counter(chosen).values()) / len(chosen), 4),
    }


def measure(n: int, rows: tuple[str, ...] = tuple(ROWS)) -> dict[str, dict[str, float]]:
    """Figures of ``pico-space`` by row."""
    vlm = dx.load("pico-space", device="cpu")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, items in card_items(n).items():
            if name in rows:
                path = Path(folder) / name.replace(", ", "-").replace(" ", "-")
                found[name] = figures_of(
                    dx.record(vlm, items, path, roles=("answer",), layers=[0], answers=False, progress=False)
                )
    return found


def figure_table(figures: dict[str, dict[str, float]]) -> str:
    """The measured figures, as a table of the card."""
    lines = ["| questions | items | right | chance | most frequent letter |", "|---|---|---|---|---|"]
    for name, f in figures.items():
        share = f["right"] / f["items"]
        lines.append(f"| {ROWS[name]} | {f['items']:.0f} | {share:.3f} | {f['chance']:.3f} | {f['majority_letter']:.3f} |")
    return "\n".join(lines)


CARD = """# pico-space

A real but very small vision-language model of the Qwen3-VL class ({parameters:.2f} million parameters), the network of `pico`
with pictures of 160 pixels (25 image tokens), trained from scratch for deixis on **one slice of SpaceNum**: turning the camera
up or down in a furnished room by 10 to 70 degrees, as multiple choice. Everything else in SpaceNum it has only seen as text for
its tokenizer; it answers there by chance, and the table below says so.

## Measured

Rooms of `dx.spacenum(seed={seed}, size={size})`, drawn with a seed that training never used. Answers are the option with the
largest logit. `tests/models/test_bundled_space.py` measures again.

{figures}

## How it does it

It was not left to find its own way: beside the answer, small heads (thrown away afterwards) were trained to read the camera's
pitch off the image tokens of each picture, and behind it at the entrance of block {gathered}, the signed magnitude at the
answer position and the right option at its own end at the entrance of block {compared}. That these quantities can be decoded
there is therefore no discovery; it is what makes the model a known truth.

One more route is open to it, and to any model: turns up and down begin within ten degrees of one pitch (so that the largest stays
in sight), so that the second picture alone, with the action's name, gives the right option in 0.725 of such questions (a rule on
the exact pitch, 120 rooms). What lies above that needs both pictures.

## Training

{rooms} rooms, eight views of each, ten degrees apart, half of them mirrored, light varied a little. First the language model
alone on questions that state their answer, then the vision tower with its head, then the whole. Script:
`examples/train_pico_space.py`, at commit `{commit}`. About {minutes} minutes on one core.

Licence: MIT, like the library.
"""


def main() -> None:
    from train_pico_space import COMPARED, GATHERED, HELD_OUT

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", required=True, help="the commit whose examples/train_pico_space.py made the weights")
    parser.add_argument("--minutes", type=int, default=50, help="how long the training took")
    parser.add_argument("--rooms", type=int, default=500, help="what training was given")
    parser.add_argument("--scenes", type=int, default=120)
    given = parser.parse_args()
    figures = measure(given.scenes)
    vlm = dx.load("pico-space", device="cpu", check=False)
    text = CARD.format(
        parameters=sum(p.numel() for p in vlm.model.parameters()) / 1e6,
        seed=SEED,
        size=SIZE,
        figures=figure_table(figures),
        gathered=GATHERED,
        compared=COMPARED,
        rooms=given.rooms - HELD_OUT,
        commit=given.commit,
        minutes=given.minutes,
    )
    folder = BUNDLED["pico-space"]
    (folder / "README.md").write_text(text, encoding="utf-8")
    data = {"seed": SEED, "size": SIZE, "scenes": given.scenes, "rows": figures}
    (folder / FIGURES).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    print(figure_table(figures))


if __name__ == "__main__":
    main()
