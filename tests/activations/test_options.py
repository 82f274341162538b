"""Option logits against separate, full forward passes."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

from deixis.activations.options import StringTree, check_forms, need_whole_strings, option_logits
from deixis.activations.passes import PromptPass
from deixis.benchmarks import Item, Option
from deixis.models import VLM
from tests.activations.test_passes import full_logits
from tests.toys import SHARED_START, THIS_THAT, toy_item, toy_items, toy_vlm


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@torch.no_grad()
def scored(vlm: VLM, items: Sequence[Item], whole: bool | None = None) -> list[list[float]]:
    scores = option_logits(PromptPass.run(vlm, vlm.prepare(items)), items, whole=whole)
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


def strings_log_prob(vlm: VLM, item: Item, text: str) -> float:
    """Log probability that the answer begins with ``text``, by full forward passes."""
    tokens = vlm.tokenizer(text, add_special_tokens=False).input_ids
    steps = full_logits(vlm, item, tokens)[:-1].double().log_softmax(dim=-1)
    return sum(float(steps[at, token]) for at, token in enumerate(tokens))


def test_a_shorter_option_does_not_include_the_longer_one(vlm: VLM) -> None:
    options = (Option(label="a", forms=("This",)), Option(label="b", forms=("This that",)))
    item = toy_item(0, options=options)
    short, long = (strings_log_prob(vlm, item, text) for text in ("This", "This that"))
    found = scored(vlm, [item])[0]
    assert found == pytest.approx([np.log(np.exp(short) - np.exp(long)), long], abs=1e-3)


def test_what_follows_the_shorter_option_sums_to_what_it_scores(vlm: VLM) -> None:
    """Second route: every token of the vocabulary behind the shorter form, but for the one that makes it the longer."""
    options = (Option(label="a", forms=("This",)), Option(label="b", forms=("This that",)))
    item = toy_item(0, options=options)
    this, that = vlm.tokenizer("This that", add_special_tokens=False).input_ids
    steps = full_logits(vlm, item, [this]).double().log_softmax(dim=-1)
    others = [token for token in range(steps.shape[-1]) if token != that]
    assert scored(vlm, [item])[0][0] == pytest.approx(float(steps[0, this] + steps[1, others].logsumexp(0)), abs=1e-3)


def test_forms_nested_across_options_are_counted_where_they_end(vlm: VLM) -> None:
    options = (
        Option(label="a", forms=("this", "this red star")),
        Option(label="b", forms=("this red", "this red cross", "far")),
    )
    item = toy_item(1, options=options)
    prob = {text: np.exp(strings_log_prob(vlm, item, text)) for option in options for text in option.forms}
    a = prob["this"] - prob["this red"] + prob["this red star"]
    b = prob["this red"] - prob["this red star"] + prob["far"]  # "this red cross" is within "this red" already
    assert scored(vlm, [item])[0] == pytest.approx([np.log(a), np.log(b)], abs=1e-3)
    both = np.exp(scored(vlm, [item])[0]).sum()
    assert both == pytest.approx(prob["this"] + prob["far"], rel=1e-3)  # events that exclude each other and fill their union


def test_a_shorter_option_that_always_goes_on_to_be_the_longer_stays_finite() -> None:
    tree = StringTree(strings=((1,), (1, 2)), owner=(0, 1), above=(None, 0), n_options=2)
    found = tree.option_scores([-1.0, -1.0])
    assert np.isfinite(found).all()
    assert found[0] < found[1] - 10


def test_a_form_within_another_is_not_counted_again(vlm: VLM) -> None:
    item = toy_item(0, options=(Option(label="this", forms=("This that", "This", " this", "This")), THIS_THAT[1]))
    tree = StringTree.of(vlm, item)
    mine = [tokens for tokens, owner in zip(tree.strings, tree.owner, strict=True) if owner == 0]
    assert mine == sorted({vlm.form_tokens("This"), vlm.form_tokens(" this")}, key=lambda tokens: (len(tokens), tokens))


def test_a_form_of_two_options_is_refused_with_its_item(vlm: VLM) -> None:
    options = (Option(label="a", forms=("red", "This")), Option(label="b", forms=("This",)))
    with pytest.raises(ValueError, match="item 'toy/0': the options 'a' and 'b' share the surface form 'This'"):
        scored(vlm, [toy_item(0, options=options)])


def test_a_form_that_the_tokenizer_does_not_know_is_refused_with_its_item(vlm: VLM) -> None:
    words = Tokenizer(WordLevel({"[UNK]": 0, "this": 1, "that": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    small = replace(vlm, processor=SimpleNamespace(tokenizer=tokenizer))
    good = (Option(label="this", forms=("this",)), Option(label="that", forms=("that",)))
    check_forms(small, toy_item(2, options=good))
    item = toy_item(2, options=(good[0], Option(label="that", forms=("that", "yon"))))
    with pytest.raises(ValueError, match=r"item 'toy/2': the tokenizer of .* does not know the form 'yon' of the option 'that'"):
        check_forms(small, item)


def test_options_that_begin_with_a_part_of_a_character_are_scored_as_strings(vlm: VLM) -> None:
    """This tokenizer falls back to bytes: the first byte of a Korean syllable is that of thousands of others."""
    korean = (Option(label="near", forms=("이",)), Option(label="far", forms=("far",)))
    assert "\ufffd" in vlm.tokenizer.decode([vlm.first_tokens(korean[0])[0]])
    assert need_whole_strings(vlm, korean)
    item = toy_item(0, options=korean)
    assert scored(vlm, [item])[0][0] == pytest.approx(strings_log_prob(vlm, item, "이"), abs=1e-3)


@pytest.mark.parametrize("whole", [True, False])
def test_either_score_may_be_asked_for(vlm: VLM, whole: bool) -> None:
    item = toy_item(0, options=THIS_THAT)
    found = scored(vlm, [item], whole=whole)[0]
    logits = full_logits(vlm, item, [])[0].double()
    firsts = [list(vlm.first_tokens(option)) for option in THIS_THAT]
    expected = [float((logits.log_softmax(-1) if whole else logits)[tokens].logsumexp(0)) for tokens in firsts]
    assert found == pytest.approx(expected, abs=1e-3)  # one token each: the same up to a constant


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
