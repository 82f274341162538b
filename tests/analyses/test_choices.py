"""Choices of models whose answers were planted, and of two real models."""

import numpy as np
import pandas as pd
import pytest

import deixis as dx
from deixis.analyses.behaviour import Behaviour
from deixis.analyses.choice_bias import AGREEMENT_COLUMNS, PERMUTATION_COLUMNS, POSITION_COLUMNS, cohens_kappa
from deixis.analyses.choice_scores import SCORE_COLUMNS, SceneDraws, most_common
from deixis.analyses.choice_table import CHOICE_COLUMNS, question_of
from deixis.analyses.choices import Choices, choices
from deixis.analyses.choices_plot import plot_choices
from deixis.benchmarks import Items, memory_game
from tests.analyses.fake_run import FakeRun
from tests.analyses.written_choices import always_a, always_right, layout, planted, small_set, transition, with_conditions


def score_of(found, way="logits", condition="real"):
    scores = found.scores()
    scores = scores[(scores["way"] == way) & (scores["condition"] == condition)]
    return scores.set_index(["direction", "column"])


def test_behaviour_of_a_multiple_choice_run_is_its_choices():
    found = dx.behaviour(planted(small_set(2), always_right), n_boot=20)
    assert isinstance(found, Choices)
    assert repr(found).startswith("Choices('planted', 40 items by logits, written;")
    assert tuple(found.to_frame()) == CHOICE_COLUMNS
    assert tuple(found.scores()) == SCORE_COLUMNS
    assert tuple(found.agreement()) == AGREEMENT_COLUMNS
    assert tuple(found.positions()) == POSITION_COLUMNS
    assert tuple(found.permutations()) == PERMUTATION_COLUMNS
    assert not len(found.permutations())
    assert (found.scores()["accuracy"] == 1).all()


def test_a_model_that_always_says_a_scores_what_its_letter_is_right():
    # Of three scenes the right letters are A, A, B: the majority letter's rate is 2/3, twice chance and more.
    items = Items(
        transition(f"s{k}", "space2num", "rotate left", [10.0, 30.0, 50.0, 70.0], letter) for k, letter in enumerate("AAB")
    )
    row = score_of(choices(planted(items, always_a), n_boot=500)).loc[("space2num", "rotate L/R")]
    assert row[["accuracy", "chance", "majority", "majority_letter"]].tolist() == [2 / 3, 0.25, 2 / 3, "A"]
    assert row[["top_letter", "top_share", "unreadable", "tied", "n", "n_scenes"]].tolist() == ["A", 1, 0, 0, 3, 3]
    assert row[["low", "high"]].tolist() == [0, 1]  # B thrice has a chance of 1/27, above 2.5 %; so has A thrice


def test_the_mean_row_is_the_plain_mean_of_columns_of_unequal_size():
    items = Items(
        [
            *(transition(f"s{k}", "space2num", "rotate left", [10.0, 30.0, 50.0, 70.0], "A") for k in range(3)),
            layout("d0", "space2num", "1D", "desk", ("position", "correct")),
        ]
    )
    table = score_of(choices(planted(items, always_a), n_boot=50))
    assert table.loc[("", "mean"), ["accuracy", "chance", "majority", "n"]].tolist() == [0.5, 0.375, 1, 4]
    assert np.isnan(table.loc[("space2num", "1D D"), "low"])  # one scene says nothing about others


def test_intervals_are_over_scenes_and_not_over_items():
    # Two questions a scene, both right or both wrong: the interval is that of 8 scenes, not of 16 items.
    items = Items(
        transition(f"s{k}", direction, "rotate left", [10.0, 30.0, 50.0, 70.0], "A" if k < 4 else "B")
        for k in range(8)
        for direction in ("num2space", "space2num")
    )
    table = score_of(choices(planted(items, always_a), n_boot=4000, seed=1))
    low, high = table.loc[("", "mean"), ["low", "high"]]
    from scipy.stats import binom

    exact = np.array(binom.ppf([0.025, 0.975], 8, 0.5)) / 8
    assert [low, high] == exact.tolist()


