"""What goes wrong in a thinking model's reasoning, by rules on its words; see :mod:`deixis.analyses.trace_rules`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deixis.analyses.choice_scores import SceneDraws, grouped
from deixis.analyses.choice_table import lettered_items, question_of
from deixis.analyses.distributions import scene_of
from deixis.analyses.trace_rules import TAGS, tag_trace
from deixis.benchmarks.judge_letters import read_letter, split_reasoning

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.activations.sampling import SampledAnswers
    from deixis.benchmarks import Item

_KEY = ("model", "item", "question", "condition", "scene", "kind", "direction", "column", "task", "draw")
TRACE_COLUMNS = (*_KEY, "outcome", "words", "finished", *TAGS)
SHARE_COLUMNS = ("model", "condition", "kind", "direction", "outcome", "tag", "share", "low", "high", "n", "n_scenes")


@dataclass(frozen=True)
class ReasoningTags:
    """Tags of every reasoning trace of one model."""

    model: str
    without_trace: int
    """Answers that hold no reasoning before them, which have no tags."""
    _table: "pd.DataFrame"
    _draws: SceneDraws

    def __repr__(self) -> str:
        return f"ReasoningTags({self.model!r}, {len(self._table)} traces; .to_frame(), .shares(), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per trace: ``outcome`` of the answer, ``words`` of the trace, ``finished``, and 1 or 0 for each tag.

        A tag that is not defined for the kind of question is NaN.
        """
        return self._table.copy()

    def shares(self) -> "pd.DataFrame":
        """How often each tag applies, among right, wrong, unreadable and ``all`` answers, with 95 % intervals over scenes."""
        import pandas as pd

        table = pd.concat([self._table, self._table.assign(outcome="all")], ignore_index=True)
        by = list(SHARE_COLUMNS[:5])
        parts = [
            grouped(table[table[tag].notna()], by, lambda part, t=tag: _share(part, t, self._draws), SHARE_COLUMNS)
            for tag in TAGS
        ]
        return pd.concat(parts, ignore_index=True)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_reasoning_tags`."""
        return plot_reasoning_tags(self.shares(), ax)


def reasoning_tags(run: "Run", sampled: "SampledAnswers | None" = None, *, n_boot: int = 2000, seed: int = 0) -> ReasoningTags:
    """Tag the reasoning that a run's multiple-choice answers begin with.

    Reasoning is what stands before the end mark of thought (``</think>`` and its like); in items of the condition ``think``,
    without such marks, it is the whole answer.

    Args:
        run: Recorded with answers long enough to hold the reasoning (``max_new_tokens``).
        sampled: Drawn answers, taken instead of the run's own.
        n_boot: Bootstrap draws of the scenes.
        seed: Of the bootstrap.

    Raises:
        ValueError: No item is lettered, or no answer holds reasoning.
        RunError: The run holds no answers.
    """
    import pandas as pd

    items = lettered_items(run)
    if not items:
        raise ValueError("the run holds no item whose options are letters with a right one among them; there is nothing to tag.")
    model = str(run.info["model"])
    answers = list(_answers(run, sampled, items))
    rows = [row for name, draw, answer in answers if (row := _tagged(model, items[name], draw, answer)) is not None]
    if not rows:
        raise ValueError(
            f"none of the {len(answers)} answers holds reasoning before its letter; use items of the condition 'think' or a "
            "model that thinks, and more max_new_tokens."
        )
    table = pd.DataFrame(rows, columns=list(TRACE_COLUMNS)).astype(dict.fromkeys(TAGS, float))
    draws = SceneDraws.of(table, n_boot, seed)
    return ReasoningTags(model, len(answers) - len(rows), table, draws)


def _answers(run: "Run", sampled: "SampledAnswers | None", items: "dict[str, Item]") -> Iterator[tuple[str, int, str]]:
    if sampled is None:
        yield from ((item.id, 0, answer) for item, answer in zip(run.items, run.answers, strict=True) if item.id in items)
        return
    for name, drawn in zip(sampled.items, sampled.answers, strict=True):
        if name in items:
            yield from ((name, draw, answer) for draw, answer in enumerate(drawn))


def _tagged(model: str, item: "Item", draw: int, answer: str) -> dict[str, Any] | None:
    trace, said = split_reasoning(answer)
    if not trace.strip() and "think" in item.condition.split("+"):
        trace = answer
    # A bare letter is no reasoning.
    if len(trace.split()) < _FEWEST_WORDS:
        return None
    kind = item.groups.get("kind")
    tags = tag_trace(trace, kind) if kind in ("transition", "layout") else {}
    letter = read_letter(answer, item.options)
    outcome = "unreadable" if letter is None else "right" if letter == item.truth else "wrong"
    known = {"model": model, "item": item.id, "question": question_of(item), "condition": item.condition, "scene": scene_of(item)}
    known |= {name: item.groups.get(name) for name in ("kind", "direction", "column")} | {"task": item.task, "draw": draw}
    return known | {"outcome": outcome, "words": len(trace.split()), "finished": said is not None} | tags


_FEWEST_WORDS = 4


def _share(part: "pd.DataFrame", tag: str, draws: SceneDraws) -> dict[str, Any]:
    values, n_scenes = part[tag].to_numpy(float), part["scene"].nunique()
    share = float(values.mean())
    low, high = draws.span(draws.means(values, part["scene"].to_numpy()), share, n_scenes)
    return {"tag": tag, "share": share, "low": low, "high": high, "n": len(part), "n_scenes": n_scenes}


def plot_reasoning_tags(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """Share of traces with each tag, right answers beside wrong ones, with intervals.

    Args:
        frame: From :meth:`ReasoningTags.shares`.
        ax: Where to draw; None makes a figure.

    Raises:
        ValueError: No row is of right or wrong answers.
    """
    from deixis.analyses.style import SERIES, axes

    rows = frame[frame["outcome"].isin(("right", "wrong"))]
    if not len(rows):
        raise ValueError("the frame has no traces of right or wrong answers; there is nothing to draw.")
    names = ["condition", "kind", "direction", "tag"]
    several = [name for name in ("model", *names[:3]) if rows[name].nunique() > 1]
    groups = list(rows.groupby(["model", *names], sort=False, dropna=False))
    ax = axes(ax, 5.2, 0.9 + 0.34 * len(groups))
    labels = []
    for place, (_, part) in enumerate(groups):
        first = part.iloc[0]
        labels.append(", ".join([str(first["tag"]).replace("_", " "), *(str(first[name]) for name in several)]))
        for row in part.to_dict("records"):
            number = ("right", "wrong").index(str(row["outcome"]))
            y = place + (number - 0.5) * 0.3
            ax.plot([row["low"], row["high"]], [y, y], color=SERIES[number], linewidth=1.4)
            ax.plot([row["share"]], [y], "o", color=SERIES[number], markersize=4, label=f"{row['outcome']} answers")
    ax.set_yticks(range(len(groups)), labels, fontsize=8)
    ax.invert_yaxis()
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("share of traces with the tag")
    ax.tick_params(axis="y", length=0)
    handles, found = ax.get_legend_handles_labels()
    once = dict(zip(found, handles, strict=True))
    ax.legend(once.values(), once.keys(), frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax
