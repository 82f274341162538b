"""The questions in words."""

import re

import pytest

from deixis.benchmarks.items import IMAGE_MARK
from deixis.benchmarks.spacenum.options import lettered, lettered_pictures
from deixis.benchmarks.spacenum.prompts import layout_prompt, magnitude_text, transition_prompt

NUMBERS = lettered(("0.4 meters", "0.8 meters", "1.2 meters", "2.4 meters")).options
NAMES = {"anchor_a": "bed", "anchor_b": "chair", "target": "lamp"}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.4, "m", "0.4 meters"),
        (1, "m", "1.0 meters"),
        (0.1 + 0.2, "m", "0.3 meters"),
        (50.0, "deg", "50 degrees"),
        (0.25, "m", "0.25 meters"),
    ],
)
def test_magnitudes_are_written_as_short_as_they_are_exact(value, unit, text):
    assert magnitude_text(value, unit) == text


def test_every_picture_has_one_mark_in_order():
    for n, prompt in (
        (5, transition_prompt("num2space", "move left", "0.4 meters", lettered_pictures(4, 2).options, 5)),
        (2, transition_prompt("space2num", "move left", None, NUMBERS, 2)),
        (4, layout_prompt("num2space", "[]", lettered_pictures(4, 1).options, NAMES, "2D")),
        (2, layout_prompt("num2space", "[]", lettered_pictures(2, 1).options, NAMES, "1D")),
        (1, layout_prompt("space2num", "[x]", NUMBERS, NAMES, "3D")),
    ):
        assert re.findall(rf"Image (\d+): {IMAGE_MARK}", prompt) == [str(k + 1) for k in range(n)]
        assert prompt.count(IMAGE_MARK) == n
        assert "letter" in prompt.splitlines()[-1]


def test_the_answer_to_a_question_about_numbers_is_not_in_the_question():
    prompt = transition_prompt("space2num", "move left", None, NUMBERS, 2)
    question, options = prompt.split("\nA. ")
    assert "meters" not in question
    assert all(str(option.text) in f"\nA. {options}" for option in NUMBERS)


def test_a_layout_question_holds_map_frame_and_what_is_asked_for():
    text = '["bed": [(0, 0), (1, 2)], "lamp": [x]]'
    prompt = layout_prompt("space2num", text, NUMBERS, NAMES, "2D")
    assert text in prompt
    assert "origin is at a corner of the bed" in prompt
    assert "[x] stands for the lamp" in prompt
    own = layout_prompt("space2num", text, NUMBERS, NAMES, "2D", frame="The axes are mine.")
    assert "The axes are mine." in own
    assert "origin" not in own


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: magnitude_text(1.0, "ft"), "unit='ft' is not one of: 'm', 'deg'"),
        (
            lambda: transition_prompt("up", "move left", None, NUMBERS, 2),
            "direction='up' is not one of: 'num2space', 'space2num'",
        ),
        (
            lambda: transition_prompt("num2space", "move left", None, NUMBERS, 5),
            "needs the magnitude in words; see magnitude_text",
        ),
        (lambda: transition_prompt("space2num", "move left", "0.4 meters", NUMBERS, 2), "it must not be given"),
        (lambda: layout_prompt("num2space", "", NUMBERS, NAMES, "4D"), "map='4D' is not one of: '1D', '2D', '3D'"),
    ],
)
def test_what_makes_no_question_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
