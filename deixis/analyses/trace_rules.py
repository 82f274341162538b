"""Rules that tag a reasoning trace with what SpaceNum (arXiv 2605.23898, section 3.3) found to go wrong in such traces.

A heuristic on words, for English: it sees how a trace argues and not whether the argument is sound. Its agreement with labels by
hand is measured in the tests (Cohen's kappa); read shares of tags as a comparison between models or conditions, not as counts of
faults.

==================  ==============================================================================================================
coarse_cue          no fine comparison: neither an estimate of how much, nor a comparison of how much between candidates
image_space         (layouts) a place in the picture is turned into a coordinate, and no frame is built from the anchors
no_counterfactual   (transitions) no candidate is held against what it would look like, or rejected for its size
==================  ==============================================================================================================
"""

import re

TAGS = ("coarse_cue", "image_space", "no_counterfactual")
APPLIES = {"coarse_cue": ("transition", "layout"), "image_space": ("layout",), "no_counterfactual": ("transition",)}
"""The kinds of question that a tag is defined for."""

_NUMBER = r"(?:\d+(?:\.\d+)?|one|two|three|four|five|ten|twenty|thirty|forty|fifty|sixty|seventy)"
_UNIT = r"(?:degrees?|°|meters?|metres?|m|cm|centimeters?|centimetres?|pixels?|px|%|percent|units?)"
_SHARE = r"(?:half|halfway|a\s+third|one\s+third|two\s+thirds|a\s+quarter|one\s+quarter|a\s+fifth|one\s+fifth|twice|double|times)"
_MORE = r"(?:more|less|larger|smaller|bigger|further|farther|closer|wider|narrower|longer|shorter|greater|higher|lower|stronger)"
_CANDIDATE = (
    r"(?:(?:image|option|candidate|picture|view|choice)s?\b\s*(?:\(?[A-H]\b|\d)?"
    r"|the\s+others?|the\s+rest|each\s+other|all\s+four)"
)
_BOUND = r"(?:too|not\s+enough|insufficient|barely|only\s+slightly|overshoots?|undershoots?|exceeds?)"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_FINE = _any(
    rf"\b(?:about|roughly|approximately|around|nearly|almost|estimate[sd]?|by|~)\s*(?:the\s+)?{_NUMBER}\s*{_UNIT}(?!\w)",
    rf"\b{_SHARE}\b(?:\s+\w+){{0,3}}\s+(?:view|frame|image|picture|width|height|screen|field|size|distance|as|way|length)\b",
    rf"\b{_MORE}\b[^.]{{0,40}}\bthan\b[^.]{{0,40}}\b{_CANDIDATE}",
    rf"\b{_CANDIDATE}[^.]{{0,60}}\b{_BOUND}\b",
    rf"\b{_BOUND}\b[^.]{{0,40}}\b(?:{_NUMBER}\s*{_UNIT}(?!\w)|{_CANDIDATE})",
    rf"\bcompar(?:e|ed|ing)\b[^.]{{0,60}}\b(?:{_CANDIDATE}|how\s+(?:far|much|large|big)|sizes?|widths?|shifts?|distances?)",
    rf"\bhow\s+(?:far|much)\b[^.]{{0,80}}\b{_CANDIDATE}",
    r"\bratio\b|\bmeasure[sd]?\b|\bfield\s+of\s+view\s+(?:is|of)\b",
)
_IMAGE_PLACE = _any(
    r"\b(?:left|right|top|bottom|upper|lower|middle|center|centre)(?:[- ]hand)?\s*(?:side|half|part|edge|corner)?\s*"
    r"(?:of|in)\s+the\s+(?:image|picture|photo|frame|view|scene|screen)",
    r"\bin\s+the\s+(?:image|picture|photo|frame|view)\b",
    r"\bon\s+the\s+(?:far\s+)?(?:left|right)\b|\bto\s+the\s+(?:left|right)\b|\bat\s+the\s+(?:top|bottom|back|front)\b",
    r"\b(?:foreground|background|lower\s+down|higher\s+up|further\s+up)\b",
)
_COORDINATE = _any(
    r"\b[xyz]\b", r"\bcoordinates?\b", r"\(\s*-?\d", r"\b(?:depth|horizontal|vertical)\s+(?:value|number|position)\b"
)
_FRAME = _any(
    r"\borigin\b",
    r"\b(?:coordinate|reference)\s+(?:frame|system)\b|\bframe\s+of\s+reference\b",
    r"\bax(?:is|es)\b[^.]{0,40}\b(?:points?|runs?|goes|going|from|along|toward|towards|defined|parallel|direction|is\s+the)\b",
    r"\b(?:along|parallel\s+to|perpendicular\s+to)\b[^.]{0,30}\b(?:ax(?:is|es)|line|direction|anchor)",
    r"\banchors?\b",
    r"\bfrom\s+the\s+\w+(?:\s+\w+)?\s+to(?:wards?)?\s+the\s+\w+\b",
    r"\b(?:measured|counted|distance|offset)\s+from\s+the\b",
    r"\b(?:the\s+)?\w+\s+is\s+at\s+(?:\(0|zero|0\b)",
)
_COUNTERFACTUAL = _any(
    r"\bif\b[^.]{0,80}\b(?:would|should|had|were)\b",
    r"\bwould\s+(?:\w+\s+){0,3}(?:be|have|move|shift|show|make|push|bring|produce|put|leave|change|cause|need|require|turn|take|"
    r"reveal|disappear|still)\b",
    rf"\b{_NUMBER}[- ]*{_UNIT}(?!\w)[^.]{{0,40}}\b"
    r"(?:would|is\s+too|seems\s+too|cannot|can't|can\s+not|is\s+impossible|must\s+be\s+wrong)",
    r"\b(?:too\s+(?:small|large|big|much|little|far|short|long|strong|weak)|not\s+(?:\w+\s+)?enough)\b[^.]{0,30}\b(?:for|to\s+be)\b",
    rf"\b(?:rules?\s+out|excludes?|rejects?|inconsistent\s+with|cannot\s+be|can't\s+be|could\s+not\s+be)\b[^.]{{0,40}}{_NUMBER}",
)


def tag_trace(trace: str, kind: str) -> dict[str, bool]:
    """Tags of one trace, for the tags that are defined for this kind of question.

    Args:
        trace: What the model wrote before its answer.
        kind: ``transition`` or ``layout``.

    Raises:
        ValueError: ``kind`` is neither, or the trace is empty.
    """
    known = sorted({kind for kinds in APPLIES.values() for kind in kinds})
    if kind not in known:
        raise ValueError(f"kind={kind!r} is not one of: {', '.join(map(repr, known))}.")
    if not trace.strip():
        raise ValueError("an empty trace has no tags; leave answers without reasoning out.")
    text = " ".join(trace.split())
    found = {
        "coarse_cue": not _FINE.search(text),
        "image_space": bool(_IMAGE_PLACE.search(text) and _COORDINATE.search(text)) and not _FRAME.search(text),
        "no_counterfactual": not _COUNTERFACTUAL.search(text),
    }
    return {tag: value for tag, value in found.items() if kind in APPLIES[tag]}
