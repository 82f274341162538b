"""Tiny random models of every family, with the families' real processors, for tests that run over the records themselves."""

from collections.abc import Callable, Mapping
from functools import cache

from deixis.models import VLM
from tests.toys import toy_vlm

TINY: Mapping[str, Callable[[], VLM]] = {"Qwen3VLForConditionalGeneration": toy_vlm}
"""Makes the tiny model of a record, by the record's architecture."""


@cache
def tiny_vlm(architecture: str) -> VLM:
    """The tiny model of a record; the same object for the whole session, so leave it as you find it."""
    return TINY[architecture]()
