"""Does the answer use what the layers encode? Encoding and use are measured apart and decided apart.

``encoded``: a linear probe finds the region, at the answer position or at the object's image tokens, in scenes it has not seen.
``used``: the model's own option distribution moves with the region, and, where patches were made, also when a near scene's object
tokens are put into a far one. ``prior``: the distribution is the one that a blank picture gets. The rules are those of
:mod:`deixis.analyses.gap_rules`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.analyses.distributions import option_table
from deixis.analyses.gap_evidence import Answers, Decoded, blank_distance, decoded, shift_of
from deixis.analyses.gap_rules import (
    Thresholds,
    any_of,
    both_ways,
    case_of,
    is_borderline,
    is_encoded,
    is_moved,
    is_prior,
    is_used,
    leaks,
)
from deixis.analyses.gap_words import conclude
from deixis.analyses.style import CASE_COLOURS, MUTED, axes
from deixis.probes import NotEnoughDataError
from deixis.probes.power import tell_of_few, told_of_few

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.analyses.patch_sweep import PatchEvidence, PatchSweep

TARGETS = {"demonstrative": "region", "distance": "distance"}
"""Name of what is asked for by each task; both are decoded as the region."""
ROLES = ("answer", "object", "image")
"""``image`` is probed where the object's tokens are no evidence: their places are chosen by where the object is."""
_PROBE = ("layer", "score", "low", "high", "control", "p")
COLUMNS = (
    *("model", "target", "language", "encoded", "used", "prior", "case", "task"),
    *(f"{role}_{name}" for role in ROLES for name in ("encoded", *_PROBE)),
    *("object_blank", "chance", "shift", "shift_low", "shift_high", "shift_null", "p_used"),
    *("observed", "patched", "patch_role", "patch_layer", "patch_moved", "patch_low", "patch_high", "patch_restored"),
    *("patch_control", "patch_pairs"),
    *("blank_distance", "blank_low", "blank_high", "floor", "n_scenes", "borderline", "missing"),
)

_SHORT = ("model", "target", "language", "encoded", "used", "prior", "case")


