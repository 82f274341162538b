"""pico-space does what its card says, measured again on rooms that training never saw."""

import json

import pytest

import deixis as dx
from deixis.models import BUNDLED
from examples.pico_space_card import FIGURES, card_items, figure_table, figures_of, measure

CARD = json.loads((BUNDLED["pico-space"] / FIGURES).read_text())


def test_it_is_small():
    assert sum(path.stat().st_size for path in BUNDLED["pico-space"].iterdir()) <= 8_000_000


def test_the_card_holds_its_figures():
    assert figure_table(CARD["rows"]) in (BUNDLED["pico-space"] / "README.md").read_text("utf-8")


def test_it_is_far_above_chance_on_what_it_was_trained_for(tmp_path):
    items = card_items(12)
    asked = items["trained, space2num"] + items["trained, num2space"]
    run = dx.record(dx.load("pico-space", check=False), asked, tmp_path / "run", roles=("answer",), layers=[0], progress=False)
    figures = figures_of(run)
    # 24 items of four options: by chance 14 or more are right once in two thousand times.
    assert figures["right"] >= 14
    # Second route: the letters as written.
    written = [answer.strip()[:1] == item.truth for item, answer in zip(run.items, run.answers, strict=True)]
    assert sum(written) == figures["right"]


@pytest.mark.slow
def test_the_card_says_what_is_measured():
    for name, found in measure(CARD["scenes"]).items():
        written = CARD["rows"][name]
        assert found["items"] == written["items"]
        # A borderline picture may fall the other way on another processor.
        assert abs(found["right"] - written["right"]) <= 0.02 * found["items"]
