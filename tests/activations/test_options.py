"""Option logits against separate, full forward passes."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from deixis.activations.options import form_tokens, need_whole_strings, option_logits
from deixis.activations.passes import PromptPass
from deixis.benchmarks import Item, Option
from deixis.models import VLM
from tests.activations.test_passes import full_logits
from tests.toys import SHARED_START, THIS_THAT, toy_item, toy_items, toy_vlm


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@torch.no_grad()
def scored(vlm: VLM, items: Sequence[Item]) -> list[list[float]]:
    scores = option_logits(PromptPass.run(vlm, vlm.prepare(items)), items)
    vlm.reset()
    return scores


def logsumexp(values: Sequence[float]) -> float:
    return float(np.log(np.sum(np.exp(np.array(values, np.float64)))))


def test_an_option_gathers_the_distinct_first_tokens_of_its_forms(vlm: VLM) -> None:
    items = [toy_item(number, options=THIS_THAT) for number in range(3)]
    for item, found in zip(items, scored(vlm, items), strict=True):
        logits = full_logits(vlm, item, [])[0].numpy()
        for option, value in zip(THIS_THAT, found, strict=True):
            firsts = {vlm.tokenizer(form, add_special_tokens=False).input_ids[0] for form in option.forms}
            assert value == pytest.approx(logsumexp([logits[token] for token in firsts]), abs=1e-4)


def test_a_form_given_twice_counts_once(vlm: VLM) -> None:
    twice = Option(label="that", forms=("That", " that", "That"))
    assert scored(vlm, [toy_item(0, options=(THIS_THAT[0], twice))]) == scored(vlm, [toy_item(0, options=THIS_THAT)])


def test_options_that_share_a_first_token_are_scored_as_whole_strings(vlm: VLM) -> None:
    assert need_whole_strings(vlm, SHARED_START)
    assert not need_whole_strings(vlm, THIS_THAT)
    items = [toy_item(number, options=SHARED_START if number % 2 else THIS_THAT) for number in range(4)]
    found = scored(vlm, items)
    for item, values in zip(items, found, strict=True):
        if item.options != SHARED_START:
            continue
        for option, value in zip(SHARED_START, values, strict=True):
            parts = []
            for form in option.forms:
                tokens = vlm.tokenizer(form, add_special_tokens=False).input_ids
                steps = full_logits(vlm, item, tokens)[:-1].double().log_softmax(dim=-1)
                parts.append(sum(float(steps[at, token]) for at, token in enumerate(tokens)))
            assert value == pytest.approx(logsumexp(parts), abs=1e-3)
    assert found[1][0] != pytest.approx(found[1][1], abs=0.1)


def test_one_token_strings_have_the_log_probability_of_the_token(vlm: VLM) -> None:
    """Scored as strings because two options are the same token's; the first pass alone says what they must be."""
    options = (Option(label="a", forms=("This",)), Option(label="b", forms=("This that",)))
    item = toy_item(0, options=options)
    token = vlm.tokenizer("This", add_special_tokens=False).input_ids
    assert len(token) == 1
    expected = float(full_logits(vlm, item, [])[0].double().log_softmax(dim=-1)[token[0]])
    assert scored(vlm, [item])[0][0] == pytest.approx(expected, abs=1e-4)
    assert scored(vlm, [item])[0][1] < expected


def test_a_form_within_another_is_not_counted_again(vlm: VLM) -> None:
    kept = form_tokens(vlm, Option(label="this", forms=("This that", "This", " this", "This")))
    assert kept == sorted({vlm.form_tokens("This"), vlm.form_tokens(" this")}, key=lambda tokens: (len(tokens), tokens))


def test_an_option_that_begins_with_space_alone_is_scored_as_a_string(vlm: VLM) -> None:
    spaced = Option(label="odd", forms=("   this",))
    assert vlm.first_tokens(spaced) == ()
    assert need_whole_strings(vlm, (spaced, THIS_THAT[1]))
    assert np.isfinite(scored(vlm, [toy_item(0, options=(spaced, THIS_THAT[1]))])).all()


def test_a_batch_scores_as_single_items_do(vlm: VLM) -> None:
    items = list(toy_items(5))
    together = scored(vlm, items)
    for item, values in zip(items, together, strict=True):
        np.testing.assert_allclose(scored(vlm, [item])[0], values, atol=1e-4)
