"""The rules by which evidence becomes a verdict; every threshold of the encoding gap stands here."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deixis.analyses.gap_evidence import BlankDistance, Decoded, Shift

if TYPE_CHECKING:
    from deixis.analyses.patch_sweep import PatchEvidence

CASES = ("encoded and used", "encoded, unused", "used, not decoded", "prior only", "absent", "undecided")


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What counts as an effect. A yes needs significance and size, a no the lack of both; what lies between is open."""

    alpha: float = 0.05
    margin: float = 0.10
    """A probe must beat chance by this much balanced accuracy: less may be significant and still say little."""
    doubt: float = 0.20
    """A score this far above chance is never called absent, however uncertain: with 60 scenes of three regions it lies three
    standard errors away (each is about 0.06)."""
    floor: float = 0.10
    """Jensen-Shannon distance (base 2) below which a difference between answers is negligible: about 12 percentage points
    between two evenly used terms."""
    slack: float = 0.2
    """A decision is called borderline if it would be another with margin, doubt and floor this share smaller or larger."""

    def scaled(self, factor: float) -> "Thresholds":
        """The same with margin, doubt and floor multiplied."""
        return replace(self, margin=self.margin * factor, doubt=self.doubt * factor, floor=self.floor * factor)


def is_encoded(found: Decoded, limits: Thresholds) -> bool | None:
    """Yes: the interval lies above chance (and p, where there is one, is small) and the score beats chance by the margin.

    No: the interval holds chance and the score is less than the doubt above it: no linear probe finds the target, at this number
    of scenes. None: significant and small, or large and uncertain. The control task decides nothing: it measures the probe's
    capacity, and a scene's region can't be memorised from other scenes' figures.

    None, too, where the tokens' places may tell the region (:func:`leaks`).
    """
    if leaks(found, limits):
        return None
    if found.low > found.chance and not found.p_value > limits.alpha:
        return True if found.score >= found.chance + limits.margin else None
    return False if found.score < found.chance + limits.doubt else None


def leaks(found: Decoded, limits: Thresholds) -> bool:
    """Whether the choice of the tokens may tell the target: blank pictures give as much there, or there are none to compare with.

    As much: their score lies within the margin of the real pictures', and above chance by it.
    """
    if not found.by_place:
        return False
    if math.isnan(found.blank):
        return found.low > found.chance  # a probe that finds nothing needs no explanation
    return found.blank >= found.chance + limits.margin and found.score < found.blank + limits.margin


def is_used(shift: Shift, limits: Thresholds) -> bool | None:
    """Yes: the shift beats its null (p) and its whole interval, less the null's mean, lies above the floor.

    No: the whole interval lies below the floor (an equivalence test: a shift may be significant and negligible). None: otherwise.
    """
    if shift.p_value <= limits.alpha and shift.low - shift.null >= limits.floor:
        return True
    return False if shift.high - shift.null < limits.floor else None


def is_prior(blank: BlankDistance, limits: Thresholds) -> bool | None:
    """Whether the answers are those to a blank picture: the interval of their distance lies below the floor, or above it."""
    if blank.high < limits.floor:
        return True
    return False if blank.low >= limits.floor else None


def is_moved(patch: "PatchEvidence", limits: Thresholds) -> bool | None:
    """Whether putting a near scene's object into a far one moves the answer: the interval lies above the floor, or below it.

    A yes also needs the patch to move it by more than a patch of another colour does.
    """
    if patch.low >= limits.floor and not patch.control >= patch.low:
        return True
    return False if patch.high < limits.floor else None


def both_ways(used: bool | None, moved: bool | None, patched: bool) -> bool | None:
    """What observation and intervention say together: where both were made they must agree."""
    if not patched:
        return used
    return used if used == moved else None


def is_borderline(decide: Callable[[Thresholds], bool | None], limits: Thresholds) -> bool:
    """Whether a decision is open, or would be another with slightly other thresholds."""
    found = {decide(limits.scaled(factor)) for factor in (1 - limits.slack, 1.0, 1 + limits.slack)}
    return len(found) > 1 or None in found


def any_of(*verdicts: bool | None) -> bool | None:
    """True if one is true, False if all are false, None if that is open."""
    if any(verdicts):
        return True
    return None if None in verdicts else False


def case_of(encoded: bool | None, used: bool | None, prior: bool | None) -> str:
    """The verdict; ``prior`` matters only where the target is neither encoded nor used."""
    if encoded is None or used is None:
        return "undecided"
    if encoded:
        return "encoded and used" if used else "encoded, unused"
    if used:
        return "used, not decoded"
    return {True: "prior only", False: "absent", None: "undecided"}[prior]
