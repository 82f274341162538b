"""Checks of a family's record by effect: what its paths lead to must be what the record says it is."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from deixis.models.checking.at_load import AT_LOAD
from deixis.models.checking.comparing import QUANTISED as QUANTISED
from deixis.models.checking.comparing import TOLERANCE as TOLERANCE
from deixis.models.checking.comparing import CannotCheck
from deixis.models.checking.evidence import Evidence
from deixis.models.checking.in_full import IN_FULL
from deixis.models.sites import SiteError

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

_FAULTS = (ValueError, TypeError, RuntimeError, AttributeError, LookupError, StopIteration)
"""What a wrong path, or a model that is not what its record says, makes of a forward pass."""


@dataclass(frozen=True)
class Check:
    """What one check found."""

    name: str
    passed: bool | None
    """None where it could not run."""
    said: str
    """What is wrong, or why it could not run; else what was found to hold."""
    seconds: float
    left_out: tuple[str, ...] = ()
    """What a check that passed could not look at, each with its reason."""


def check_vlm(vlm: "VLM", full: bool = False, stop: bool = True) -> tuple[Check, ...]:
    """Check a model's record by effect.

    Six calls of the model: a batch of four short items, one more token behind it, ``generate`` over two tokens (two calls), one
    item alone, and a batch of copies of an item that are edited in different places.

    Args:
        vlm: The model.
        full: Also every site at every layer, every token of odd and large pictures, and answers of several lengths (minutes).
        stop: Whether to end at the first check that fails.

    Returns:
        The checks in the order in which they ran.
    """
    evidence, done = Evidence(vlm), []
    try:
        for name, (holds, check) in {**AT_LOAD, **(IN_FULL if full else {})}.items():
            done.append(_run(name, holds, check, evidence))
            if stop and done[-1].passed is False:
                break
    finally:
        vlm.reset()
    return tuple(done)


def _run(name: str, holds: str, check: Callable[[Evidence], str | None], evidence: Evidence) -> Check:
    start = time.perf_counter()
    evidence.left_out.clear()
    try:
        problem = check(evidence)
    except CannotCheck as reason:
        return Check(name, None, str(reason), time.perf_counter() - start)
    except torch.OutOfMemoryError:
        raise
    except SiteError as error:
        problem = str(error)
    except _FAULTS as error:
        problem = f"the model can't be run on the check's items ({type(error).__name__}: {error})."
    left_out = tuple(evidence.left_out)
    said = problem or "; ".join([holds, *(f"not looked at: {part}" for part in left_out)])
    return Check(name, problem is None, said, time.perf_counter() - start, left_out)
