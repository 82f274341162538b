"""SpaceNum's tables against numbers counted by hand, and its arithmetic on the published ones."""

import numpy as np
import pandas as pd
import pytest

import deixis as dx
from deixis.analyses.choice_errors import CHANCE_POINTS, points_of, proximity_points
from deixis.analyses.choices import choices
from deixis.analyses.spacenum_columns import COLUMNS, published_means, published_scores, repeated_scores
from deixis.analyses.spacenum_errors import ERROR_COLUMNS, PROXIMITY_COLUMNS
from deixis.analyses.spacenum_pairs import CHANGE_COLUMNS, DIRECTION_COLUMNS
from deixis.analyses.spacenum_plot import plot_spacenum_scores
from deixis.analyses.spacenum_scores import spacenum_scores
from deixis.analyses.spacenum_table import TABLE_COLUMNS
from deixis.benchmarks import Items, Option
from tests.analyses.written_choices import (
    LAYOUT_KINDS,
    always_a,
    always_right,
    layout,
    needs_the_image,
    options,
    planted,
    small_set,
    transition,
    with_conditions,
)

KEYS = [column.key for column in COLUMNS]
GRID = [10.0, 30.0, 50.0, 70.0]


# --- the published numbers ---------------------------------------------------------------------------------------------------


def test_the_published_table_has_eighteen_rows_and_the_twenty_columns_in_order():
    frame = published_scores()
    assert list(frame) == ["model", "rank", "avg", *KEYS]
    assert frame["rank"].tolist() == list(range(1, 19))
    assert frame[KEYS].notna().all(axis=None)
    chance = np.array([column.chance for column in COLUMNS])
    assert 100 * chance.mean() == pytest.approx(30.0)
    assert sum(column.n_published for column in COLUMNS) == 3800


def test_the_average_of_every_published_row_is_the_plain_mean_of_its_columns():
    means = published_means()
    assert len(means) == 18
    assert (means["difference"].abs() < 0.05 + 1e-9).all()
    # A mean over items, in which rooms count four times, would be another number.
    weighted = (800 * means["transition"] + 3000 * means["layout"]) / 3800
    assert ((weighted - means["printed"]).abs() > 0.3).sum() >= 15


def test_every_published_number_is_a_share_of_its_columns_items():
    frame = published_scores()
    for column in COLUMNS:
        step = 100 / column.n_published
        off = (frame[column.key] - (frame[column.key] / step).round() * step).abs()
        assert (off <= 0.05 + 1e-9).all(), column.key


def test_the_blind_test_starts_from_means_over_items():
    """Originals of the published blind test, which are not columns' plain means for layouts."""
    originals = {
        "InternVL3.5-4B": (29.4, 35.4), "InternVL3.5-8B": (32.9, 34.6), "InternVL3.5-14B": (38.5, 37.4),
        "InternVL3.5-38B": (36.6, 39.1), "Qwen3-VL-4B": (28.8, 33.6), "Qwen3-VL-8B": (31.9, 33.1), "Qwen3-VL-32B": (34.8, 34.1),
    }  # fmt: skip
    means = published_means().set_index("model")
    for model, (moves, layouts) in originals.items():
        assert means.loc[model, "transition"] == pytest.approx(moves, abs=0.051)
        assert means.loc[model, "layout"] == pytest.approx(layouts, abs=0.06)


def test_five_models_share_the_two_numbers_of_one_constant_letter():
    repeated = repeated_scores(published_scores(), least=5).set_index(["column", "value"])
    desk, room = repeated.loc[("num2space 1D D", 71.0)], repeated.loc[("num2space 1D R", 67.0)]
    assert room["n_models"] == 5
    assert set(room["models"].split(", ")) <= set(desk["models"].split(", "))
    assert set(room["models"].split(", ")) == {
        "Qwen2.5-VL-32B", "Ovis2.5-2B", "Qwen2.5-VL-7B", "Qwen2.5-VL-3B", "Cosmos-Reason2-2B",
    }  # fmt: skip
    # No other value so far from chance is shared by as many.
    assert set(repeated.index[repeated.index.get_level_values("value") > 60]) == {
        ("num2space 1D D", 71.0),
        ("num2space 1D R", 67.0),
    }


