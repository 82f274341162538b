"""Cross-validation of probes: planted truths, leaks that must not pay, controls, intervals, refusals."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error, r2_score
from sklearn.preprocessing import StandardScaler

from deixis.probes import NotEnoughDataError, cross_validate_probe
from deixis.probes.cross_validation import ALPHAS

QUICK = {"n_bootstrap": 0, "n_controls": 0, "n_permutations": 0, "n_orders": 0}
WITH_CONTROL = QUICK | {"n_controls": 20}
DISTANCES = np.repeat([0.25, 1.50, 2.75], 20)
SCENES = np.arange(60)
FIGURES = np.tile(np.arange(20), 3)


def linear_code(strength: float, width: int = 40, seed: int = 0) -> np.ndarray:
    """60 scenes whose distance is written along one direction, in unit noise."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=width)
    return rng.normal(size=(60, width)) + strength * np.outer(DISTANCES, direction / np.linalg.norm(direction))


def test_a_linear_code_is_recovered_up_to_its_noise():
    found = cross_validate_probe(linear_code(10.0), DISTANCES, SCENES, **QUICK)
    assert found.metrics == ("r2", "mae")
    assert found.score[0] > 0.97
    assert found.score[1] < 0.2
    classes = cross_validate_probe(linear_code(10.0), DISTANCES, SCENES, kind="classification", **QUICK)
    assert classes.metrics == ("balanced_accuracy",)
    assert classes.score[0] == 1.0


def test_noise_is_at_chance():
    scores = [cross_validate_probe(linear_code(0.0, seed=s), DISTANCES, SCENES, **QUICK).score for s in range(20)]
    classes = [
        cross_validate_probe(linear_code(0.0, seed=s), DISTANCES, SCENES, kind="classification", **QUICK).score for s in range(20)
    ]
    assert np.mean(scores, axis=0)[0] == pytest.approx(0.0, abs=0.1)
    assert np.mean(classes) == pytest.approx(1 / 3, abs=0.05)


def test_scores_follow_from_the_held_out_predictions_by_scikit_learn():
    found = cross_validate_probe(linear_code(2.0), DISTANCES, SCENES, **QUICK)
    expected = [r2_score(DISTANCES, found.predicted), mean_absolute_error(DISTANCES, found.predicted)]
    np.testing.assert_allclose(found.score, expected)
    classes = cross_validate_probe(linear_code(2.0), DISTANCES, SCENES, kind="classification", **QUICK)
    assert classes.score[0] == pytest.approx(balanced_accuracy_score(classes.truth, classes.predicted))


@pytest.mark.parametrize("width", [12, 90])
def test_the_whole_procedure_is_that_of_plain_nested_loops(width):
    X = linear_code(1.5, width)
    alphas = (0.1, 10.0, 1000.0)
    found = cross_validate_probe(X, DISTANCES, SCENES, alphas=alphas, **QUICK)
    fold, n_folds = found.fold, 5

    def predict(alpha: float, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        scaler = StandardScaler().fit(X[train])
        return Ridge(alpha=alpha).fit(scaler.transform(X[train]), DISTANCES[train]).predict(scaler.transform(X[test]))

    for f in range(n_folds):
        train, test = fold != f, fold == f
        scored = []
        for alpha in alphas:
            inner = np.empty(60)
            for other in set(range(n_folds)) - {f}:
                inner[fold == other] = predict(alpha, train & (fold != other), fold == other)
            scored.append(r2_score(DISTANCES[train], inner[train]))
        best = alphas[int(np.argmax(scored))]
        assert found.alphas[f] == best
        assert found.inner[f, 0] == pytest.approx(max(scored))
        np.testing.assert_allclose(found.predicted[test], predict(best, train, test), rtol=1e-6)


def test_a_label_that_only_groups_share_is_found_without_groups_and_not_with_them():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 5)
    label = (np.arange(40) % 2)[groups]
    fingerprint = rng.normal(size=(40, 60))[groups] + 0.1 * rng.normal(size=(200, 60))
    grouped = cross_validate_probe(fingerprint, label, groups, **QUICK)
    leaking = cross_validate_probe(fingerprint, label, np.arange(200), **QUICK)
    assert leaking.score[0] > 0.95
    assert grouped.score[0] == pytest.approx(0.5, abs=0.2)


def test_equal_strings_make_a_group_and_a_class():
    X = linear_code(3.0)
    words = np.array(["near", "mid", "far"])[np.repeat([0, 1, 2], 20)]
    scenes = [f"scene {number:02d}" for number in SCENES]
    by_word = cross_validate_probe(X, words, scenes, **QUICK)
    assert by_word.n_groups == 60
    assert by_word.score[0] > 0.8


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_a_probe_that_knows_the_figure_remembers_the_control_task(kind):
    rng = np.random.default_rng(0)
    knows = np.eye(20)[FIGURES] + 0.01 * rng.normal(size=(60, 20))
    with_distance = np.hstack([knows, DISTANCES[:, None] + 0.01 * rng.normal(size=(60, 1))])
    memory = cross_validate_probe(with_distance, DISTANCES, SCENES, kind=kind, types=FIGURES, **WITH_CONTROL)
    assert len(memory.controls) == 20
    assert memory.score[0] > 0.97
    assert memory.control[0] > 0.8
    assert memory.selectivity[0] == pytest.approx(memory.score[0] - memory.control[0])
    lean = cross_validate_probe(with_distance[:, 20:], DISTANCES, SCENES, kind=kind, types=FIGURES, **WITH_CONTROL)
    assert lean.score[0] > 0.97
    assert lean.control[0] < 0.45
    assert lean.selectivity[0] > 0.5


