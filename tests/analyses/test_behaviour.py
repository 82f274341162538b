"""Behaviour of runs whose distributions and answers were chosen beforehand."""

import zlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import jensenshannon

from deixis.analyses.behaviour import COLUMNS, PRIOR_FLOOR, SCORE_COLUMNS, behaviour, corrected_for_prior
from deixis.analyses.findings import lens_of_terms
from deixis.benchmarks import Items, memory_game
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER
from tests.analyses.fake_run import FakeRun, by_term, right_answer

ITEMS = memory_game(size=64)
BOTH = memory_game(tasks=("demonstrative", "distance"), languages=("en", "ja"), shapes=("star", "cross"), size=64)


def speaker(item):
    if item.task == "distance":
        return {option.label: 1 / 3 for option in item.options}
    return by_term(item, SYNTHETIC_SPEAKER[item.language][int(item.targets["region"])])


def average(item):
    shares = SYNTHETIC_SPEAKER[item.language]
    return by_term(item, {term: sum(shares[r][term] for r in (1, 2, 3)) / 3 for term in shares[1]})


def noisy(item):
    """Shares that differ from scene to scene."""
    rng = np.random.default_rng(zlib.crc32(item.groups["scene"].encode()))
    return by_term(item, dict(zip(SYNTHETIC_SPEAKER[item.language][1], rng.dirichlet((2, 2, 2)), strict=False)))


def test_columns_are_those_of_the_contract():
    result = behaviour(FakeRun(ITEMS, speaker), "synthetic", n_boot=20)
    assert repr(result).startswith("Behaviour('fake', reference 'synthetic'; ")
    assert tuple(result.to_frame()) == COLUMNS
    assert tuple(result.scores()) == SCORE_COLUMNS
    assert set(result.scores()["region"]) == {1, 2, 3, "mean"}


def test_a_model_that_is_the_speaker_has_distance_zero():
    scores = behaviour(FakeRun(ITEMS, speaker), "synthetic", n_boot=20).scores()
    np.testing.assert_allclose(scores["js_distance"], 0, atol=1e-3)  # logits are float32
    assert (scores["js_uniform"] > 0).all()


@pytest.mark.parametrize("base", [2.0, np.e])
def test_distances_are_scipys_on_the_mean_of_the_softmax(base):
    result = behaviour(FakeRun(ITEMS, average), "synthetic", base=base, n_boot=20)
    scores = result.scores().set_index(["language", "region"])
    for language, regions in SYNTHETIC_SPEAKER.items():
        own = np.mean([list(regions[r].values()) for r in (1, 2, 3)], axis=0)
        expected = [jensenshannon(own, list(regions[r].values()), base=base) for r in (1, 2, 3)]
        uniform = [jensenshannon(np.full(len(own), 1 / len(own)), list(regions[r].values()), base=base) for r in (1, 2, 3)]
        for region in (1, 2, 3):
            assert scores.loc[(language, region), "js_distance"] == pytest.approx(expected[region - 1], abs=1e-5)
            assert scores.loc[(language, region), "js_uniform"] == pytest.approx(uniform[region - 1])
        assert scores.loc[(language, "mean"), "js_distance"] == pytest.approx(np.mean(expected), abs=1e-5)
        assert scores.loc[(language, "mean"), "js_uniform"] == pytest.approx(np.mean(uniform))


def test_the_distribution_is_the_mean_of_the_softmax_and_not_a_count_of_choices():
    items = memory_game(languages=("en",), distances=(0.25,), size=64)
    shares = {item.id: np.linspace(0.51, 0.99, len(items))[k] for k, item in enumerate(items)}
    run = FakeRun(items, lambda item: {"this": shares[item.id], "that": 1 - shares[item.id]})
    frame = behaviour(run, n_boot=4000).to_frame().set_index("term")
    assert frame.loc["proximal", "proportion"] == pytest.approx(0.75, abs=1e-6)
    # Mean of 20 independent scenes: its standard error is sd / sqrt(20).
    half = 1.96 * np.std(list(shares.values())) / np.sqrt(20)
    assert frame.loc["proximal", "low"] == pytest.approx(0.75 - half, abs=0.006)
    assert frame.loc["proximal", "high"] == pytest.approx(0.75 + half, abs=0.006)
    assert (frame["n"] == 20).all()
    assert frame["reference"].isna().all()


