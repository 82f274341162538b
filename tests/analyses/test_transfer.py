"""Transfer between parts, where it is known what should hold."""

import numpy as np
import pytest

from deixis.analyses import plot_transfer, transfer
from deixis.analyses.transfer import COLUMNS
from deixis.benchmarks import Items
from tests.analyses.written_scenes import SHAPES, written_scenes

WIDTH = 6
FAST = {"n_bootstrap": 0}


def axis(number: int, value: float) -> np.ndarray:
    return value * np.eye(WIDTH)[number]


def shared(item, layer):
    return axis(0, item.targets["distance_m"] * layer)


def by_language(item, layer):
    """English and Japanese share a direction, Japanese is shifted along it; Korean has a direction of its own."""
    place = {"en": 0, "ja": 0, "ko": 1}[item.language]
    return axis(place, (item.targets["distance_m"] + 5 * (item.language == "ja")) * layer)


def cell(frame, train: str, test: str, metric: str = "r2"):
    return frame.query("train == @train and test == @test and metric == @metric").iloc[0]


def test_languages_that_share_a_direction_transfer_and_others_do_not():
    run = written_scenes(by_language, languages=("en", "ja", "ko"))
    frame = transfer(run, "distance_m", **FAST).to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == 9 * 3
    for language in ("en", "ja", "ko"):
        assert cell(frame, language, language)["score"] > 0.95
    # Shifted: useless as metres, perfect in direction.
    assert cell(frame, "en", "ja")["score"] < -1
    assert cell(frame, "en", "ja", "r")["score"] > 0.95
    assert abs(cell(frame, "en", "ko", "r")["score"]) < 0.5
    assert set(frame["layer"]) == {1}
    assert set(frame["n_train"]) == {60}


def test_the_diagonal_is_cross_validation():
    from deixis.analyses import layer_sweep

    run = written_scenes(by_language, languages=("en", "ko"), noise=0.5)
    frame = transfer(run, "distance_m", layers=[1], **FAST).to_frame()
    alone = layer_sweep(run, "distance_m", layers=[1], language="ko", controls=()).to_frame()
    assert cell(frame, "ko", "ko")["score"] == pytest.approx(alone["score"][0])
    assert cell(frame, "ko", "ko", "mae")["score"] == pytest.approx(alone["score"][1])


def test_a_scene_s_other_questions_teach_a_probe_nothing_about_it():
    """Vectors name the scene alone, in both languages alike: only a probe that saw the scene could answer."""
    names = np.random.default_rng(0).normal(size=(60, 400))
    run = written_scenes(lambda item, _: names[int(item.groups["scene"][-3:])], languages=("en", "ja"), noise=0.05)
    frame = transfer(run, "distance_m", **FAST).to_frame()
    assert cell(frame, "en", "ja")["score"] < 0.2


def test_image_tokens_before_the_text_are_refused_as_trivial():
    run = written_scenes(lambda item, _: axis(0, item.targets["distance_m"]), languages=("en", "ja"), noise=0.0)
    with pytest.raises(ValueError, match="trivially perfect there and says nothing; use role='answer'"):
        transfer(run, "distance_m", **FAST)


def test_a_straight_code_extrapolates_and_a_folded_one_does_not():
    straight = transfer(written_scenes(shared, noise=0.05), "distance_m", by="distance", **FAST).to_frame()
    assert list(straight["train"].unique()) == ["others", "all"]
    assert list(straight["test"].unique()) == ["near", "middle", "far"]
    assert (straight.query("metric == 'r2'")["score"] > 0.95).all()

    def folded(item, layer):
        return axis(0, min(item.targets["distance_m"], 1.9) * layer)

    frame = transfer(written_scenes(folded, noise=0.05), "distance_m", by="distance", **FAST).to_frame()
    assert cell(frame, "others", "far", "mae")["score"] > 4 * cell(straight, "others", "far", "mae")["score"]


def test_thirds_need_eight_distances():
    run = written_scenes(shared, distances=lambda rng: float(rng.choice([0.25, 1.5, 2.75])))
    with pytest.raises(ValueError, match="needs at least 8 distances and these items have 3; draw more"):
        transfer(run, "distance_m", by="distance", **FAST)


