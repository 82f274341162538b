"""A target followed from the vision tower through the merger into the language model."""

import numpy as np
import pytest

import deixis as dx
from deixis.analyses import plot_site_sweep, site_sweep
from deixis.analyses.sweep_results import COLUMNS
from tests.pico_runs import loaded

SITES = ("resid", "merger_out", "merger_in", "vision")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory):
    items = dx.memory_game(languages=("en",), size=256)
    folder = tmp_path_factory.mktemp("sites") / "pico"
    return dx.record(loaded("pico"), items, folder, sites=SITES, roles=("image", "object"), answers=False, progress=False)


def test_every_site_of_a_real_run_is_swept_in_the_order_of_the_picture(run):
    found = site_sweep(run, "distance_m", "image", controls=())
    frame = found.to_frame()
    assert tuple(frame) == COLUMNS
    assert list(dict.fromkeys(frame["site"])) == ["vision", "merger_in", "merger_out", "resid"]
    vlm = loaded("pico")
    counts = frame[frame["metric"] == "r2"].groupby("site").size()
    assert counts.to_dict() == {
        "vision": run.layers("vision")[-1] + 1,
        "merger_in": 1,
        "merger_out": 1,
        "resid": vlm.n_layers + 1,
    }
    score = frame[frame["metric"] == "r2"].set_index(["site", "layer"])["score"]
    # What leaves the merger is what enters the first block at image tokens; what enters it leaves the last vision block.
    assert score["merger_out", 0] == pytest.approx(score["resid", 0], abs=1e-6)
    assert score["vision", run.layers("vision")[-1]] == pytest.approx(score["merger_in", 0], abs=1e-6)
    assert (score > 0.5).all()


def test_a_part_of_the_sites_gives_what_layer_sweep_gives_and_others_are_refused(run):
    one = site_sweep(run, "region", "object", sites=("merger_out",), controls=())
    alone = dx.layer_sweep(run, "region", "object", "merger_out", controls=())
    np.testing.assert_allclose(one.to_frame()["score"], alone.to_frame()["score"])
    with pytest.raises(ValueError, match=r"\['attn_out'\] must be some of those recorded: 'resid'.*record the run again"):
        site_sweep(run, "region", "object", sites=("attn_out",))


def test_sites_are_drawn_with_a_gap_between_them(run):
    found = site_sweep(run, "distance_m", "object", controls=("interval",), n_bootstrap=5)
    axes = found.plot()
    assert [label.get_text() for label in axes.get_xticklabels()][-9:-7] == ["in", "out"]
    assert [text.get_text() for text in axes.texts] == ["vision block", "merger", "decoder layer"]
    with pytest.raises(ValueError, match="no rows to draw"):
        plot_site_sweep(found.to_frame().iloc[:0])
