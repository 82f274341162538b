"""Decision layers of lenses in which they were planted."""

import numpy as np
import pandas as pd
import pytest

from deixis.analyses.decision import (
    COLUMNS,
    ITEM_COLUMNS,
    LENS_COLUMNS,
    _difference,
    decision_layers,
    lens_by_region,
    plot_decision_layers,
)
from deixis.analyses.distributions import softmax_within
from deixis.analyses.logit_lens import LogitLens, logit_lens
from deixis.benchmarks import Items, memory_game
from tests.pico_runs import loaded, pico_run

ITEMS = memory_game(languages=("en", "ja"), size=64)
LAYERS = (0, 2, 5, 6, 9)


def planted(when, items=ITEMS, wobble=None) -> LogitLens:
    """A lens in which each item's term is first from the layer ``when(item)`` on, and another one before that."""
    rows = []
    for item in items:
        chosen = "proximal" if item.targets["region"] == 1.0 else "distal"
        for layer in LAYERS:
            settled = layer >= when(item) or (wobble is not None and layer == wobble)
            for option in item.options:
                first = chosen if settled else "distal" if chosen == "proximal" else "proximal"
                rows.append(("fake", item.id, layer, "answer", option.label, option.term, 2.0 if option.term == first else 0.0))
    frame = pd.DataFrame(rows, columns=["model", "item", "layer", "role", "option", "term", "logit"])
    groups, _ = pd.factorize(frame["item"] + frame["layer"].astype(str))
    frame["prob"] = softmax_within(groups, frame["logit"].to_numpy(float))
    frame["rank"] = frame.groupby(groups)["logit"].rank(ascending=False, method="min")
    return LogitLens("fake", "answer", LAYERS, {i.id: int(i.targets["region"]) for i in items}, (), True, frame)


BY_REGION = {1.0: 2, 2.0: 5, 3.0: 9}


def test_the_planted_layer_is_found_in_every_item_and_differs_by_region():
    found = decision_layers(planted(lambda item: BY_REGION[item.targets["region"]]), ITEMS, n_boot=50)
    items = found.items()
    assert tuple(items) == ITEM_COLUMNS
    assert items["layer"].tolist() == [BY_REGION[item.targets["region"]] for item in ITEMS]
    assert items["chosen"].tolist() == ["proximal" if item.targets["region"] == 1.0 else "distal" for item in ITEMS]
    frame = found.to_frame()
    assert tuple(frame) == COLUMNS
    assert frame["layer"].tolist() == [2, 5, 9] * 2
    assert frame["prob"].tolist() == pytest.approx([np.exp(2) / (np.exp(2) + 1)] * 3 + [np.exp(2) / (np.exp(2) + 2)] * 3)
    assert (frame["low"] == frame["layer"]).all()
    assert (frame["n"] == 20).all()
    assert (frame["difference"] == 7).all()
    assert frame["p_value"].to_numpy() == pytest.approx(1 / 1001)


def test_a_layer_at_which_the_term_is_first_and_lost_again_does_not_count():
    found = decision_layers(planted(lambda _: 6, wobble=2), ITEMS, n_boot=5, n_permutations=5)
    assert set(found.items()["layer"]) == {6}


def test_an_answer_that_never_changes_is_decided_at_the_first_layer():
    found = decision_layers(planted(lambda _: 0), ITEMS, n_boot=5, n_permutations=5)
    assert set(found.items()["layer"]) == {0}
    assert (found.to_frame()["p_value"] == 1).all()


def test_p_values_of_regions_that_do_not_differ_are_uniform():
    """Layers drawn without regard to region: P(p <= a) is about a, also where figures differ."""
    rng = np.random.default_rng(0)
    figure, region = np.repeat(np.arange(20), 3), np.tile([1, 2, 3], 20)
    ps = []
    for _ in range(400):
        layer = np.repeat(rng.choice([0.0, 9.0], size=20), 3) + rng.normal(size=60)
        ps.append(_difference(layer, region, figure, 99, rng)[1])
    for level in (0.1, 0.5):
        assert np.mean(np.array(ps) <= level) == pytest.approx(level, abs=3 * np.sqrt(level * (1 - level) / 400))


