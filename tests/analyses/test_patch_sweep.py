"""Patch sweeps on pico, whose truth is known, and on numbers that were chosen."""

import inspect
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import deixis as dx
from deixis.analyses.patch_pairs import Pair, near_far_pairs
from deixis.analyses.patch_passes import Cell, Patched
from deixis.analyses.patch_sweep import COLUMNS, PatchSweep, patch_sweep, plot_patch_sweep
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER
from deixis.hooks.errors import NoSuchSiteError
from tests.toys import SHARED_START, toy_item, toy_vlm

SIZE = 256


@pytest.fixture(scope="module")
def pico():
    return dx.load("pico", check=False)


@pytest.fixture(scope="module")
def pairs():
    return near_far_pairs(languages=("en", "ja"), n=2, size=SIZE)


@pytest.fixture(scope="module")
def sweep(pico, pairs):
    return patch_sweep(pico, pairs)


def cell(frame: pd.DataFrame, **chosen) -> pd.DataFrame:
    for name, value in chosen.items():
        frame = frame[frame[name].isna() if value is None else frame[name] == value]
    return frame


def test_pairs_differ_in_one_thing_only(pairs):
    assert [pair.contrast for pair in pairs] == ["distance"] * 2 + ["colour"] * 2 + ["distance"] * 2 + ["colour"] * 2
    for pair in pairs:
        a, b = (item.images[0].figure for item in (pair.donor, pair.receiver))
        changed = {"distance_m": 0.25} if pair.contrast == "distance" else {"colour": a.colour}
        assert a == replace(b, **changed)
        assert a != b
        assert (pair.donor.prompt, pair.donor.options) == (pair.receiver.prompt, pair.receiver.options)
        box = pair.donor.objects[0]
        assert 0 < box.left < box.right < SIZE
        row = (box.top + box.bottom) / 2 / SIZE
        assert (row > 0.5) == (a.distance_m < 1)  # near is low in the picture


def test_the_boxes_are_those_of_the_memory_game(pairs):
    figure = pairs[0].donor.images[0].figure
    made = dx.memory_game(languages=("en",), shapes=(figure.shape,), colours=(figure.colour,), distances=(0.25,), size=SIZE)
    box, own = made[0].objects[0], pairs[0].donor.objects[0]
    assert (box.top, box.bottom) == pytest.approx((own.top, own.bottom), abs=0.5)  # only the place to the side differs


def test_the_frame_has_its_columns_and_both_controls(sweep):
    frame = sweep.to_frame()
    assert tuple(frame) == COLUMNS
    assert COLUMNS[:9] == ("model", "layer", "role", "site", "metric", "effect", "low", "high", "n_pairs")
    assert set(frame["control"]) == {"", "positive", "negative"}
    assert set(frame["language"]) == {"en", "ja"}
    known = frame[frame["low"].notna()]
    assert len(known) == len(frame)
    assert (known["low"] <= known["effect"] + 1e-12).all()
    assert (known["high"] >= known["effect"] - 1e-12).all()


def test_the_whole_image_is_worth_the_donors_answer_and_another_colour_nothing(sweep):
    frame = cell(sweep.to_frame(), metric="restored")
    positive = cell(frame, control="positive")
    np.testing.assert_allclose(positive["effect"][positive["contrast"] == "distance"], 1.0, atol=1e-4)
    assert (cell(frame, control="negative")["effect"] < 0.1).all()


def test_what_must_be_nothing_and_all_is_exactly_that(sweep):
    frame = cell(sweep.to_frame(), metric="restored", contrast="distance")
    assert (cell(frame, layer=6, role="object")["effect"] == 0).all()  # the final norm's other positions predict nothing
    assert (cell(frame, layer=0, role="answer")["effect"].abs() < 1e-5).all()  # the same word in both
    np.testing.assert_allclose(cell(frame, layer=6, role="answer")["effect"], 1.0, atol=1e-5)


def test_image_tokens_carry_it_early_and_the_answer_late(sweep):
    means = cell(sweep.to_frame(), metric="restored", contrast="distance").groupby(["role", "layer"])["effect"].mean()
    assert means["object", 1] > 0.5 > 0.1 > means["answer", 1]
    assert means["answer", 5] > 0.5 > means["object", 5]


