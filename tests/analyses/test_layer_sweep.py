"""A sweep over runs whose layers were written by hand, so that the truth is known."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from deixis.analyses import layer_sweep, plot_layer_sweep
from deixis.analyses.layer_sweep import COLUMNS, LayerSweep
from deixis.analyses.probe_data import distinct
from deixis.benchmarks import Item, Items, Option
from deixis.probes import cross_validate_probe

WIDTH = 12
RECORDED = {("resid", "answer"), ("resid", "object")}
QUICK = {"controls": (), "workers": 1}
FEW = {"n_bootstrap": 5, "n_controls": 2, "n_permutations": 3, "n_orders": 1, "workers": 1}
FIGURES = tuple(f"{colour} {shape}" for colour in ("red", "blue") for shape in ("star", "cross", "circle", "square", "triangle"))


def item(number: int, language: str = "en", task: str = "demonstrative", condition: str = "real") -> Item:
    distance = (0.25, 1.50, 2.75)[number % 3]
    return Item(
        id=f"{number}/{language}/{task}/{condition}",
        benchmark="memory-game",
        task=task,
        language=language,
        condition=condition,
        images=(),
        prompt="?",
        options=(Option(label="this", forms=("this",)),),
        targets={"distance_m": distance, "region": float(number % 3 + 1)},
        groups={"scene": f"scene {number}", "figure": FIGURES[number // 3 % len(FIGURES)]},
    )


@dataclass
class WrittenRun:
    """What a sweep asks of a run, with activations given by layer."""

    items: Items
    rows: dict[int, np.ndarray]
    info: dict[str, str] = field(default_factory=lambda: {"model": "written"})

    def layers(self, site: str = "resid") -> list[int]:
        return sorted(self.rows) if site == "resid" else []

    def activations(self, site: str, layer: int, role: str) -> np.ndarray:
        return self.rows[layer].astype(np.float32) if (site, role) in RECORDED else np.empty((0, 0), np.float32)


def written(languages: tuple[str, ...] = ("en",), n: int = 45, at: int = 2, strength: float = 6.0, seed: int = 0) -> WrittenRun:
    """Four layers of noise; layer ``at`` holds the distance as well."""
    items = Items(item(number, language) for number in range(n) for language in languages)
    rng = np.random.default_rng(seed)
    rows = {layer: rng.normal(size=(len(items), WIDTH)) for layer in range(4)}
    rows[at][:, 0] += strength * np.array([i.targets["distance_m"] for i in items])
    return WrittenRun(items, rows)


def test_the_layer_that_holds_the_target_is_found():
    sweep = layer_sweep(written(at=2), "distance_m", **QUICK)
    best = sweep.best()
    assert best.layer == 2
    assert best.by_fold == (2,) * 5
    assert best.score > 0.9
    frame = sweep.to_frame().query("metric == 'r2'").set_index("layer")
    assert frame["score"].drop(2).max() < 0.2
    assert best.score == pytest.approx(frame.loc[2, "score"])


@pytest.mark.parametrize(("metric", "better"), [("r2", max), ("mae", min)])
def test_best_follows_its_definition_fold_by_fold(metric, better):
    run = written(strength=0.0)
    sweep = layer_sweep(run, "distance_m", **QUICK)
    best = sweep.best(metric)
    column = ("r2", "mae").index(metric)
    truth, predicted = [], []
    for fold in range(5):
        inner = {cell.layer: cell.scores.inner[fold, column] for cell in sweep.cells}
        layer = better(inner, key=inner.get)
        assert best.by_fold[fold] == layer
        scores = sweep.cells[layer].scores
        truth += list(scores.truth[scores.fold == fold])
        predicted += list(scores.predicted[scores.fold == fold])
    error = np.subtract(truth, predicted)
    expected = 1 - (error**2).sum() / ((truth - np.mean(truth)) ** 2).sum() if metric == "r2" else np.abs(error).mean()
    assert best.score == pytest.approx(expected)


def test_best_is_not_flattered_by_the_choice_among_layers_of_noise():
    honest, greedy = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        run = written(n=30)
        run.rows = {layer: rng.normal(size=(30, WIDTH)) for layer in range(12)}
        sweep = layer_sweep(run, "region", **QUICK)
        honest.append(sweep.best().score)
        greedy.append(sweep.to_frame()["score"].max())
    assert np.mean(honest) == pytest.approx(1 / 3, abs=0.07)
    assert np.mean(greedy) > 0.45


def test_all_layers_are_divided_alike():
    sweep = layer_sweep(written(), "region", **QUICK)
    for cell in sweep.cells[1:]:
        np.testing.assert_array_equal(cell.scores.fold, sweep.cells[0].scores.fold)


def test_the_frame_has_the_promised_columns_and_nan_for_controls_that_were_not_run():
    frame = layer_sweep(written(), "distance_m", **QUICK).to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert COLUMNS[0] == "model"
    assert list(frame["layer"]) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert list(frame["metric"][:2]) == ["r2", "mae"]
    missing = ["low", "high", "control", "selectivity", "p_value", "nuisance", "residual", "untrained", "blank", "bits"]
    assert frame[missing].isna().all().all()
    assert set(frame["model"]) == {"written"}
    assert set(frame["language"]) == {"all"}


def test_region_is_decoded_as_classes_and_kind_overrides_that():
    run = written()
    assert set(layer_sweep(run, "region", **QUICK).to_frame()["metric"]) == {"balanced_accuracy"}
    assert set(layer_sweep(run, "region", kind="regression", **QUICK).to_frame()["metric"]) == {"r2", "mae"}
    assert set(layer_sweep(run, "region", **QUICK).to_frame()["chance"].round(6)) == {0.333333}


def test_scores_and_controls_are_those_of_the_probe_on_the_same_arrays():
    run = written()
    counts = {"n_bootstrap": 20, "n_permutations": 9, "n_orders": 2}
    row = layer_sweep(run, "region", **counts, layers=[1], workers=1).to_frame().iloc[0]
    direct = cross_validate_probe(
        run.rows[1].astype(np.float32).astype(float),
        [i.targets["region"] for i in run.items],
        [i.groups["scene"] for i in run.items],
        kind="classification",
        types=[i.groups["figure"] for i in run.items],
        **counts,
    )
    assert row["score"] == pytest.approx(direct.score[0])
    assert row["control"] == pytest.approx(direct.control[0])
    assert (row["low"], row["high"]) == (pytest.approx(direct.low[0]), pytest.approx(direct.high[0]))
    assert (row["p_value"], row["bits"]) == (pytest.approx(direct.p_value[0]), pytest.approx(direct.bits))


def test_workers_change_no_number():
    run = written()
    one, three = (layer_sweep(run, "distance_m", **(FEW | {"workers": w})).to_frame() for w in (1, 3))
    assert one.equals(three)


def test_vectors_shared_by_all_questions_about_a_scene_count_once():
    run = written(languages=("en", "ja", "ko"))
    shared = np.repeat(run.rows[0][::3], 3, axis=0)
    run.rows[0] = shared + 1e-6 * np.random.default_rng(0).normal(size=shared.shape)
    frame = layer_sweep(run, "region", **QUICK).to_frame().set_index("layer")
    assert frame.loc[0, "n_items"] == 45
    assert frame.loc[1, "n_items"] == 135
    assert set(frame["n_groups"]) == {45}


def test_a_layer_that_is_the_same_for_all_items_is_at_chance():
    run = written(languages=("en", "ja"))
    run.rows[0] = np.full((90, WIDTH), 3.7)
    region = layer_sweep(run, "region", **QUICK).to_frame().set_index("layer").loc[0]
    assert (region["score"], region["n_items"]) == (pytest.approx(1 / 3), 45)
    assert layer_sweep(run, "distance_m", **QUICK).to_frame()["score"][0] == pytest.approx(0, abs=0.05)


def test_distinct_rows_are_compared_within_scenes_only():
    rows = np.array([[0.0, 1.0], [0.0, 1.0], [5.0, 1.0], [0.0, 1.0]])
    assert list(distinct(rows, [("a", 1.0), ("a", 1.0), ("a", 1.0), ("b", 1.0)])) == [0, 2, 3]


def test_languages_can_be_pooled_chosen_or_swept_one_by_one():
    run = written(languages=("en", "ja"))
    # In Japanese the code lies in another layer.
    japanese = np.array([i.language == "ja" for i in run.items])
    run.rows[2][japanese, 0], run.rows[1][japanese, 0] = run.rows[1][japanese, 0], run.rows[2][japanese, 0].copy()
    each = layer_sweep(run, "distance_m", language="each", **QUICK)
    assert each.best(language="en").layer == 2
    assert each.best(language="ja").layer == 1
    alone = layer_sweep(run, "distance_m", language="ja", **QUICK)
    assert alone.best() == each.best(language="ja")
    with pytest.raises(ValueError, match="language=None is not one of: 'en', 'ja'"):
        each.best()
    with pytest.raises(ValueError, match="language='fr' is not one of: 'en', 'ja'"):
        layer_sweep(run, "distance_m", language="fr", **QUICK)


def test_only_items_of_the_condition_and_task_are_used():
    run = written(n=30)
    others = [item(n, condition="blank") for n in range(30)] + [item(n, task="distance") for n in range(30)]
    run.items = run.items + Items(others)
    run.rows = {layer: np.vstack([rows, np.zeros((60, WIDTH))]) for layer, rows in run.rows.items()}
    assert set(layer_sweep(run, "distance_m", **QUICK).to_frame()["n_items"]) == {30}
    assert layer_sweep(run, "distance_m", **QUICK).best().score > 0.9
    assert layer_sweep(run, "distance_m", task="distance", **QUICK).best().score < 0.1
    assert set(layer_sweep(run, "distance_m", condition="blank", **QUICK).to_frame()["condition"]) == {"blank"}


def test_items_without_a_token_of_the_role_are_left_out_and_counted():
    run = written()
    for rows in run.rows.values():
        rows[[3, 4, 20]] = np.nan
    sweep = layer_sweep(run, "distance_m", **QUICK)
    assert {cell.n_missing for cell in sweep.cells} == {3}
    assert set(sweep.to_frame()["n_items"]) == {42}


def test_an_infinite_vector_is_refused_by_layer_and_item():
    run = written()
    run.rows[3][7, 2] = np.inf
    with pytest.raises(
        ValueError, match=r"1 of 45 vectors .* resid layer 3, role 'answer', the first at item '7/en/demonstrative/real'"
    ):
        layer_sweep(run, "distance_m", **QUICK)


def test_items_whose_target_is_nan_are_named():
    run = written(languages=("en", "ja"))
    odd = run.items[5]
    run.items = Items(replace(i, targets={"size": float("nan") if i.id == odd.id else 1.0}) for i in run.items)
    with pytest.raises(ValueError, match=rf"the target 'size' is NaN or infinite for 1 of 90 items \('{odd.id}'\)"):
        layer_sweep(run, "size", **QUICK)


def test_workers_below_one_are_refused():
    with pytest.raises(ValueError, match="workers=-1 must be at least 1, or None for one per core"):
        layer_sweep(written(), "distance_m", workers=-1)


def test_a_vector_that_is_partly_nan_is_refused():
    run = written()
    run.rows[0][5, 0] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite values at resid layer 0"):
        layer_sweep(run, "distance_m", **QUICK)


def test_a_role_without_any_token_is_refused():
    run = written()
    run.rows[0][:] = np.nan
    with pytest.raises(ValueError, match="no item has a token of role 'object' at resid layer 0"):
        layer_sweep(run, "distance_m", role="object", **QUICK)


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"target": "height_m"}, "target='height_m' is missing from item .*; it has: 'distance_m', 'region'"),
        ({"groups": "room"}, "groups='room' is missing from item .*; it has: 'figure', 'scene'"),
        ({"condition": "black"}, "no items with condition='black'; it holds: 'real'"),
        ({"task": "distance"}, "no items with task='distance'; it holds: 'demonstrative'"),
        ({"controls": "every"}, "controls='every' must be 'default', 'all' or a list of: 'task', 'interval', 'permutation'"),
        ({"controls": ("task", "luck")}, "must be 'default', 'all' or a list of: 'task', 'interval', 'permutation'"),
        ({"controls": "all"}, "these items have no nuisances; or leave 'nuisance' out of controls"),
        ({"controls": ("untrained",)}, r"no untrained run was given: record dx.untrained\(vlm\) and pass untrained="),
        ({"controls": ("blank",)}, "there are no items in condition 'blank'"),
        ({"nuisances": ("tilt",)}, "nuisances='tilt' is missing from item .*; it has: nothing"),
        ({"controls": ("task",), "types": "mood"}, "types='mood' is no group of these items"),
        ({"controls": ("task",), "types": "scene"}, "no type has items in two groups"),
    ],
)
def test_what_the_run_does_not_hold_is_refused(wish, message):
    with pytest.raises(ValueError, match=message):
        layer_sweep(written(), **({"target": "distance_m", "workers": 1} | wish))


def test_several_tasks_without_demonstratives_need_a_choice():
    run = written()
    run.items = Items(replace(i, task="a" if n % 2 else "b") for n, i in enumerate(run.items))
    with pytest.raises(ValueError, match=r"several tasks \('a', 'b'\); choose one with task= \(--task\)"):
        layer_sweep(run, "distance_m", **QUICK)


def test_without_recurring_types_the_default_leaves_the_control_task_out():
    frame = layer_sweep(written(), "distance_m", types="scene", **FEW).to_frame()
    assert frame["control"].isna().all()
    assert frame["low"].notna().all()


def test_best_in_words_and_as_a_frame():
    best = layer_sweep(written(), "distance_m", **QUICK).best()
    assert "written: distance_m is decoded best at resid layer 2" in str(best)
    frame = best.to_frame()
    assert frame.columns[0] == "model"
    assert frame.loc[0, "layer"] == 2
    assert frame.loc[0, "by_fold"] == "2 2 2 2 2"


@pytest.fixture(scope="module")
def sweep() -> LayerSweep:
    return layer_sweep(written(), "distance_m", **(FEW | {"controls": ("task", "interval")}))


def test_the_curve_its_control_and_chance_are_the_numbers_of_the_frame(sweep):
    frame = sweep.to_frame().query("metric == 'r2'")
    axes = sweep.plot()
    curve, control, chance = axes.lines
    np.testing.assert_array_equal(curve.get_xdata(), frame["layer"])
    np.testing.assert_array_equal(curve.get_ydata(), frame["score"])
    np.testing.assert_array_equal(control.get_ydata(), frame["control"])
    assert control.get_linestyle() == "--"
    assert set(chance.get_ydata()) == {0.0}
    band = axes.collections[0].get_paths()[0].vertices
    assert set(frame["low"]) | set(frame["high"]) <= set(band[:, 1])


def test_axes_name_what_is_drawn_with_units(sweep):
    axes = plot_layer_sweep(sweep.to_frame(), metric="mae")
    assert axes.get_ylabel() == "mean absolute error (m), distance_m"
    assert axes.get_xlabel() == "layer (residual stream entering block)"
    assert axes.get_legend() is not None


def test_models_below_each_other_get_a_curve_each(sweep):
    import pandas as pd

    both = pd.concat([sweep.to_frame(), sweep.to_frame().assign(model="other")])
    labels = plot_layer_sweep(both).get_legend_handles_labels()[1]
    assert set(labels) == {"written", "other", "control task", "chance"}


def test_a_plot_needs_rows_and_a_metric_that_is_there(sweep):
    with pytest.raises(ValueError, match="no rows to draw"):
        plot_layer_sweep(sweep.to_frame().iloc[:0])
    with pytest.raises(ValueError, match="metric='auc' is not one of: 'r2', 'mae'"):
        plot_layer_sweep(sweep.to_frame(), metric="auc")


def test_chosen_layers_score_as_they_do_among_all_of_them():
    run = written()
    everything = layer_sweep(run, "distance_m", **QUICK).to_frame()
    some = layer_sweep(run, "distance_m", layers=[3, 1], **QUICK).to_frame()
    wanted = everything[everything["layer"].isin([1, 3])].reset_index(drop=True)
    assert some.equals(wanted)


@pytest.mark.parametrize("layers", [[4], [], [0, 9]])
def test_layers_that_were_not_recorded_are_refused(layers: list[int]):
    with pytest.raises(ValueError, match=r"must be some of those recorded at resid: 0, 1, 2, 3"):
        layer_sweep(written(), "distance_m", layers=layers, **QUICK)


def test_a_sweep_says_in_one_line_what_it_holds():
    sweep = layer_sweep(written(), "distance_m", **QUICK)
    assert repr(sweep) == "LayerSweep('written', distance_m, role answer, resid 0 to 3; .to_frame(), .best(), .plot())"
