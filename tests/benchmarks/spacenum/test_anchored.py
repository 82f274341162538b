"""Lines over pictures: where they are, and that nothing else changes."""

import numpy as np
import pytest

from deixis.benchmarks.images import DecolouredImage
from deixis.benchmarks.spacenum.anchored import COLOUR, AnchoredImage, line_cover
from tests.models.pictures import noise


@pytest.mark.parametrize(("width", "height"), [(64, 64), (96, 60), (61, 63)])
def test_cross_hair_and_rings_are_painted_and_nothing_else(width, height):
    """Second route: each pixel's own distances from the five curves, one pixel at a time."""
    source = noise(width, height)
    before, after = (np.asarray(image.load()).astype(int) for image in (source, AnchoredImage(source=source)))
    shorter = min(width, height)
    for row in range(height):
        for column in range(width):
            x, y = column + 0.5 - width / 2, row + 0.5 - height / 2
            radius = (x * x + y * y) ** 0.5
            away = min(abs(x), abs(y), abs(radius - shorter / 6), abs(radius - shorter / 3))
            if away <= 0.5:  # wholly inside a line of two pixels
                assert tuple(after[row, column]) == COLOUR
            elif away >= 1.5:
                assert (after[row, column] == before[row, column]).all()


def test_lines_are_symmetric_and_the_centre_is_theirs():
    cover = line_cover(100, 100)
    np.testing.assert_array_equal(cover, cover[::-1])
    np.testing.assert_array_equal(cover, cover.T)
    assert cover[49:51].min() == 1.0
    lines, rings, crossings = 2 * 2 * 100 - 4, 2 * np.pi * (100 / 6 + 100 / 3) * 2, 8 * 4
    assert cover.sum() == pytest.approx(lines + rings - crossings, rel=0.005), "a tenth of a picture this small"


def test_lines_grow_with_the_picture():
    assert (line_cover(960, 960)[:, 0] == 1).sum() == 6
    assert (line_cover(64, 64)[:, 0] == 1).sum() == 2


def test_lines_lie_over_a_decoloured_picture_in_colour():
    image = AnchoredImage(source=DecolouredImage(source=noise(32, 32)))
    assert image.size == (32, 32)
    assert tuple(np.asarray(image.load())[16, 0]) == COLOUR
