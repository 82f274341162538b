"""The report's section about edits, from sweeps of chosen size."""

from typing import Any

import pandas as pd
import pytest

import deixis as dx
from deixis.analyses.encoding_gap import encoding_gap
from deixis.analyses.findings import Findings
from deixis.analyses.patch_sweep import patch_sweep
from deixis.analyses.report_edits import edits_section
from deixis.analyses.report_tables import shown
from deixis.benchmarks import Items
from tests.analyses.fake_run import FakeRun
from tests.analyses.pico_run import pico, pico_run


def some(*models: str, gap: Any = None, **edits: Any) -> Findings:
    """Findings of these models that hold edits and nothing else."""
    nothing = pd.DataFrame()
    runs = tuple(FakeRun(Items([]), dict, model=name) for name in models)
    return Findings(
        runs=runs,  # pyright: ignore[reportArgumentType]
        sweeps=nothing,
        best=nothing,
        without_sweep=(),
        lens=nothing,
        without_lens={},
        distributions=nothing,
        scores=nothing,
        reference=None,
        gap=gap,
        vlms={},
        **edits,
    )


@pytest.fixture(scope="module")
def findings() -> Findings:
    run = pico_run()
    pairs = dx.near_far_pairs(languages=("en",), n=2, size=256)
    patches = patch_sweep(pico(), pairs, layers=[1, 5], roles=("object", "answer"))
    way = dx.probe_direction(run, "distance_m", layer=5)
    steers = dx.steer_sweep(pico(), run.items[:2], way, (-1.0, 1.0), n_random=1, side_effects=False)
    gap = encoding_gap([run], patches=patches, n_boot=200)
    return some("pico", gap=gap, patches=(patches,), steers=(steers,))


def test_nothing_was_edited_and_there_is_no_section():
    assert edits_section(some("pico")) is None


def test_the_section_holds_map_curve_and_numbers(findings):
    section = edits_section(findings)
    assert section is not None
    evidence = findings.patches[0].evidence("demonstrative", "en")
    assert f"pico, demonstrative: {evidence.moved:.2f} to {evidence.moved:.2f}" in section.lead
    maps, curves = section.figures
    assert "a patch of the answer tokens at layer 5 restores most" in maps.panels[0].alt
    assert curves.panels[0].alt.startswith("pico: logit of the nearest option less the farthest one's")
    (row,) = section.grids[0].rows
    assert row.cells[:5] == ("pico", "demonstrative", "English", "object", str(evidence.layer))
    assert f"{evidence.restored:.2f}" in row.cells


def test_controls_stand_beside_what_they_control(findings):
    section = edits_section(findings)
    assert section is not None
    rows = findings.patches[0].to_frame()
    rows = rows[(rows["metric"] == "restored") & rows["layer"].notna()]
    colour = rows[rows["contrast"] == "colour"]["effect"].max()
    assert f"whole image 1.00, other colour at most {colour:.2f}" in str(section.figures[0].panels[0].svg)
    slopes = findings.steers[0].slopes()
    probe = slopes[slopes["kind"] == "target"]["slope"].iloc[0]
    assert f"changes by {shown(float(probe))} a metre" in section.lead
    random = slopes[slopes["kind"] == "random"]["slope"].abs().iloc[0]
    assert section.lead.endswith(f"moved as far, up to {random:.2f} either way along random directions.")


def test_a_model_without_patches_is_named(findings):
    section = edits_section(some("pico", "other", gap=findings.gap, patches=findings.patches))
    assert section is not None
    assert "other was not patched." in section.notes
