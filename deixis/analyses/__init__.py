"""The questions: what the layers encode, how the answer forms, what is said, and whether what is encoded is used."""

from deixis.analyses.attention_map import AttentionMap as AttentionMap
from deixis.analyses.attention_map import attention_map as attention_map
from deixis.analyses.attention_plots import plot_attention_collapse as plot_attention_collapse
from deixis.analyses.attention_plots import plot_attention_distance as plot_attention_distance
from deixis.analyses.attention_plots import plot_attention_heads as plot_attention_heads
from deixis.analyses.attention_plots import plot_attention_map as plot_attention_map
from deixis.analyses.attention_plots import plot_object_lift as plot_object_lift
from deixis.analyses.attention_sinks import VisualSinks as VisualSinks
from deixis.analyses.attention_sinks import find_sinks as find_sinks
from deixis.analyses.attention_summary import AttentionSummary as AttentionSummary
from deixis.analyses.attention_summary import attention_summary as attention_summary
from deixis.analyses.attribution import Attribution as Attribution
from deixis.analyses.attribution import attribution as attribution
from deixis.analyses.attribution import plot_attribution as plot_attribution
from deixis.analyses.behaviour import Behaviour as Behaviour
from deixis.analyses.behaviour import behaviour as behaviour
from deixis.analyses.behaviour import plot_behaviour as plot_behaviour
from deixis.analyses.choices import Choices as Choices
from deixis.analyses.choices import choices as choices
from deixis.analyses.choices_plot import plot_choices as plot_choices
from deixis.analyses.collapse import AttentionCollapse as AttentionCollapse
from deixis.analyses.collapse import attention_collapse as attention_collapse
from deixis.analyses.collapse_rule import CollapseRule as CollapseRule
from deixis.analyses.compare import Comparison as Comparison
from deixis.analyses.compare import Correlation as Correlation
from deixis.analyses.compare import compare as compare
from deixis.analyses.compare import plot_comparison as plot_comparison
from deixis.analyses.coordinates import Coordinates as Coordinates
from deixis.analyses.coordinates import decode_coordinates as decode_coordinates
from deixis.analyses.coordinates import plot_coordinates as plot_coordinates
from deixis.analyses.decision import DecisionLayers as DecisionLayers
from deixis.analyses.decision import decision_layers as decision_layers
from deixis.analyses.decision import lens_by_region as lens_by_region
from deixis.analyses.decision import plot_decision_layers as plot_decision_layers
from deixis.analyses.directions import contrast_direction as contrast_direction
from deixis.analyses.directions import probe_direction as probe_direction
from deixis.analyses.distance_code import DistanceCode as DistanceCode
from deixis.analyses.distance_code import distance_code as distance_code
from deixis.analyses.distance_code import plot_distance_code as plot_distance_code
from deixis.analyses.encoding_gap import EncodingGap as EncodingGap
from deixis.analyses.encoding_gap import encoding_gap as encoding_gap
from deixis.analyses.encoding_gap import plot_encoding_gap as plot_encoding_gap
from deixis.analyses.frame_answers import AnswerFrame as AnswerFrame
from deixis.analyses.frame_answers import answer_frame as answer_frame
from deixis.analyses.frames import FrameSweep as FrameSweep
from deixis.analyses.frames import frame_sweep as frame_sweep
from deixis.analyses.frames_plot import plot_answer_frame as plot_answer_frame
from deixis.analyses.frames_plot import plot_frames as plot_frames
from deixis.analyses.geometry import ProbeGeometry as ProbeGeometry
from deixis.analyses.geometry import plot_probe_geometry as plot_probe_geometry
from deixis.analyses.geometry import probe_geometry as probe_geometry
from deixis.analyses.layer_sweep import BestLayer as BestLayer
from deixis.analyses.layer_sweep import LayerSweep as LayerSweep
from deixis.analyses.layer_sweep import layer_sweep as layer_sweep
from deixis.analyses.layer_sweep import plot_layer_sweep as plot_layer_sweep
from deixis.analyses.logit_lens import LogitLens as LogitLens
from deixis.analyses.logit_lens import logit_lens as logit_lens
from deixis.analyses.logit_lens import plot_logit_lens as plot_logit_lens
from deixis.analyses.patch_pairs import Pair as Pair
from deixis.analyses.patch_pairs import near_far_pairs as near_far_pairs
from deixis.analyses.patch_sweep import PatchEvidence as PatchEvidence
from deixis.analyses.patch_sweep import PatchSweep as PatchSweep
from deixis.analyses.patch_sweep import patch_sweep as patch_sweep
from deixis.analyses.patch_sweep import plot_patch_sweep as plot_patch_sweep
from deixis.analyses.prior import PriorCorrection as PriorCorrection
from deixis.analyses.prior import plot_prior_correction as plot_prior_correction
from deixis.analyses.prior import prior_correction as prior_correction
from deixis.analyses.reasoning_tags import ReasoningTags as ReasoningTags
from deixis.analyses.reasoning_tags import plot_reasoning_tags as plot_reasoning_tags
from deixis.analyses.reasoning_tags import reasoning_tags as reasoning_tags
from deixis.analyses.report import report as report
from deixis.analyses.run_edits import EditedRun as EditedRun
from deixis.analyses.run_edits import plot_run_edits as plot_run_edits
from deixis.analyses.run_edits import run_edits as run_edits
from deixis.analyses.scene_kinds import SceneKinds as SceneKinds
from deixis.analyses.scene_kinds import plot_scene_kinds as plot_scene_kinds
from deixis.analyses.scene_kinds import scene_kinds as scene_kinds
from deixis.analyses.scoring_agreement import ScoringAgreement as ScoringAgreement
from deixis.analyses.scoring_agreement import plot_scoring_agreement as plot_scoring_agreement
from deixis.analyses.scoring_agreement import scoring_agreement as scoring_agreement
from deixis.analyses.sensitivity import DistanceSensitivity as DistanceSensitivity
from deixis.analyses.sensitivity import distance_sensitivity as distance_sensitivity
from deixis.analyses.sensitivity import plot_distance_sensitivity as plot_distance_sensitivity
from deixis.analyses.site_sweep import SiteSweep as SiteSweep
from deixis.analyses.site_sweep import plot_site_sweep as plot_site_sweep
from deixis.analyses.site_sweep import site_sweep as site_sweep
from deixis.analyses.spacenum_columns import published_scores as published_scores
from deixis.analyses.spacenum_columns import repeated_scores as repeated_scores
from deixis.analyses.spacenum_plot import plot_spacenum_scores as plot_spacenum_scores
from deixis.analyses.spacenum_scores import SpaceNumScores as SpaceNumScores
from deixis.analyses.spacenum_scores import spacenum_scores as spacenum_scores
from deixis.analyses.steer_sweep import SteerSweep as SteerSweep
from deixis.analyses.steer_sweep import plot_steer_sweep as plot_steer_sweep
from deixis.analyses.steer_sweep import steer_sweep as steer_sweep
from deixis.analyses.transfer import Transfer as Transfer
from deixis.analyses.transfer import plot_transfer as plot_transfer
from deixis.analyses.transfer import transfer as transfer
from deixis.analyses.tuned_lens import TunedLens as TunedLens
from deixis.analyses.tuned_lens import plot_tuned_lens as plot_tuned_lens
from deixis.analyses.tuned_lens import tuned_lens as tuned_lens

