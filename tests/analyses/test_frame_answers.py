"""Which frame answers follow: models that read the anchors' frame, the picture's, both, neither."""

from dataclasses import replace

import numpy as np
import pytest

from deixis.analyses.frame_answers import COLUMNS, EVIDENCE_COLUMNS, LEAST, answer_frame, followed, readers_sides, result_of
from deixis.benchmarks import Items
from tests.analyses.made_layouts import LogitRun, made_layouts, target_places


def by_sides(anchor, image, noise=0.3, letters=(0.0, 0.0, 0.0, 0.0), numbers=0.0):
    """Logits with planted weights of the two readers' sides; noise, a taste for letters and one for large numbers on top."""

    def logits(item):
        sides = readers_sides(item)
        if sides is None:  # a map of one dimension that varies the size
            return np.zeros(len(item.options))
        pull = anchor * sides.anchor + image * sides.image + numbers
        side = np.where(sides.upper, 0.5, -0.5)
        number = int(item.id.split("/")[1]) * 7 + len(item.options)
        return pull * side + noise * np.random.default_rng(number).normal(size=len(side)) + letters[: len(side)]

    return logits


def test_planted_weights_come_back_whatever_the_letters_and_the_taste_for_large_numbers():
    items = made_layouts(120)
    for letters in ((0.0, 0.0, 0.0, 0.0), (6.0, 0.0, -3.0, 1.0)):
        rows = answer_frame(LogitRun(items, by_sides(0.8, 0.5, 0.1, letters, numbers=0.4))).to_frame().set_index("frame")
        assert rows.loc["anchor", "weight"] == pytest.approx(0.8, abs=0.12)
        assert rows.loc["image", "weight"] == pytest.approx(0.5, abs=0.12)


def test_exact_weights_where_nothing_else_moves_the_logits():
    """Two options a question and no letters' means to take off: least squares give what was put in."""
    items = made_layouts(60, maps=("1D",))
    run = LogitRun(items, by_sides(0.7, 0.3, noise=0.0))
    found = answer_frame(run)
    sides = found.evidence()[["anchor", "image"]].to_numpy()
    raw = found.evidence()["log_odds"].to_numpy()
    design = np.column_stack([np.ones(len(sides)), sides])
    assert np.linalg.lstsq(design, raw, rcond=None)[0] == pytest.approx([0.0, 0.7, 0.3], abs=1e-5)


@pytest.mark.parametrize(
    ("anchor", "image", "result"),
    [(1.0, 0.0, "anchor frame"), (0.0, 1.0, "image frame"), (1.0, 1.0, "both"), (0.0, 0.0, "neither")],
)
def test_the_frame_that_was_planted_is_found(anchor, image, result):
    found = answer_frame(LogitRun(made_layouts(100), by_sides(anchor, image)))
    assert found.result == result
    assert list(found.to_frame().columns) == list(COLUMNS)
    assert list(found.evidence().columns) == list(EVIDENCE_COLUMNS)


def test_a_model_that_knows_where_the_target_is_agrees_with_the_anchor_reader_alone():
    """Logits from the distance to the true place, not from any side: an independent route to the same verdict."""

    def logits(item):
        places = target_places(item)[:, :2]
        right = places[[o.kind for o in item.options].index("correct")]
        return -20 * np.linalg.norm(places - right, axis=1)

    rows = answer_frame(LogitRun(made_layouts(60), logits)).to_frame().set_index("frame")
    assert rows.loc["anchor", "followed"] == "yes"
    assert rows.loc["anchor", "agreement"] == 1.0
    assert rows.loc["image", "agreement"] == 0.0
    assert rows.loc["image", "followed"] != "yes"


def test_a_model_that_says_left_in_the_picture_is_a_smaller_x_follows_the_image():
    """It compares the target's column with the middle of the picture: cruder than our reader, and found all the same."""

    def logits(item):
        target = next(box for box in item.objects if box.name == "target")
        return 30 * ((target.left + target.right) / 2 / 200 - 0.5) * target_places(item)[:, 0]

    assert answer_frame(LogitRun(made_layouts(150), logits)).result == "image frame"


def test_few_noisy_scenes_are_undecided():
    assert answer_frame(LogitRun(made_layouts(12), by_sides(0.0, 0.0, noise=3.0))).result == "undecided"


