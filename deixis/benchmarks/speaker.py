"""The synthetic speaker that the bundled ``pico`` was trained on.

These numbers were made up for this library, so that the truth about ``pico`` is known. They are **not** human data and nothing
should be compared with them but the bundled models.
"""

REGION_BOUNDS_M = (1.00, 2.25)
"""Midpoints between the bands of the human study: region 1 below the first, 3 from the second on."""

SYNTHETIC_SPEAKER: dict[str, dict[int, dict[str, float]]] = {
    "en": {
        1: {"proximal": 0.75, "distal": 0.25},
        2: {"proximal": 0.45, "distal": 0.55},
        3: {"proximal": 0.30, "distal": 0.70},
    },
    "zh": {
        1: {"proximal": 0.70, "distal": 0.30},
        2: {"proximal": 0.40, "distal": 0.60},
        3: {"proximal": 0.20, "distal": 0.80},
    },
    "ja": {
        1: {"proximal": 0.85, "medial": 0.12, "distal": 0.03},
        2: {"proximal": 0.20, "medial": 0.55, "distal": 0.25},
        3: {"proximal": 0.05, "medial": 0.25, "distal": 0.70},
    },
    "ko": {
        1: {"proximal": 0.80, "medial": 0.15, "distal": 0.05},
        2: {"proximal": 0.25, "medial": 0.25, "distal": 0.50},
        3: {"proximal": 0.10, "medial": 0.15, "distal": 0.75},
    },
}
"""Share of each term by language and region."""


def region_of(distance_m: float) -> int:
    """Region of a distance: 1 near, 2 middle, 3 far."""
    return 1 + sum(distance_m >= bound for bound in REGION_BOUNDS_M)


def speaker_average(language: str) -> dict[str, float]:
    """Share of each term when the three regions are equally frequent."""
    regions = SYNTHETIC_SPEAKER[language].values()
    return {term: sum(shares[term] for shares in regions) / 3 for term in SYNTHETIC_SPEAKER[language][1]}