def test_where_all_are_right_the_interval_is_that_of_clopper_and_pearson():
    from scipy.stats import binomtest

    items = Items(transition(f"s{k}", "space2num", "rotate left", [10.0, 30.0, 50.0, 70.0], "ABCD"[k % 4]) for k in range(6))
    row = score_of(choices(planted(items, always_right), n_boot=20)).loc[("space2num", "rotate L/R")]
    exact = binomtest(6, 6).proportion_ci(0.95)
    assert row[["low", "high"]].tolist() == pytest.approx([exact.low, exact.high])
    none = score_of(choices(planted(items, lambda i: "ABCD"[("ABCD".index(i.truth) + 1) % 4]), n_boot=20))
    assert none.loc[("space2num", "rotate L/R"), ["low", "high"]].tolist() == pytest.approx([0, 1 - exact.low])


def test_equal_logits_are_a_tie_and_unreadable_answers_are_not_right():
    items = small_set(1)[:2]
    run = FakeRun(items, lambda _: dict.fromkeys("ABCD", 0.25), answers=["A or B", "(C)"])
    frame = choices(run, n_boot=10).to_frame().set_index(["way", "item"])
    assert frame.loc["logits", "outcome"].tolist() == ["tied", "tied"]
    assert frame.loc["logits", "right"].tolist() == [0.25, 0.25]
    assert frame.loc["logits", "letter"].isna().all()
    assert frame.loc["logits", "prob_truth"].tolist() == pytest.approx([0.25, 0.25])
    assert frame.loc["written", "outcome"].tolist()[0] == "unreadable"
    assert frame.loc["written", "right"].tolist()[0] == 0


def test_agreement_and_kappa_are_those_counted_by_hand():
    items = small_set(2)[:8].filter(lambda i: i.groups["kind"] == "transition")
    said = ["A", "A", "B", "B", "C", "A or B", "D", "D"][: len(items)]
    letters = dict(zip([i.id for i in items], ["A", "A", "B", "A", "C", "A", "D", "C"], strict=False))
    run = planted(items, lambda i: letters[i.id])
    run.answers = said
    row = choices(run, n_boot=100).agreement().iloc[0]
    assert row[["one", "other", "n", "unread"]].tolist() == ["logits", "written", 7, 1]
    assert row["agreement"] == pytest.approx(5 / 7)
    # Shares of A, B, C, D: 3/7, 1/7, 2/7, 1/7 by logits, 2/7, 2/7, 1/7, 2/7 written.
    expected = (3 * 2 + 1 * 2 + 2 * 1 + 1 * 2) / 49
    assert row["kappa"] == pytest.approx((5 / 7 - expected) / (1 - expected))


def test_kappa_agrees_with_scikit_learn():
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(0)
    one = rng.integers(0, 3, 50)
    other = np.where(rng.random(50) < 0.5, one, rng.integers(0, 3, 50))
    assert cohens_kappa(one.tolist(), other.tolist()) == pytest.approx(cohen_kappa_score(one, other))
    assert np.isnan(cohens_kappa(["A", "A"], ["A", "A"]))


def test_position_bias_is_the_share_of_each_letter_against_uniform():
    found = choices(planted(small_set(4), always_a), n_boot=200).positions()
    four = found[(found["way"] == "written") & (found["n_options"] == 4)].set_index("letter")
    assert four["share"].tolist() == [1, 0, 0, 0]
    assert four[["low", "high"]].loc["A"].tolist() == [1, 1]
    assert (four["uniform"] == 0.25).all()
    assert four["right_share"].tolist() == [0.25] * 4
    two = found[(found["way"] == "logits") & (found["n_options"] == 2)]
    assert two["letter"].tolist() == ["A", "B"]
    assert (two["uniform"] == 0.5).all()