def test_the_noise_floor_of_the_speaker_rests_on_the_runs_own_n():
    few = behaviour(FakeRun(ITEMS.filter(lambda i: i.groups["shape"] == "star"), speaker), "synthetic", n_boot=20).scores()
    many = behaviour(FakeRun(ITEMS, speaker), "synthetic", n_boot=20).scores()
    # Five times as many answers: the floor falls with the square root, where it is far from the boundary.
    ratio = few.set_index(["language", "region"])["noise_floor"] / many.set_index(["language", "region"])["noise_floor"]
    assert ratio["en", 2] == pytest.approx(np.sqrt(5), rel=0.15)


def test_answers_are_counted_by_cell_and_summed_in_the_mean_row():
    answers = [right_answer(item) for item in BOTH]
    spoilt = {"wrong": 0, "right": 0}
    for k, item in enumerate(BOTH):
        if item.language == "en" and item.targets["region"] == 2.0 and item.groups["shape"] == "cross":
            answers[k] = "far" if item.task == "distance" else "This red lemon"
            spoilt["wrong"] += item.task == "distance"
    scores = behaviour(FakeRun(BOTH, speaker, answers=answers), n_boot=500).scores().set_index(["language", "region"])
    assert scores.loc[("en", 1), ["recognised", "accuracy", "n"]].tolist() == [8, 1, 8]
    assert scores.loc[("en", 2), ["recognised", "accuracy", "n"]].tolist() == [4, 0.5, 8]
    assert scores.loc[("en", "mean"), ["recognised", "n"]].tolist() == [20, 24]
    assert scores.loc[("en", "mean"), "accuracy"] == pytest.approx(20 / 24)
    assert scores.loc[("en", "mean"), "accuracy_low"] < 20 / 24 < scores.loc[("en", "mean"), "accuracy_high"]
    assert scores.loc[("ja", "mean"), ["recognised", "accuracy", "accuracy_low"]].tolist() == [24, 1, 1]
    assert scores["js_distance"].isna().all()


def recognised_in(shapes):
    """Answers of which those to other shapes name a lemon."""
    return [right_answer(item) if item.groups["shape"] in shapes else "This red lemon" for item in ITEMS]


def test_recognised_answers_alone_are_described():
    """Shares that depend on the shape: only those of recognised shapes may count, and by hand they are known."""

    def shares(item):
        high = 0.9 if item.groups["shape"] in ("star", "cross") else 0.2
        return by_term(item, dict.fromkeys(SYNTHETIC_SPEAKER[item.language][1], (1 - high) / 2) | {"proximal": high})

    items = ITEMS.filter(lambda i: i.language == "ja")
    answers = [a for a, i in zip(recognised_in(("star", "cross")), ITEMS, strict=True) if i.language == "ja"]
    run = FakeRun(items, shares, answers=answers)
    some, every = (behaviour(run, "synthetic", answers=which, n_boot=50) for which in ("recognised", "all"))
    proximal = some.to_frame().set_index(["term", "region"]).loc["proximal"]
    assert proximal["proportion"].tolist() == pytest.approx([0.9] * 3)
    assert proximal["n"].tolist() == [8] * 3
    assert every.to_frame().set_index(["term", "region"]).loc[("proximal", 1), "proportion"] == pytest.approx(
        (2 * 0.9 + 3 * 0.2) / 5
    )
    scores = some.scores().set_index("region")
    assert scores["n"].tolist() == [20, 20, 20, 60]
    assert scores["n_scored"].tolist() == [8, 8, 8, 24]
    assert scores["recognised"].tolist() == [8, 8, 8, 24]
    expected = jensenshannon([0.9, 0.05, 0.05], list(SYNTHETIC_SPEAKER["ja"][1].values()), base=2)
    assert scores.loc[1, "js_distance"] == pytest.approx(expected, abs=1e-5)
    assert every.scores()["n_scored"].tolist() == [20, 20, 20, 60]


def test_cells_of_too_few_recognised_answers_are_missing_with_their_count():
    answers = recognised_in(("star",))  # four of twenty in every cell
    run = FakeRun(ITEMS, speaker, answers=answers)
    missing = behaviour(run, "synthetic", answers="recognised", n_boot=20)
    assert missing.to_frame()["proportion"].isna().all()
    assert (missing.to_frame()["n"] == 4).all()
    scores = missing.scores()
    assert scores[["js_distance", "js_corrected", "js_null", "low"]].isna().all().all()
    assert scores["js_uniform"].notna().all()
    assert set(scores["n_scored"]) == {4, 12}
    there = behaviour(run, "synthetic", answers="recognised", min_items=4, n_boot=20).scores()
    np.testing.assert_allclose(there["js_distance"], 0, atol=1e-3)


