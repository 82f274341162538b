"""Decode targets from arrays, with controls. Needs nothing from the other rooms."""

from deixis.probes.angle import AngleProbe as AngleProbe
from deixis.probes.checks import NotEnoughDataError as NotEnoughDataError
from deixis.probes.cross_validation import ALPHAS as ALPHAS
from deixis.probes.cross_validation import ProbeScores as ProbeScores
from deixis.probes.cross_validation import cross_validate_probe as cross_validate_probe
from deixis.probes.discriminant import DiscriminantProbe as DiscriminantProbe
from deixis.probes.discriminant import MeanDifferenceProbe as MeanDifferenceProbe
from deixis.probes.fit_many import LayerFits as LayerFits
from deixis.probes.fit_many import ManyFits as ManyFits
from deixis.probes.fit_many import fit_layers as fit_layers
from deixis.probes.fit_many import fit_many as fit_many
from deixis.probes.logistic import LogisticProbe as LogisticProbe
from deixis.probes.ordinal import OrdinalProbe as OrdinalProbe
from deixis.probes.power import TooFewItemsWarning as TooFewItemsWarning
from deixis.probes.power import smallest_effect as smallest_effect
from deixis.probes.ridge import RidgeProbe as RidgeProbe

__all__ = [
    "ALPHAS",
    "AngleProbe",
    "DiscriminantProbe",
    "LayerFits",
    "LogisticProbe",
    "ManyFits",
    "MeanDifferenceProbe",
    "NotEnoughDataError",
    "OrdinalProbe",
    "ProbeScores",
    "RidgeProbe",
    "TooFewItemsWarning",
    "cross_validate_probe",
    "fit_layers",
    "fit_many",
    "smallest_effect",
]
