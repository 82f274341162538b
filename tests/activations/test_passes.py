"""Written answers continue the prompt's own pass, and equal what the model writes on its own."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from deixis.activations.passes import PromptPass, written_answers
from deixis.benchmarks import Item
from deixis.models import FAMILIES, VLM
from tests.models.tiny import tiny_vlm
from tests.toys import grey, toy_image, toy_item, toy_items, toy_vlm

LENGTH = 12


@pytest.fixture
def vlm() -> VLM:
    return toy_vlm()


@pytest.fixture(scope="module")
def items() -> list[Item]:
    """Of different lengths, with no, one and two pictures: each row has its own padding and its own shift of positions."""
    pair = toy_item(20, images=(toy_image(1), grey(128)))
    bare = toy_item(21, images=(), objects=())
    return [*toy_items(4), pair, bare]


def generated(vlm: VLM, items: Sequence[Item]) -> list[str]:
    vlm.reset()
    inputs = vlm.prepare(items)
    tokens = vlm.model.generate(**inputs, do_sample=False, max_new_tokens=LENGTH)
    vlm.reset()
    return vlm.tokenizer.batch_decode(tokens[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


@torch.no_grad()
def written(vlm: VLM, items: Sequence[Item]) -> list[str]:
    state = PromptPass.run(vlm, vlm.prepare(items))
    answers = written_answers(state, LENGTH)
    vlm.reset()
    return answers


def test_answers_of_a_padded_batch_equal_those_that_generate_gives(vlm: VLM, items: list[Item]) -> None:
    answers = written(vlm, items)
    assert answers == generated(vlm, items)
    assert len(set(answers)) > 2


def test_answers_of_a_batch_equal_those_of_single_items(vlm: VLM, items: list[Item]) -> None:
    assert written(vlm, items) == [answer for item in items for answer in generated(vlm, [item])]


def test_a_padded_batch_without_pictures_continues_at_its_own_positions(vlm: VLM) -> None:
    bare = [toy_item(number, images=(), objects=()) for number in range(4)]
    assert vlm.prepare(bare)["attention_mask"].sum(dim=1).unique().numel() > 1
    singles = [answer for item in bare for answer in generated(vlm, [item])]
    assert written(vlm, bare) == singles == generated(vlm, bare)
    assert len(set(singles)) > 2


def test_an_answer_ends_where_the_model_ends_it(vlm: VLM, items: list[Item]) -> None:
    before = written(vlm, items)
    start = vlm.tokenizer(before[0], add_special_tokens=False).input_ids
    state = PromptPass.run(vlm, vlm.prepare(items))
    second = int(state.extended(state.logits.argmax(-1)[:, None])[0, -1].argmax())
    vlm.model.generation_config.eos_token_id = [vlm.tokenizer.eos_token_id, second]
    after = written(vlm, items)
    assert after == generated(vlm, items)
    assert len(after[0]) < len(before[0])
    assert len(start) > 2


def test_one_token_more_costs_one_step_more(vlm: VLM, items: list[Item]) -> None:
    steps: list[int] = []
    handle = vlm.model.register_forward_pre_hook(
        lambda _m, _a, kwargs: steps.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    with torch.no_grad():
        state = PromptPass.run(vlm, vlm.prepare(items))
        written_answers(state, 3)
    handle.remove()
    assert steps[1:] == [1, 1]  # the first token comes from the prompt's pass


@torch.no_grad()
def full_logits(vlm: VLM, item: Item, more: Sequence[int]) -> Tensor:
    """Logits behind the prompt and each further token, from one pass over all of them."""
    inputs = vlm.prepare([item])
    tail = torch.tensor([list(more)], dtype=torch.long)
    inputs["input_ids"] = torch.cat([inputs["input_ids"], tail], dim=1)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    inputs["mm_token_type_ids"] = torch.cat([inputs["mm_token_type_ids"], torch.zeros_like(tail)], dim=1)
    vlm.reset()
    logits = vlm.model(**inputs).logits[0, -1 - len(more) :]
    vlm.reset()
    return logits.float()


@torch.no_grad()
def test_copied_rows_continue_as_one_pass_would_and_leave_the_state_alone(vlm: VLM, items: list[Item]) -> None:
    state = PromptPass.run(vlm, vlm.prepare(items))
    before = state.cache.get_seq_length()
    rows, tails = [4, 0, 4], [[30, 40, 50], [60, 70, 80], [90, 100, 110]]
    logits = state.rows(rows).extended(torch.tensor(tails))
    for number, (row, tail) in enumerate(zip(rows, tails, strict=True)):
        torch.testing.assert_close(logits[number], full_logits(vlm, items[row], tail)[1:], rtol=1e-4, atol=1e-4)
    assert state.cache.get_seq_length() == before
    assert written_answers(state, LENGTH) == generated(vlm, items)


@pytest.mark.parametrize("architecture", FAMILIES)
@torch.no_grad()
def test_every_family_goes_on_from_its_cache_as_generate_does(architecture: str) -> None:
    """Texts of a padded batch, and the logits of copied rows over several tokens at once, against one token after the other."""
    vlm = tiny_vlm(architecture)
    items = [toy_item(0), toy_item(4)]
    assert vlm.prepare(items)["attention_mask"].sum(dim=1).unique().numel() == 2
    assert written(vlm, items) == [generated(vlm, [item])[0] for item in items]
    state = PromptPass.run(vlm, vlm.prepare(items))
    tail = torch.tensor([list(vlm.form_tokens("this star is far"))[:4]] * 3)
    at_once = state.rows([1, 0, 1]).extended(tail)
    one_by_one = state.rows([1, 0, 1])
    steps = torch.stack([one_by_one.extended(tail[:, [step]])[:, 0] for step in range(tail.shape[1])], dim=1)
    vlm.reset()
    torch.testing.assert_close(at_once, steps, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(at_once[0], at_once[2])
    assert float((at_once[0] - at_once[1]).abs().max()) > 1e-3