def test_a_language_with_one_region_missing_has_no_mean():
    answers = [right_answer(i) if i.targets["region"] != 2.0 else "?" for i in ITEMS]
    scores = behaviour(FakeRun(ITEMS, speaker, answers=answers), "synthetic", answers="recognised", n_boot=20).scores()
    scores = scores.set_index(["language", "region"])["js_distance"]
    assert scores.loc[("en", [1, 3])].notna().all()
    assert scores.loc[("en", [2, "mean"])].isna().all()


def test_recognised_answers_need_answers_that_can_be_judged():
    with pytest.raises(ValueError, match="the run holds no written answers; use answers='all'"):
        behaviour(FakeRun(ITEMS, speaker), "synthetic", answers="recognised")
    bare = Items(replace(item, groups={"scene": item.groups["scene"]}) for item in ITEMS)
    with pytest.raises(ValueError, match="has no colour and shape to judge"):
        behaviour(FakeRun(bare, speaker, answers=["x"] * len(bare)), answers="recognised")
    with pytest.raises(ValueError, match="answers='right' is not one of: 'all', 'recognised'"):
        behaviour(FakeRun(ITEMS, speaker), answers="right")
    with pytest.raises(ValueError, match="min_items=0 must be at least 1"):
        behaviour(FakeRun(ITEMS, speaker), min_items=0)


def test_regions_share_the_figures_that_are_drawn():
    """A figure's liking for "this" is the same in all regions: their distances move together, so the mean's interval is wide."""

    def by_figure(item):
        rng = np.random.default_rng(zlib.crc32(item.groups["figure"].encode()))
        high = float(0.02 + 0.2 * rng.beta(2, 2))  # below every region's reference: all distances fall with it
        return by_term(item, {"proximal": high, "distal": 1 - high})

    items = ITEMS.filter(lambda i: i.language == "en")
    scores = behaviour(FakeRun(items, by_figure), n_boot=4000).to_frame().set_index(["term", "region"]).loc["proximal"]
    assert scores["low"].round(5).nunique() == 1  # the same figures, and so the same draws, in every region
    mean = behaviour(FakeRun(items, by_figure), "synthetic", n_boot=4000).scores().set_index("region")
    # Independent draws would make the mean's interval narrower by the root of three.
    widths = (mean["high"] - mean["low"]).astype(float)
    assert widths["mean"] > 0.75 * widths[[1, 2, 3]].mean()


def test_the_correction_and_the_null_are_those_of_the_cells_figures():
    result = behaviour(FakeRun(ITEMS, noisy), "synthetic", n_boot=20).scores().set_index(["language", "region"])
    items = [i for i in ITEMS if i.language == "ja" and i.targets["region"] == 1.0]
    shares = np.array([list(noisy(i).values()) for i in items])
    reference = np.array(list(SYNTHETIC_SPEAKER["ja"][1].values()))
    distance = lambda rows: jensenshannon(rows.mean(axis=0), reference, base=2)  # noqa: E731
    left_out = np.mean([distance(np.delete(shares, k, axis=0)) for k in range(20)])
    expected = max(20 * distance(shares) - 19 * left_out, 0)
    assert result.loc[("ja", 1), "js_corrected"] == pytest.approx(expected, abs=1e-4)
    assert result.loc[("ja", 1), "js_corrected"] < result.loc[("ja", 1), "js_distance"]
    assert result.loc[("ja", "mean"), "js_corrected"] == pytest.approx(result.loc[("ja", [1, 2, 3]), "js_corrected"].mean())
    rng = np.random.default_rng(0)
    halves = []
    for _ in range(2000):
        order = rng.permutation(20)
        halves.append(jensenshannon(shares[order[:10]].mean(axis=0), shares[order[10:]].mean(axis=0), base=2))
    assert result.loc[("ja", 1), "js_null"] == pytest.approx(np.mean(halves), rel=0.05)
    assert result.loc[("ja", 1), "js_null_high"] == pytest.approx(np.quantile(halves, 0.95), rel=0.08)


def test_what_was_not_written_or_asked_is_nan_and_not_zero():
    scores = behaviour(FakeRun(ITEMS, speaker), "synthetic", n_boot=20).scores()
    assert scores["recognised"].isna().all()
    assert scores["accuracy"].isna().all()
    only = BOTH.filter(lambda i: i.task == "distance")
    result = behaviour(FakeRun(only, speaker, answers=[right_answer(i) for i in only]), n_boot=20)
    assert len(result.to_frame()) == 0
    assert (result.scores()["accuracy"] == 1).all()
    assert result.scores()["recognised"].isna().all()


