"""Letters in written answers, read by hand."""

import random
import time

import pytest

from deixis.benchmarks import Item, Option
from deixis.benchmarks.judge import judge
from deixis.benchmarks.judge_letters import is_lettered, read_letter, split_reasoning

PICTURES = tuple(
    Option(label=letter, forms=(letter,), text=f"Image {number}") for letter, number in zip("ABCD", (2, 3, 4, 5), strict=True)
)
MAPS = tuple(
    Option(label=letter, forms=(letter,), text=text)
    for letter, text in zip("ABCD", ("[(0.3, 0.2)]", "[(-0.3, 0.2)]", "[(0.3, -0.2)]", "[(1.3, 0.2)]"), strict=True)
)

READ = {
    "A": "A",
    "B": "B",
    "b": "B",
    " C \n": "C",
    "D.": "D",
    "(B)": "B",
    "[C]": "C",
    "(b)": "B",
    "B)": "B",
    "B:": "B",
    "**B**": "B",
    "**B.**": "B",
    "*(B)*": "B",
    "`B`": "B",
    '"B"': "B",
    "Ｂ": "B",
    "（Ｂ）": "B",
    "B.\n": "B",
    "B. Image 3": "B",
    "B Image 3": "B",
    "A Image 2": "A",
    "**B. Image 3**": "B",
    "(D) Image 5.": "D",
    "Image 4": "C",
    "image 4.": "C",
    "Answer: B": "B",
    "answer: b": "B",
    "Answer:\nB": "B",
    "ANSWER: (C)": "C",
    "**Answer:** B": "B",
    "Answer: B. Image 3": "B",
    "Final Answer: D": "D",
    "The answer is B.": "B",
    "The correct answer is **C**.": "C",
    "The correct option is (B)": "B",
    "The best choice would be option D.": "D",
    "Option B": "B",
    "Option B is correct.": "B",
    "B is correct": "B",
    "A is the correct answer": "A",
    "I choose C": "C",
    "I would select option A.": "A",
    "I'd go with D": "D",
    "I think it's B.": "B",
    "B, because the sofa moved to the left.": "B",
    "A because the lamp is larger": "A",
    "B\n\nThe camera turned by about a third of the view.": "B",
    "B\nB\nB": "B",
    "A chair appears on the left, so the answer is C.": "C",
    "Image 2 (A) moved too little and B too much, so the answer is C.": "C",
    "\\boxed{B}": "B",
    "The result is \\boxed{\\text{C}}.": "C",
    "$\\boxed{D}$": "D",
    "<answer>B</answer>": "B",
    "A or B? <answer>(B)</answer>": "B",
    "答案：B": "B",
    "答案是C。": "C",
    "正解はD": "D",
    "정답: A": "A",
    "<think>It could be A or B. The sofa moves little.</think>\n\nB": "B",
    "<think>Options A and C are out.</think>Answer: D": "D",
    "It could be A. Or B.\n</think>\n\n**C**": "C",
    "<think></think>B": "B",
    "◁think▷A? B?◁/think▷The answer is C": "C",
    "Answer: A": "A",
    "The answer is A": "A",
}
UNREADABLE = (
    "",
    "   ",
    ".",
    "E",
    "(F)",
    "Answer: E",
    "A or B",
    "A, B",
    "A/B",
    "A B",
    "B and C",
    "AB",
    "ABCD",
    "A, B, C, D",
    "Both A and C fit.",
    "The answer is A or B.",
    "Answer: A. Answer: B.",
    "The answer is A. Wait, actually B.",
    "The answer is not B.",
    "It isn't C.",
    "not D",
    "B is wrong",
    "A chair stands on the left.",
    "A large rotation to the right.",
    "Red near near",
    "This red star",
    "The camera turned by 50 degrees.",
    "B. Image 4",
    "(A) Image 3",
    "Image 7",
    "Images 2 and 3",
    "I don't know.",
    "<think>The sofa moves left, so B",
    "<think>It is B.</think><think>or is it",
    "\\boxed{A} or \\boxed{B}",
    "None of the above",
    "3D",
    "Z",
    "I am not sure.",
    "Can't tell from D",
    "答案：A或B",
)


def item(options=PICTURES, truth="B"):
    return Item(
        id="i",
        benchmark="spacenum",
        task="transition-num2space",
        language="en",
        images=(),
        prompt="?",
        options=options,
        truth=truth,
    )


@pytest.mark.parametrize("answer", list(READ))
def test_an_answer_that_leaves_no_doubt_is_read(answer):
    assert read_letter(answer, PICTURES) == READ[answer]


@pytest.mark.parametrize("answer", UNREADABLE)
def test_an_answer_that_leaves_doubt_is_not(answer):
    assert read_letter(answer, PICTURES) is None


def test_any_text_is_read_or_not_and_in_little_time():
    rng = random.Random(0)
    bits = [
        "A",
        "B",
        "answer",
        "is",
        ":",
        "(",
        ")",
        "\n",
        " ",
        "<think>",
        "</think>",
        "<answer>",
        "\\boxed{",
        "}",
        "not",
        "Image 3",
    ]
    texts = ["".join(rng.choices(bits, k=rng.randint(0, 40))) for _ in range(300)]
    texts += ["answer " + ":" * 5000, "answer:" * 1000, "A " * 3000, "\\boxed{" * 1000]  # what a collapsed model writes
    start = time.process_time()
    assert {read_letter(text, PICTURES) for text in texts} == {None, "A", "B"}
    assert time.process_time() - start < 3


def test_the_hand_made_list_is_long_enough_and_holds_every_class():
    assert len(READ) + len(UNREADABLE) >= 60
    assert set(READ.values()) == set("ABCD")


def test_a_minus_is_part_of_an_options_text():
    assert read_letter("[(0.3, 0.2)]", MAPS) == "A"
    assert read_letter("[(-0.3,0.2)]", MAPS) == "B"
    assert read_letter("C. [(0.3, \N{MINUS SIGN}0.2)]", MAPS) == "C"
    assert read_letter("C. [(0.3, 0.2)]", MAPS) is None


def test_a_letter_beyond_the_options_is_unreadable():
    assert read_letter("D", PICTURES[:2]) is None
    assert read_letter("B", PICTURES[:2]) == "B"


def test_reasoning_is_split_from_what_follows():
    assert split_reasoning("<think>left</think>B") == ("left", "B")
    assert split_reasoning("left</think>B") == ("left", "B")
    assert split_reasoning("B") == ("", "B")
    assert split_reasoning("<think>still") == ("still", None)


def test_items_with_letters_are_judged_by_letter():
    assert [judge(said, item()).outcome for said in ("Answer: B", "(C)", "B or C")] == ["correct", "wrong", "unreadable"]
    assert judge("Image 3", item()).option == "B"


def test_what_counts_as_a_multiple_choice():
    assert is_lettered(item())
    assert is_lettered(item(PICTURES[:2], "A"))
    assert not is_lettered(item(truth=None))
    assert not is_lettered(item(PICTURES[1:], "B"))
    words = (Option(label="near", forms=("near",)), Option(label="far", forms=("far",)))
    assert not is_lettered(item(words, "near"))
