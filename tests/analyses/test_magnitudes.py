"""Magnitudes of actions in the layers: which items are taken, and which are not put together."""

import numpy as np
import pytest

from deixis.analyses import decode_coordinates, layer_sweep
from deixis.benchmarks import Item, Items
from deixis.benchmarks.images import UniformImage
from deixis.benchmarks.spacenum.actions import ACTION, ACTIONS
from tests.analyses.fake_run import FakeRun

QUICK = {"controls": (), "workers": 1}


def transitions(n: int = 96) -> Items:
    """One question a scene; actions take turns, magnitudes come off their grids."""
    return Items(_item(number) for number in range(n))


def _item(number: int) -> Item:
    action = ACTION[ACTIONS[number % 8]]
    size = action.grid[number // 8 % len(action.grid)]
    return Item(
        id=f"made/{number}", benchmark="spacenum", task="transition-space2num", language="en", prompt="?", options=(), truth=None,
        images=(UniformImage(width=8, height=8, grey=number),),
        targets={"magnitude": size, "signed_magnitude": action.sign * size, "action": float(action.number)},
        groups={"scene": f"room {number}", "column": action.column, "action": action.name},
        facts={"unit": action.unit},
    )  # fmt: skip


def holding(name: str, items: Items, noise: float = 0.05) -> FakeRun:
    """Vectors that hold a target along one direction, or for ``action`` one direction per action."""
    rng = np.random.default_rng(0)
    if name == "action":
        held = np.eye(8)[[int(item.targets["action"]) for item in items]]
    else:
        held = np.array([item.targets[name] for item in items])[:, None] * rng.normal(size=(1, 8))
    return FakeRun(items, shares=lambda _: {}, features={("answer", 0): held + noise * rng.normal(size=held.shape)})


@pytest.mark.parametrize("name", ["magnitude", "signed_magnitude"])
def test_a_magnitude_is_decoded_within_one_pair_of_actions(name):
    run = holding(name, transitions(160))
    frame = layer_sweep(run, name, where={"column": "rotate U/D"}, **QUICK).to_frame()
    row = frame[frame["metric"] == "r2"].iloc[0]
    assert row["score"] > 0.95
    assert row["n_items"] == 40


def test_vectors_that_hold_the_size_alone_do_not_tell_the_sign():
    run = holding("magnitude", transitions(160))
    frame = layer_sweep(run, "signed_magnitude", where={"column": "rotate L/R"}, **QUICK).to_frame()
    assert frame["score"].iloc[0] < 0.3


def test_actions_are_decoded_as_classes():
    frame = layer_sweep(holding("action", transitions()), "action", **QUICK).to_frame()
    assert frame["metric"].iloc[0] == "balanced_accuracy"
    assert frame["chance"].iloc[0] == pytest.approx(1 / 8)
    assert frame["score"].iloc[0] > 0.95


def test_metres_and_degrees_are_not_one_quantity():
    run = holding("magnitude", transitions())
    with pytest.raises(ValueError, match=r"in deg for some items and in m for others.*where=\{'column': 'move F/B'\}"):
        layer_sweep(run, "signed_magnitude", **QUICK)


def test_where_names_what_there_is():
    run = holding("magnitude", transitions())
    with pytest.raises(ValueError, match=r"no items with column='turn'; it holds: 'move F/B', 'move L/R'"):
        layer_sweep(run, "magnitude", where={"column": "turn"}, **QUICK)
    with pytest.raises(ValueError, match="where='scale' is missing"):
        layer_sweep(run, "magnitude", where={"scale": "desk"}, **QUICK)


def test_coordinates_are_decoded_where_they_are_asked_for():
    run = holding("signed_magnitude", transitions(160))
    found = decode_coordinates(
        run, ("signed_magnitude", "magnitude"), role="answer", n_bootstrap=0, where={"action": "rotate up"}
    )
    assert found.true.shape[1] == 20
    assert found.score[0, 0] > 0.95
