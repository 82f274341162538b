"""Does the answer use what the layers encode? Encoding and use are measured apart and decided apart.

``encoded``: a linear probe finds the region, at the answer position or at the object's image tokens, in scenes it has not seen.
``used``: the model's own option distribution moves with the region. ``prior``: it is the one that a blank picture gets. The rules
are those of :mod:`deixis.analyses.gap_rules`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.analyses.distributions import option_table
from deixis.analyses.gap_evidence import Answers, Decoded, blank_distance, decoded, shift_of
from deixis.analyses.gap_rules import Thresholds, any_of, case_of, is_encoded, is_prior, is_used
from deixis.analyses.gap_words import conclude
from deixis.analyses.style import CASE_COLOURS, MUTED, axes
from deixis.probes import NotEnoughDataError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run

TARGETS = {"demonstrative": "region", "distance": "distance"}
"""Name of what is asked for by each task; both are decoded as the region."""
ROLES = ("answer", "object")
_PROBE = ("layer", "score", "low", "high", "control", "p")
COLUMNS = (
    *("model", "target", "language", "encoded", "used", "prior", "case", "task"),
    *(f"{role}_{name}" for role in ROLES for name in ("encoded", *_PROBE)),
    *("chance", "shift", "shift_low", "shift_high", "shift_null", "p_used"),
    *("blank_distance", "blank_low", "blank_high", "floor", "n_scenes", "missing"),
)


@dataclass(frozen=True)
class EncodingGap:
    """A verdict per model, target and language, with the evidence that it rests on."""

    thresholds: Thresholds
    _rows: "pd.DataFrame"

    def __repr__(self) -> str:
        models = ", ".join(map(repr, dict.fromkeys(self._rows["model"])))
        return f"EncodingGap({models}; .to_frame(), .conclusion(model), .plot())"

    def to_frame(self) -> "pd.DataFrame":
        """One row per model, target and language.

        ``target`` is ``region`` where demonstratives were asked for and ``distance`` where "near, middle or far?" was.
        ``encoded``, ``used`` and ``prior`` are True, False, or NaN where the evidence is missing or lies between yes and no;
        ``missing`` names what was not recorded, and why a probe was refused. ``encoded`` is True if one role is, and False if all
        are not.

        ``answer_*`` and ``object_*``: the probe at each role, at the layer that other folds chose; ``score`` is its balanced
        accuracy on folds that had no part in the choice. ``shift``: mean Jensen-Shannon distance (base 2) between the regions'
        distributions; ``shift_null``: what it is when the regions are dealt out at random; ``p_used``: how often that is as
        large. ``blank_distance``: from the answers to a blank picture. Intervals are of 95 %, over scenes.
        """
        return self._rows.copy()

    def conclusion(self, model: str) -> str:
        """The verdict on one model in plain words, with the numbers it rests on.

        Raises:
            ValueError: No run was of this model.
        """
        rows = self._rows[self._rows["model"] == model]
        if not len(rows):
            listed = ", ".join(map(repr, dict.fromkeys(self._rows["model"])))
            raise ValueError(f"model={model!r} is not one of: {listed}.")
        return conclude(rows, self.thresholds)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_encoding_gap`."""
        return plot_encoding_gap(self.to_frame(), ax)