def test_selectivity_of_an_error_is_positive_where_the_task_beats_its_control():
    found = cross_validate_probe(linear_code(10.0), DISTANCES, SCENES, types=FIGURES, **WITH_CONTROL)
    assert found.selectivity[1] == pytest.approx(found.control[1] - found.score[1])
    assert found.selectivity[1] > 0.3


def test_intervals_hold_the_expected_score_about_as_often_as_they_say():
    """The expected score is that of the same procedure over many data sets."""
    rng = np.random.default_rng(0)
    target = np.repeat([0.0, 1.0, 2.0], 12)

    def found(n_bootstrap: int):
        X = rng.normal(size=(36, 8))
        X[:, 0] += 4 * target
        return cross_validate_probe(X, target, np.arange(36), alphas=(1.0, 10.0, 100.0), **(QUICK | {"n_bootstrap": n_bootstrap}))

    expected = np.mean([found(0).score for _ in range(100)], axis=0)
    intervals = [found(60) for _ in range(30)]
    covered = np.mean([(i.low <= expected) & (expected <= i.high) for i in intervals], axis=0)
    assert (covered >= 0.85).all()
    # Wide enough by being right, not by being endless.
    assert np.mean([i.high[0] - i.low[0] for i in intervals]) < 0.45


def test_an_interval_is_the_spread_of_the_draws_set_around_the_score():
    found = cross_validate_probe(linear_code(5.0), DISTANCES, SCENES, level=0.8, **(QUICK | {"n_bootstrap": 40}))
    # Draws hold fewer distinct scenes: unshifted, the interval would lie too low.
    assert found.draws[:, 0].mean() < found.score[0]
    for end, share in ((found.low, 0.1), (found.high, 0.9)):
        want = found.score + np.quantile(found.draws, share, axis=0) - found.draws.mean(axis=0)
        np.testing.assert_allclose(end, [min(want[0], 1.0), max(want[1], 0.0)])


def test_an_interval_is_wider_at_a_higher_level_and_lies_around_the_score():
    wide, narrow = (
        cross_validate_probe(linear_code(3.0), DISTANCES, SCENES, level=level, **(QUICK | {"n_bootstrap": 60}))
        for level in (0.95, 0.5)
    )
    assert (wide.low <= narrow.low).all()
    assert (wide.high >= narrow.high).all()
    assert (narrow.low < narrow.score).all()
    assert (narrow.score < narrow.high).all()


def test_items_of_a_group_do_not_narrow_the_interval():
    X = linear_code(2.0)
    quick = QUICK | {"n_bootstrap": 60}
    once = cross_validate_probe(X, DISTANCES, SCENES, **quick)
    copied = cross_validate_probe(
        np.repeat(X, 4, axis=0),
        np.repeat(DISTANCES, 4),
        np.repeat(SCENES, 4),
        **quick,
        alphas=tuple(4 * alpha for alpha in ALPHAS),  # four copies of an item weigh four times as much against the penalty
    )
    np.testing.assert_allclose(copied.low, once.low, atol=1e-6)
    np.testing.assert_allclose(copied.high, once.high, atol=1e-6)
    assert (copied.n_items, copied.n_groups) == (240, 60)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (
        cross_validate_probe(linear_code(1.0), DISTANCES, SCENES, types=FIGURES, n_bootstrap=10, seed=seed) for seed in (4, 4, 5)
    )
    np.testing.assert_array_equal(first.draws, again.draws)
    np.testing.assert_array_equal(first.controls, again.controls)
    assert first.score[0] != other.score[0]


def test_of_equally_good_penalties_the_strongest_is_taken():
    found = cross_validate_probe(linear_code(100.0), DISTANCES, SCENES, kind="classification", alphas=(0.1, 1.0), **QUICK)
    assert (found.alphas == 1.0).all()


@pytest.mark.parametrize("probe", ["logistic", "mean_difference", "discriminant"])
def test_every_classifier_can_be_chosen(probe):
    found = cross_validate_probe(
        linear_code(10.0, 8), DISTANCES, SCENES, kind="classification", probe=probe, alphas=(1.0, 100.0), **QUICK
    )
    assert found.probe == probe
    assert found.score[0] > 0.95


