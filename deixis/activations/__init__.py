"""Run items through a watched model; keep what was seen."""

from deixis.activations.errors import DamagedShardError as DamagedShardError
from deixis.activations.errors import LockedRunError as LockedRunError
from deixis.activations.errors import NonFiniteError as NonFiniteError
from deixis.activations.errors import NotARunError as NotARunError
from deixis.activations.errors import RunError as RunError
from deixis.activations.errors import SchemaError as SchemaError
from deixis.activations.errors import SettingsError as SettingsError
from deixis.activations.errors import UnfinishedRunError as UnfinishedRunError
from deixis.activations.estimate import Estimate as Estimate
from deixis.activations.estimate import estimate as estimate
from deixis.activations.recording import record as record
from deixis.activations.recording import repair as repair
from deixis.activations.run import Run as Run
from deixis.activations.run import open_run as open_run
from deixis.activations.sampling import SampledAnswers as SampledAnswers
from deixis.activations.sampling import sample_answers as sample_answers

__all__ = [
    "DamagedShardError",
    "Estimate",
    "LockedRunError",
    "NonFiniteError",
    "NotARunError",
    "Run",
    "RunError",
    "SampledAnswers",
    "SchemaError",
    "SettingsError",
    "UnfinishedRunError",
    "estimate",
    "open_run",
    "record",
    "repair",
    "sample_answers",
]
