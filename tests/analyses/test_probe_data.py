"""What counts as rounding, beside features of any size."""

import numpy as np
import pytest

from deixis.analyses import layer_sweep
from deixis.analyses.probe_data import distinct
from tests.analyses.written_scenes import written_scenes

WIDTH = 6


def coded(item, layer):
    return item.targets["distance_m"] * layer * np.eye(WIDTH)[0]


def score(run, **how) -> float:
    return float(layer_sweep(run, "distance_m", layers=[1], controls=(), workers=1, **how).to_frame()["score"].iloc[0])


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
def test_a_large_constant_feature_hides_nothing(size):
    run = written_scenes(coded, languages=("en", "ja"))
    alone = layer_sweep(run, "distance_m", layers=[1], controls=(), workers=1).to_frame().iloc[0]
    run.rows = {key: np.column_stack([rows, np.full(len(rows), size)]) for key, rows in run.rows.items()}
    beside = layer_sweep(run, "distance_m", layers=[1], controls=(), workers=1).to_frame().iloc[0]
    assert alone["score"] > 0.95
    assert beside["score"] == pytest.approx(alone["score"], abs=0.01)
    assert beside["n_items"] == alone["n_items"]


def test_rounding_of_one_picture_is_nothing_to_decode_beside_a_large_feature_too():
    """Float32 rounding that happens to follow the target, in each feature as large as the feature makes it."""
    plain = np.append(np.random.default_rng(0).normal(size=40), 1e6)
    run = written_scenes(lambda item, _: plain * (1 + 1e-7 * item.targets["distance_m"]), noise=0.0, n=45)
    assert score(run) == pytest.approx(0, abs=0.05)


def test_duplicates_up_to_rounding_are_one_beside_a_large_feature_and_others_stay_two():
    rng = np.random.default_rng(0)
    scenes = rng.normal(size=(10, 41))
    scenes[:, 40] = 1e6
    again = scenes * (1 + 2e-7 * rng.normal(size=scenes.shape))
    names = [(str(n), 0.0) for n in range(10)]
    assert list(distinct(np.vstack([scenes, again]), names * 2)) == list(range(10))
    other = scenes + 0.5 * np.eye(41)[0]
    assert len(distinct(np.vstack([scenes, other]), names * 2)) == 20