def encoding_gap(
    runs: "Sequence[Run]",
    patches: None = None,
    *,
    thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
    n_boot: int = 2000,
    seed: int = 0,
) -> EncodingGap:
    """Decide for every model, target and language whether what is encoded is used.

    Args:
        runs: One of each model, with the site ``resid`` and the roles ``answer`` and ``object``. Items of the condition ``blank``
            in them let "prior only" be told from "absent".
        patches: Evidence from patching, which this version does not take yet.
        thresholds: What counts as an effect.
        n_boot: Bootstrap draws and permutations.
        seed: Of these and of the probes' folds.

    Raises:
        ValueError: No run, two runs of a model, no items with regions, or a refusal of :func:`deixis.layer_sweep`
            other than that of too few items, which leaves the evidence missing.
    """
    import pandas as pd

    if patches is not None:
        raise ValueError("patches= is not read by this version; leave it out.")
    if not isinstance(runs, Sequence) or not runs:
        raise ValueError("encoding_gap needs a list of runs, one of each model; for one run write encoding_gap([run]).")
    names = [str(run.info["model"]) for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two of the runs are of the model {name!r}; give one run of each.")
    rows = [{"model": name} | row for name, run in zip(names, runs, strict=True) for row in _rows(run, thresholds, n_boot, seed)]
    return EncodingGap(thresholds, pd.DataFrame(rows, columns=list(COLUMNS)))


def _rows(run: "Run", limits: Thresholds, n_boot: int, seed: int) -> list[dict[str, Any]]:
    table = option_table(run)
    table = table[table["region"].notna() & table["task"].isin(list(TARGETS))]
    real, blank = (table[table["condition"] == name] for name in ("real", "blank"))
    if not len(real):
        raise ValueError("the run holds no real items with a region and a known task; the gap needs the memory game's.")
    rows = []
    for task, asked in real.groupby("task", sort=False):
        # Where the picture precedes the text its tokens have one vector for all questions: one probe serves all languages.
        at_object = _probe(run, "object", str(task), None, seed)
        for language, mine in asked.groupby("language", sort=False):
            at_answer = _probe(run, "answer", str(task), str(language), seed)
            unseen = blank[(blank["task"] == task) & (blank["language"] == language)]
            row = _weigh(mine, unseen, {"answer": at_answer, "object": at_object}, limits, n_boot, seed)
            rows.append({"target": TARGETS[str(task)], "task": task, "language": language} | row)
    return rows


def _probe(run: "Run", role: str, task: str, language: str | None, seed: int) -> Decoded | str:
    """The probe, or what is missing where there is none."""
    if role not in run.roles:
        return f"role {role}"
    try:
        return decoded(run, role, task, language, seed)
    except NotEnoughDataError as error:
        # The way out after the semicolon is the caller's, who has no caller here.
        return f"probe at {role} ({str(error).split(';')[0]})"


def _weigh(
    real: "pd.DataFrame",
    blank: "pd.DataFrame",
    tried: Mapping[str, Decoded | str],
    limits: Thresholds,
    n_boot: int,
    seed: int,
) -> dict[str, Any]:
    probes = {role: probe for role, probe in tried.items() if isinstance(probe, Decoded)}
    found = {role: is_encoded(probe, limits) for role, probe in probes.items()}
    answers = Answers.of(real)
    shift = shift_of(answers, n_boot, seed)
    distance = blank_distance(answers, Answers.of(blank), n_boot, seed) if len(blank) else None
    # A role that was not probed may hold the region: without it "not encoded" stays open.
    encoded, used = any_of(*(found.get(role) for role in ROLES)), is_used(shift, limits)
    prior = None if distance is None else is_prior(distance, limits)
    missing = [reason for reason in tried.values() if isinstance(reason, str)]
    missing += ["condition blank"] if distance is None else []
    row: dict[str, Any] = {
        "encoded": _open(encoded),
        "used": _open(used),
        "prior": _open(prior),
        "case": case_of(encoded, used, prior),
        "chance": next((probe.chance for probe in probes.values()), np.nan),
        "shift": shift.size,
        "shift_low": shift.low,
        "shift_high": shift.high,
        "shift_null": shift.null,
        "p_used": shift.p_value,
        "blank_distance": np.nan if distance is None else distance.size,
        "blank_low": np.nan if distance is None else distance.low,
        "blank_high": np.nan if distance is None else distance.high,
        "floor": limits.floor,
        "n_scenes": shift.n_scenes,
        "missing": "; ".join(missing),
    }
    for role in ROLES:
        values = asdict(probes[role]) | {"p": probes[role].p_value} if role in probes else {}
        row |= {f"{role}_{name}": values.get(name, np.nan) for name in _PROBE}
        row[f"{role}_encoded"] = _open(found.get(role))
    return row


def _open(verdict: bool | None) -> bool | float:
    return np.nan if verdict is None else verdict


def plot_encoding_gap(frame: "pd.DataFrame", ax: "Axes | None" = None) -> "Axes":
    """Use over encoding: a point per model, target and language, coloured by case, with its intervals.

    Across: the probe's balanced accuracy, at the role where it is higher. Up: the shift of the answers less its null's mean,
    which is what the rules compare with the floor.

    Args:
        frame: From :meth:`EncodingGap.to_frame`.
        ax: Where to draw; None makes a figure.
    """
    ax = axes(ax, 5.6, 3.8)
    markers = dict(zip(dict.fromkeys(zip(frame["model"], frame["target"], strict=True)), "osD^vP*X" * 8, strict=False))
    seen: set[str] = set()
    for _, row in frame.iterrows():
        role = "object" if not row["answer_score"] >= row["object_score"] and row["object_score"] >= 0 else "answer"
        x, y = row[f"{role}_score"], row["shift"] - row["shift_null"]
        label = f"{row['model']}, {row['target']}"
        ax.errorbar(
            x,
            y,
            xerr=[[x - row[f"{role}_low"]], [row[f"{role}_high"] - x]],
            yerr=[[row["shift"] - row["shift_low"]], [row["shift_high"] - row["shift"]]],
            fmt=markers[row["model"], row["target"]],
            color=CASE_COLOURS[row["case"]],
            elinewidth=0.8,
            label="_" if label in seen else label,
        )
        ax.annotate(row["language"], (x, y), (5, 4), textcoords="offset points", fontsize=8)
        seen.add(label)
    ax.axhline(frame["floor"].iloc[0], color=MUTED, linestyle="--", linewidth=1)
    if frame["chance"].notna().any():
        ax.axvline(frame["chance"].max(), color=MUTED, linestyle=":", linewidth=1)
    ax.set_xlabel("encoded: balanced accuracy for the region (dotted: chance)")
    ax.set_ylabel("used: JS distance between the regions' answers,\nbeyond chance (dashed: negligible below)")
    ax.legend(frameon=False, fontsize=8)
    return ax
