"""Every case of the encoding gap in a run into which it was planted; the rules at their borders."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.spatial.distance import jensenshannon

from deixis.analyses.encoding_gap import COLUMNS, encoding_gap, plot_encoding_gap
from deixis.analyses.gap_evidence import Answers, BlankDistance, Decoded, Shift, blank_distance, shift_of
from deixis.analyses.gap_rules import CASES, Thresholds, any_of, case_of, is_borderline, is_encoded, is_moved, is_prior, is_used
from deixis.analyses.patch_sweep import PatchEvidence
from deixis.analyses.style import CASE_COLOURS
from deixis.benchmarks import Items, memory_game
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER, speaker_average
from tests.analyses.fake_run import FakeRun, by_term

REAL = memory_game(languages=("en",), size=64)
ITEMS = REAL + REAL.with_condition("blank")
LIMITS = Thresholds()


def features(items: Items, known: bool, seed: int) -> np.ndarray:
    """Vectors that hold the region along one axis, or nothing but noise; one vector per scene."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(len(items), 8))
    if known:
        real = np.array([item.condition == "real" for item in items])
        rows[real, 2] = 4 * np.array([item.targets["region"] for item in items])[real] + 0.5 * rows[real, 2]
    return rows.astype(np.float32)


def planted(at_answer: bool, at_object: bool, used: bool, like_blank: bool, items: Items = ITEMS, model: str = "fake") -> FakeRun:
    def shares(item):
        average = speaker_average(item.language)
        if item.condition == "blank":
            return by_term(item, average if like_blank else dict.fromkeys(average, 0.02) | {"proximal": 0.98})
        if not used:
            return by_term(item, average)
        return by_term(item, SYNTHETIC_SPEAKER[item.language][int(item.targets["region"])])

    both = {("answer", 0): False, ("answer", 1): at_answer, ("object", 0): False, ("object", 1): at_object}
    rows = {key: features(items, known, seed) for seed, (key, known) in enumerate(both.items())}
    return FakeRun(items, shares, rows, model=model)


PLANTS = {
    "encoded and used": (True, True, True, True),
    "encoded, unused": (True, True, False, True),
    "used, not decoded": (False, False, True, True),
    "prior only": (False, False, False, True),
    "absent": (False, False, False, False),
}


@pytest.mark.parametrize("case", PLANTS)
def test_a_planted_case_is_found(case):
    frame = encoding_gap([planted(*PLANTS[case])], n_boot=400).to_frame()
    assert tuple(frame) == COLUMNS
    row = frame.iloc[0]
    assert row["case"] == case
    assert (row["encoded"], row["used"]) == (PLANTS[case][0], PLANTS[case][2])
    assert row["missing"] == ""
    assert row["answer_layer"] == 1 or not PLANTS[case][0]
    assert (row["target"], row["task"], row["n_scenes"]) == ("region", "demonstrative", 60)


def test_what_is_encoded_at_the_object_only_counts_and_is_said():
    gap = encoding_gap([planted(False, True, False, True)], n_boot=400)
    row = gap.to_frame().iloc[0]
    assert (row["answer_encoded"], row["object_encoded"], row["encoded"]) == (False, True, True)
    assert row["case"] == "encoded, unused"
    assert "is found at the object's tokens and not at the answer position" in gap.conclusion("fake")


def test_missing_evidence_is_nan_named_and_leaves_a_no_open():
    run = planted(False, False, False, True, items=REAL)
    run.features = {key: rows for key, rows in run.features.items() if key[0] == "answer"}
    gap = encoding_gap([run], n_boot=200)
    row = gap.to_frame().iloc[0]
    assert row["missing"] == "role object; condition blank"
    assert np.isnan(row[["prior", "object_score", "blank_distance", "encoded"]].astype(float)).all()
    assert row["case"] == "undecided"
    assert "Missing evidence: condition blank; role object." in gap.conclusion("fake")


