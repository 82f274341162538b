"""Watch and edit a running model."""

from deixis.hooks.attention import AttentionWatch as AttentionWatch
from deixis.hooks.attention_keys import AttentionError as AttentionError
from deixis.hooks.attention_plan import AttentionPlan as AttentionPlan
from deixis.hooks.attention_rows import AttentionRows as AttentionRows
from deixis.hooks.direction import Direction as Direction
from deixis.hooks.edit import Edit as Edit
from deixis.hooks.errors import DirectionError as DirectionError
from deixis.hooks.errors import DonorCountError as DonorCountError
from deixis.hooks.errors import EditError as EditError
from deixis.hooks.errors import NeverFiredError as NeverFiredError
from deixis.hooks.errors import NoSuchSiteError as NoSuchSiteError
from deixis.hooks.errors import TokenCountError as TokenCountError
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
    "Direction",
    "DirectionError",
    "DonorCountError",
    "Edit",
    "EditError",
    "NeverFiredError",
    "NoSuchSiteError",
    "Positions",
    "Seen",
    "Site",
    "TokenCountError",
    "Watch",
    "WatchError",
]
