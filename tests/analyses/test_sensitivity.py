"""Distance sensitivity of runs whose terms follow distance in a known way."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import linregress

from deixis.analyses.sensitivity import COLUMNS, distance_sensitivity, plot_distance_sensitivity
from deixis.benchmarks import Items, memory_game
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER
from tests.analyses.fake_run import FakeRun, by_term

ITEMS = memory_game(languages=("en", "ja"), size=64)


def ordered(item, slope, noise=0.0):
    """A cumulative logit in distance, with a shift of each figure's own."""
    shift = noise * (hash_of(item.groups["figure"]) - 0.5)
    latent = slope * item.targets["distance_m"] + shift
    if item.language == "en":
        return by_term(item, {"proximal": expit(1 - latent), "distal": expit(latent - 1)})
    low, high = expit(1 - latent), expit(3 - latent)
    return by_term(item, {"proximal": low, "medial": high - low, "distal": 1 - high})


def hash_of(text):
    return (sum(map(ord, text)) % 17) / 17


def speaker(item):
    return by_term(item, SYNTHETIC_SPEAKER[item.language][int(item.targets["region"])])


def decoupled(n=120, row=0.0, seed=0):
    """Items whose distance, image height and size are drawn independently, made by hand."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        base = ITEMS[2 * (number % 60)]
        d, r, a = rng.uniform(0.25, 2.75), rng.uniform(0.2, 0.8), rng.uniform(0.01, 0.05)
        made.append(
            replace(
                base,
                id=f"{base.id}/{number}",
                targets={"distance_m": d, "region": float(1 + (d > 1) + (d > 2.25))},
                groups=dict(base.groups) | {"scene": str(number)},
                nuisances={"object_row": r, "object_area": a, "camera_pitch": rng.uniform(-60, -20)},
            )
        )
    return Items(made)


def test_the_slope_is_that_of_the_log_odds_and_the_ordinal_fit_finds_the_planted_one():
    frame = distance_sensitivity(FakeRun(ITEMS, lambda item: ordered(item, 1.3)), n_boot=50).to_frame()
    assert tuple(frame) == COLUMNS
    english, japanese = frame.set_index("language").loc["en"], frame.set_index("language").loc["ja"]
    assert english["slope"] == pytest.approx(1.3, abs=1e-5)  # two terms: log-odds are linear in the latent
    assert (english["low"], english["high"]) == (pytest.approx(1.3, abs=1e-5), pytest.approx(1.3, abs=1e-5))
    assert english["ordinal_slope"] == pytest.approx(1.3, abs=1e-3)
    assert japanese["ordinal_slope"] == pytest.approx(1.3, abs=1e-3)
    assert japanese["ordinal_explained"] == pytest.approx(1, abs=1e-4)
    assert japanese["best_order"] == "proximal < medial < distal"
    assert frame["monotone"].all()
    assert (frame["monotone_share"] == 1).all()
    assert frame["scenes"].tolist() == ["standard", "standard"]
    assert frame["n"].tolist() == [60, 60]
    assert frame["n_figures"].tolist() == [20, 20]


def test_the_slope_is_least_squares_of_scipy_and_its_interval_is_over_figures():
    run = FakeRun(ITEMS, lambda item: ordered(item, 1.3, noise=4.0))
    result = distance_sensitivity(run, n_boot=2000)
    points = result.points()
    for row in result.to_frame().itertuples():
        mine = points[points["language"] == row.language]
        assert row.slope == pytest.approx(linregress(mine["distance_m"], mine["log_odds"]).slope, abs=1e-6)
        # A figure's shift is the same at all its distances, and so it moves the level and never the slope of two terms.
        if row.language == "en":
            assert row.high - row.low < 1e-4


def test_a_slope_that_differs_from_figure_to_figure_has_the_interval_of_their_mean():
    slopes = {item.groups["figure"]: 0.5 + 2 * hash_of(item.groups["figure"]) for item in ITEMS}
    run = FakeRun(ITEMS, lambda item: ordered(item, slopes[item.groups["figure"]]))
    english = distance_sensitivity(run, n_boot=4000).to_frame().set_index("language").loc["en"]
    values = np.array(list(slopes.values()))
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert english["slope"] == pytest.approx(values.mean(), abs=1e-5)
    assert english["high"] - english["slope"] == pytest.approx(half, rel=0.08)


def test_in_standard_scenes_distance_has_no_slope_of_its_own_beyond_height_and_size():
    frame = distance_sensitivity(FakeRun(ITEMS, lambda item: ordered(item, 1.3)), n_boot=20).to_frame()
    assert frame[["slope_adjusted", "adjusted_low", "adjusted_high"]].isna().all().all()
    swept = memory_game(languages=("en",), n=60, size=64)  # many distances, one camera: height still determines distance
    frame = distance_sensitivity(FakeRun(swept, lambda item: ordered(item, 1.3)), n_boot=20).to_frame()
    assert frame["slope"].iloc[0] == pytest.approx(1.3, abs=1e-4)
    assert frame["slope_adjusted"].isna().all()


def test_in_decoupled_scenes_a_model_of_image_height_and_one_of_distance_are_told_apart():
    items = decoupled()

    def by_height(item):
        high = expit(6 * (0.5 - item.nuisances["object_row"]))
        return by_term(item, {"proximal": 1 - high, "distal": high})

    def by_both(item):
        latent = 0.9 * item.targets["distance_m"] + 6 * (0.5 - item.nuisances["object_row"]) + 40 * item.nuisances["object_area"]
        return by_term(item, {"proximal": expit(-latent), "distal": expit(latent)})

    held = 0
    for seed in range(30):  # in each draw of scenes, height and distance go together a little by chance
        height = distance_sensitivity(FakeRun(decoupled(seed=seed), by_height), n_boot=100).to_frame().iloc[0]
        assert height["slope_adjusted"] == pytest.approx(0, abs=1e-5)
        held += height["low"] < 0 < height["high"]
    assert height["scenes"] == "decoupled"
    assert held >= 24  # P(fewer | 0.92) is below 0.01
    both = distance_sensitivity(FakeRun(items, by_both), n_boot=200).to_frame().iloc[0]
    assert both["slope_adjusted"] == pytest.approx(0.9, abs=1e-5)
    assert both["adjusted_low"] <= 0.9 <= both["adjusted_high"]
    # Second route: ordinary least squares with all columns at once.
    d, r, a = (np.array([(i.targets | i.nuisances)[k] for i in items]) for k in ("distance_m", "object_row", "object_area"))
    noise = np.random.default_rng(1).normal(size=len(items))
    noisy = FakeRun(items, lambda item: noisy_shares(item, noise, items))
    design = np.stack([np.ones(len(d)), d, r, a, r**2, a**2], axis=1)
    expected = np.linalg.lstsq(design, noise + d, rcond=None)[0][1]
    assert distance_sensitivity(noisy, n_boot=5).to_frame()["slope_adjusted"].iloc[0] == pytest.approx(expected, abs=1e-5)


def noisy_shares(item, noise, items):
    latent = noise[[i.id for i in items].index(item.id)] + item.targets["distance_m"]
    return by_term(item, {"proximal": expit(-latent), "distal": expit(latent)})


def test_a_model_that_does_not_look_is_flat_and_not_monotone():
    frame = distance_sensitivity(
        FakeRun(ITEMS, lambda item: {o.label: 1 / len(item.options) for o in item.options}), n_boot=50
    ).to_frame()
    np.testing.assert_allclose(frame["slope"], 0, atol=1e-6)
    assert not frame["monotone"].any()


def test_terms_in_another_order_are_noticed():
    """Medial where proximal belongs: near it says medial, in the middle proximal, far distal."""

    def swapped(item):
        shares = SYNTHETIC_SPEAKER["ja"][int(item.targets["region"])]
        return by_term(item, {"proximal": shares["medial"], "medial": shares["proximal"], "distal": shares["distal"]})

    items = ITEMS.filter(lambda item: item.language == "ja")
    row = distance_sensitivity(FakeRun(items, swapped), n_boot=20).to_frame().iloc[0]
    assert row["best_order"] == "medial < proximal < distal"
    assert row["ordinal_explained"] < row["nominal_explained"]
    assert not row["monotone"]
    right = distance_sensitivity(FakeRun(items, speaker), n_boot=20).to_frame().iloc[0]
    assert right["best_order"] == "proximal < medial < distal"
    assert right["monotone"]


def test_what_has_no_slope_is_refused():
    near = memory_game(languages=("en",), distances=(0.25,), size=64)
    with pytest.raises(ValueError, match=r"all items lie at 0.25 m; a slope needs two distances"):
        distance_sensitivity(FakeRun(near, speaker))
    with pytest.raises(ValueError, match="mixes standard and decoupled scenes"):
        distance_sensitivity(FakeRun(ITEMS + decoupled(4), lambda i: {o.label: 1 / len(i.options) for o in i.options}))
    asked = memory_game(tasks=("distance",), languages=("en",), size=64)
    with pytest.raises(ValueError, match="no real items whose options carry terms"):
        distance_sensitivity(FakeRun(asked, lambda i: {o.label: 1 / 3 for o in i.options}))


def test_the_plot_has_a_line_for_each_language_with_its_slope():
    result = distance_sensitivity(FakeRun(ITEMS, lambda item: ordered(item, 1.3)), n_boot=5)
    ax = result.plot()
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert [label.split(":")[0] for label in lines] == ["English", "Japanese"]
    x, y = lines["English: +1.30 a metre"].get_data()
    assert np.diff(y)[0] / np.diff(x)[0] == pytest.approx(1.3, abs=1e-4)
    assert "log-odds" in ax.get_ylabel()
    with pytest.raises(ValueError, match="no rows to draw"):
        plot_distance_sensitivity(result.points().iloc[:0])