def test_published_transitions_are_easier_from_space_to_number_and_layouts_with_four_options_too():
    frame = published_scores()

    def mean(kind, direction):
        keys = [c.key for c in COLUMNS if c.kind == kind and c.direction == direction]
        return frame[keys].mean(axis=None)

    assert mean("transition", "space2num") - mean("transition", "num2space") == pytest.approx(4.194, abs=0.001)
    # The layouts' opposite trend is that of the one-dimensional columns, in which a constant letter scores 71 and 67.
    flat = {d: [c.key for c in COLUMNS if c.direction == d and c.name.startswith("1D")] for d in ("num2space", "space2num")}
    full = {d: [c.key for c in COLUMNS if c.direction == d and c.name[:2] in ("2D", "3D")] for d in ("num2space", "space2num")}
    assert frame[flat["num2space"]].mean(axis=None) > frame[flat["space2num"]].mean(axis=None)
    assert frame[full["num2space"]].mean(axis=None) < frame[full["space2num"]].mean(axis=None)


# --- proximity and errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "truth", "points"),
    [
        ((10.0, 20.0, 40.0, 70.0), 10.0, (100, 70, 40, 0)),
        ((70.0, 10.0, 40.0, 20.0), 10.0, (0, 100, 40, 70)),
        ((10.0, 30.0, 50.0, 70.0), 30.0, (55, 100, 55, 0)),  # 10 and 50 lie equally far: (70 + 40) / 2
        ((20.0, 40.0, 60.0, 30.0), 40.0, (20, 100, 20, 70)),  # 20 and 60 share the last two ranks: (40 + 0) / 2
        ((0.2, 0.4, 0.6, 1.2), 0.4, (55, 100, 55, 0)),  # 0.4 - 0.2 and 0.6 - 0.4 differ in the last binary digit
        ((340.0, 330.0, 310.0, 290.0), 340.0, (100, 70, 40, 0)),
    ],
)
def test_points_go_by_the_rank_of_the_error_and_ties_share(values, truth, points):
    assert proximity_points(values, truth).tolist() == list(points)


