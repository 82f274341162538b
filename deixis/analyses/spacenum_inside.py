"""What the layers hold of SpaceNum's numbers: magnitudes of actions, places of layouts, and in which frame."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deixis.benchmarks.spacenum.actions import COLUMNS
from deixis.probes import NotEnoughDataError

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations import Run
    from deixis.analyses.coordinates import Coordinates
    from deixis.analyses.frame_answers import AnswerFrame
    from deixis.analyses.frames import FrameSweep
    from deixis.analyses.layer_sweep import LayerSweep

MAGNITUDES = {"answer": "magnitude", "image:1": "signed_magnitude"}
"""Target by role. The question names the action, and so the sign, behind the pictures: signed, a probe at the answer would read
it from the text. What the second picture's tokens hold they have from the pictures."""
LAYOUT_TARGETS = ("x_m", "y_m", "size_m", "camera_x_m", "camera_z_m")
PLACE = ("x_m", "y_m")
LAYOUT_ROLES = ("answer", "object")
_COUNTS: dict[str, Any] = {"n_permutations": 100, "n_bootstrap": 50, "n_orders": 2}
"""Draws of a report's sweeps: they are most of its work."""


@dataclass(frozen=True, kw_only=True)
class SpaceNumInside:
    """One model's numbers, inside."""

    model: str
    sweeps: "pd.DataFrame"
    """The frames of the layer sweeps, with the ``task`` and the ``items`` (an action pair, or ``layouts``)."""
    best: "pd.DataFrame"
    """Rows of ``sweeps`` at each sweep's best layer, with ``held_out``."""
    places: "tuple[Coordinates, ...]"
    """Target positions in the anchors' frame, decoded on scenes that the probe has not seen; a role each."""
    frames: "FrameSweep | None"
    answers: "AnswerFrame | None"
    refused: tuple[str, ...]
    """What could not be computed, and why, a sentence each."""


def is_spacenum(run: "Run") -> bool:
    """Whether a run holds items of SpaceNum and no others."""
    return bool(len(run.items)) and all(item.benchmark == "spacenum" for item in run.items)


def spacenum_inside(run: "Run", untrained: "Run | None" = None) -> SpaceNumInside:
    """Decode what a run's SpaceNum items have targets for, at the roles that were recorded.

    Magnitudes are decoded for each pair of actions by itself (see :data:`MAGNITUDES`), in the direction Space2Num where it was
    asked: the questions of Num2Space name the magnitude.

    Args:
        run: Of SpaceNum items.
        untrained: The same real items through :func:`deixis.untrained`.
    """
    import pandas as pd

    refused: list[str] = []
    sweeps = list(_sweeps(run, untrained, refused))
    frames, answers = _frames(run, untrained, refused)
    return SpaceNumInside(
        model=str(run.settings["model"]),
        sweeps=pd.concat([frame for frame, _ in sweeps], ignore_index=True) if sweeps else pd.DataFrame(),
        best=pd.concat([best for _, best in sweeps], ignore_index=True) if sweeps else pd.DataFrame(),
        places=tuple(_places(run, refused)),
        frames=frames,
        answers=answers,
        refused=tuple(refused),
    )


def real_task(run: "Run", kind: str) -> str | None:
    """The task of the real items of a kind, Space2Num before Num2Space; None where there is none with targets."""
    tasks = {item.task for item in run.items if item.condition == "real" and item.groups.get("kind") == kind and item.targets}
    return next((task for task in (f"{kind}-space2num", f"{kind}-num2space") if task in tasks), None)


def _sweeps(run: "Run", untrained: "Run | None", refused: list[str]) -> "Iterator[tuple[pd.DataFrame, pd.DataFrame]]":
    from deixis.analyses.findings import best_rows

    for named, asked in _questions(run):
        try:
            sweep = _sweep(run, untrained, asked)
        except NotEnoughDataError as error:
            refused.append(f"No sweep of {asked['target']}, {named['items']}, at {asked['role']}: {error}")
            continue
        yield sweep.to_frame().assign(**named), best_rows(sweep).assign(**named)


def _sweep(run: "Run", untrained: "Run | None", asked: dict[str, Any]) -> "LayerSweep":
    from deixis.analyses.layer_sweep import layer_sweep

    return layer_sweep(run, untrained=untrained, **asked, **_COUNTS)


def _questions(run: "Run") -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """What to sweep: the names that its rows get, and the arguments."""
    task = real_task(run, "transition")
    there = {item.groups.get("column") for item in run.items if item.task == task}
    known = _shared_targets(run, task)
    for column in (name for name in COLUMNS if name in there):
        for role, target in MAGNITUDES.items():
            if role in run.roles and target in known:
                asked = {"target": target, "role": role, "task": task, "where": {"column": column}}
                yield {"items": column, "task": str(task)}, asked
    task = real_task(run, "layout")
    known = _shared_targets(run, task)
    for role in (name for name in LAYOUT_ROLES if name in run.roles):
        for target in (name for name in LAYOUT_TARGETS if name in known):
            yield {"items": "layouts", "task": str(task)}, {"target": target, "role": role, "task": task}


def _shared_targets(run: "Run", task: str | None) -> set[str]:
    """Targets that all real items of a task have: published items have none but magnitudes."""
    targets = [set(item.targets) for item in run.items if item.task == task and item.condition == "real"]
    return set.intersection(*targets) if targets else set()


def _places(run: "Run", refused: list[str]) -> "Iterator[Coordinates]":
    from deixis.analyses.coordinates import decode_coordinates

    task = real_task(run, "layout")
    is_placed = set(PLACE) <= _shared_targets(run, task)
    for role in (name for name in LAYOUT_ROLES if name in run.roles and is_placed):
        try:
            yield decode_coordinates(run, PLACE, role=role, task=task, n_bootstrap=0)
        except NotEnoughDataError as error:
            refused.append(f"No map decoded at {role}: {error}")


def _frames(run: "Run", untrained: "Run | None", refused: list[str]) -> "tuple[FrameSweep | None, AnswerFrame | None]":
    from deixis.analyses.frame_answers import answer_frame
    from deixis.analyses.frames import frame_sweep

    if not {"x_m", "camera_x_m"} <= _shared_targets(run, real_task(run, "layout")):
        return None, None
    frames, answers = None, None
    try:
        frames = frame_sweep(run, untrained=untrained, n_permutations=_COUNTS["n_permutations"], n_bootstrap=0)
    except ValueError as error:
        refused.append(f"No frames: {error}")
    try:
        answers = answer_frame(run)
    except ValueError as error:
        refused.append(f"Which frame the answers follow was not decided: {error}")
    return frames, answers
