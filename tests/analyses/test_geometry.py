"""Directions, codes and coordinates that were planted."""

import numpy as np
import pytest

from deixis.analyses import (
    decode_coordinates,
    distance_code,
    plot_coordinates,
    plot_distance_code,
    plot_probe_geometry,
    probe_geometry,
)
from deixis.analyses.coordinates import COLUMNS as COORDINATE_COLUMNS
from deixis.analyses.distance_code import CODES
from deixis.analyses.distance_code import COLUMNS as CODE_COLUMNS
from deixis.analyses.geometry import COLUMNS as GEOMETRY_COLUMNS
from tests.analyses.written_scenes import written_scenes

WIDTH = 8


def axis(number: int, value: float) -> np.ndarray:
    return value * np.eye(WIDTH)[number]


def distance(item) -> float:
    return item.targets["distance_m"]


def turned(item, layer):
    """The direction turns by 60 degrees from each layer to the next."""
    angle = np.pi / 3 * layer
    return distance(item) * (axis(0, np.cos(angle)) + axis(1, np.sin(angle)))


def test_the_angle_between_layers_is_found():
    found = probe_geometry(written_scenes(turned, n=300, layers=(0, 1, 2)), "distance_m")
    np.testing.assert_allclose(found.cosine, [[1, 0.5, -0.5], [0.5, 1, 0.5], [-0.5, 0.5, 1]], atol=0.1)
    np.testing.assert_allclose(found.halves / found.ceiling, found.cosine, atol=0.15)
    assert tuple(found.to_frame().columns) == GEOMETRY_COLUMNS
    assert found.to_frame()["chance"][0] == pytest.approx(1 / np.sqrt(WIDTH))


def test_directions_of_noise_look_alike_in_the_same_scenes_and_not_across_halves():
    """Two copies of the same features: their probes share every accident, and halves of the scenes show it."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(60, WIDTH))
    run = written_scenes(lambda item, _: noise[int(item.groups["scene"][-3:])], layers=(0, 1), noise=0.0)
    found = probe_geometry(run, "distance_m")
    assert found.cosine[0, 1] > 0.95
    assert abs(found.halves[0, 1]) < 0.4


def test_languages_and_targets_are_compared_at_one_layer():
    def write(item, layer):
        place = 0 if item.language == "en" else 1
        return (axis(place, distance(item)) + axis(2, item.targets["x_m"])) * layer

    run = written_scenes(write, n=400, languages=("en", "ja"))
    languages = probe_geometry(run, "distance_m", by="language")
    assert languages.names == ("en", "ja")
    assert languages.layers == (1, 1)
    assert abs(languages.cosine[0, 1]) < 0.2


def test_the_angle_between_targets_is_that_of_least_squares():
    """Distance and region share their direction; with 150 scenes the region's steps still turn it (median 0.88 of 300 draws)."""
    run = written_scenes(lambda item, layer: axis(0, distance(item)) * layer, n=150)
    found = probe_geometry(run, ("distance_m", "region"), by="target")
    X = run.activations("resid", 1, "answer").astype(float)
    truth = np.array([[item.targets[name] for name in ("distance_m", "region")] for item in run.items])
    first, second = np.linalg.lstsq(X - X.mean(axis=0), truth - truth.mean(axis=0), rcond=None)[0].T
    expected = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert found.cosine[0, 1] == pytest.approx(expected, abs=0.03)
    assert expected > 0.7


def test_a_pattern_is_what_the_activations_do_and_a_direction_what_the_probe_weighs():
    """A distractor that is written over the code is weighed against, yet the code does not move along it (Haufe et al. 2014)."""
    rng = np.random.default_rng(1)
    idle = rng.normal(size=400)

    def write(item, _layer):
        number = int(item.groups["scene"][-3:])
        return axis(0, distance(item) + idle[number]) + axis(1, idle[number])

    run = written_scenes(write, n=400, layers=(0,), noise=0.05, languages=("en", "ja"))
    patterns = probe_geometry(run, "distance_m", by="language", vectors="pattern")
    directions = probe_geometry(run, "distance_m", by="language")
    assert patterns.cosine[0, 1] > 0.98
    assert directions.cosine[0, 1] > 0.98
    from deixis.analyses.geometry import _Source
    from deixis.analyses.probe_layers import layers_of

    asked = {"groups": "scene", "condition": "real", "task": None, "language": "en", "role": "answer", "site": "resid"}
    held = layers_of(run, ["distance_m"], layers=None, **asked)
    everything = np.ones(400, dtype=bool)
    weighs = _Source.of(held, 0, 0, 5, 0, "direction").direction(everything)
    moves = _Source.of(held, 0, 0, 5, 0, "pattern").direction(everything)
    assert weighs[1] / weighs[0] == pytest.approx(-1, abs=0.1)
    assert abs(moves[1] / moves[0]) < 0.15


def test_geometry_refuses_what_it_can_t_compare():
    run = written_scenes(turned)
    with pytest.raises(ValueError, match="there is one language only"):
        probe_geometry(run, by="language")
    with pytest.raises(ValueError, match="by='target' compares them"):
        probe_geometry(run, ("distance_m", "x_m"))
    with pytest.raises(ValueError, match="by='mood' is not one of: 'layer', 'language', 'target'"):
        probe_geometry(run, by="mood")