def test_the_distance_question_has_a_verdict_of_its_own():
    both = memory_game(tasks=("demonstrative", "distance"), languages=("en", "ja"), shapes=("star", "cross"), size=64)
    run = planted(True, True, False, True, items=both)
    demonstratives = run.shares

    def shares(item):
        if item.task == "demonstrative":
            return demonstratives(item)
        return {option.label: 0.9 if option.label == item.truth else 0.05 for option in item.options}

    gap = encoding_gap([replace(run, shares=shares)], n_boot=200)
    frame = gap.to_frame().set_index(["target", "language"])
    assert frame.loc["region", "case"].tolist() == ["encoded, unused"] * 2
    assert frame.loc["distance", "case"].tolist() == ["encoded and used"] * 2
    # Pairs of (0.9, 0.05, 0.05) in three orders: the distance by scipy.
    expected = jensenshannon([0.9, 0.05, 0.05], [0.05, 0.9, 0.05], base=2)
    np.testing.assert_allclose(frame.loc["distance", "shift"].astype(float), expected, rtol=1e-4)
    text = gap.conclusion("fake")
    assert "English and Japanese: distance is encoded but its demonstratives do not follow it." in text
    assert f"by a Jensen-Shannon distance of {expected:.2f} " in text


def test_two_models_are_told_apart_in_words_and_in_the_plot():
    runs = [planted(*PLANTS["encoded and used"], model="a"), planted(*PLANTS["encoded, unused"], model="b")]
    gap = encoding_gap(runs, n_boot=200)
    assert gap.to_frame()["case"].tolist() == ["encoded and used", "encoded, unused"]
    assert repr(gap).startswith("EncodingGap('a', 'b'; ")
    assert str(gap).splitlines()[0].split() == ["model", "target", "language", "encoded", "used", "prior", "case"]
    assert len(str(gap).splitlines()) == 1 + len(gap.to_frame())
    assert "encoded and its demonstratives follow it" in gap.conclusion("a")
    row = gap.to_frame().iloc[0]
    for number in (row["answer_score"], row["shift"], row["shift_null"], row["chance"]):
        assert f"{number:.2f}" in gap.conclusion("a")
    ax = plot_encoding_gap(gap.to_frame())
    points = [(c.lines[0].get_xdata()[0], c.lines[0].get_ydata()[0]) for c in ax.containers]
    frame = gap.to_frame()
    np.testing.assert_allclose([y for _, y in points], frame["shift"] - frame["shift_null"])
    np.testing.assert_allclose([x for x, _ in points], frame[["answer_score", "object_score"]].max(axis=1))
    with pytest.raises(ValueError, match="model='c' is not one of: 'a', 'b'"):
        gap.conclusion("c")


def test_bad_arguments_are_refused():
    run = planted(*PLANTS["absent"])
    with pytest.raises(ValueError, match="two of the runs are of the model 'fake'"):
        encoding_gap([run, run])
    with pytest.raises(ValueError, match="needs a list of runs"):
        encoding_gap([])
    bare = replace(run, items=Items(replace(item, targets={}) for item in REAL), features={})
    with pytest.raises(ValueError, match="no real items with a region"):
        encoding_gap([bare])


def answers(values: np.ndarray, region: np.ndarray) -> Answers:
    return Answers(values, np.ones(len(values), int), region)


