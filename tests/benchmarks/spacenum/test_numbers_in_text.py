"""Which numbers of a question are space, and which are not."""

import pytest

from deixis.benchmarks.spacenum.numbers_in_text import in_centimetres, numbers_in, rewritten


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rotating right by 50 degrees", [("50", "deg")]),
        ("move 0.4 meters, then 1 metre, then 3 m and 40 cm", [("0.4", "m"), ("1", "m"), ("3", "m"), ("40", "cm")]),
        ("turn 20° or 90deg", [("20", "deg"), ("90", "deg")]),
        ("Image 2 and Image 3 of a 2D map, options A to D", []),
        ("3 mugs, 12 degreesy, 4 mm, v1.2 m2", []),
        ('["red mug": [(0, 0), (1.2, -0.05)], "lamp": [x]]', [(n, None) for n in ("0", "0", "1.2", "-0.05")]),
        ("[(0), (0.12)]", [("0", None), ("0.12", None)]),
        ("[0.3, 0.5] and [2 chairs]", [("0.3", None), ("0.5", None)]),
        ("-5 degrees", [("-5", "deg")]),
    ],
)
def test_quantities_and_coordinates_are_found_and_nothing_else(text, found):
    assert [(number.text, number.unit) for number in numbers_in(text)] == found
    assert rewritten(text, lambda n: f"{n.text}{n.gap}{n.written_unit}") == text


def test_each_number_is_written_otherwise_where_it_stood():
    text = 'By 0.4 meters: ["a": [(0, 1.5)], "b2": [x]]; Image 2.'
    assert rewritten(text, lambda n: f"<{n.text}>") == 'By <0.4>: ["a": [(<0>, <1.5>)], "b2": [x]]; Image 2.'


def test_the_unit_of_a_map_becomes_centimetres_once():
    assert (
        in_centimetres("smaller x first, in meters. In centimeters? Metres.")
        == "smaller x first, in centimeters. In centimeters? Metres."
    )
