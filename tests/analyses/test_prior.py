"""Prior correction of runs whose priors are known."""

import numpy as np
import pytest

from deixis.analyses.behaviour import PRIOR_FLOOR
from deixis.analyses.prior import COLUMNS, SHARES_COLUMNS, plot_prior_correction, prior_correction
from deixis.benchmarks import memory_game
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER, speaker_average
from tests.analyses.fake_run import FakeRun, by_term
from tests.pico_runs import pico_run

ITEMS = memory_game(languages=("en", "ko"), size=64)
ALL = ITEMS + ITEMS.with_condition("blank") + ITEMS.with_condition("text_only")


def speaker(item):
    """The average without a picture, the region's shares with one; without any picture, uniform."""
    if item.condition == "text_only":
        return {option.label: 1 / len(item.options) for option in item.options}
    if item.condition == "blank":
        return by_term(item, speaker_average(item.language))
    return by_term(item, SYNTHETIC_SPEAKER[item.language][int(item.targets["region"])])


def kl(p, q):
    p, q = np.array(p), np.array(q)
    return float((p * np.log(p / q)).sum())


def test_the_corrected_odds_are_the_real_odds_over_the_priors():
    frame = prior_correction(FakeRun(ALL, speaker), n_boot=20).to_frame()
    assert tuple(frame) == COLUMNS
    cell = frame.set_index(["language", "prior", "region", "term"])
    for prior, shares in (("blank", speaker_average("ko")), ("text_only", dict.fromkeys(speaker_average("ko"), 1 / 3))):
        for region in (1, 2, 3):
            real = SYNTHETIC_SPEAKER["ko"][region]
            got = cell.loc[("ko", prior, region)]["corrected"]
            assert got.sum() == pytest.approx(1)
            odds = np.log(got["distal"] / got["proximal"])
            expected = np.log(real["distal"] / real["proximal"]) - np.log(shares["distal"] / shares["proximal"])
            assert odds == pytest.approx(expected, abs=1e-4)
    assert cell.loc[("ko", "text_only", 1, "distal"), "corrected"] == pytest.approx(
        0.05, abs=1e-5
    )  # a uniform prior changes nothing


def test_a_prior_below_the_floor_counts_as_the_floor():
    def rare(item):
        return by_term(
            item, {"proximal": 0.5, "distal": 0.5} if item.condition == "real" else {"proximal": 0.999, "distal": 0.001}
        )

    items = memory_game(languages=("en",), size=64)
    frame = prior_correction(FakeRun(items + items.with_condition("blank"), rare), n_boot=5).to_frame()
    distal = frame[frame["term"] == "distal"]
    assert distal["prior_share"].to_numpy() == pytest.approx(0.001, abs=1e-5)
    assert distal["corrected"].to_numpy() == pytest.approx((0.5 / PRIOR_FLOOR) / (0.5 / PRIOR_FLOOR + 0.5 / 0.999), abs=1e-5)


def test_the_share_that_a_prior_explains_is_the_hand_computed_one():
    found = prior_correction(FakeRun(ALL, speaker), n_boot=50).explained()
    assert tuple(found) == SHARES_COLUMNS
    cell = found.set_index(["language", "prior"])
    for language, regions in SYNTHETIC_SPEAKER.items():
        if language not in ("en", "ko"):
            continue
        rows = [list(shares.values()) for shares in regions.values()]
        mean = np.mean(rows, axis=0)
        flat = np.full(len(mean), 1 / len(mean))
        spread = np.mean([kl(row, flat) for row in rows])
        row = cell.loc[(language, "blank")]
        assert row["spread"] == pytest.approx(spread, abs=1e-5)
        assert row["explained"] == pytest.approx(1 - np.mean([kl(r, mean) for r in rows]) / spread, abs=1e-4)
        assert row["between_regions"] == pytest.approx(np.mean([kl(r, mean) for r in rows]) / spread, abs=1e-4)
        # The prior is the mean: what it explains and what lies between regions are the whole spread, as nothing varies within.
        assert row["explained"] + row["between_regions"] == pytest.approx(1, abs=1e-4)
        assert cell.loc[(language, "text_only"), "explained"] == pytest.approx(0, abs=1e-4)
        assert row["low"] <= row["explained"] <= row["high"]
        assert (row["n"], row["n_prior"]) == (60, 60)


def test_a_model_that_does_not_look_is_explained_whole_and_a_misleading_prior_is_negative():
    def blind(item):
        return by_term(item, speaker_average(item.language))

    def misled(item):
        high = 0.8 if item.condition == "real" else 0.2
        return by_term(item, {"proximal": high, "distal": 1 - high})

    korean = ALL.filter(lambda item: item.language == "ko")  # the English average is uniform: nothing to explain
    found = prior_correction(FakeRun(korean, blind), n_boot=20).explained()
    assert found["explained"].to_numpy() == pytest.approx(1, abs=1e-4)
    assert found["between_regions"].to_numpy() == pytest.approx(0, abs=1e-4)
    english = memory_game(languages=("en",), size=64)
    negative = prior_correction(FakeRun(english + english.with_condition("blank"), misled), n_boot=20).explained().iloc[0]
    assert negative["explained"] == pytest.approx(1 - kl([0.8, 0.2], [0.2, 0.8]) / kl([0.8, 0.2], [0.5, 0.5]), abs=1e-4)


def test_uniform_answers_have_nothing_to_explain():
    found = prior_correction(
        FakeRun(ALL, lambda item: {o.label: 1 / len(item.options) for o in item.options}), n_boot=5
    ).explained()
    assert found[["explained", "low", "high", "between_regions"]].isna().all().all()
    assert found["spread"].to_numpy() == pytest.approx(0, abs=1e-9)


def test_a_run_without_a_prior_is_refused():
    with pytest.raises(
        ValueError, match="in the conditions: real; a prior correction needs 'real' and one of blank, black, text_only"
    ):
        prior_correction(FakeRun(ITEMS, speaker))
    with pytest.raises(ValueError, match="in the conditions: blank; a prior correction needs 'real'"):
        prior_correction(FakeRun(ITEMS.with_condition("blank"), speaker))
    with pytest.raises(ValueError, match="needs 'real' and 'black', such as"):
        prior_correction(FakeRun(ALL, speaker), priors=("blank", "black"))


def test_the_bundled_models_differ_in_what_their_prior_explains():
    """One chooses by region, so that regions carry most of its spread; the other does not, so that they carry none."""
    looks, blind = (prior_correction(pico_run(model), n_boot=50) for model in ("pico", "pico-collapsed"))
    assert looks.priors == ("blank", "text_only")
    between = [found.explained()["between_regions"] * found.explained()["spread"] for found in (looks, blind)]  # nats
    assert (between[0] > 0.05).all()
    assert (between[1] < 0.003).all()


def test_the_plot_has_a_point_for_each_prior_and_language():
    result = prior_correction(FakeRun(ALL, speaker), n_boot=20)
    ax = result.plot()
    points = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(sorted(points), sorted(result.explained()["explained"]))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["English", "Korean"]
    with pytest.raises(ValueError, match="no rows to draw"):
        plot_prior_correction(result.explained().iloc[:0])