def test_the_shift_is_scipys_mean_over_pairs():
    rng = np.random.default_rng(0)
    values, region = rng.dirichlet(np.ones(3), size=30), np.repeat([0, 1, 2], 10)
    means = [values[region == r].mean(axis=0) for r in range(3)]
    pairs = [jensenshannon(means[a], means[b], base=2) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert shift_of(answers(values, region), 50, 0).size == pytest.approx(np.mean(pairs))
    blank = answers(np.array([[0.2, 0.3, 0.5]] * 4), np.zeros(4, int))
    away = [jensenshannon(mean, [0.2, 0.3, 0.5], base=2) for mean in means]
    assert blank_distance(answers(values, region), blank, 50, 0).size == pytest.approx(np.mean(away))


def test_the_permutation_p_value_is_uniform_where_there_is_no_shift():
    region = np.repeat([0, 1, 2], 10)
    found = []
    for seed in range(120):
        values = np.random.default_rng(seed).dirichlet((2, 2), size=30)
        found.append(shift_of(answers(values, region), 99, seed))
    p_values = np.array([shift.p_value for shift in found])
    # 120 draws: 0.5 and 0.1 within about three standard errors.
    assert abs((p_values <= 0.5).mean() - 0.5) < 0.14
    assert (p_values <= 0.1).mean() < 0.19
    sizes, nulls = np.mean([s.size for s in found]), np.mean([s.null for s in found])
    assert sizes == pytest.approx(nulls, rel=0.1)


def test_a_scene_in_two_regions_is_refused():
    item = REAL[0]
    moved = replace(item, id="moved", targets={**item.targets, "region": 3.0})
    items = Items([*REAL, moved])
    run = planted(True, True, True, True, items=items)
    with pytest.raises(ValueError, match="a scene has items in two regions"):
        encoding_gap([run], n_boot=20)


PROBE = Decoded(layer=1, score=0.9, low=0.8, high=1.0, chance=1 / 3, control=0.95, p_value=float("nan"))


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, True),  # a strong control task says that the probe is large, not that the region is absent
        ({"p_value": 0.001}, True),
        ({"p_value": 0.2}, None),  # 0.9, and not significant
        ({"score": 0.40, "low": 0.36}, None),  # significant and small
        ({"score": 0.60, "low": 0.30}, None),  # large and uncertain
        ({"score": 0.60, "p_value": 0.2}, None),
        ({"score": 0.45, "low": 0.30}, False),  # noise of 60 scenes
        ({"score": 0.20, "low": 0.10}, False),
    ],
)
def test_encoded_needs_significance_and_size(changes, verdict):
    assert is_encoded(replace(PROBE, **changes), LIMITS) is verdict


@pytest.mark.parametrize(
    ("size", "low", "high", "null", "p_value", "verdict"),
    [
        (0.30, 0.22, 0.38, 0.03, 0.001, True),
        (0.30, 0.22, 0.38, 0.03, 0.20, None),
        (0.16, 0.09, 0.22, 0.03, 0.001, None),  # straddles the floor
        (0.04, 0.03, 0.05, 0.01, 0.001, False),  # significant, and negligible
        (0.10, 0.05, 0.20, 0.11, 0.600, False),  # large only by sampling
        (0.15, 0.02, 0.30, 0.10, 0.300, None),  # too noisy to say
    ],
)
def test_used_needs_significance_and_size(size, low, high, null, p_value, verdict):
    shift = Shift(size=size, low=low, high=high, null=null, p_value=p_value, n_scenes=60)
    assert is_used(shift, LIMITS) is verdict


def test_prior_is_decided_by_the_interval():
    assert is_prior(BlankDistance(size=0.05, low=0.02, high=0.09), LIMITS) is True
    assert is_prior(BlankDistance(size=0.10, low=0.02, high=0.19), LIMITS) is None
    assert is_prior(BlankDistance(size=0.30, low=0.20, high=0.39), LIMITS) is False


def test_the_cases_cover_every_combination_once():
    options = (True, False, None)
    table = {(e, u, p): case_of(e, u, p) for e in options for u in options for p in options}
    assert set(table.values()) == set(CASES) == set(CASE_COLOURS)
    assert all(case == "undecided" for (e, u, _), case in table.items() if e is None or u is None)
    assert {case for (e, _, _), case in table.items() if e} <= {"encoded and used", "encoded, unused", "undecided"}
    assert [key for key, case in table.items() if case == "prior only"] == [(False, False, True)]
    assert (any_of(False, True, None), any_of(False, None), any_of(False, False)) == (True, None, False)