def test_permutations_leave_nothing_of_a_constant_letter_and_all_of_knowledge():
    items = small_set(3, permuted=True)
    constant = choices(planted(items, always_a), n_boot=50).permutations()
    constant = constant[constant["way"] == "logits"].set_index("n_options")
    assert constant.loc[4, ["accuracy", "low", "high"]].tolist() == [0.25] * 3
    assert constant.loc[2, ["accuracy", "low", "high"]].tolist() == [0.5] * 3
    assert constant.loc[4, ["consistent", "always_right", "incomplete"]].tolist() == [0, 0, 0]
    assert constant.loc[4, "by_chance"] == 4.0**-3
    knows = choices(planted(items, always_right), n_boot=50).permutations()
    assert (knows[["accuracy", "consistent", "always_right", "worst", "best"]] == 1).all(axis=None)


def test_a_model_that_sticks_to_wrong_content_is_consistent_and_never_right():
    items = small_set(3, permuted=True)

    def wrong_but_steady(item):
        return next(o.label for o in item.options if o.kind in ("wrong", "both")) if len(item.options) == 4 else item.truth

    row = choices(planted(items, wrong_but_steady), n_boot=50).permutations().set_index(["way", "n_options"]).loc[("logits", 4)]
    assert row[["accuracy", "consistent", "always_right"]].tolist() == [0, 1, 0]


def test_questions_without_all_permutations_are_left_out_and_counted():
    items = small_set(2, permuted=True)
    dropped = items[1].id
    row = choices(planted(items.filter(lambda i: i.id != dropped), always_right), n_boot=5).permutations()
    row = row.set_index(["way", "n_options"]).loc[("logits", 4)]
    assert row[["n", "incomplete"]].tolist() == [32 - 1, 1]


def test_questions_are_told_from_their_condition_and_permutation():
    item = small_set(1, permuted=True)[1]
    assert question_of(item) == small_set(1)[0].id
    conditioned = with_conditions(Items([item]), "black")[1]
    assert conditioned.id.endswith("/p1+black")
    assert question_of(conditioned) == small_set(1)[0].id


def test_draws_of_scenes_keep_each_columns_number_where_there_are_enough():
    table = choices(planted(small_set(6), always_a), n_boot=1).to_frame()
    draws = SceneDraws.of(table, 50, 0)
    scenes = np.array(draws.names)
    for start in ("desk", "room"):
        own = [k for k, name in enumerate(scenes) if name.startswith(start) and " " not in name]
        assert len(own) == 6
        assert (draws.times[:, own].sum(axis=1) == 6).all()
    assert (draws.times.sum(axis=1) == len(scenes)).all()


def test_most_common_counts_unread_answers_too():
    assert most_common(pd.Series(["B", "A", "B", None])) == ("B", 0.5)
    assert most_common(pd.Series(["B", "A"])) == ("A", 0.5)
    assert most_common(pd.Series([None, None], dtype=object))[0] is None


def test_the_plot_shows_the_frames_numbers():
    scores = choices(planted(small_set(2), always_a), n_boot=20).scores()
    ax = plot_choices(scores)
    points = [line for line in ax.lines if line.get_marker() == "o"]
    shown = scores[scores["way"] == "logits"]
    assert [float(line.get_xdata()[0]) for line in points] == (100 * shown["accuracy"]).tolist()
    assert ax.get_xlabel() == "accuracy, %"
    with pytest.raises(ValueError, match="no row of way='string'"):
        plot_choices(scores, way="string")


def test_runs_of_the_other_kind_are_described_as_before_and_mixed_ones_refused():
    game = memory_game(languages=("en",), shapes=("star",), size=64)
    assert isinstance(dx.behaviour(FakeRun(game, lambda _: {"this": 0.6, "that": 0.4}), n_boot=5), Behaviour)
    mixed = Items([*game, *small_set(1)])
    with pytest.raises(ValueError, match="are multiple choice and the others are not; record them apart"):
        dx.behaviour(planted(mixed, always_a))
    with pytest.raises(ValueError, match="reference changes nothing in a multiple-choice run"):
        dx.behaviour(planted(small_set(1), always_a), "synthetic")
    with pytest.raises(ValueError, match="no item whose options are letters"):
        choices(FakeRun(game, lambda _: {"this": 0.6, "that": 0.4}))
    with pytest.raises(ValueError, match="n_boot=0 must be at least 1"):
        choices(planted(small_set(1), always_a), n_boot=0)