__all__ = [
    "AnswerFrame",
    "AttentionCollapse",
    "AttentionMap",
    "AttentionSummary",
    "Attribution",
    "Behaviour",
    "BestLayer",
    "Choices",
    "CollapseRule",
    "Comparison",
    "Coordinates",
    "Correlation",
    "DecisionLayers",
    "DistanceCode",
    "DistanceSensitivity",
    "EditedRun",
    "EncodingGap",
    "FrameSweep",
    "LayerSweep",
    "LogitLens",
    "Pair",
    "PatchEvidence",
    "PatchSweep",
    "PriorCorrection",
    "ProbeGeometry",
    "ReasoningTags",
    "SceneKinds",
    "ScoringAgreement",
    "SiteSweep",
    "SpaceNumScores",
    "SteerSweep",
    "Transfer",
    "TunedLens",
    "VisualSinks",
    "answer_frame",
    "attention_collapse",
    "attention_map",
    "attention_summary",
    "attribution",
    "behaviour",
    "choices",
    "compare",
    "contrast_direction",
    "decision_layers",
    "decode_coordinates",
    "distance_code",
    "distance_sensitivity",
    "encoding_gap",
    "find_sinks",
    "frame_sweep",
    "layer_sweep",
    "lens_by_region",
    "logit_lens",
    "near_far_pairs",
    "patch_sweep",
    "plot_answer_frame",
    "plot_attention_collapse",
    "plot_attention_distance",
    "plot_attention_heads",
    "plot_attention_map",
    "plot_attribution",
    "plot_behaviour",
    "plot_choices",
    "plot_comparison",
    "plot_coordinates",
    "plot_decision_layers",
    "plot_distance_code",
    "plot_distance_sensitivity",
    "plot_encoding_gap",
    "plot_frames",
    "plot_layer_sweep",
    "plot_logit_lens",
    "plot_object_lift",
    "plot_patch_sweep",
    "plot_prior_correction",
    "plot_probe_geometry",
    "plot_reasoning_tags",
    "plot_run_edits",
    "plot_scene_kinds",
    "plot_scoring_agreement",
    "plot_site_sweep",
    "plot_spacenum_scores",
    "plot_steer_sweep",
    "plot_transfer",
    "plot_tuned_lens",
    "prior_correction",
    "probe_direction",
    "probe_geometry",
    "published_scores",
    "reasoning_tags",
    "repeated_scores",
    "report",
    "run_edits",
    "scene_kinds",
    "scoring_agreement",
    "site_sweep",
    "spacenum_scores",
    "steer_sweep",
    "transfer",
    "tuned_lens",
]
