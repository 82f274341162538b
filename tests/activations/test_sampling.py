"""Drawn answers: the distribution is transformers' own, and each answer depends on its own item alone."""

import numpy as np
import pytest
from scipy.stats import chisquare

import deixis as dx
from deixis.activations.sampling import COLUMNS, drawn_from, sample_answers
from deixis.benchmarks import Items
from tests.toys import toy_items, toy_vlm


@pytest.fixture(scope="module")
def vlm():
    return toy_vlm()


@pytest.fixture(scope="module")
def items():
    return Items(toy_items(4))


def first_token_shares(vlm, item, **how):
    """Of the first answer token, from the scores that generate draws from."""
    vlm.reset()
    made = vlm.model.generate(
        **vlm.prepare([item]), do_sample=True, max_new_tokens=1, output_scores=True, return_dict_in_generate=True, **how
    )
    vlm.reset()
    return made.scores[0][0].softmax(-1).double().numpy()


def test_first_tokens_follow_the_distribution_that_generate_draws_from(vlm, items):
    how = {"temperature": 0.7, "top_p": 0.9, "top_k": 5}
    shares = first_token_shares(vlm, items[0], **how)
    assert 2 <= (shares > 0).sum() <= 5
    n = 400
    found = sample_answers(vlm, items[:1], n, max_new_tokens=1, seed=3, **how)
    said = {vlm.tokenizer.decode([k], skip_special_tokens=True): shares[k] for k in np.flatnonzero(shares)}
    counts = [found.answers[0].count(text) for text in said]
    assert sum(counts) == n
    assert chisquare(counts, n * np.array(list(said.values()))).pvalue > 0.001


def test_an_answer_depends_on_its_seed_item_and_draw_alone(vlm, items):
    all_of_them = sample_answers(vlm, items, 2, temperature=2.0, max_new_tokens=4)
    alone = sample_answers(vlm, items, 2, temperature=2.0, max_new_tokens=4, batch_size=1)
    assert alone.answers == all_of_them.answers
    assert sample_answers(vlm, items[2:], 2, temperature=2.0, max_new_tokens=4).answers == all_of_them.answers[2:]
    assert len({answer for drawn in all_of_them.answers for answer in drawn}) > 4
    assert sample_answers(vlm, items, 2, temperature=2.0, max_new_tokens=4, seed=1).answers != all_of_them.answers


def test_the_likeliest_token_alone_is_the_greedy_answer(vlm, items, tmp_path):
    run = dx.record(vlm, items, tmp_path / "run", roles=("answer",), max_new_tokens=4, progress=False)
    greedy = sample_answers(vlm, items, top_k=1, max_new_tokens=4)
    assert [drawn[0] for drawn in greedy.answers] == run.answers
    cold = sample_answers(vlm, items, temperature=1e-4, max_new_tokens=4)
    assert cold.answers == greedy.answers
    frame = greedy.to_frame()
    assert tuple(frame) == COLUMNS
    assert frame["item"].tolist() == [item.id for item in items]
    assert "4 items, 1 draws each" in repr(greedy)


def test_a_token_is_drawn_by_its_part_of_the_unit_interval():
    shares = np.array([0.0, 0.25, 0.0, 0.5, 0.25])
    assert [drawn_from(shares, at) for at in (0.0, 0.24, 0.26, 0.74, 0.76, np.nextafter(1, 0))] == [1, 1, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"temperature": 0.0}, "temperature=0.0 must be above 0"),
        ({"top_p": 0.0}, "top_p=0.0 must be above 0 and at most 1"),
        ({"top_p": 1.5}, "top_p=1.5 must be above 0 and at most 1"),
        ({"top_k": 0}, "top_k=0 must be at least 1"),
        ({"n": 0}, "n=0 must be at least 1"),
        ({"max_new_tokens": 0}, "max_new_tokens=0 must be at least 1"),
    ],
)
def test_what_cannot_be_drawn_from_is_refused(vlm, items, how, told):
    with pytest.raises(ValueError, match=told):
        sample_answers(vlm, items, **how)
