"""Watch a running model; the model is left exactly as it was found."""

from deixis.hooks.pooling import Positions as Positions
from deixis.hooks.watch import Seen as Seen
from deixis.hooks.watch import Watch as Watch
from deixis.hooks.watch import WatchError as WatchError
from deixis.models.sites import SITES as SITES
from deixis.models.sites import Site as Site

__all__ = ["SITES", "Positions", "Seen", "Site", "Watch", "WatchError"]
