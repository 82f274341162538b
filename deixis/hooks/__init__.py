"""Watch a running model; the model is left exactly as it was found."""

from deixis.hooks.attention import AttentionWatch as AttentionWatch
from deixis.hooks.attention_keys import AttentionError as AttentionError
from deixis.hooks.attention_plan import AttentionPlan as AttentionPlan
from deixis.hooks.attention_rows import AttentionRows as AttentionRows
from deixis.hooks.pooling import Positions as Positions
from deixis.hooks.watch import Seen as Seen
from deixis.hooks.watch import Watch as Watch
from deixis.hooks.watch import WatchError as WatchError
from deixis.models.sites import SITES as SITES
from deixis.models.sites import Site as Site

__all__ = [
    "SITES",
    "AttentionError",
    "AttentionPlan",
    "AttentionRows",
    "AttentionWatch",
    "Positions",
    "Seen",
    "Site",
    "Watch",
    "WatchError",
]
