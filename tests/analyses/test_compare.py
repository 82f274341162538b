"""Many models: every number of the tables from shares and answers that were chosen beforehand."""

import zlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import pearsonr

from deixis.analyses.compare import COLUMNS, ComparisonError, Correlation, compare, pearson, plot_comparison
from deixis.benchmarks import Items, memory_game
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER
from tests.analyses.fake_run import FakeRun, by_term, right_answer

ITEMS = memory_game(size=64)
SHAPES = ("circle", "cross", "square", "star", "triangle")


def speaker(item):
    return by_term(item, SYNTHETIC_SPEAKER[item.language][int(item.targets["region"])])


def uniform(item):
    return {option.label: 1 / len(item.options) for option in item.options}


def half_and_half(item):
    """The speaker's shares where the shape is a star or a cross, uniform elsewhere."""
    return speaker(item) if item.groups["shape"] in ("star", "cross") else uniform(item)


def answered(shapes, languages=("en", "zh", "ja", "ko")):
    return [right_answer(i) if i.groups["shape"] in shapes and i.language in languages else "This red lemon" for i in ITEMS]


@pytest.fixture(scope="module")
def three():
    runs = [
        FakeRun(ITEMS, speaker, answers=answered(SHAPES), model="all-seeing"),
        FakeRun(ITEMS, half_and_half, answers=answered(("star", "cross")), model="two-shapes"),
        FakeRun(ITEMS, uniform, answers=answered(("star", "cross", "square"), ("en", "zh", "ja")), model="no-korean"),
    ]
    return compare(runs, "synthetic", n_boot=50)


def test_table_1_counts_recognised_answers(three):
    table = three.table1()
    assert list(table) == ["model", "en", "zh", "ja", "ko", "n"]
    assert table.to_numpy().tolist() == [
        ["all-seeing", 60, 60, 60, 60, 60],
        ["two-shapes", 24, 24, 24, 24, 60],
        ["no-korean", 36, 36, 36, 0, 60],
    ]


def test_table_2_holds_distances_filtered_and_unfiltered_in_both_bases(three):
    table = three.table2().set_index(["model", "answers", "base"])
    assert len(table) == 4 * 2 * 2
    assert table.loc["all-seeing"].to_numpy() == pytest.approx(0, abs=1e-3)
    assert table.loc[("two-shapes", "recognised", "2")].to_numpy(float) == pytest.approx(0, abs=1e-3)
    for base, number in (("2", 2), ("e", np.e)):
        for code, regions in SYNTHETIC_SPEAKER.items():
            rows = [np.array(list(shares.values())) for shares in regions.values()]
            flat = np.full(len(rows[0]), 1 / len(rows[0]))
            mixed = np.mean([jensenshannon(0.4 * row + 0.6 * flat, row, base=number) for row in rows])
            far = np.mean([jensenshannon(flat, row, base=number) for row in rows])
            assert table.loc[("two-shapes", "all", base), code] == pytest.approx(mixed, abs=1e-5)
            assert table.loc[("no-korean", "all", base), code] == pytest.approx(far, abs=1e-5)
            for answers in ("recognised", "all"):
                assert table.loc[("uniform", answers, base), code] == pytest.approx(far)
    assert np.isnan(table.loc[("no-korean", "recognised", "2"), "ko"])
    assert table.loc[("no-korean", "recognised", "2"), ["en", "zh", "ja"]].notna().all()


def test_the_frame_has_a_row_for_each_cell_and_choice_of_answers(three):
    frame = three.to_frame()
    assert tuple(frame) == COLUMNS
    assert len(frame) == 3 * 4 * 4 * 2
    missing = frame[(frame["model"] == "no-korean") & (frame["language"] == "ko") & (frame["answers"] == "recognised")]
    assert missing["js_distance"].isna().all()
    assert missing["n_scored"].tolist() == [0, 0, 0, 0]
    assert missing["n"].tolist() == [20, 20, 20, 60]
    np.testing.assert_allclose(frame["js_distance_nats"], frame["js_distance"] * np.sqrt(np.log(2)))
    assert repr(three).startswith("Comparison(all-seeing, two-shapes, no-korean; reference 'synthetic'")


def test_the_correlation_is_over_the_cells_that_have_both(three):
    found = three.correlation()
    table1, table2 = three.table1().set_index("model"), three.table2().set_index(["model", "answers", "base"])
    pairs = [
        (table1.loc[model, code], table2.loc[(model, "recognised", "2"), code])
        for model in three.models
        for code in three.languages
        if not (model == "no-korean" and code == "ko")
    ]
    expected = pearsonr(*zip(*pairs, strict=True))
    assert found.n == 11
    assert found.left_out == ("no-korean ko",)
    assert found.r == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.low < found.r < found.high
    assert list(found.to_frame()) == ["answers", "r", "low", "high", "p_value", "n", "left_out"]
    assert three.correlation("all").n == 12
    assert str(found).endswith("over 11 cells (recognised answers)")
    with pytest.raises(ValueError, match="answers='both' is not one of: 'all', 'recognised'"):
        three.correlation("both")