def test_the_two_readers_are_nearly_independent_and_each_takes_both_sides():
    found = answer_frame(LogitRun(made_layouts(300), by_sides(0.0, 0.0)), n_boot=10)
    evidence = found.evidence()
    assert abs(found.to_frame()["correlation"].iloc[0]) < 0.15
    assert evidence[["anchor", "image"]].mean().abs().max() < 0.35


def test_a_frame_that_lies_as_the_picture_does_gives_both_readers_the_same_side():
    """Frames turned by less than 20 degrees in the picture: laying it over the map is then right, but for the perspective."""
    sides = [readers_sides(item) for item in made_layouts(300) if abs(_turn(item)) < 20]
    assert len(sides) > 20
    assert np.mean([side.anchor == side.image for side in sides]) > 0.8
    turned = [readers_sides(item) for item in made_layouts(300) if abs(_turn(item)) > 160]
    assert np.mean([side.anchor == side.image for side in turned]) < 0.35


def _turn(item):
    """From the picture's right to the frame's x axis, in degrees, from the anchors' boxes."""
    boxes = {box.name: np.array([box.left + box.right, -box.top - box.bottom]) for box in item.objects}
    along = boxes["anchor_b"] - boxes["anchor_a"]
    return np.degrees(np.arctan2(along[1], along[0]))


def test_intervals_cover_the_planted_weight():
    """Over repetitions with noise per scene: 95 % intervals hold the truth about as often as they say."""
    hits = []
    items = made_layouts(40)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        table = {i.id: rng.normal(size=4) for i in items}
        run = LogitRun(items, lambda i, t=table: by_sides(0.6, 0.0, 0.0)(i) + t[i.id])
        row = answer_frame(run, n_boot=100).to_frame().iloc[0]
        hits.append(row["low"] <= 0.6 <= row["high"])
    assert 0.85 <= np.mean(hits) <= 1.0


def test_scenes_are_drawn_not_items():
    """The same questions three times over say no more about other scenes."""
    items = made_layouts(40)
    again = Items([*items, *(replace(i, id=f"{i.id}/{k}") for k in range(2) for i in items)])
    wide, narrow = (answer_frame(LogitRun(some, by_sides(0.5, 0.0, noise=1.0))).to_frame().iloc[0] for some in (items, again))
    assert narrow["weight"] == pytest.approx(wide["weight"])
    assert narrow["high"] - narrow["low"] == pytest.approx(wide["high"] - wide["low"], rel=0.15)


def test_maps_of_one_dimension_count_where_the_position_alone_is_wrong():
    items = made_layouts(30, maps=("1D",))
    kept = [item for item in items if readers_sides(item) is not None]
    assert len(kept) == 10
    assert all({option.kind for option in item.options} == {"correct", "position"} for item in kept)


def test_parts_by_map_stand_below_the_whole():
    found = answer_frame(LogitRun(made_layouts(30, maps=("1D", "2D", "3D")), by_sides(1.0, 0.0)))
    assert list(dict.fromkeys(found.to_frame()["items"])) == ["all", "1D", "2D", "3D"]


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (0.1, 0.5, "yes"),
        (0.01, LEAST / 2, "no"),
        (-0.1, 0.1, "no"),
        (-0.1, 0.5, "open"),
        (-0.9, -0.3, "against"),
        (-0.5, 0.1, "no"),
    ],
)
def test_an_interval_is_followed_or_not_by_rule(low, high, answer):
    assert followed(low, high) == answer


def test_nothing_followed_and_one_open_is_undecided():
    assert [result_of(pair) for pair in (["no", "no"], ["no", "open"], ["yes", "open"])] == [
        "neither",
        "undecided",
        "anchor frame",
    ]


def test_a_run_without_layouts_is_refused():
    with pytest.raises(ValueError, match="0 scenes of layout-space2num items with boxes"):
        answer_frame(LogitRun(made_layouts(2).filter(lambda _: False), by_sides(1.0, 0.0)))


def test_the_picture_shows_a_row_for_each_part():
    ax = answer_frame(LogitRun(made_layouts(30, maps=("1D", "2D")), by_sides(1.0, 0.0))).plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["fake, all", "fake, 1D", "fake, 2D"]
