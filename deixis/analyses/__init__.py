"""The questions: what the layers encode, how the answer forms, what is said, and whether what is encoded is used."""

from deixis.analyses.behaviour import Behaviour as Behaviour
from deixis.analyses.behaviour import behaviour as behaviour
from deixis.analyses.behaviour import plot_behaviour as plot_behaviour
from deixis.analyses.compare import Comparison as Comparison
from deixis.analyses.compare import Correlation as Correlation
from deixis.analyses.compare import compare as compare
from deixis.analyses.compare import plot_comparison as plot_comparison
from deixis.analyses.encoding_gap import EncodingGap as EncodingGap
from deixis.analyses.encoding_gap import encoding_gap as encoding_gap
from deixis.analyses.encoding_gap import plot_encoding_gap as plot_encoding_gap
from deixis.analyses.layer_sweep import BestLayer as BestLayer
from deixis.analyses.layer_sweep import LayerSweep as LayerSweep
from deixis.analyses.layer_sweep import layer_sweep as layer_sweep
from deixis.analyses.layer_sweep import plot_layer_sweep as plot_layer_sweep
from deixis.analyses.logit_lens import LogitLens as LogitLens
from deixis.analyses.logit_lens import logit_lens as logit_lens
from deixis.analyses.logit_lens import plot_logit_lens as plot_logit_lens
from deixis.analyses.report import report as report

__all__ = [
    "Behaviour",
    "BestLayer",
    "Comparison",
    "Correlation",
    "EncodingGap",
    "LayerSweep",
    "LogitLens",
    "behaviour",
    "compare",
    "encoding_gap",
    "layer_sweep",
    "logit_lens",
    "plot_behaviour",
    "plot_comparison",
    "plot_encoding_gap",
    "plot_layer_sweep",
    "plot_logit_lens",
    "report",
]
