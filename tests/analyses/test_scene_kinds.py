"""Standard and decoupled scenes side by side."""

import numpy as np
import pytest

import deixis as dx
from deixis.analyses.scene_kinds import COLUMNS, MEASURES, plot_scene_kinds, scene_kinds
from tests.pico_runs import pico_run


@pytest.fixture(scope="module")
def found():
    return scene_kinds(pico_run("pico"), pico_run("pico", decoupled=True), "synthetic", layers=(3, 5), n_boot=50)


def test_every_measure_is_what_its_own_analysis_gives(found):
    frame = found.to_frame()
    assert tuple(frame) == COLUMNS
    assert len(frame) == len(MEASURES) * 2 * 2
    assert list(dict.fromkeys(frame["measure"])) == list(MEASURES)
    cell = frame.set_index(["measure", "language", "scenes"])
    for scenes, decoupled in (("standard", False), ("decoupled", True)):
        run = pico_run("pico", decoupled=decoupled)
        slopes = dx.distance_sensitivity(run, n_boot=50).to_frame().set_index("language")
        assert (
            cell.loc[("slope", "ja", scenes), ["value", "low", "high"]].tolist()
            == slopes.loc["ja", ["slope", "low", "high"]].tolist()
        )
        scores = dx.behaviour(run, "synthetic", n_boot=50).scores().set_index(["language", "region"])
        assert cell.loc[("js_distance", "en", scenes), "value"] == scores.loc[("en", "mean"), "js_distance"]
        best = dx.layer_sweep(run, "distance_m", language="en", controls=("interval",), layers=(3, 5)).best()
        row = cell.loc[("distance_m", "en", scenes)]
        assert (row["value"], row["layer"]) == (pytest.approx(best.score), best.layer)
        assert row["n"] == 24


def test_the_table_has_both_kinds_of_scenes_in_one_row(found):
    table = found.table()
    assert list(table) == ["model", "language", "measure", "standard", "decoupled"]
    assert len(table) == len(MEASURES) * 2
    frame = found.to_frame().set_index(["measure", "language", "scenes"])["value"]
    for row in table.itertuples():
        assert (row.standard, row.decoupled) == (
            frame[row.measure, row.language, "standard"],
            frame[row.measure, row.language, "decoupled"],
        )


def test_without_probes_and_reference_slopes_are_left():
    found = scene_kinds(pico_run("pico"), pico_run("pico", decoupled=True), probes=False, n_boot=5)
    assert set(found.to_frame()["measure"]) == {"slope"}


def test_the_plot_has_a_filled_and_a_hollow_point_for_each_language(found):
    ax = found.plot(measure="distance_m")
    points = {(line.get_markerfacecolor(), line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "o"}
    rows = found.to_frame()
    rows = rows[rows["measure"] == "distance_m"]
    np.testing.assert_allclose(sorted(value for _, value in points), sorted(rows["value"]))
    hollow = sorted(value for face, value in points if face == "white")
    np.testing.assert_allclose(hollow, sorted(rows[rows["scenes"] == "decoupled"]["value"]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["pico, standard", "pico, decoupled"]
    with pytest.raises(ValueError, match="measure='colour' is not one of: 'slope', 'js_distance'"):
        plot_scene_kinds(found.to_frame(), measure="colour")


def test_runs_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="shown to 'pico' and the decoupled to 'pico-collapsed'; pass one model's runs"):
        scene_kinds(pico_run("pico"), pico_run("pico-collapsed", decoupled=True))
    with pytest.raises(ValueError, match="at the place of the standard scenes holds decoupled ones; exchange the runs"):
        scene_kinds(pico_run("pico", decoupled=True), pico_run("pico"), probes=False, n_boot=5)
