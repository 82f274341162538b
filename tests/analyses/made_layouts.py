"""Layout questions with exact truth and no pictures, and models whose frame is planted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from deixis.benchmarks import Box, Item, Items, Option
from deixis.benchmarks.images import UniformImage
from deixis.benchmarks.spacenum.layout_picture import Eye
from deixis.benchmarks.spacenum.placing import DESK, KINDS, AnchorFrame, box_corners, draw_layout
from tests.analyses.fake_run import FakeRun

SIZE = 200


@cache
def made_layouts(n: int = 60, maps: tuple[str, ...] = ("2D",), seed: int = 0, conditions: tuple[str, ...] = ("real",)) -> Items:
    """``n`` scenes on a desk, the frame at any angle, the camera above and before it, each asked on every map."""
    rng = np.random.default_rng(seed)
    scenes = [(number, _scene(rng)) for number in range(n)]
    order = np.random.default_rng(seed + 1)
    return Items(
        _item(number, made, name, condition, order) for condition in conditions for number, made in scenes for name in maps
    )


@dataclass
class Made:
    boxes: list[dict[str, list[list[float]]]]
    """Of each placement, in the order of KINDS."""
    frame: AnchorFrame
    eye: Eye

    def corners(self, number: int, role: str) -> np.ndarray:
        return self.frame.to_scene(box_corners(self.boxes[number][role]))


def _scene(rng: np.random.Generator) -> Made:
    layout = None
    while layout is None:
        layout = draw_layout(rng, DESK, ((9, 9, 9), (10, 11, 20), (8, 8, 12)))
    boxes = [
        {name: box.metres(DESK.step_m) for name, box in zip(("anchor_a", "anchor_b", "target"), (*anchors, target), strict=True)}
        for anchors in [(layout.anchor_a, layout.anchor_b)]
        for target in layout.placements
    ]
    yaw = float(rng.uniform(0, 360))
    turned = AnchorFrame(origin_m=(0.0, 0.0, 0.0), yaw_deg=yaw)
    everything = np.concatenate([turned.to_scene(box_corners(box)) for each in boxes for box in each.values()])
    middle = everything.mean(axis=0)[:2] + rng.uniform(-0.1, 0.1, 2)
    frame = AnchorFrame(origin_m=(-float(middle[0]), -float(middle[1]), 0.0), yaw_deg=yaw)
    away, pitch, heading = float(rng.uniform(1.2, 1.8)), float(rng.uniform(-50, -30)), float(rng.uniform(-15, 15))
    back = away * np.cos(np.radians(pitch))
    place = (back * np.sin(np.radians(heading)), -back * np.cos(np.radians(heading)), -away * np.sin(np.radians(pitch)))
    return Made(boxes, frame, Eye(position_m=tuple(map(float, place)), yaw_deg=heading, pitch_deg=pitch, focal_mm=26.0))


def _item(number: int, made: Made, name: str, condition: str, rng: np.random.Generator) -> Item:
    offered = (0, 1 + number % 3) if name == "1D" else tuple(range(4))
    order = [offered[k] for k in rng.permutation(len(offered))]
    truth = "ABCD"[order.index(0)]
    options = tuple(
        Option(label=letter, forms=(letter,), text=str(made.boxes[k]["target"]), kind=KINDS[k])
        for letter, k in zip("ABCD", order, strict=False)
    )
    middle = box_corners(made.boxes[0]["target"]).mean(axis=0)
    camera = made.eye.coordinates(made.frame.to_scene(middle[None]))[0]
    targets = dict(
        zip(("x_m", "y_m", "z_m", "camera_x_m", "camera_y_m", "camera_z_m"), map(float, (*middle, *camera)), strict=True)
    )
    targets["size_m"] = max(high - low for low, high in zip(*made.boxes[0]["target"], strict=True))
    suffix = "" if condition == "real" else f"+{condition}"
    return Item(
        id=f"made/{number}/layout-space2num/{name}{suffix}",
        benchmark="spacenum",
        task="layout-space2num",
        language="en",
        condition=condition,
        images=(UniformImage(width=8, height=8, grey=number % 256),),
        prompt=f"{name}: which?",
        options=options,
        truth=truth,
        targets=targets,
        groups={"scene": f"made-{number:03d}", "kind": "layout", "direction": "space2num", "map": name, "scale": "desk",
                "column": f"{name} D", "letter": truth, "permutation": "0"},
        objects=tuple(_box(made, role) for role in ("anchor_a", "anchor_b", "target")),
        facts={"placements": [_placement(made, k) for k in order], "shown": ["correct"]},
    )  # fmt: skip


def _box(made: Made, role: str) -> Box:
    points = made.eye.view(SIZE).project(made.corners(0, role))
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    return Box(name=role, left=float(left), top=float(top), right=float(right), bottom=float(bottom))


def _placement(made: Made, number: int) -> dict[str, Any]:
    return {"kind": KINDS[number], "objects": [{"role": role, "box": box} for role, box in made.boxes[number].items()]}


class LogitRun(FakeRun):
    """A run whose option logits are given, item by item."""

    def __init__(self, items: Items, logits: Callable[[Item], Sequence[float]]) -> None:
        super().__init__(items, shares=lambda _: {})
        self.logits = logits

    @property
    def options(self) -> pd.DataFrame:
        rows = [
            (item.id, option.label, option.term, np.float32(logit))
            for item in self.items
            for option, logit in zip(item.options, self.logits(item), strict=True)
        ]
        return pd.DataFrame(rows, columns=["item", "option", "term", "logit"])


def target_places(item: Item) -> np.ndarray:
    """The middle of the target's box in each option."""
    boxes = [next(o["box"] for o in placement["objects"] if o["role"] == "target") for placement in item.facts["placements"]]
    return np.asarray(boxes, float).mean(axis=1)
