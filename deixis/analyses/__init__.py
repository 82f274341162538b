"""The questions: what the layers encode, how the answer forms, what is said, and whether what is encoded is used."""

from deixis.analyses.behaviour import Behaviour as Behaviour
from deixis.analyses.behaviour import behaviour as behaviour
from deixis.analyses.behaviour import plot_behaviour as plot_behaviour

__all__ = ["Behaviour", "behaviour", "plot_behaviour"]
