"""Every case that can be planted in a running model is: recorded, probed, patched and judged like any other."""

import pytest

import deixis as dx
from deixis.analyses.patch_sweep import patches_for
from tests.analyses.pico_run import pico
from tests.analyses.planted_models import blind, notices

MODELS = {
    "encoded and used": lambda: pico("pico"),
    "encoded, unused": lambda: pico("pico-collapsed"),
    "prior only": blind,
    "absent": notices,
}
SLOW = ("encoded and used", "encoded, unused")
"""Looked at elsewhere too: the first by the command's test, both by the twenty seeds."""


@pytest.mark.parametrize("case", [pytest.param(case, marks=pytest.mark.slow if case in SLOW else ()) for case in MODELS])
def test_a_case_planted_in_a_model_is_found(case, tmp_path):
    vlm = MODELS[case]()
    real = dx.memory_game(languages=("ja",), size=256)
    run = dx.record(vlm, real + real.with_condition("blank"), tmp_path / "run", answers=False, progress=False)
    gap = dx.encoding_gap([run], patches=patches_for(run, vlm, 2, size=256), n_boot=500)
    row = gap.to_frame().iloc[0]
    assert row["case"] == case
    assert row["missing"] == ""
    assert row["observed"] == row["patched"]
    assert row["borderline"] == ""


def test_a_blind_models_object_tokens_tell_the_region_by_their_places(tmp_path):
    """They are chosen by where the object is: without the blank pictures' score a blind model would seem to know distance."""
    items = dx.memory_game(languages=("ja",), size=256)
    run = dx.record(blind(), items + items.with_condition("blank"), tmp_path / "run", answers=False, progress=False)
    row = dx.encoding_gap([run], n_boot=200).to_frame().iloc[0]
    assert row["object_score"] > 0.9
    assert row["object_blank"] > 0.9
    assert row["image_score"] < 0.5
    assert not row["encoded"]
