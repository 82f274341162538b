"""The encoding gap in plain words."""

from typing import TYPE_CHECKING

import numpy as np

from deixis.analyses.gap_rules import Thresholds
from deixis.analyses.style import language_name

if TYPE_CHECKING:
    import pandas as pd

_ASKED = {"demonstrative": "its demonstratives", "distance": 'its answers to "near, middle or far?"'}
_SAID = {
    "encoded and used": "distance is encoded and {what} follow it",
    "encoded, unused": "distance is encoded but {what} do not follow it",
    "used, not decoded": "{what} follow distance, but no linear probe finds it",
    "prior only": "distance is not decoded, and {what} are those it gives to a blank picture",
    "absent": "distance is not decoded and {what} do not follow it",
    "undecided": "what {what} follow stays undecided",
}
# "Drives" is said only where something was put in from outside.
_PATCHED = _SAID | {
    "encoded and used": "distance is encoded and drives {what}",
    "encoded, unused": "distance is encoded but does not drive {what}",
}


def conclude(rows: "pd.DataFrame", limits: Thresholds) -> str:
    """A paragraph per task and case, for the rows of one model."""
    model = str(rows["model"].iloc[0])
    sentences = []
    for task, asked in rows.groupby("task", sort=False):
        for case, part in asked.groupby("case", sort=False):
            languages = [language_name(code) for code in part["language"]]
            said = _PATCHED if part["patched"].notna().all() else _SAID
            verdict = said[str(case)].format(what=_ASKED[str(task)])
            sentences.append(f"{model} in {_listed(languages)}: {verdict}. {_evidence(part, limits)}")
    return "\n\n".join(sentences)


def _evidence(rows: "pd.DataFrame", limits: Thresholds) -> str:
    places = (
        ("answer", "at the answer position"),
        ("object", "at the object's image tokens"),
        ("image", "over all image tokens"),
    )
    probed = [f"{_span(rows[f'{role}_score'])} {place}" for role, place in places if rows[f"{role}_score"].notna().any()]
    said = []
    if probed:
        said.append(
            f"A linear probe finds the region of scenes it has not seen with a balanced accuracy of {' and '.join(probed)} "
            f"(chance {rows['chance'].max():.2f})."
        )
    if (rows["object_encoded"].isna() & rows["object_blank"].notna()).any():
        said.append(
            f"At the object's tokens blank pictures give {_span(rows['object_blank'])}: their places tell the region, "
            "so that only the other tokens count."
        )
    if (rows["object_encoded"].isna() & rows["object_score"].notna() & rows["object_blank"].isna()).any():
        said.append(
            "Without blank pictures, what the object's tokens give may be their places, so that only the other tokens count."
        )
    if any(found is True for found in rows["object_encoded"]) and all(found is False for found in rows["answer_encoded"]):
        said.append("It is found at the object's tokens and not at the answer position.")
    if rows["shift"].notna().any():
        p_value = rows["p_used"].max()
        said.append(
            f"Between regions the answers differ by a Jensen-Shannon distance of {_span(rows['shift'])} "
            f"(chance alone gives {_span(rows['shift_null'])}; p {'=' if len(rows) == 1 else 'up to'} {p_value:.2g}; "
            f"below {limits.floor:g} counts as negligible)."
        )
    if rows["patch_moved"].notna().any():
        roles, layers = (
            ", ".join(sorted({f"{value:g}" if isinstance(value, float) else str(value) for value in rows[name].dropna()}))
            for name in ("patch_role", "patch_layer")
        )
        said.append(
            f"Putting a near scene's {roles} tokens into a far one (layer {layers}) moves the answers by "
            f"{_span(rows['patch_moved'])}"
            + (f", another colour's by {_span(rows['patch_control'])}" if rows["patch_control"].notna().any() else "")
            + (
                f"; it restores {_span(rows['patch_restored'])} of the difference between the two."
                if rows["patch_restored"].notna().any()
                else "; between the two scenes the answers hardly differ."
            )
        )
        if rows["patched"].isna().any():
            pairs = int(rows["patch_pairs"].min())
            said.append(f"Patching leaves open whether the answers follow the object ({pairs} pair{'s' if pairs != 1 else ''}).")
        both = rows[rows["patched"].notna() & rows["observed"].notna()]
        if (both["observed"].astype(bool) != both["patched"].astype(bool)).any():
            said.append("What is observed and what patching does disagree, so that use is left open.")
    if rows["blank_distance"].notna().any():
        said.append(f"They lie {_span(rows['blank_distance'])} from the answers to a blank picture.")
    if rows["borderline"].astype(bool).any():
        which = [f"{language_name(row['language'])} ({row['borderline']})" for _, row in rows.iterrows() if row["borderline"]]
        said.append(f"Borderline: {', '.join(which)}.")
    missing = sorted({name for names in rows["missing"] for name in names.split("; ") if name})
    if missing:
        said.append(f"Missing evidence: {'; '.join(missing)}.")
    return " ".join(said)


def _span(values: "pd.Series[float]") -> str:
    low, high = np.nanmin(values), np.nanmax(values)
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