def test_the_closed_form_classifier_is_about_as_good_as_logistic_regression():
    scores = {
        probe: np.mean(
            [
                cross_validate_probe(
                    linear_code(2.0, 30, s),
                    DISTANCES,
                    SCENES,
                    kind="classification",
                    probe=probe,
                    alphas=(1.0, 10.0, 100.0),
                    **QUICK,
                ).score
                for s in range(3)
            ]
        )
        for probe in ("discriminant", "logistic")
    }
    assert scores["discriminant"] == pytest.approx(scores["logistic"], abs=0.1)


def test_the_frame_has_a_row_per_metric():
    found = cross_validate_probe(linear_code(3.0), DISTANCES, SCENES, **QUICK)
    frame = found.to_frame()
    assert list(frame["metric"]) == ["r2", "mae"]
    assert list(frame["score"]) == list(found.score)
    assert frame[["low", "high", "control", "selectivity", "p_value", "nuisance", "residual", "bits"]].isna().all().all()
    assert set(frame["n_items"]) == {60}


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only"):
        cross_validate_probe(linear_code(1.0), np.ones(60, dtype=int), SCENES)


def test_one_value_is_refused():
    with pytest.raises(ValueError, match="one value only"):
        cross_validate_probe(linear_code(1.0), np.ones(60), SCENES)


def test_a_class_in_one_group_only_is_refused():
    with pytest.raises(ValueError, match=r"1 of the classes of y \('odd'\) lie within one group"):
        cross_validate_probe(linear_code(1.0), np.where(SCENES == 7, "odd", "even"), SCENES)
    with pytest.raises(NotEnoughDataError, match=r"2 of the classes of y \(2, 3\) lie within one group"):
        cross_validate_probe(
            linear_code(1.0), np.where(SCENES == 7, 2.0, np.where(SCENES == 8, 3.0, 1.0)), SCENES, kind="classification"
        )


def test_fewer_groups_than_folds_are_refused():
    with pytest.raises(ValueError, match="there are 4 groups for 5 folds; use n_folds=4 at most, or more groups"):
        cross_validate_probe(linear_code(1.0), DISTANCES, SCENES % 4)
    with pytest.raises(NotEnoughDataError, match="there are 2 groups for 5 folds; more groups are needed"):
        cross_validate_probe(linear_code(1.0), DISTANCES, SCENES % 2)


def test_a_code_in_a_direction_of_little_variance_is_within_reach_of_the_penalties():
    rng = np.random.default_rng(0)
    # The distance lies in what is left of two features that are equal but for a hundredth: small penalties only can read it.
    shared = rng.normal(size=60)
    X = np.column_stack([shared, shared + 0.01 * DISTANCES, rng.normal(size=(60, 3))])
    found = cross_validate_probe(X, DISTANCES, SCENES, **QUICK)
    assert found.score[0] > 0.95
    assert found.alphas.max() < 0.1


def test_values_that_are_not_finite_are_counted_and_located():
    X = linear_code(1.0)
    X[[3, 9], 2] = np.nan, np.inf
    X[9, 3] = -np.inf
    with pytest.raises(ValueError, match=r"X holds 3 values .* in 2 of 60 rows \(3, 9\)"):
        cross_validate_probe(X, DISTANCES, SCENES)
    y = DISTANCES.copy()
    y[5] = np.nan
    with pytest.raises(ValueError, match=r"y holds 1 values .* \(5\)"):
        cross_validate_probe(linear_code(1.0), y, SCENES)


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="X has 60, y has 59, groups has 60"):
        cross_validate_probe(linear_code(1.0), DISTANCES[1:], SCENES)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_folds": 2}, "n_folds=2 must be at least 3"),
        ({"alphas": ()}, "alphas is empty"),
        ({"alphas": (0.0,)}, "alpha=0.0 must be a finite number above 0"),
        ({"n_bootstrap": -1}, "n_bootstrap=-1 must be at least 0"),
        ({"n_permutations": -1}, "n_permutations=-1 must be at least 0"),
        ({"nuisances": np.ones((59, 1))}, "X has 60, y has 60, groups has 60, nuisances has 59"),
        ({"nuisances": np.full((60, 1), np.nan)}, "nuisances holds 60 values that are NaN"),
        ({"level": 1.0}, "level=1.0 must lie between 0 and 1"),
        ({"kind": "ranking"}, "kind='ranking' is not one of: 'classification', 'regression'"),
        ({"probe": "forest"}, "probe='forest' is not one of: 'ridge', 'discriminant', 'logistic', 'mean_difference'"),
        ({"probe": "logistic"}, "probe='logistic' is for classification, not for regression; use one of: 'ridge'"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        cross_validate_probe(linear_code(1.0), DISTANCES, SCENES, **settings)


def test_words_are_no_values():
    with pytest.raises(ValueError, match="use kind='classification'"):
        cross_validate_probe(linear_code(1.0), np.array(["a", "b"] * 30), SCENES, kind="regression")


def test_probes_import_no_other_room():
    code = (
        "import sys, deixis.probes; rooms = {m.split('.')[1] for m in sys.modules if m.startswith('deixis.')};"
        "print(sorted(rooms)); print('torch' in sys.modules, 'pandas' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split("\n")
    assert out[0] == "['probes']"
    assert out[1].startswith("False")
