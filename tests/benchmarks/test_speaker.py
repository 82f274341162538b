"""The synthetic speaker's table is one of distributions, and the regions are those of the contract."""

import pytest

from deixis.benchmarks.languages import language
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER, region_of, speaker_average


@pytest.mark.parametrize(("distance_m", "region"), [(0.25, 1), (0.999, 1), (1.0, 2), (1.5, 2), (2.249, 2), (2.25, 3), (2.75, 3)])
def test_regions_begin_at_their_bounds(distance_m, region):
    assert region_of(distance_m) == region


@pytest.mark.parametrize("code", SYNTHETIC_SPEAKER)
def test_every_cell_is_a_distribution_over_the_languages_terms(code):
    terms = [option.term for option in language(code).demonstrative.options]
    for shares in SYNTHETIC_SPEAKER[code].values():
        assert list(shares) == terms
        assert sum(shares.values()) == pytest.approx(1)
        assert min(shares.values()) > 0


@pytest.mark.parametrize("code", SYNTHETIC_SPEAKER)
def test_proximal_falls_and_distal_rises_with_distance(code):
    near, middle, far = (SYNTHETIC_SPEAKER[code][region] for region in (1, 2, 3))
    assert near["proximal"] > middle["proximal"] > far["proximal"]
    assert near["distal"] < middle["distal"] < far["distal"]


def test_the_average_weighs_regions_equally():
    assert speaker_average("en") == pytest.approx({"proximal": 0.5, "distal": 0.5})
    assert sum(speaker_average("ja").values()) == pytest.approx(1)