def test_the_cosines_are_drawn():
    found = probe_geometry(written_scenes(turned), n_halves=2)
    axes = found.plot()
    assert len(axes.texts) == 4
    assert axes.get_xlabel() == "layer"
    with pytest.raises(ValueError, match="value='r' is not one of: 'halves', 'cosine'"):
        plot_probe_geometry(found.to_frame(), value="r")


@pytest.mark.parametrize(
    ("code", "curve"),
    [
        ("linear", lambda d: d),
        ("logarithmic", lambda d: 1.2 * np.log(d)),
        ("ordinal", lambda d: 0.4 * d + 2.2 * (d > 1.5)),
    ],
)
def test_the_shape_of_a_planted_code_is_found(code, curve):
    run = written_scenes(lambda item, layer: axis(0, curve(distance(item))) * layer, n=200, noise=0.15)
    found = distance_code(run)
    assert found.verdict == code
    assert found.layer == 1
    assert tuple(found.to_frame().columns) == CODE_COLUMNS
    assert list(found.to_frame()["code"]) == list(CODES)
    assert found.explained.argmax() == CODES.index(code)


def test_noise_has_no_code_and_a_faint_one_is_left_open():
    assert distance_code(written_scenes(lambda *_: axis(0, 0.0), n=100, noise=1.0)).verdict == "not decoded"
    faint = distance_code(written_scenes(lambda item, _: axis(0, distance(item)), n=60, noise=0.5))
    assert faint.verdict == "metric, linear or logarithmic"


def test_noise_shrinks_decoded_distances_by_what_the_probe_can_t_explain():
    """The slope of predictions on the truth is the R2 of a probe that is calibrated; the ends are drawn in."""
    exact = distance_code(written_scenes(lambda item, _: axis(0, distance(item)), n=300, noise=0.01)).shrinkage
    assert exact.slope[0] == pytest.approx(1, abs=0.02)
    run = written_scenes(lambda item, _: axis(0, distance(item)), n=300, noise=0.75)
    found = distance_code(run)
    r2 = 1 - ((found.true - found.decoded) ** 2).mean() / found.true.var()
    assert found.shrinkage.slope[0] == pytest.approx(r2, abs=0.05)
    assert found.shrinkage.near[1] > 0.2
    assert found.shrinkage.far[2] < -0.2


def test_a_code_needs_eight_positive_distances():
    three = written_scenes(turned, distances=lambda rng: float(rng.choice([0.25, 1.5, 2.75])))
    with pytest.raises(ValueError, match="at least 8 distinct positive values and 'distance_m' has 3"):
        distance_code(three)
    with pytest.raises(ValueError, match="'x_m' has 60, from -0"):
        distance_code(written_scenes(turned), "x_m")


def test_a_code_is_drawn_with_a_point_for_each_scene():
    found = distance_code(written_scenes(turned, languages=("en", "ja")))
    axes = found.plot()
    assert len(axes.collections[0].get_offsets()) == 60
    assert axes.get_ylabel() == "decoded distance, m, held-out scenes"
    with pytest.raises(ValueError, match="no points to draw"):
        plot_distance_code(found.points().iloc[:0])


def placed(item, layer):
    return (axis(0, distance(item)) + axis(1, item.targets["x_m"])) * layer


def test_coordinates_are_scored_by_axis_and_jointly_by_their_definitions():
    found = decode_coordinates(written_scenes(placed, noise=0.3), role="answer", n_bootstrap=20)
    error, spread = found.decoded - found.true, found.true - found.true.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found.score[:2, 0], 1 - (error**2).sum(1) / (spread**2).sum(1))
    np.testing.assert_allclose(found.score[:2, 1], np.abs(error).mean(axis=1))
    assert found.score[2, 0] == pytest.approx(1 - (error**2).sum() / (spread**2).sum())
    assert found.score[2, 1] == pytest.approx(np.hypot(*error).mean())
    assert found.layer == 1
    frame = found.to_frame()
    assert tuple(frame.columns) == COORDINATE_COLUMNS
    assert list(frame["axis"].unique()) == ["x_m", "distance_m", "joint"]
    assert (frame["low"] < frame["score"]).all()
    assert (frame["score"] < frame["high"]).all()


def test_an_axis_that_is_not_written_is_not_found_beside_one_that_is():
    found = decode_coordinates(written_scenes(lambda i, n: axis(0, distance(i)) * n), role="answer", n_bootstrap=0)
    assert found.score[0, 0] < 0.1
    assert found.score[1, 0] > 0.95


def test_one_target_is_no_place():
    with pytest.raises(ValueError, match="must name two or more"):
        decode_coordinates(written_scenes(placed), "distance_m", role="answer")


def test_places_are_drawn_from_above_one_for_each_scene():
    found = decode_coordinates(written_scenes(placed, languages=("en", "ja")), role="answer", n_bootstrap=0)
    axes = found.plot()
    decoded, true = axes.collections
    assert len(true.get_offsets()) == 60
    np.testing.assert_allclose(np.sort(true.get_offsets()[:, 1]), np.sort(np.unique(found.true[1])))
    assert axes.get_xlabel() == "x, m (sideways)"
    assert axes.get_ylabel() == "distance, m (away from the viewer)"
    assert len(decoded.get_offsets()) == 60
    with pytest.raises(ValueError, match="two axes and a row are needed"):
        plot_coordinates(found.points()[["model", "group", "true_x_m"]])