@pytest.mark.filterwarnings("ignore::deixis.probes.TooFewItemsWarning")
def test_a_shape_that_is_written_elsewhere_is_missed_by_the_probe_that_never_saw_it():
    def write(item, layer):
        return axis(1 if item.groups["shape"] == "star" else 0, item.targets["distance_m"] * layer)

    frame = transfer(written_scenes(write, n=80), "distance_m", by="shape", **FAST).to_frame()
    assert set(frame["test"]) == set(SHAPES)
    assert cell(frame, "others", "star")["score"] < 0.2
    assert cell(frame, "all", "star")["score"] > 0.9
    assert cell(frame, "others", "cross")["score"] > 0.9
    assert cell(frame, "others", "star")["n_train"] == 60


def test_leaving_out_a_shape_is_fitting_on_the_others_and_testing_on_it():
    """By hand for one fold: ridge on the other shapes' scenes of the other folds."""
    run = written_scenes(shared, n=80, noise=1.0, layers=(1,))
    found = transfer(run, "distance_m", by="colour", n_bootstrap=0)
    red = np.array([item.groups["colour"] == "red" for item in run.items])
    y = np.array([item.targets["distance_m"] for item in run.items])
    row = cell(found.to_frame(), "others", "red")
    assert (row["n_test"], row["n_train"]) == (red.sum(), (~red).sum())
    mean = y[~red].mean()
    assert row["chance"] == pytest.approx(1 - ((y[red] - mean) ** 2).mean() / y.var())


def test_conditions_and_benchmarks_make_parts_and_runs_of_a_model_are_joined():
    blank = written_scenes(
        lambda item, layer: shared(item, layer) * (item.condition == "real"), conditions=("real", "blank"), noise=0.05
    )
    frame = transfer(blank, "distance_m", by="condition", **FAST).to_frame()
    assert cell(frame, "real", "real")["score"] > 0.9
    assert cell(frame, "real", "blank")["score"] < 0.1
    one, other = written_scenes(shared, seed=1), written_scenes(shared, seed=2)
    from dataclasses import replace

    other.items = Items(
        replace(i, id=f"b{i.id}", benchmark="second", groups={**i.groups, "scene": f"b{i.groups['scene']}"}) for i in other.items
    )
    joined = transfer([one, other], "distance_m", by="benchmark", **FAST).to_frame()
    assert set(joined["train"]) == {"written", "second"}
    assert cell(joined, "written", "second")["score"] > 0.9


def test_classes_are_scored_in_balanced_accuracy():
    run = written_scenes(shared, languages=("en", "ja"), noise=0.02)
    frame = transfer(run, "region", **FAST).to_frame()
    assert set(frame["metric"]) == {"balanced_accuracy"}
    assert cell(frame, "en", "ja", "balanced_accuracy")["score"] > 0.9
    assert set(frame["chance"].round(3)) == {0.333}


def test_intervals_hold_the_score_and_narrow_with_scenes():
    few, many = (
        transfer(written_scenes(shared, n=n, languages=("en", "ja"), noise=1.0), "distance_m", layers=[1], n_bootstrap=40)
        for n in (30, 150)
    )
    wide, narrow = (cell(one.to_frame(), "en", "ja") for one in (few, many))
    assert wide["low"] < wide["score"] < wide["high"]
    assert narrow["high"] - narrow["low"] < wide["high"] - wide["low"]


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"by": "mood"}, "by='mood' is not one of: 'language', 'task', 'condition', 'benchmark', 'distance', 'colour', 'scene'"),
        ({"by": "language"}, r"by='language' divides these items into one part only \(en\)"),
        ({"by": "shape", "layers": [7]}, r"layers=\[7\] must be some of those recorded at resid: 0, 1"),
    ],
)
def test_what_can_t_be_divided_is_refused(wish, message):
    with pytest.raises(ValueError, match=message):
        transfer(written_scenes(shared), "distance_m", **FAST, **wish)


def test_the_heat_map_shows_the_frame_s_numbers():
    found = transfer(written_scenes(by_language, languages=("en", "ja")), "distance_m", **FAST)
    axes = found.plot()
    frame = found.to_frame().query("metric == 'r2'")
    shown = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in axes.texts]
    assert shown == [f"{score:.2f}" for score in frame["score"]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["English", "Japanese"]
    assert axes.get_ylabel() == "learned on (language)"
    with pytest.raises(ValueError, match="metric='f1' is not one of: 'r2', 'mae', 'r'"):
        plot_transfer(found.to_frame(), metric="f1")
    with pytest.raises(ValueError, match="no rows to draw"):
        plot_transfer(found.to_frame().iloc[:0])
    assert repr(found) == "Transfer(distance_m by language, role answer, 12 cells; .to_frame(), .plot())"
