"""Models: families as data, loading, preparing inputs, token roles, checks by effect."""

from deixis.models.families import FAMILIES as FAMILIES
from deixis.models.families import Family as Family
from deixis.models.layout import Layout as Layout
from deixis.models.loading import BUNDLED as BUNDLED
from deixis.models.loading import ModelError as ModelError
from deixis.models.loading import load as load
from deixis.models.loading import wrap as wrap
from deixis.models.untrained import untrained as untrained
from deixis.models.vlm import VLM as VLM

__all__ = ["BUNDLED", "FAMILIES", "VLM", "Family", "Layout", "ModelError", "load", "untrained", "wrap"]