def of_scenes(counts: dict[int, int], run: FakeRun) -> FakeRun:
    """The run with so many scenes of each region."""
    left = {(condition, float(region)): n for condition in ("real", "blank") for region, n in counts.items()}
    kept = []
    for number, item in enumerate(run.items):
        key = (item.condition, item.targets["region"])
        if left.get(key, 0) > 0:
            left[key] -= 1
            kept.append(number)
    rows = {key: values[kept] for key, values in run.features.items()}
    return replace(run, items=Items([run.items[number] for number in kept]), features=rows)


def test_a_probe_that_is_refused_is_missing_evidence_and_says_why():
    run = of_scenes({1: 10, 2: 1, 3: 1}, planted(True, True, True, True))
    gap = encoding_gap([run], n_boot=200)
    row = gap.to_frame().iloc[0]
    reason = "2 of the classes of y (2, 3) lie within one group each, so they cannot be both learned and tested"
    assert row["missing"] == f"probe at answer ({reason}); probe at object ({reason})"
    assert np.isnan(row[["encoded", "answer_score", "object_score", "chance"]].astype(float)).all()
    assert row["case"] == "undecided"
    assert row["shift"] > 0
    assert f"Missing evidence: probe at answer ({reason})" in gap.conclusion("fake")
    gap.plot(Figure().add_subplot())


def test_one_role_whose_probe_is_refused_leaves_the_other_to_decide():
    run = planted(False, True, True, True)
    lacking = [number for number, item in enumerate(run.items) if item.targets["region"] == 3.0]
    run.features = dict(run.features) | {("answer", layer): run.features["answer", layer].copy() for layer in (0, 1)}
    for layer in (0, 1):
        run.features["answer", layer][lacking[1:]] = np.nan  # one scene of region 3 has the role
    row = encoding_gap([run], n_boot=400).to_frame().iloc[0]
    assert row["missing"].startswith("probe at answer (1 of the classes of y (3)")
    assert (row["encoded"], row["case"]) == (True, "encoded and used")


def test_one_region_leaves_use_open():
    gap = encoding_gap([of_scenes({1: 12}, planted(True, True, True, True))], n_boot=50)
    row = gap.to_frame().iloc[0]
    assert np.isnan(row[["encoded", "used", "shift", "p_used"]].astype(float)).all()
    assert row["case"] == "undecided"
    assert "y holds one class only" in gap.conclusion("fake")


def test_vectors_that_are_broken_are_no_missing_evidence():
    run = planted(True, True, True, True)
    run.features["answer", 0][0, 0] = np.nan
    with pytest.raises(ValueError, match="record the run again"):
        encoding_gap([run], n_boot=50)


def patch(**changes) -> PatchEvidence:
    values = {"role": "object", "layer": 1, "moved": 0.5, "low": 0.4, "high": 0.6, "restored": 0.7, "control": 0.01, "n_pairs": 4}
    return PatchEvidence(**(values | changes))


@dataclass(frozen=True)
class FakeSweep:
    """What the gap asks of a sweep."""

    evidenced: PatchEvidence | None
    model: str = "fake"

    def evidence(self, task: str, language: str, role: str) -> PatchEvidence | None:
        assert (task, language) == ("demonstrative", "en")
        return self.evidenced if role == "object" else None


NOTHING = {"moved": 0.01, "low": 0.0, "high": 0.02, "restored": float("nan")}