def by_hooks(vlm, pair: Pair, layer: int, role: str) -> np.ndarray:
    """Logits of the receiver's options with the donor's vectors at a role, by torch's own hooks."""
    inputs, roles = {}, {}
    for name, item in (("donor", pair.donor), ("receiver", pair.receiver)):
        inputs[name] = vlm.prepare([item])
        roles[name] = vlm.token_roles(inputs[name], [item])
    chosen = roles["donor"][role] | roles["receiver"][role]
    held = []

    def keep(_module, args, kwargs):
        held.append((args[0] if args else kwargs["hidden_states"]).clone())

    def put(_module, args, kwargs):
        hidden = (args[0] if args else kwargs["hidden_states"]).clone()
        hidden[chosen] = held[0][chosen]
        return ((hidden, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": hidden})

    for name, hook in (("donor", keep), ("receiver", put)):
        with ExitStack() as stack, torch.inference_mode():
            stack.callback(vlm.blocks[layer].register_forward_pre_hook(hook, with_kwargs=True).remove)
            vlm.reset()
            logits = vlm.model(**inputs[name]).logits[0, -1].double()
    firsts = [list(vlm.first_tokens(option)) for option in pair.receiver.options]
    return np.array([float(logits[tokens].logsumexp(0)) for tokens in firsts])


@pytest.mark.parametrize(("layer", "role"), [(1, "object"), (4, "answer")])
def test_a_cell_is_what_plain_hooks_give(pico, pairs, sweep, layer, role):
    number = sweep.cells.index(Cell("resid", layer, role))
    for k, pair in enumerate(pairs):
        found = sweep.logits.edited[number, k, : len(pair.receiver.options)]
        np.testing.assert_allclose(found, by_hooks(pico, pair, layer, role), atol=2e-4)


def test_starting_at_the_edited_block_changes_no_number(pico, pairs):
    some = pairs[:4]
    settings = {"sites": ("resid", "head", "mlp_out", "vision", "merger_out"), "layers": [0, 3], "roles": ("object", "answer")}
    quick, slow = (patch_sweep(pico, some, **settings, reuse=reuse) for reuse in (True, False))
    np.testing.assert_array_equal(quick.logits.edited, slow.logits.edited)
    assert {(c.site, c.role) for c in quick.cells if c.site == "vision"} == {("vision", "object")}  # no answer in the tower


def test_a_model_that_ignores_distance_has_nothing_to_restore():
    found = patch_sweep(dx.load("pico-collapsed", check=False), near_far_pairs(languages=("en",), n=2, size=SIZE), layers=[1])
    frame = cell(found.to_frame(), contrast="distance")
    assert cell(frame, metric="restored")["effect"].isna().all()
    assert (cell(frame, metric="js_distance")["effect"] < 0.05).all()
    evidence = found.evidence("demonstrative", "en")
    assert evidence.moved < 0.05
    assert np.isnan(evidence.restored)
    assert plot_patch_sweep(found.to_frame()).get_title() == "pico-collapsed: nothing to restore"


def chosen(edited: dict[int, np.ndarray], donor: np.ndarray, receiver: np.ndarray, contrasts: list[str]) -> PatchSweep:
    """A sweep over chosen logits: object at each layer of ``edited``."""
    made = near_far_pairs(languages=("en",), n=len(donor), size=64, controls=False)
    pairs = tuple(replace(pair, contrast=c) for pair, c in zip(made, contrasts, strict=True))
    cells = tuple(Cell("resid", layer, "object") for layer in edited)
    return PatchSweep("planted", pairs, cells, Patched(donor, receiver, np.stack(list(edited.values())), 0), n_boot=500, seed=0)


def test_effects_and_intervals_of_chosen_numbers():
    rng = np.random.default_rng(0)
    n = 40
    receiver = np.stack([np.zeros(n), 2 + rng.normal(size=n)], axis=1)
    donor = np.stack([np.zeros(n), -2 + rng.normal(size=n)], axis=1)
    half = receiver + 0.5 * (donor - receiver)
    frame = chosen({1: half, 2: receiver}, donor, receiver, ["distance"] * n).to_frame()
    row = cell(frame, metric="restored", layer=1).iloc[0]
    assert (row["effect"], row["low"], row["high"]) == pytest.approx((0.5, 0.5, 0.5))
    shift = cell(frame, metric="logit_difference", layer=1).iloc[0]
    gains = (half - receiver) @ [1, -1]
    assert shift["effect"] == pytest.approx(gains.mean())
    spread = gains.std(ddof=1) / np.sqrt(n)
    assert shift["high"] - shift["low"] == pytest.approx(2 * 1.96 * spread, rel=0.15)
    assert cell(frame, metric="logit:that", layer=1)["effect"].iloc[0] == pytest.approx((half - receiver)[:, 1].mean())
    assert cell(frame, metric="js_distance", layer=2)["effect"].iloc[0] == 0


def test_the_layer_of_the_evidence_is_chosen_on_other_figures():
    """Noise that makes one layer the best for a figure must not be that figure's evidence."""
    rng = np.random.default_rng(1)
    n = 12
    receiver = np.tile([1.0, 0.0], (n, 1))
    layers = {layer: receiver + rng.normal(scale=[0, 0.3], size=(n, 2)) for layer in range(6)}
    sweep = chosen(layers, receiver - [2, 0], receiver, ["distance"] * n)
    moved = sweep._moved(range(6), np.arange(n))
    evidence = sweep.evidence("demonstrative", "en")
    assert evidence.moved < moved.max(axis=0).mean()
    assert evidence.low <= evidence.moved <= evidence.high
    assert sweep.evidence("demonstrative", "en", role="answer") is None
    assert sweep.evidence("demonstrative", "ja") is None


def test_options_that_share_a_first_token_are_scored_as_strings():
    vlm = toy_vlm()
    donor, receiver = (
        toy_item(k, prompt="what is on the disk", options=SHARED_START, truth=t) for k, t in ((0, "red star"), (1, "far"))
    )
    found = patch_sweep(vlm, [Pair(name="a", contrast="distance", donor=donor, receiver=receiver)], layers=[0], roles=("image",))
    np.testing.assert_allclose(found.logits.edited[-1], found.logits.donor, atol=1e-4)
    assert (found.logits.donor < 0).all()  # log probabilities


def test_the_distance_question_moves_from_one_right_answer_to_the_other(pico):
    pair = near_far_pairs(tasks=("distance",), languages=("en",), n=1, size=SIZE, controls=False)[0]
    assert pair.options == (0, 2)
    frame = patch_sweep(pico, [pair], layers=[6], roles=("answer",)).to_frame()
    assert cell(frame, metric="restored", layer=6)["effect"].iloc[0] == pytest.approx(1, abs=1e-4)
    assert frame["low"].isna().all()  # one figure has no interval


def test_the_direction_of_a_pair_follows_its_distances():
    pair = near_far_pairs(languages=("ja",), n=1, size=64, controls=False)[0]
    assert pair.options == (0, 2)
    assert replace(pair, donor=pair.receiver, receiver=pair.donor).options == (2, 0)
    assert set(SYNTHETIC_SPEAKER["ja"][1]) == {option.term for option in pair.receiver.options}


def test_the_heat_map_shows_the_numbers_of_the_frame(sweep):
    frame = sweep.to_frame()
    ax = sweep.plot()
    shown = ax.collections[0].get_array().reshape(4, 7)
    rows = [label.get_text() for label in ax.get_yticklabels()]
    main = cell(frame, metric="restored", contrast="distance")
    expected = cell(main, role="object", layer=1)["effect"].mean()
    assert shown[rows.index("object"), 1] == pytest.approx(expected)
    assert ax.get_title().startswith("pico: whole image 1.00, other colour at most 0.0")
    with pytest.raises(ValueError, match="no rows of metric 'nose' at resid"):
        plot_patch_sweep(frame, metric="nose")


def test_bad_arguments_are_refused(pico, pairs):
    with pytest.raises(ValueError, match="there is no pair to patch"):
        patch_sweep(pico, [])
    with pytest.raises(NoSuchSiteError, match=r"layers=\[9\] must be some of the model's: resid has 0 to 6"):
        patch_sweep(pico, pairs, layers=[9])
    with pytest.raises(ValueError, match=r"n=0 must be 1 or more and near=0\.25 below far=2\.75"):
        near_far_pairs(n=0)
    other = replace(pairs[0].receiver, truth=None, options=toy_item(3).options)
    with pytest.raises(ValueError, match="neither a truth nor proximal and distal options"):
        _ = replace(pairs[0], receiver=other, donor=other).options


def test_items_in_place_of_pairs_are_refused():
    items = dx.memory_game(n=1, languages=("en",), size=96)
    with pytest.raises(
        ValueError, match=r"pairs holds an entry of type Item; give pairs, such as those of deixis\.near_far_pairs"
    ):
        inspect.unwrap(patch_sweep)(toy_vlm(), items)  # past the import hook of the tests, as users call it