def test_unreadable_answers_are_never_right():
    scores = behaviour(FakeRun(BOTH, speaker, answers=[""] * len(BOTH)), n_boot=20).scores()
    assert (scores["recognised"] == 0).all()
    assert (scores["accuracy"] == 0).all()


def test_blank_items_give_the_prior_and_are_not_ranked():
    items = ITEMS + ITEMS.with_condition("blank")
    run = FakeRun(items, lambda item: average(item) if item.condition == "blank" else speaker(item))
    result = behaviour(run, "synthetic", n_boot=20)
    frame = result.to_frame()
    blank, real = frame[frame["condition"] == "blank"], frame[frame["condition"] == "real"]
    assert blank["corrected"].isna().all()
    assert blank["reference"].isna().all()
    korean = SYNTHETIC_SPEAKER["ko"]
    prior = {term: np.mean([korean[r][term] for r in (1, 2, 3)]) for term in korean[1]}
    weights = {term: korean[1][term] / prior[term] for term in prior}
    got = real[(real["language"] == "ko") & (real["region"] == 1)].set_index("term")["corrected"]
    for term, weight in weights.items():
        assert got[term] == pytest.approx(weight / sum(weights.values()), abs=1e-5)
    without = behaviour(FakeRun(ITEMS, speaker), "synthetic", n_boot=20)
    assert without.scores().equals(result.scores())
    assert without.to_frame()["corrected"].isna().all()


def test_the_prior_is_floored():
    shares, prior = np.array([0.5, 0.5]), np.array([0.999, 0.001])
    weights = shares / np.array([0.999, PRIOR_FLOOR])
    np.testing.assert_allclose(corrected_for_prior(shares, prior), weights / weights.sum())


def test_the_same_seed_gives_the_same_intervals_and_a_language_does_not_move_the_others():
    run, other = FakeRun(ITEMS, noisy), FakeRun(ITEMS.filter(lambda i: i.language == "ja"), noisy)
    a, b = behaviour(run, n_boot=50).to_frame(), behaviour(run, n_boot=50).to_frame()
    assert a.equals(b)
    assert not a.equals(behaviour(run, n_boot=50, seed=1).to_frame())
    alone = behaviour(other, n_boot=50).to_frame()
    mine = a[a["language"] == "ja"].reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, alone, rtol=1e-5)  # logits are float32


def test_the_bootstrap_interval_of_a_distance_covers_what_it_should():
    """Items drawn around a known mean: the interval holds the distance of that mean in about 95 of 100 runs."""
    items = memory_game(languages=("en",), distances=(1.5,), size=64)
    truth = jensenshannon([0.8, 0.2], list(SYNTHETIC_SPEAKER["en"][2].values()), base=2)
    held = 0
    for seed in range(60):
        draws = dict(zip((i.id for i in items), np.random.default_rng(seed).beta(8, 2, len(items)), strict=True))
        run = FakeRun(items, lambda item, d=draws: {"this": d[item.id], "that": 1 - d[item.id]})
        row = behaviour(run, "synthetic", n_boot=400, seed=seed).scores().iloc[0]
        held += row["low"] <= truth <= row["high"]
    assert held >= 51  # P(fewer | 0.93) is about 0.01


CSV = "language,region,term,proportion,n\n" + "".join(
    f"{code},{region},{term},{share},{100 * region}\n"
    for code, regions in SYNTHETIC_SPEAKER.items()
    for region, shares in regions.items()
    for term, share in shares.items()
)


