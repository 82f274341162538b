"""The report's examples: a few pictures, and what each model answered to each question about them."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deixis.analyses.distributions import option_table
from deixis.benchmarks.judge import can_judge, judge

if TYPE_CHECKING:
    from deixis.activations import Run
    from deixis.benchmarks import Item
    from deixis.benchmarks.images import ImageHandle

_PIXELS = 384


@dataclass(frozen=True)
class Answer:
    """What one model said to one question."""

    written: str
    shares: str
    verdict: str
    """Empty where the answer counts or can't be judged."""


@dataclass(frozen=True)
class Question:
    """One question about a scene and every model's answer to it, None where it was not asked."""

    task: str
    language: str
    answers: tuple[Answer | None, ...]


@dataclass(frozen=True)
class Scene:
    """A picture and the questions about it."""

    picture: str
    """A ``data:`` address."""
    alt: str
    questions: tuple[Question, ...]


def example_scenes(runs: Sequence["Run"]) -> list[Scene]:
    """One scene of each region, of one and the same figure where there is one, so that only its distance changes."""
    items = [item for item in runs[0].items if item.condition == "real" and item.images]
    chosen = _scenes_to_show(items)
    answered = [_Answered.of(run) for run in runs]
    scenes = []
    for name in chosen:
        asked = [item for item in items if item.groups.get("scene", item.id) == name]
        questions = tuple(Question(i.task, i.language, tuple(a.to(i) for a in answered)) for i in asked)
        scenes.append(Scene(data_address(asked[0].images[0]), _caption(asked[0]), questions))
    return scenes


def _scenes_to_show(items: Sequence["Item"]) -> list[str]:
    """Names of scenes, at most three."""
    by_figure: dict[str, dict[float, str]] = {}
    for item in items:
        places = by_figure.setdefault(item.groups.get("figure", ""), {})
        places.setdefault(item.targets.get("region", 0.0), item.groups.get("scene", item.id))
    if not by_figure:
        return []
    most = max(by_figure.values(), key=len)  # the first of them, where several figures were shown in all regions
    return [most[region] for region in sorted(most)][:3]


@dataclass(frozen=True)
class _Answered:
    """One run's answers by the item's id."""

    said: dict[str, Answer]

    @classmethod
    def of(cls, run: "Run") -> "_Answered":
        written = run.answers if run.settings["answers"] else [""] * len(run.items)
        shares = {
            str(item): ", ".join(f"{option} {prob:.0%}" for option, prob in zip(rows["option"], rows["prob"], strict=True))
            for item, rows in option_table(run).groupby("item", sort=False)
        }
        return cls(
            {i.id: Answer(text, shares.get(i.id, ""), _verdict(text, i)) for i, text in zip(run.items, written, strict=True)}
        )

    def to(self, item: "Item") -> Answer | None:
        return self.said.get(item.id)


def _verdict(answer: str, item: "Item") -> str:
    if not can_judge(item):
        return ""
    found = judge(answer, item)
    return "" if found.right else found.outcome.replace("_", " ")


def _caption(item: "Item") -> str:
    figure = item.groups.get("figure", item.groups.get("scene", item.id))
    distance = item.targets.get("distance_m")
    return f"{figure}, {distance:.2f} m away" if distance is not None else figure


def data_address(image: "ImageHandle", pixels: int = _PIXELS) -> str:
    """The picture inside the page, at most 384 pixels wide or high (or as many as are asked for), as JPEG."""
    picture = image.load()
    picture.thumbnail((pixels, pixels))
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=88)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"
