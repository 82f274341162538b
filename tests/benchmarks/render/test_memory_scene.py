"""The camera's values are checked before anything is drawn."""

import math

import pytest

from deixis.benchmarks.images import DrawnImage
from deixis.benchmarks.render import Camera, Figure


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"focal_mm": 0.0}, "focal_mm=0.0 is not above 0; the standard camera has 41.0"),
        ({"focal_mm": -41.0}, "focal_mm=-41.0 is not above 0"),
        ({"height_m": 0.0}, "height_m=0.0 is not above 0; the standard camera has 1.6"),
        ({"setback_m": -0.1}, "setback_m=-0.1 is below 0; 0 is the desk's near edge"),
        ({"pitch_deg": -90.5}, "pitch_deg=-90.5 is not between -90"),
        ({"pitch_deg": 91.0}, "pitch_deg=91.0 is not between -90"),
        *(({name: value}, f"{name}={value} is not a finite number")
          for name in ("height_m", "setback_m", "pitch_deg", "focal_mm") for value in (math.nan, math.inf)),
    ],
)  # fmt: skip
def test_a_camera_that_cannot_be_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Camera(**values)


def test_the_extremes_are_allowed():
    assert Camera(setback_m=0.0, pitch_deg=-90.0).view(16).position == (0.0, 0.0, 1.6)
    assert Camera(pitch_deg=90.0).view(16).pitch == 90.0


def test_the_standard_pictures_keep_their_place_in_the_cache():
    image = DrawnImage(figure=Figure(shape="star", colour="red", distance_m=1.5))
    assert image.key == "97c9edc4be523a22fcd56714a468a635"