def test_a_csv_file_gives_what_the_same_numbers_give_otherwise(tmp_path):
    (tmp_path / "people.csv").write_text(CSV, "utf-8")
    mine = behaviour(FakeRun(ITEMS, average), tmp_path / "people.csv", n_boot=20)
    theirs = behaviour(FakeRun(ITEMS, average), "synthetic", n_boot=20)
    assert mine.to_frame().equals(theirs.to_frame())
    assert mine.scores()["js_distance"].equals(theirs.scores()["js_distance"])
    floors = mine.scores().set_index(["language", "region"])["noise_floor"]
    assert floors["en", 1] < theirs.scores().set_index(["language", "region"])["noise_floor"]["en", 1]  # 100 answers, not 20


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ja,2,medial,0.55,200", "ja,2,medial,0.45,200", "the proportions of ja, region 2 sum to 0.9"),
        ("ja,2,medial,0.55,200\n", "", "the proportions of ja, region 2 sum to 0.45"),
        ("ko,3,proximal,0.1,300\nko,3,medial,0.15,300\nko,3,distal,0.75,300\n", "", "no line for ko, region 3, proximal"),
        (
            "en,1,proximal,0.75,100",
            "en,1,near,0.75,100",
            "line 2: the term 'near' is not known in 'en'; allowed are proximal, distal",
        ),
        ("en,1,proximal,0.75,100", "en,1,medial,0.75,100", "the term 'medial' is not known in 'en'"),
        ("en,1,proximal,0.75,100", "en,1,proximal,-0.75,100", "line 2: en, region 1, proximal: the proportion is -0.75"),
        ("en,1,proximal,0.75,100", "en,1,proximal,nan,100", "the proportion is nan"),
        (
            "en,1,proximal,0.75,100",
            "en,1,proximal,75,100",
            "en, region 1, proximal: the proportion is 75, which looks like a percentage",
        ),
        ("en,1,proximal,0.75,100", "en,1,proximal,75%,100", "'75%' is no number"),
        ("en,1,proximal,0.75,100", "en,4,proximal,0.75,100", "the region is '4'; allowed are 1, 2 and 3"),
        ("en,1,proximal,0.75,100", "en,1,proximal,0.75", "another number of fields"),
        ("en,1,proximal,0.75,100", "en,1,proximal,0.75,0", "n is 0; it must be at least 1"),
        ("en,1,distal,0.25,100", "en,1,proximal,0.25,100", "line 3: en, region 1, proximal comes twice"),
        ("language,region", "Language,region", "has no column 'language'"),
        ("language,region,term,proportion,n", "language;region;term;proportion;n", "has semicolons .* commas are needed"),
        ("en,1,distal,0.25,100", "en,1,distal,0.25,90", "line 3: n is 90 and was 100 above for en, region 1"),
        ("en,1,distal,0.25,100", "en,1,distal,0.25,", "line 3: n is nan and was 100 above"),
    ],
)
def test_a_bad_reference_is_refused_with_its_cell(tmp_path, old, new, message):
    assert old in CSV
    (tmp_path / "people.csv").write_text(CSV.replace(old, new), "utf-8")
    with pytest.raises(ValueError, match=message):
        behaviour(FakeRun(ITEMS, speaker), tmp_path / "people.csv", n_boot=5)


def test_a_missing_reference_says_what_may_be_given(tmp_path):
    with pytest.raises(ValueError, match=r"can't be read .* give 'synthetic' or a CSV file"):
        behaviour(FakeRun(ITEMS, speaker), str(tmp_path / "none.csv"))


def test_terms_alone_are_described():
    """Items of which nothing can be judged: no truth, no colour and shape."""
    bare = Items(replace(item, groups={"scene": item.groups["scene"]}) for item in ITEMS)
    result = behaviour(FakeRun(bare, speaker, answers=["x"] * len(bare)), "synthetic", n_boot=20)
    np.testing.assert_allclose(result.scores()["js_distance"], 0, atol=1e-3)
    assert result.scores()["recognised"].isna().all()


def test_an_option_without_a_term_among_others_is_refused():
    odd = replace(ITEMS[3], options=(ITEMS[3].options[0], replace(ITEMS[3].options[1], term=None), *ITEMS[3].options[2:]))
    items = Items([*ITEMS[:3], odd, *ITEMS[4:]])
    label = odd.options[1].label
    with pytest.raises(ValueError, match=f"item '{odd.id}' has no term for its option '{label}'"):
        behaviour(FakeRun(items, lambda item: {o.label: 1 / len(item.options) for o in item.options}), n_boot=5)


def test_a_region_between_two_is_refused():
    odd = replace(ITEMS[3], targets=dict(ITEMS[3].targets) | {"region": 1.5})
    run = FakeRun(Items([*ITEMS[:3], odd, *ITEMS[4:]]), lambda item: {o.label: 1 / len(item.options) for o in item.options})
    with pytest.raises(ValueError, match=f"item '{odd.id}' has the region 1.5; regions are whole numbers"):
        behaviour(run, n_boot=5)
    with pytest.raises(ValueError, match=r"has the region 1\.5"):
        lens_of_terms(pd.DataFrame(), run.items)


def test_a_run_with_nothing_to_score_is_refused():
    bare = Items([])
    with pytest.raises(ValueError, match="nothing to score"):
        behaviour(FakeRun(bare, speaker))


def test_the_plot_of_a_result_is_the_plot_of_its_frame():
    import matplotlib.pyplot as plt

    result = behaviour(FakeRun(ITEMS, average), n_boot=5)
    _, ax = plt.subplots()
    assert result.plot(ax) is ax
    assert len(ax.patches) == 3 * (2 + 2 + 3 + 3)
