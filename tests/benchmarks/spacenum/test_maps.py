"""Maps as text: written, read back, refused."""

import random

import pytest

from deixis.benchmarks.spacenum.maps import MAPS, MapError, box_text, check_distinct, map_text, number_text, parse_box, parse_map

BED = ((0.0, 0.0, 0.0), (1.2, 1.8, 0.6))
STAND = ((1.2, -0.05, 0.0), (1.6, 0.3, 0.45))


def test_the_two_dimensional_map_reads_as_in_the_paper():
    boxes = {"bed": BED, "chair": ((2.2, 0.5, 0.0), (2.5, 0.8, 0.9)), "nightstand": ((1.2, 0.0, 0.0), (1.6, 0.3, 0.5))}
    assert map_text(boxes, "2D") == (
        '["bed": [(0, 0), (1.2, 1.8)], "chair": [(2.2, 0.5), (2.5, 0.8)], "nightstand": [(1.2, 0), (1.6, 0.3)]]'
    )


def test_one_and_three_dimensions_keep_the_form():
    boxes = {"bed": BED, "nightstand": STAND}
    assert map_text(boxes, "1D") == '["bed": [(0), (1.2)], "nightstand": [(1.2), (1.6)]]'
    assert map_text(boxes, "3D") == '["bed": [(0, 0, 0), (1.2, 1.8, 0.6)], "nightstand": [(1.2, -0.05, 0), (1.6, 0.3, 0.45)]]'


def test_what_is_asked_for_is_hidden():
    assert map_text({"bed": BED, "nightstand": STAND}, "1D", hidden="nightstand") == '["bed": [(0), (1.2)], "nightstand": [x]]'


@pytest.mark.parametrize(
    ("metres", "text"), [(0.0, "0"), (-0.0, "0"), (-0.004, "0"), (0.3, "0.3"), (-0.05, "-0.05"), (1.255, "1.25"), (10.0, "10")]
)
def test_numbers_have_at_most_two_decimals_and_no_idle_zeros(metres, text):
    assert number_text(metres) == text


@pytest.mark.parametrize("name", MAPS)
def test_a_map_read_back_holds_the_boxes_it_was_written_from(name):
    rng = random.Random(3)
    for _ in range(50):
        boxes = {}
        for label in ("red mug", "sofa", 'a "b: [c]'.replace('"', "'")):
            low = [rng.randrange(-300, 300) / 100 for _ in range(3)]
            boxes[label] = (low, [value + rng.randrange(1, 200) / 100 for value in low])
        kept = MAPS[name]
        read = parse_map(map_text(boxes, name, hidden="sofa"))
        assert list(read) == list(boxes)
        assert read["sofa"] is None
        for label in ("red mug", "a 'b: [c]"):
            found = read[label]
            assert found is not None
            assert [round(value, 2) for corner in boxes[label] for value in corner[:kept]] == [
                value for corner in found for value in corner
            ]


def test_other_ways_of_writing_numbers_are_for_interventions():
    assert box_text(BED, 2, number=lambda metres: str(round(metres * 100))) == "[(0, 0), (120, 180)]"


def test_a_box_without_size_is_refused_with_the_axis():
    with pytest.raises(MapError, match=r"'bed'.*from 0.5 to 0.5 along y.*no size after rounding to 2 decimals; give a greater"):
        map_text({"bed": ((0.0, 0.5), (1.0, 0.504))}, "2D")
    with pytest.raises(MapError, match=r"from 0.2 to 0.1 along x"):
        parse_box("[(0.2), (0.1)]")


def test_a_flat_box_is_fine_where_its_flat_side_is_not_written():
    assert box_text(((0.0, 0.0, 0.0), (1.0, 1.0, 0.0)), 2) == "[(0, 0), (1, 1)]"


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(MapError, match=r"from 0\.0 to inf along x; give finite numbers of metres"):
        box_text(((0.0,), (float("inf"),)), 1)


def test_options_that_are_equal_after_rounding_are_refused():
    texts = [box_text(((0.0,), (edge,)), 1) for edge in (0.5, 0.7, 0.504)]
    with pytest.raises(MapError, match=r"two options read \[\(0\), \(0.5\)\]: they are equal after rounding to 2 decimals"):
        check_distinct(texts)
    check_distinct(texts[:2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bed: [(0), (1)]", "is no map; write"),
        ("[bed: [(0), (1)]]", "is no entry; write"),
        ('["bed": [(0), (1)] "sofa": [(1), (2)]]', "is no entry; write"),
        ('["bed": [(0), (1)], "bed": [(1), (2)]]', "names 'bed' twice; keep one"),
        ('["bed": [(0, 0), (1)]]', "corners of 2 and 1 coordinates; give both one, two or three"),
        ('["bed": [(0, 0, 0, 0), (1, 1, 1, 1)]]', "corners of 4 and 4 coordinates"),
        ('["bed": [(0), (0)]]', "no size after rounding"),
    ],
)
def test_text_that_is_no_map_is_refused(text, said):
    with pytest.raises(MapError, match=said):
        parse_map(text)


def test_unknown_kinds_of_map_and_hidden_names_are_refused():
    with pytest.raises(MapError, match="map='4D' is not one of: '1D', '2D', '3D'"):
        map_text({"bed": BED}, "4D")
    with pytest.raises(MapError, match="has no 'sofa' to hide; it has: 'bed'"):
        map_text({"bed": BED}, "1D", hidden="sofa")
    with pytest.raises(MapError, match="is no box; write two corners"):
        parse_box("(0, 1)")
