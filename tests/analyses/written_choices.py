"""Multiple-choice items in SpaceNum's form, written by hand, and models whose choices are planted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from deixis.benchmarks import Item, Items, Option
from deixis.benchmarks.images import UniformImage
from deixis.benchmarks.spacenum.options import cyclic_permutations
from tests.analyses.fake_run import FakeRun

PAIRS = {
    "move F/B": ("move forward", "move backward"),
    "move L/R": ("move left", "move right"),
    "rotate U/D": ("rotate up", "rotate down"),
    "rotate L/R": ("rotate left", "rotate right"),
}
GREY = UniformImage(width=8, height=8, grey=90)
LAYOUT_KINDS = ("correct", "position", "size", "both")


def transition(scene: str, direction: str, action: str, values: Sequence[float], truth: str) -> Item:
    """One question about an action; ``values`` are the magnitudes behind A, B, C, D."""
    column = next(name for name, actions in PAIRS.items() if action in actions)
    right = values["ABCD".index(truth)]
    ranks = sorted(range(4), key=lambda k: abs(values[k] - right))
    kinds = {k: ("correct", "less_correct", "less_wrong", "wrong")[rank] for rank, k in enumerate(ranks)}
    texts = [f"Image {k + 2}" for k in range(4)] if direction == "num2space" else [f"{value:g} degrees" for value in values]
    groups = {"kind": "transition", "column": column, "action": action}
    return _item(scene, f"transition-{direction}", "", groups, options(texts, values, [kinds[k] for k in range(4)]), truth)


def layout(scene: str, direction: str, name: str, scale: str, kinds: Sequence[str], truth: str | None = None) -> Item:
    """One question about a layout; ``kinds`` are those of the options A, B, ... in order."""
    column = f"{name} {'D' if scale == 'desk' else 'R'}"
    groups = {"kind": "layout", "column": column, "map": name, "scale": scale}
    texts = [f"Image {k + 1}" if direction == "num2space" else f"[({k}, 0)]" for k in range(len(kinds))]
    right = "ABCD"[list(kinds).index("correct")] if truth is None else truth
    return _item(scene, f"layout-{direction}", f"/{name}", groups, options(texts, [None] * len(kinds), kinds), right)


def options(texts: Sequence[str], values: Sequence[float | None], kinds: Sequence[str | None]) -> tuple[Option, ...]:
    return tuple(
        Option(label=letter, forms=(letter, f" {letter}"), text=text, value=value, kind=kind)
        for letter, text, value, kind in zip("ABCD", texts, values, kinds, strict=False)
    )


def _item(scene: str, task: str, name: str, groups: Mapping[str, str], choices: tuple[Option, ...], truth: str) -> Item:
    direction = task.split("-")[1]
    n_images = len(choices) + 1 if direction == "num2space" else 2
    listed = "; ".join(f"{o.label}. {o.text}" for o in choices)
    return Item(
        id=f"spacenum/{scene}/{task}{name}",
        benchmark="spacenum",
        task=task,
        language="en",
        images=(GREY,) * n_images,
        prompt=f"Which? Options: {listed}.",
        options=choices,
        truth=truth,
        groups={"scene": scene, "direction": direction, "letter": truth, "permutation": "0", **groups},
    )


def small_set(scenes: int = 8, permuted: bool = False) -> Items:
    """All twenty columns: ``scenes`` of each action pair and of each scale, letters dealt in turn."""
    made = []
    for number in range(scenes):
        for pair, actions in PAIRS.items():
            values = [10.0, 30.0, 50.0, 70.0]
            for k, direction in enumerate(("num2space", "space2num")):
                made.append(transition(f"room{number} {pair}", direction, actions[number % 2], values, "ABCD"[(number + k) % 4]))
        for scale in ("desk", "room"):
            for k, direction in enumerate(("num2space", "space2num")):
                for name in ("1D", "2D", "3D"):
                    kinds = LAYOUT_KINDS[:2] if name == "1D" else LAYOUT_KINDS
                    turn = (number + k) % len(kinds)
                    made.append(
                        layout(f"{scale}{number}", direction, name, scale, (*kinds[-turn:], *kinds[:-turn]) if turn else kinds)
                    )
    items = Items(made)
    return cyclic_permutations(items) if permuted else items


def planted(items: Items, letter: Callable[[Item], str], model: str = "planted", written: bool = True) -> FakeRun:
    """A model that answers ``letter(item)`` with 0.97 of its probability, and writes it."""

    def shares(item: Item) -> dict[str, float]:
        rest = 0.03 / (len(item.options) - 1)
        return {option.label: 0.97 if option.label == letter(item) else rest for option in item.options}

    return FakeRun(items, shares, answers=[f"Answer: {letter(item)}" for item in items] if written else [], model=model)


def always_a(item: Item) -> str:
    return "A"


def always_right(item: Item) -> str:
    return str(item.truth)


def needs_the_image(item: Item) -> str:
    """Right where there is something to see; otherwise the letter after the right one."""
    if item.condition == "real":
        return str(item.truth)
    k = len(item.options)
    return "ABCD"[("ABCD".index(str(item.truth)) + 1) % k]


def with_conditions(items: Items, *names: str) -> Items:
    """The items, and again under each condition."""
    return Items([*items, *(replace(i, id=f"{i.id}+{name}", condition=name) for name in names for i in items)])