def test_the_published_correlation_has_the_interval_that_fifteen_cells_allow():
    """r = -0.40 over 15 cells: by hand p is 0.14 (t, 13 degrees of freedom) and Fisher's interval -0.76 to 0.14."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=15), rng.normal(size=15)
    x -= x.mean()
    noise -= noise.mean() + x * (noise @ x) / (x @ x)
    noise -= noise.mean()
    y = -0.4 * x / np.linalg.norm(x) + np.sqrt(1 - 0.16) * noise / np.linalg.norm(noise)
    r, low, high, p = pearson(x, y)
    assert r == pytest.approx(-0.4)
    assert (round(low, 2), round(high, 2), round(p, 2)) == (-0.76, 0.14, 0.14)


def test_fishers_interval_holds_the_truth_as_often_as_it_should():
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(1000):
        x = rng.normal(size=15)
        y = -0.5 * x + np.sqrt(0.75) * rng.normal(size=15)
        _, low, high, _ = pearson(x, y)
        held += low <= -0.5 <= high
    assert 930 <= held <= 970


@pytest.mark.parametrize("x", [[1.0, 2.0], [3.0, 3.0, 3.0, 3.0]])
def test_what_has_no_correlation_is_nan(x):
    assert np.isnan(pearson(np.array(x), np.arange(float(len(x))))).all()
    nan = float("nan")
    assert str(Correlation("all", nan, nan, nan, nan, 2, ())) == "no correlation can be computed over 2 cells (all answers)"


def test_three_cells_have_a_correlation_and_no_interval():
    r, low, high, _ = pearson(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    assert r == pytest.approx(0.5)
    assert np.isnan([low, high]).all()


def test_figure_2_draws_the_recognised_answers_and_the_counts_of_missing_cells(three):
    ax = three.figure2()
    assert sum(patch.get_hatch() is not None for patch in ax.patches) == 3
    assert [t.get_text() for t in ax.texts].count("n = 0") == 3
    assert not any(patch.get_hatch() for patch in three.figure2(answers="all").patches)
    with pytest.raises(ValueError, match="answers='none' is not one of"):
        three.figure2(answers="none")


def test_the_plot_has_a_point_for_each_cell_and_says_what_is_missing(three):
    ax = three.plot()
    frame = three.to_frame()
    there = frame[(frame["region"] == "mean") & frame["js_distance"].notna()]
    points = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) == 1]
    np.testing.assert_allclose(sorted(points), sorted(there["js_distance"]))
    assert [t.get_text() for t in ax.texts] == ["too few recognised: 0 of 60"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["all-seeing", "two-shapes", "no-korean"]
    with pytest.raises(ValueError, match="no distance to draw; compare with a reference"):
        plot_comparison(frame.assign(js_distance=np.nan))


def run_of(items, name="other", **more):
    items = Items(items)
    answers = [right_answer(item) if item.task == "demonstrative" else "near" for item in items]
    return FakeRun(items, uniform, **({"answers": answers, "model": name} | more))


def test_runs_that_cannot_be_compared_are_refused_with_what_differs():
    few = [item for item in ITEMS if item.groups["shape"] == "star"]
    first = run_of(few, "first")
    other_benchmark = [replace(item, benchmark="desks") for item in few]
    other_prompt = [*few[:5], replace(few[5], prompt="what?"), *few[6:]]
    larger = memory_game(shapes=("star",), size=80)
    asked_distance = memory_game(tasks=("distance",), shapes=("star",), size=64)
    for runs, message in (
        ([], "no run was given"),
        ([first, run_of(few, "first")], "two runs are of the model 'first'"),
        ([first, run_of(other_benchmark)], "'first' was run on memory-game and 'other' on desks; record both on one benchmark"),
        ([first, run_of(few[1:])], f"'first' was asked the item '{few[0].id}' and 'other' was not"),
        ([run_of(few[1:], "first"), run_of(few)], f"'other' was asked the item '{few[0].id}' and 'first' was not"),
        ([first, run_of(other_prompt)], f"item '{few[5].id}' has another prompt in the run of 'other' than in that of 'first'"),
        ([first, run_of(larger)], "has another .* in the run of 'other' than in that of 'first'"),
        ([first, run_of(asked_distance)], "the run of 'other' holds no real demonstrative items"),
        ([first, run_of(few, answers=[])], "the run of 'other' was recorded with answers=False"),
    ):
        with pytest.raises(ComparisonError, match=message):
            compare(runs, "synthetic", n_boot=5)


def test_other_tasks_and_conditions_of_a_run_do_not_matter():
    few = memory_game(languages=("en",), shapes=("star",), size=64)
    more = few + memory_game(tasks=("distance",), languages=("ja",), shapes=("star",), size=64) + few.with_condition("blank")
    found = compare([run_of(few, "first"), run_of(more)], "synthetic", min_recognised=4, n_boot=5)
    assert found.languages == ("en",)
    first, other = (found.to_frame()[found.to_frame()["model"] == name] for name in ("first", "other"))
    columns = ["js_distance", "recognised", "n", "n_scored"]
    pd.testing.assert_frame_equal(first[columns].reset_index(drop=True), other[columns].reset_index(drop=True))


def test_without_a_reference_the_counts_are_there_and_distances_are_not():
    few = memory_game(languages=("en",), shapes=("star",), size=64)
    found = compare([run_of(few)], n_boot=5)
    assert found.table1()["en"].tolist() == [12]
    assert found.table2()["en"].isna().all()
    assert found.correlation().n == 0


def test_noise_does_not_depend_on_which_models_are_beside_one():
    def noisy(item):
        rng = np.random.default_rng(zlib.crc32(item.groups["scene"].encode()))
        return by_term(item, dict(zip(SYNTHETIC_SPEAKER[item.language][1], rng.dirichlet((2, 2, 2)), strict=False)))

    few = ITEMS.filter(lambda item: item.language == "en")
    one = run_of(few, "one")
    one.shares = noisy
    alone = compare([one], "synthetic", n_boot=20).to_frame()
    beside = compare([run_of(few, "other"), one], "synthetic", n_boot=20).to_frame()
    pd.testing.assert_frame_equal(alone, beside[beside["model"] == "one"].reset_index(drop=True))