def test_the_interval_of_a_regions_mean_is_over_figures():
    figures = {item.groups["figure"]: number for number, item in enumerate(ITEMS)}
    when = {name: LAYERS[number % 5] for number, name in enumerate(figures)}
    found = decision_layers(planted(lambda item: when[item.groups["figure"]]), ITEMS, n_boot=4000, n_permutations=5).to_frame()
    values = np.array(list(when.values()))
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert found["layer"].to_numpy() == pytest.approx(values.mean())
    assert (found["high"] - found["layer"]).to_numpy() == pytest.approx(half, rel=0.1)


def test_the_lens_by_region_is_the_mean_over_items_with_its_interval():
    lens = planted(lambda item: BY_REGION[item.targets["region"]])
    frame = lens_by_region(lens, ITEMS, n_boot=50)
    assert tuple(frame) == LENS_COLUMNS
    cell = frame.set_index(["language", "term", "region", "layer"])
    first, second = np.exp(2) / (np.exp(2) + 1), 1 / (np.exp(2) + 1)
    assert cell.loc[("en", "proximal", 1, 2), "prob"] == pytest.approx(first)
    assert cell.loc[("en", "proximal", 1, 0), "prob"] == pytest.approx(second)
    assert cell.loc[("en", "distal", 3, 6), "prob"] == pytest.approx(second)
    assert cell.loc[("ja", "medial", 2, 9), "prob"] == pytest.approx(1 / (np.exp(2) + 2))
    assert (frame["n"] == 20).all()
    np.testing.assert_allclose(frame["low"], frame["prob"])


def test_items_without_a_vector_are_left_out():
    lens = planted(lambda _: 5)
    rows = lens._rows.copy()
    gone = (rows["item"] == ITEMS[0].id) & (rows["layer"] == 2)
    rows.loc[gone, ["logit", "prob"]] = np.nan
    holed = LogitLens("fake", "answer", LAYERS, lens.regions, (), True, rows)
    assert ITEMS[0].id not in set(decision_layers(holed, ITEMS, n_boot=5, n_permutations=5).items()["item"])
    cell = lens_by_region(holed, ITEMS, n_boot=5).set_index(["language", "term", "region", "layer"])
    region = int(ITEMS[0].targets["region"])
    assert cell.loc[("en", "proximal", region, 2), "n"] == 19
    assert cell.loc[("en", "proximal", region, 5), "n"] == 20


def test_one_layer_or_no_terms_is_refused():
    lens = planted(lambda _: 5)
    one = LogitLens("fake", "answer", (9,), lens.regions, (), True, lens._rows[lens._rows["layer"] == 9])
    with pytest.raises(ValueError, match="the lens holds layer 9 only; a decision layer needs two"):
        decision_layers(one, ITEMS)
    with pytest.raises(ValueError, match="no real items whose options carry terms"):
        decision_layers(lens, Items([]))


def test_in_pico_the_lens_ends_with_its_answers():
    run = pico_run("pico")
    lens = logit_lens(run, loaded("pico"))
    found = decision_layers(lens, run.items, n_boot=20, n_permutations=20)
    real = [item.id for item in run.items if item.condition == "real"]
    options = run.options[run.options["item"].isin(real)]
    best = options.loc[options.groupby("item", sort=False)["logit"].idxmax()].set_index("item")["term"]
    items = found.items().set_index("item")
    assert items["chosen"].to_dict() == best.to_dict()
    assert found.last == loaded("pico").n_layers
    assert items["layer"].between(0, found.last).all()


def test_the_plot_shows_the_share_decided_by_each_layer():
    found = decision_layers(planted(lambda item: BY_REGION[item.targets["region"]]), ITEMS, n_boot=5, n_permutations=5)
    ax = found.plot()
    assert [line.get_label() for line in ax.lines] == ["region 1 (mean 2.0)", "region 2 (mean 5.0)", "region 3 (mean 9.0)"]
    x, y = ax.lines[1].get_data()
    assert max(y[x < 5]) == 0
    assert y[-1] == 1
    with pytest.raises(ValueError, match="no rows to draw"):
        plot_decision_layers(found.items().iloc[:0])