@pytest.mark.parametrize(
    ("plant", "changes", "used", "case"),
    [
        ("encoded and used", {}, True, "encoded and used"),
        ("encoded, unused", NOTHING, False, "encoded, unused"),
        ("used, not decoded", {}, True, "used, not decoded"),
        ("prior only", NOTHING, False, "prior only"),
        ("absent", NOTHING, False, "absent"),
        ("encoded and used", NOTHING, None, "undecided"),  # seen to move, and patches of the object do not move it
        ("encoded, unused", {}, None, "undecided"),
        ("encoded and used", {"control": 0.55}, None, "undecided"),  # another colour moves it as far
    ],
)
def test_where_patches_were_made_they_must_agree_with_what_is_seen(plant, changes, used, case):
    gap = encoding_gap([planted(*PLANTS[plant])], patches=[FakeSweep(patch(**changes))], n_boot=300)
    row = gap.to_frame().iloc[0]
    assert row["case"] == case
    assert np.isnan(row["used"]) if used is None else row["used"] == used
    assert row["observed"] == PLANTS[plant][2]
    assert (row["patch_role"], row["patch_layer"], row["patch_pairs"]) == ("object", 1, 4)
    text = gap.conclusion("fake")
    assert ("disagree, so that use is left open" in text or "Patching leaves open" in text) == (used is None)
    moved = patch(**changes).moved
    assert f"moves the answers by {moved:.2f}, another colour's by" in text
    assert ("between the two scenes the answers hardly differ" in text) == np.isnan(patch(**changes).restored)


def test_a_sweep_without_this_question_leaves_observation_to_decide():
    row = encoding_gap([planted(*PLANTS["encoded and used"])], patches=[FakeSweep(None)], n_boot=200).to_frame().iloc[0]
    assert (row["used"], row["case"]) == (True, "encoded and used")
    assert np.isnan(float(row["patch_moved"]))
    with pytest.raises(ValueError, match="a patch sweep is of the model 'other', and the runs are of: 'fake'"):
        encoding_gap([planted(*PLANTS["absent"])], patches=[FakeSweep(None, model="other")])


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, True),
        ({"low": 0.09}, None),
        ({"low": 0.02, "high": 0.09}, False),
        ({"low": float("nan"), "high": float("nan")}, None),  # one figure has no interval
        ({"control": float("nan")}, True),  # no control pairs
        ({"control": 0.45}, None),
    ],
)
def test_a_patch_moves_the_answer_if_its_interval_says_so_and_more_than_another_colour(changes, verdict):
    assert is_moved(patch(**changes), LIMITS) is verdict


def test_what_lies_near_a_threshold_is_called_borderline():
    def shift(low: float, high: float) -> Shift:
        return Shift(size=(low + high) / 2, low=low, high=high, null=0.0, p_value=0.001, n_scenes=60)

    for low, high, expected in ((0.2, 0.3, False), (0.11, 0.3, True), (0.0, 0.05, False), (0.0, 0.09, True), (0.05, 0.2, True)):
        assert is_borderline(partial(is_used, shift(low, high)), LIMITS) is expected
    gap = encoding_gap([planted(*PLANTS["encoded and used"])], thresholds=Thresholds(floor=0.19), n_boot=400)
    row = gap.to_frame().iloc[0]
    assert row["shift_low"] - row["shift_null"] < 1.2 * 0.19
    assert row["borderline"] == "used"
    assert "Borderline: English (used)." in gap.conclusion("fake")
    clear = encoding_gap([planted(*PLANTS["encoded and used"])], thresholds=Thresholds(floor=0.05), n_boot=400)
    assert clear.to_frame()["borderline"].iloc[0] == ""


def test_points_at_one_place_share_a_label_and_none_lie_over_each_other():
    frame = encoding_gap([planted(*PLANTS["encoded and used"])], n_boot=100).to_frame()
    more = pd.concat([frame.assign(language=code) for code in ("en", "ja", "ko")] + [frame.assign(model="other")])
    ax = plot_encoding_gap(more)
    assert [text.get_text() for text in ax.texts] == ["en, ja, ko", "en"]
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not boxes[0].overlaps(boxes[1])
    assert all(ax.figure.bbox.contains(box.x1, box.y1) for box in boxes)
