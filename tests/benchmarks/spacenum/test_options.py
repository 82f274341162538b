"""Letters: balanced, complete, and moving with what they stand for."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from deixis.benchmarks import Box, Item, Items, cyclic_permutations
from deixis.benchmarks.images import UniformImage
from deixis.benchmarks.spacenum.options import balanced_letters, letter_forms, lettered, lettered_pictures, with_option_texts
from deixis.benchmarks.spacenum.prompts import option_lines, transition_prompt

TEXTS = ("50 degrees", "60 degrees", "30 degrees", "10 degrees")
VALUES = (50.0, 60.0, 30.0, 10.0)
KINDS = ("correct", "less_correct", "less_wrong", "wrong")


def space2num(right_at: int = 1) -> Item:
    options = lettered(TEXTS, VALUES, KINDS, right_at, np.random.default_rng(3))
    return Item(
        id="spacenum/s/transition-space2num",
        benchmark="spacenum",
        task="transition-space2num",
        language="en",
        images=(UniformImage(width=8, height=8, grey=1), UniformImage(width=8, height=8, grey=2)),
        prompt=transition_prompt("space2num", "rotate left", None, options.options, 2),
        options=options.options,
        truth=options.truth,
        groups={"scene": "s", "letter": options.truth, "permutation": "0"},
        facts={"magnitudes": [VALUES[k] for k in options.order], "poses": [[0.0], [50.0]]},
    )


def num2space(right_at: int = 2) -> Item:
    found = lettered_pictures(4, 2, VALUES, KINDS, right_at, np.random.default_rng(5))
    angles = [0.0, *(VALUES[k] for k in found.order)]
    return replace(
        space2num(),
        id="spacenum/s/transition-num2space",
        task="transition-num2space",
        images=tuple(UniformImage(width=8, height=8, grey=int(angle)) for angle in angles),
        prompt=transition_prompt("num2space", "rotate left", "50 degrees", found.options, 5),
        options=found.options,
        truth=found.truth,
        groups={"scene": "s", "letter": found.truth, "permutation": "0"},
        objects=tuple(Box(name=f"at {a:g}", left=a, top=0.0, right=a + 1, bottom=1.0, image=k) for k, a in enumerate(angles)),
        facts={"magnitudes": angles[1:], "poses": angles},
    )


def test_the_right_one_gets_its_letter_and_nothing_is_lost():
    for right_at in range(4):
        found = lettered(TEXTS, VALUES, KINDS, right_at, np.random.default_rng(right_at))
        assert found.truth == "ABCD"[right_at]
        assert [o.label for o in found.options] == list("ABCD")
        assert sorted(found.order) == [0, 1, 2, 3]
        told = {(o.text, o.value, o.kind) for o in found.options}
        assert told == set(zip(TEXTS, VALUES, KINDS, strict=True))
        assert [o.text for o in found.options] == [TEXTS[k] for k in found.order]


def test_distractors_are_shuffled_so_that_the_letter_does_not_tell_the_rank():
    kinds = Counter(lettered(TEXTS, VALUES, KINDS, 0, np.random.default_rng(k)).options[1].kind for k in range(300))
    assert set(kinds) == set(KINDS[1:])
    assert min(kinds.values()) > 70
    assert [o.kind for o in lettered(TEXTS, None, KINDS).options] == list(KINDS), "without a generator they keep their order"


def test_no_form_of_a_letter_begins_like_anothers():
    firsts = [{form.strip()[0] for form in letter_forms(letter)} for letter in "ABCD"]
    assert firsts == [{"A"}, {"B"}, {"C"}, {"D"}]


@pytest.mark.parametrize(
    ("texts", "right_at", "message"),
    [
        (("0.4 meters", "0.4 meters"), 0, "two options read '0.4 meters'; choose values that differ as they are written"),
        (("a",), 0, "1 options were given, where letters need 2 to 26"),
        (("a", "b"), 2, "right_at=2 is no place among 2 options; use 0 to 1"),
        (("a", "b"), -1, "right_at=-1 is no place"),
    ],
)
def test_options_that_make_no_question_are_refused(texts, right_at, message):
    with pytest.raises(ValueError, match=message):
        lettered(texts, right_at=right_at)


def test_letters_are_balanced_in_every_prefix_and_the_first_do_not_depend_on_how_many_follow():
    letters = balanced_letters(400, 4, np.random.default_rng(0))
    assert letters[:37] == balanced_letters(37, 4, np.random.default_rng(0))
    for n in range(1, 401):
        counts = Counter(letters[:n])
        assert max(counts.values()) - min(counts.get(k, 0) for k in range(4)) <= 1
    assert Counter(letters) == {0: 100, 1: 100, 2: 100, 3: 100}
    blocks = {tuple(letters[k : k + 4]) for k in range(0, 400, 4)}
    assert len(blocks) > 15, "blocks are in random order"


def test_cyclic_permutations_put_the_right_answer_at_every_letter_once():
    items = cyclic_permutations(Items([space2num(), num2space()]))
    assert len(items) == 8
    assert items[0].id == "spacenum/s/transition-space2num"
    assert items[3].id == "spacenum/s/transition-space2num/p3"
    for task in ("transition-space2num", "transition-num2space"):
        mine = items.filter(lambda item, task=task: item.task == task)
        assert [item.truth for item in mine] in (["B", "C", "D", "A"], ["C", "D", "A", "B"])
        assert [item.groups["letter"] for item in mine] == [item.truth for item in mine]
        assert [item.groups["permutation"] for item in mine] == ["0", "1", "2", "3"]


def test_in_space2num_the_texts_move_in_the_prompt_and_the_pictures_stay():
    original = space2num()
    for item in cyclic_permutations(Items([original])):
        listed = dict(re.findall(r"^([A-D])\. (.*)$", item.prompt, re.M))  # read from the prompt, as a model would
        assert listed == {option.label: option.text for option in item.options}
        assert listed[item.truth] == "50 degrees"
        assert item.images == original.images
        assert item.facts["poses"] == original.facts["poses"]
        assert item.facts["magnitudes"] == [float(text.split()[0]) for text in listed.values()]
        assert {o.text: o.kind for o in item.options} == dict(zip(TEXTS, KINDS, strict=True))
        assert re.sub(r"\d+ degrees", "", item.prompt) == re.sub(r"\d+ degrees", "", original.prompt)


def test_in_num2space_the_pictures_move_with_boxes_and_facts_and_the_prompt_stays():
    original = num2space()
    for item in cyclic_permutations(Items([original])):
        assert item.prompt == original.prompt
        assert [o.text for o in item.options] == ["Image 2", "Image 3", "Image 4", "Image 5"]
        greys = [image.load().getpixel((0, 0))[0] for image in item.images]
        assert greys == item.facts["poses"]
        assert greys[1:] == item.facts["magnitudes"] == [o.value for o in item.options]
        assert greys[0] == 0, "the view before stays the first"
        right = next(o for o in item.options if o.label == item.truth)
        assert greys[int(right.text.split()[1]) - 1] == 50 == right.value
        assert right.kind == "correct"
        assert {(box.image, box.left) for box in item.objects} == {(k, float(grey)) for k, grey in enumerate(greys)}


def test_four_shifts_of_one_lead_back_to_the_item():
    item = space2num()
    for _ in range(4):
        shifted = cyclic_permutations(Items([item]))[1]
        item = replace(shifted, id="x", groups={**shifted.groups, "permutation": "0"})
    assert replace(item, id=space2num().id) == space2num()


def test_a_permutation_is_not_permuted_again():
    with pytest.raises(ValueError, match="is permutation 1 already; start from the first ones"):
        cyclic_permutations(cyclic_permutations(Items([space2num()]))[1:2])


def test_items_without_letters_or_without_a_list_of_options_are_refused():
    item = space2num()
    bare = replace(item, options=tuple(replace(o, text=None) for o in item.options))
    with pytest.raises(ValueError, match="has options without a text behind a letter; permute items of multiple choice only"):
        cyclic_permutations(Items([bare]))
    with pytest.raises(ValueError, match="the prompt does not list its options as 'A"):
        cyclic_permutations(Items([replace(item, prompt="How far?")]))


@pytest.mark.parametrize("form", ["A. x; B. y", "(A) x\n(B) y", "A) x, B) y", "A: x | B: y"])
def test_lists_of_options_are_found_in_every_usual_form(form):
    item = replace(space2num(), options=lettered(("x", "y")).options, truth="A", prompt=f"Is it x? {form}. Say A or B.")
    assert with_option_texts(item, ["y", "x"]) == f"Is it x? {form.translate(str.maketrans('xy', 'yx'))}. Say A or B."


def test_the_list_is_what_the_prompt_function_writes():
    item = space2num()
    assert option_lines(item.options) in item.prompt
