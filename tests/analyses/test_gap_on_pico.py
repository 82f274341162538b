"""Both bundled models come out as they were trained, whatever the seed. Minutes long; the counts stand in the closing note."""

from collections import Counter

import pytest

import deixis as dx
from deixis.analyses.patch_sweep import patches_for
from tests.analyses.pico_run import pico

SEEDS = range(20)
LANGUAGES = ("en", "zh", "ja", "ko")
TRAINED = {
    ("pico", "demonstrative"): "encoded and used",
    ("pico", "distance"): "encoded and used",
    ("pico-collapsed", "demonstrative"): "encoded, unused",
    ("pico-collapsed", "distance"): "encoded and used",
}


@pytest.mark.slow
def test_both_models_come_out_as_trained_in_every_language_over_twenty_seeds(tmp_path):
    real = dx.memory_game(tasks=("demonstrative", "distance"), languages=LANGUAGES, size=256)
    items = real + real.with_condition("blank")
    names = ("pico", "pico-collapsed")
    runs = [dx.record(pico(name), items, tmp_path / name, answers=False, progress=False) for name in names]
    patches = [patches_for(run, pico(name), 3, size=256) for run, name in zip(runs, names, strict=True)]
    counts: Counter[tuple[str, str, str]] = Counter()
    for seed in SEEDS:
        frame = dx.encoding_gap(runs, patches=patches, seed=seed).to_frame()
        counts.update(zip(frame["model"], frame["task"], frame["case"], strict=True))
    assert counts == {(*key, case): len(SEEDS) * len(LANGUAGES) for key, case in TRAINED.items()}