@dataclass(frozen=True)
class EncodingGap:
    """A verdict per model, target and language, with the evidence that it rests on."""

    thresholds: Thresholds
    _rows: "pd.DataFrame"

    def __repr__(self) -> str:
        models = ", ".join(map(repr, dict.fromkeys(self._rows["model"])))
        return f"EncodingGap({models}; .to_frame(), .conclusion(model), .plot())"

    def __str__(self) -> str:
        """The verdicts alone, a line each; the evidence is in :meth:`to_frame`."""
        return self._rows[list(_SHORT)].to_string(index=False, na_rep="?")

    def to_frame(self) -> "pd.DataFrame":
        """One row per model, target and language.

        ``target`` is ``region`` where demonstratives were asked for and ``distance`` where "near, middle or far?" was.
        ``encoded``, ``used`` and ``prior`` are True, False, or NaN where the evidence is missing or lies between yes and no;
        ``missing`` names what was not recorded, and why a probe was refused. ``encoded`` is True if one role is, and False if all
        are not.

        ``answer_*``, ``object_*`` and ``image_*``: the probe at each role, at the layer that other folds chose; ``score`` is its
        balanced accuracy on folds that had no part in the choice. ``shift``: mean Jensen-Shannon distance (base 2) between the
        regions' distributions; ``shift_null``: what it is when the regions are dealt out at random; ``p_used``: how often that
        is as large. ``blank_distance``: from the answers to a blank picture. Intervals are of 95 %, over scenes.

        ``object_blank``: the score at the object's tokens in blank pictures. Which tokens these are depends on where the object
        is, so that even a blind model's may tell the region; where the picture gives no more, all image tokens are probed
        instead.

        ``observed`` is what the shift alone says about use, ``patched`` what patches alone say; ``used`` needs both
        where both are there. ``patch_moved``: mean distance between a far scene's answers before and after the
        near scene's object tokens are put in, at ``patch_layer``, which other figures chose; ``patch_control``: by
        those of another colour at the same distance.
        ``borderline`` names the decisions that are open, or would be others with thresholds a fifth smaller or larger.
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


def no_gap() -> EncodingGap:
    """The gap of no model: where there is nothing that the verdicts are about."""
    import pandas as pd

    return EncodingGap(Thresholds(), pd.DataFrame(columns=list(COLUMNS)))


def encoding_gap(
    runs: "Sequence[Run]",
    patches: "Sequence[PatchSweep] | PatchSweep | None" = None,
    *,
    thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
    n_boot: int = 2000,
    seed: int = 0,
) -> EncodingGap:
    """Decide for every model, target and language whether what is encoded is used.

    Args:
        runs: One of each model, with the site ``resid`` and the roles ``answer`` and ``object``. Items of the condition ``blank``
            in them let "prior only" be told from "absent".
        patches: Patch sweeps of these models, from :func:`deixis.patch_sweep` at the site ``resid`` and the role ``object`` (or
            ``image``); None to decide from observation alone.
        thresholds: What counts as an effect.
        n_boot: Bootstrap draws and permutations.
        seed: Of these and of the probes' folds.

    Raises:
        ValueError: No run, two runs of a model, patches of a model without a run, no items with regions, or a refusal of
            :func:`deixis.layer_sweep` other than that of too few items, which leaves the evidence missing.
    """
    import pandas as pd

    if not isinstance(runs, Sequence) or not runs:
        raise ValueError("encoding_gap needs a list of runs, one of each model; for one run write encoding_gap([run]).")
    names = [str(run.info["model"]) for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two of the runs are of the model {name!r}; give one run of each.")
    sweeps = [] if patches is None else list(patches) if isinstance(patches, Sequence) else [patches]
    for sweep in sweeps:
        if sweep.model not in names:
            raise ValueError(
                f"a patch sweep is of the model {sweep.model!r}, and the runs are of: {', '.join(map(repr, names))}."
            )
    with told_of_few() as few:  # dozens of probes would say the same
        rows = [
            {"model": name} | row
            for name, run in zip(names, runs, strict=True)
            for row in _rows(run, [sweep for sweep in sweeps if sweep.model == name], thresholds, n_boot, seed)
        ]
    for sentence in few:
        tell_of_few(sentence)
    return EncodingGap(thresholds, pd.DataFrame(rows, columns=list(COLUMNS)))


def _rows(run: "Run", sweeps: "Sequence[PatchSweep]", limits: Thresholds, n_boot: int, seed: int) -> list[dict[str, Any]]:
    table = option_table(run)
    table = table[table["region"].notna() & table["task"].isin(list(TARGETS))]
    real, blank = (table[table["condition"] == name] for name in ("real", "blank"))
    if not len(real):
        raise ValueError("the run holds no real items with a region and a known task; the gap needs the memory game's.")
    rows = []
    for task, asked in real.groupby("task", sort=False):
        # Where the picture precedes the text its tokens have one vector for all questions: one probe serves all languages.
        at_picture: dict[str, Decoded | str] = {"object": _probe(run, "object", str(task), None, seed)}
        found = at_picture["object"]
        if isinstance(found, Decoded) and leaks(found, limits) and "image" in run.roles:
            at_picture["image"] = _probe(run, "image", str(task), None, seed)
        for language, mine in asked.groupby("language", sort=False):
            at_answer = _probe(run, "answer", str(task), str(language), seed)
            unseen = blank[(blank["task"] == task) & (blank["language"] == language)]
            patch = _patch(sweeps, str(task), str(language))
            row = _weigh(mine, unseen, {"answer": at_answer, **at_picture}, patch, limits, n_boot, seed)
            rows.append({"target": TARGETS[str(task)], "task": task, "language": language} | row)
    return rows


def _patch(sweeps: "Sequence[PatchSweep]", task: str, language: str) -> "PatchEvidence | None":
    found = (sweep.evidence(task, language, role) for role in ("object", "image") for sweep in sweeps)
    return next((evidence for evidence in found if evidence is not None), None)


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
    patch: "PatchEvidence | None",
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
    heard = [role for role in tried if not (role == "object" and "image" in tried)]
    encoded, observed = any_of(*(found.get(role) for role in heard)), is_used(shift, limits)
    moved = None if patch is None else is_moved(patch, limits)
    used = both_ways(observed, moved, patch is not None)
    prior = None if distance is None else is_prior(distance, limits)
    missing = [reason for reason in tried.values() if isinstance(reason, str)]
    missing += ["condition blank"] if distance is None else []
    case = case_of(encoded, used, prior)
    decided = {"used": lambda limits: is_used(shift, limits)}
    decided |= {"encoded": lambda limits: any_of(*(_of(probes.get(role), limits) for role in heard))}
    decided |= {"patched": lambda limits: is_moved(patch, limits)} if patch is not None else {}
    decided |= {"prior": lambda limits: is_prior(distance, limits)} if distance is not None and not encoded and not used else {}
    row: dict[str, Any] = {
        "encoded": _open(encoded),
        "used": _open(used),
        "prior": _open(prior),
        "case": case,
        "object_blank": probes["object"].blank if "object" in probes else np.nan,
        "chance": next((probe.chance for probe in probes.values()), np.nan),
        "shift": shift.size,
        "shift_low": shift.low,
        "shift_high": shift.high,
        "shift_null": shift.null,
        "p_used": shift.p_value,
        "blank_distance": np.nan if distance is None else distance.size,
        "blank_low": np.nan if distance is None else distance.low,
        "blank_high": np.nan if distance is None else distance.high,
        "observed": _open(observed),
        "patched": _open(moved),
        "patch_role": None if patch is None else patch.role,
        "patch_layer": np.nan if patch is None else patch.layer,
        "patch_moved": np.nan if patch is None else patch.moved,
        "patch_low": np.nan if patch is None else patch.low,
        "patch_high": np.nan if patch is None else patch.high,
        "patch_restored": np.nan if patch is None else patch.restored,
        "patch_control": np.nan if patch is None else patch.control,
        "patch_pairs": np.nan if patch is None else patch.n_pairs,
        "floor": limits.floor,
        "borderline": "; ".join(name for name, decide in sorted(decided.items()) if is_borderline(decide, limits)),
        "n_scenes": shift.n_scenes,
        "missing": "; ".join(missing),
    }
    for role in ROLES:
        values = asdict(probes[role]) | {"p": probes[role].p_value} if role in probes else {}
        row |= {f"{role}_{name}": values.get(name, np.nan) for name in _PROBE}
        row[f"{role}_encoded"] = _open(found.get(role))
    return row


def _of(probe: Decoded | None, limits: Thresholds) -> bool | None:
    return None if probe is None else is_encoded(probe, limits)


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
    order = list(markers)
    named: list[tuple[str, str, float, float]] = []
    for _, row in frame.iterrows():
        counted = [name for name in ROLES if row[f"{name}_score"] >= 0 and not (name == "object" and row["image_score"] >= 0)]
        role = max(counted, key=lambda name: row[f"{name}_score"], default="answer")
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
            # Hollow, and smaller from series to series, so that points at one place are all seen.
            markerfacecolor="none",
            markersize=max(4.0, 10.0 - 2 * order.index((row["model"], row["target"]))),
            label="_" if label in seen else label,
        )
        named.append((label, row["language"], float(x), float(y)))
        seen.add(label)
    ax.axhline(frame["floor"].iloc[0], color=MUTED, linestyle="--", linewidth=1)
    if frame["chance"].notna().any():
        ax.axvline(frame["chance"].max(), color=MUTED, linestyle=":", linewidth=1)
    _name_points(ax, named)
    ax.set_xlabel("encoded: balanced accuracy for the region (dotted: chance)")
    ax.set_ylabel("used: JS distance between the regions' answers,\nbeyond chance (dashed: negligible below)")
    ax.legend(frameon=False, fontsize=8)
    return ax


def _name_points(ax: "Axes", points: list[tuple[str, str, float, float]]) -> None:
    """One label for a series' points that lie together, such as ``en, ja``, to their right and clear of the others."""
    height = max((y for *_, y in points if np.isfinite(y)), default=1.0) or 1.0
    clusters: list[list[tuple[str, str, float, float]]] = []
    for point in points:
        if not np.isfinite(point[2:]).all():
            continue
        label, _, x, y = point
        near = (c for c in clusters if c[0][0] == label and abs(c[-1][2] - x) < 0.05 and abs(c[-1][3] - y) < 0.07 * height)
        found = next(near, None)
        found.append(point) if found is not None else clusters.append([point])
    taken: list[tuple[float, float]] = []
    for cluster in sorted(clusters, key=lambda c: c[0][3]):
        x, y = (max(point[2] for point in cluster), float(np.mean([point[3] for point in cluster])))
        while any(abs(x - px) < 0.2 and abs(y - py) < 0.055 * height for px, py in taken):
            y += 0.055 * height
        taken.append((x, y))
        text = ", ".join(language for _, language, *_ in cluster)
        ax.annotate(text, (x, y), (8, 0), textcoords="offset points", fontsize=8, va="center")
    if taken:
        ax.set_ylim(top=max(ax.get_ylim()[1], max(y for _, y in taken) + 0.06 * height))
    if points and max(x for *_, x, _ in points) > 0.8:
        ax.set_xlim(right=1.3)
        ax.set_xticks([tick for tick in ax.get_xticks() if tick <= 1.001])