def test_random_letters_get_52_5_points_whatever_the_options():
    assert CHANCE_POINTS == 52.5
    grid = np.arange(10.0, 80.0, 10.0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.choice(grid, 4, replace=False)
        for truth in values:
            assert proximity_points(values.tolist(), float(truth)).mean() == pytest.approx(52.5)


def test_numbers_without_one_right_among_four_have_no_points():
    for values, truth in (((10.0, 20.0, 30.0), 10.0), ((10.0, 10.0, 20.0, 30.0), 10.0), ((1.0, 2.0, 3.0, np.nan), 1.0)):
        with pytest.raises(ValueError, match="points are for four numbers of which one is right"):
            proximity_points(values, truth)


def test_published_items_have_points_by_their_kinds():
    item = transition("s", "space2num", "rotate left", GRID, "B")
    kinds = options(["a", "b", "c", "d"], [None] * 4, ["wrong", "correct", "less_wrong", "less_correct"])
    from dataclasses import replace

    assert points_of(replace(item, options=kinds)) == {"A": 0, "B": 100, "C": 40, "D": 70}
    assert points_of(item) == {"A": 55, "B": 100, "C": 55, "D": 0}
    assert points_of(layout("s", "space2num", "2D", "desk", LAYOUT_KINDS)) == {}


def test_proximity_is_the_mean_of_the_points_by_action_and_direction():
    items = Items(
        [
            transition("s0", "num2space", "rotate left", GRID, "A"),  # A: 100
            transition("s1", "num2space", "rotate left", GRID, "B"),  # A: 55
            transition("s2", "num2space", "rotate right", GRID, "D"),  # A: 0
            transition("s3", "space2num", "rotate right", GRID, "C"),  # A: 0
        ]
    )
    run = planted(items, always_a)
    run.answers = ["A", "A", "A or B", "A"]
    found = spacenum_scores(run, n_boot=50).proximity()
    assert tuple(found) == PROXIMITY_COLUMNS
    row = found.set_index(["way", "direction", "action"])
    assert row.loc[("logits", "num2space", "rotate left"), ["points", "n", "n_errors", "error_points"]].tolist() == [
        77.5,
        2,
        1,
        55,
    ]
    assert row.loc[("logits", "num2space", "all"), ["points", "n"]].tolist() == [pytest.approx(155 / 3), 3]
    assert row.loc[("logits", "all", "all"), ["points", "n", "error_points", "overshoot"]].tolist() == [
        38.75,
        4,
        pytest.approx(55 / 3),
        0,
    ]
    # What could not be read has no number; it is counted.
    assert row.loc[("written", "num2space", "all"), ["points", "n", "unread"]].tolist() == [77.5, 2, 1]
    assert (found["chance"] == 52.5).all()


def test_layout_errors_are_shares_of_the_wrong_answers():
    # Always A; of the options A is the right one, or wrong in position, position, size, both.
    firsts = ("correct", "position", "position", "size", "both")
    items = Items(
        layout(f"r{k}", "num2space", "2D", "room", (first, *(kind for kind in LAYOUT_KINDS if kind != first)))
        for k, first in enumerate(firsts)
    )
    plain = layout("r9", "num2space", "1D", "room", ("position", "correct"))  # two options: no share can be told
    found = spacenum_scores(planted(Items([*items, plain]), always_a), n_boot=50).error_shares()
    assert tuple(found) == ERROR_COLUMNS
    mine = found[(found["way"] == "logits") & (found["direction"] == "all")].set_index("error")
    assert mine["share"].to_dict() == {"position": 0.5, "size": 0.25, "both": 0.25}
    assert (mine["n"] == 4).all()
    assert (mine["chance"] == 1 / 3).all()
    assert found.loc[found["way"] == "logits", "error"].tolist() == ["position", "size", "both"] * 2


# --- the table ---------------------------------------------------------------------------------------------------------------


def test_the_table_has_the_papers_form():
    found = spacenum_scores(planted(small_set(4), always_a), n_boot=50)
    frame = found.to_frame()
    assert tuple(frame) == TABLE_COLUMNS
    assert frame.loc[frame["way"] == "logits", "key"].tolist() == [*KEYS, "transition", "layout", "Avg"]
    wide = found.table()
    assert list(wide) == ["model", "Avg", *KEYS]
    assert wide["model"].tolist() == ["chance", "majority letter", "planted"]
    wide = wide.set_index("model")
    # Letters are dealt in turn over four scenes: a constant letter is right in a quarter, or half, of each column.
    expected = [25.0 if column.n_options == 4 else 50.0 for column in COLUMNS]
    for name in wide.index:
        assert wide.loc[name, KEYS].tolist() == expected
        assert wide.loc[name, "Avg"] == pytest.approx(30.0)


def test_a_right_model_has_100_and_models_stand_below_each_other():
    items = small_set(2)
    found = spacenum_scores([planted(items, always_right, "knows"), planted(items, always_a, "guesses")], n_boot=20)
    wide = found.table("written").set_index("model")
    assert (wide.loc["knows"] == 100).all()
    assert list(wide.index) == ["chance", "majority letter", "knows", "guesses"]
    assert repr(found).startswith("SpaceNumScores(knows, guesses;")


def test_the_average_is_plain_and_the_halves_are_over_items():
    # One room and four desks in 2D: only the rooms' answer is right.
    items = small_set(1) + Items(
        [
            *(layout(f"more{k}", "num2space", "2D", "room", ("position", "correct", "size", "both")) for k in range(3)),
        ]
    )

    def answer(item):
        return (
            item.truth
            if item.groups["column"] == "2D R" and item.groups["direction"] == "num2space"
            else "D"
            if item.truth != "D"
            else "C"
        )

    two_options = [item for item in items if len(item.options) == 2]

    def answered(item):
        return ("B" if item.truth == "A" else "A") if item in two_options else answer(item)

    frame = spacenum_scores(planted(items, answered), n_boot=20).to_frame()
    frame = frame[frame["way"] == "logits"].set_index("key")["accuracy"]
    assert frame["num2space 2D R"] == 1
    assert frame["Avg"] == pytest.approx(1 / 20)
    assert frame["layout"] == pytest.approx(4 / 15)
    assert frame["transition"] == 0


def test_missing_columns_are_nan_and_named():
    items = small_set(2).filter(lambda i: i.groups["kind"] == "transition")
    found = spacenum_scores(planted(items, always_right), n_boot=20)
    assert found.missing() == tuple(KEYS[8:])
    frame = found.to_frame()
    frame = frame[frame["way"] == "logits"].set_index("key")
    assert frame.loc[KEYS[8:], "accuracy"].isna().all()
    assert frame.loc["Avg", ["accuracy", "low"]].isna().all()
    assert frame.loc["transition", "accuracy"] == 1
    assert frame.loc["layout", "n"] == 0
    assert found.table().set_index("model").loc["planted", "Avg"] != found.table().set_index("model").loc["planted", "Avg"]
    assert not len(found.error_shares())
    assert not len(found.interventions())


# --- pairs -------------------------------------------------------------------------------------------------------------------


def test_the_blind_test_tells_a_model_that_sees_from_one_that_does_not():
    items = with_conditions(small_set(6), "black")
    seeing = spacenum_scores(planted(items, needs_the_image), n_boot=50).blind()
    assert tuple(seeing) == CHANGE_COLUMNS
    seeing = seeing[seeing["way"] == "logits"].set_index("kind")
    for kind in ("transition", "layout"):
        assert seeing.loc[kind, ["real", "changed", "delta", "low", "high", "same_choice"]].tolist() == [1, 0, -1, -1, -1, 0]
    constant = spacenum_scores(planted(items, always_a), n_boot=50).blind()
    constant = constant[constant["way"] == "logits"].set_index("kind")
    assert constant.loc["transition", ["delta", "low", "high", "same_choice"]].tolist() == [0, 0, 0, 1]
    assert constant.loc["transition", "n"] == 6 * 8
    assert constant.loc["layout", "n"] == 6 * 12


def test_a_change_is_paired_question_by_question_and_its_interval_is_over_scenes():
    """Of 8 scenes the change makes 4 wrong: the paired interval is that of the mean of 8 differences."""
    items = Items(transition(f"s{k}", "space2num", "rotate left", GRID, "A") for k in range(8))
    both = with_conditions(items, "numbers_as_words") + Items(
        [with_conditions(Items([transition("alone", "space2num", "rotate left", GRID, "A")]), "numbers_as_words")[1]]
    )

    def answer(item):
        return "B" if item.condition != "real" and item.groups["scene"] in ("s0", "s1", "s2", "s3") else "A"

    found = spacenum_scores(planted(both, answer), n_boot=4000).interventions()
    row = found[(found["way"] == "logits") & (found["direction"] == "space2num") & (found["column"] == "rotate L/R")].iloc[0]
    assert row[["real", "changed", "delta", "n", "without_partner"]].tolist() == [1, 0.5, -0.5, 8, 1]
    from scipy.stats import binom

    half = float(binom.ppf(0.975, 8, 0.5)) / 8 - 0.5
    assert [row["low"], row["high"]] == pytest.approx([-0.5 - half, -0.5 + half], abs=0.07)
    assert row[["chance", "majority", "same_choice"]].tolist() == [0.25, 1, 0.5]


def test_symmetry_is_whether_the_equivalent_turn_gets_the_same_letter():
    items = Items(transition(f"s{k}", "space2num", "rotate left", GRID, "ABCD"[k]) for k in range(4))
    both = with_conditions(items, "rotational_equivalent")
    same = spacenum_scores(planted(both, always_right), n_boot=20).symmetry()
    assert (same["same_choice"] == 1).all()
    assert (same["delta"] == 0).all()

    def reads_the_number(item):
        return item.truth if item.condition == "real" else "ABCD"[3 - "ABCD".index(item.truth)]

    other = spacenum_scores(planted(both, reads_the_number), n_boot=20).symmetry()
    assert (other["same_choice"] == 0).all()
    assert (other["delta"] == -1).all()


def test_directions_are_compared_per_action_over_the_same_scenes():
    items = Items(
        transition(f"s{k}", direction, action, GRID, "B")
        for k in range(4)
        for direction in ("num2space", "space2num")
        for action in ("rotate left",)
    )

    def answer(item):
        # Scene 0 is right in both, scene 1 from space to number only, the others never.
        scene = int(item.groups["scene"][1:])
        return "B" if scene == 0 or (scene == 1 and item.groups["direction"] == "space2num") else "A"

    found = spacenum_scores(planted(items, answer), n_boot=4000).directions()
    assert tuple(found) == DIRECTION_COLUMNS
    mine = found[found["way"] == "logits"].set_index(["level", "name"])
    assert sorted(mine.index) == [("action", "rotate left"), ("all", "all"), ("column", "rotate L/R")]
    row = mine.loc[("action", "rotate left")]
    assert row[["num2space", "space2num", "difference", "n_num2space", "n_scenes"]].tolist() == [0.25, 0.5, 0.25, 4, 4]
    # Scene 0 moves both at once: only scene 1 moves the difference, which so never falls below 0.
    assert [row["low"], row["high"]] == [0, 0.75]


# --- runs, arguments, pictures -----------------------------------------------------------------------------------------------


def test_an_intervention_recorded_apart_joins_its_model():
    items = with_conditions(small_set(2), "black")
    real, black = (items.filter(lambda i, name=name: i.condition == name) for name in ("real", "black"))
    apart = spacenum_scores([planted(real, needs_the_image), planted(black, needs_the_image)], n_boot=20)
    together = spacenum_scores(planted(items, needs_the_image), n_boot=20)
    pd.testing.assert_frame_equal(apart.interventions(), together.interventions())
    with pytest.raises(ValueError, match="two of the runs of 'planted' hold the item"):
        spacenum_scores([planted(real, always_a), planted(real, always_a)])


def test_what_is_not_spacenum_is_refused():
    with pytest.raises(ValueError, match="there is no run to score"):
        spacenum_scores([])
    plain = Option(label="A", forms=("A",)), Option(label="B", forms=("B",))
    item = dx.Item(id="i", benchmark="b", task="t", language="en", images=(), prompt="?", options=plain, truth="A")
    with pytest.raises(ValueError, match="holds no item of SpaceNum's columns"):
        spacenum_scores(planted(Items([item]), always_a))
    found = spacenum_scores(planted(small_set(1), always_a, written=False), n_boot=5)
    with pytest.raises(ValueError, match="way='written' was not read here; these were: logits"):
        found.table("written")
    with pytest.raises(ValueError, match="condition='black' was not read here; these were: real"):
        found.table(condition="black")


def test_choices_bring_their_ways_with_them():
    found = choices(planted(small_set(1), always_right), n_boot=5)
    assert spacenum_scores(found, n_boot=5).ways == ("logits", "written")


def test_the_plot_shows_the_tables_numbers_and_the_published_ones_on_demand():
    found = spacenum_scores(planted(small_set(2), always_a), n_boot=20)
    ax = found.plot()
    points = [float(line.get_ydata()[0]) for line in ax.lines if line.get_marker() == "o"]
    wide = found.table().set_index("model").loc["planted"]
    assert points == pytest.approx([*wide[KEYS].tolist(), wide["Avg"]])
    rows = found.to_frame()
    rows = rows[rows["way"] == "logits"]
    with_them = plot_spacenum_scores(rows, published=True)
    dots = [line for line in with_them.lines if line.get_marker() == "."]
    assert len(dots) == 21
    assert sorted(dots[0].get_ydata()) == sorted(published_scores()[KEYS[0]])
    with pytest.raises(ValueError, match=r"published=.GPT. is not one of: .Qwen2\.5-VL-72B."):
        plot_spacenum_scores(rows, published=["GPT"])
    with pytest.raises(ValueError, match="of one way and one condition"):
        plot_spacenum_scores(found.to_frame())
