"""The whole path on a recorded run: letters' logits, options' texts as strings, written and drawn answers."""

import numpy as np
import pytest
import torch

import deixis as dx
from deixis.analyses.choice_strings import text_scores
from deixis.analyses.choices import choices
from deixis.analyses.spacenum_scores import spacenum_scores
from deixis.benchmarks import Items
from tests.analyses.written_choices import small_set
from tests.toys import toy_vlm


@pytest.fixture(scope="module")
def vlm():
    return toy_vlm()


@pytest.fixture(scope="module")
def items():
    """Two of each kind of question."""
    kept = ("rotate L/R", "1D D", "2D D")
    return small_set(2).filter(lambda i: i.groups["column"] in kept)


@pytest.fixture(scope="module")
def run(vlm, items, tmp_path_factory):
    return dx.record(
        vlm, items, tmp_path_factory.mktemp("choices") / "run", roles=("answer",), layers=[0], max_new_tokens=2, progress=False
    )


def forced(vlm, item, text):
    """Log probability of a text behind the prompt, from one pass over both together."""
    vlm.reset()
    inputs = dict(vlm.prepare([item]))
    tokens = torch.tensor([vlm.form_tokens(text)])
    n = inputs["input_ids"].shape[1]
    inputs["input_ids"] = torch.cat([inputs["input_ids"], tokens], dim=1)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if "mm_token_type_ids" in inputs:
        inputs["mm_token_type_ids"] = torch.cat([inputs["mm_token_type_ids"], torch.zeros_like(tokens)], dim=1)
    inputs.pop("position_ids", None)
    with torch.no_grad():
        logits = vlm.model(**inputs).logits[0, n - 1 : -1].double().log_softmax(-1)
    vlm.reset()
    return float(logits.gather(-1, tokens.T).sum())


def test_the_likelihood_of_a_text_is_that_of_reading_prompt_and_text_in_one_pass(vlm, items):
    for item, scores in zip(items[:2], text_scores(vlm, list(items[:2])), strict=True):
        both = [np.logaddexp(forced(vlm, item, o.text), forced(vlm, item, f" {o.text}")) for o in item.options]
        np.testing.assert_allclose(scores, both, rtol=1e-4)


def test_all_ways_are_read_from_a_recorded_run(vlm, items, run):
    sampled = dx.sample_answers(vlm, items, 2, max_new_tokens=2)
    found = dx.behaviour(run, vlm=vlm, sampled=sampled, n_boot=20)
    assert found.ways == ("logits", "string", "string_per_byte", "written", "sampled")
    frame = found.to_frame()
    assert (frame.groupby("way")["item"].nunique() == len(items)).all()
    assert (frame["way"] == "sampled").sum() == 2 * len(items)
    # The letters are those with the highest recorded logit.
    best = run.options.loc[run.options.groupby("item", sort=False)["logit"].idxmax()].set_index("item")["option"]
    letters = frame[frame["way"] == "logits"].set_index("item")["letter"]
    assert letters.tolist() == best.loc[letters.index].tolist()
    by_text = frame[frame["way"] == "string"].set_index("item")
    for item, scores in zip(items[:3], text_scores(vlm, list(items[:3])), strict=True):
        assert by_text.loc[item.id, "letter"] == item.options[int(scores.argmax())].label
        shares = np.exp(scores) / np.exp(scores).sum()
        at = "ABCD".index(item.truth)
        assert by_text.loc[item.id, "prob_truth"] == pytest.approx(shares[at], rel=1e-5)
    lengths = frame[frame["way"] == "string_per_byte"].set_index("item")
    first = items[0]
    scores = text_scores(vlm, [first])[0] / [len(o.text) for o in first.options]
    assert lengths.loc[first.id, "letter"] == first.options[int(scores.argmax())].label
    # Nonsense of two tokens names no letter.
    assert set(frame.loc[frame["way"] == "written", "outcome"]) <= {"unreadable", "right", "wrong"}
    scored = spacenum_scores(found, n_boot=20)
    assert len(scored.missing()) == 20 - 6
    assert scored.to_frame().set_index(["way", "key"]).loc[("logits", "num2space 2D D"), "n"] == 2


def test_other_weights_and_other_draws_are_refused(vlm, items, run):
    with pytest.raises(ValueError, match="other weights than those of"):
        choices(run, vlm=toy_vlm(seed=1))
    some = dx.sample_answers(vlm, items[1:], max_new_tokens=1)
    with pytest.raises(ValueError, match="1 items have no drawn answer, the first is"):
        choices(run, sampled=some)


def test_options_without_a_text_are_read_by_letter_alone(vlm, items, tmp_path):
    from dataclasses import replace

    bare = replace(items[0], options=tuple(replace(o, text=None) for o in items[0].options))
    run = dx.record(vlm, Items([bare]), tmp_path / "run", roles=("answer",), layers=[0], answers=False, progress=False)
    assert choices(run, vlm=vlm, n_boot=5).ways == ("logits",)
