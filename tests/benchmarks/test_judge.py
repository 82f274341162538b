"""Every language table goes through the judge and comes back; doubtful answers are never right."""

from dataclasses import replace
from itertools import product

import pytest

from deixis.benchmarks import Item, Items, Option, memory_game
from deixis.benchmarks.judge import OPTION_OUTCOMES, TEMPLATE_OUTCOMES, can_judge, judge, plain
from deixis.benchmarks.languages import language, languages

CODES = tuple(languages())
ITEMS = {
    (i.task, i.language, i.groups["colour"], i.groups["shape"]): i
    for i in memory_game(tasks=("demonstrative", "distance"), languages=CODES, distances=(1.5,), size=64)
}


def item(code: str, colour: str = "red", shape: str = "star", task: str = "demonstrative") -> Item:
    return ITEMS[task, code, colour, shape]


def phrases(code: str):
    """Every way in which the table can fill the template, with what it means."""
    table = language(code)
    colours = [(key, word) for key, words in table.colours.items() for word in words]
    shapes = [(key, word) for key, words in table.shapes.items() for word in words]
    for option, (colour, a), (shape, b) in product(table.demonstrative.options, colours, shapes):
        yield option, colour, a, shape, b


def ordered(code: str, term: str, colour: str, shape: str) -> tuple[str, str, str]:
    """The three words as the language's template has them."""
    return (term, colour, shape) if language(code).colour_first else (term, shape, colour)


@pytest.mark.parametrize("code", CODES)
def test_every_term_colour_shape_and_synonym_is_recognised(code):
    for option, colour, a, shape, b in phrases(code):
        for form in option.forms:
            verdict = judge(" ".join(ordered(code, form, a, b)), item(code, colour, shape))
            assert (verdict.outcome, verdict.right) == ("recognised", True), (form, a, b)
            assert (verdict.term, verdict.colour, verdict.shape) == (option.term, colour, shape), (form, a, b)
            assert verdict.option == option.label


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    "dress", ["{} {} {}.", "  {}　{}　{}。", "「{}」「{}」「{}」", "**{} {} {}**", "{}{}{}", "[{}] [{}] [{}] ⭐", "{}\n{}\t{}"]
)
def test_signs_spaces_and_capitals_do_not_change_the_reading(code, dress):
    for option, colour, a, shape, b in phrases(code):
        dressed = dress.format(*ordered(code, option.label, a, b))
        for text in (dressed, dressed.upper()):
            verdict = judge(text, item(code, colour, shape))
            assert (verdict.outcome, verdict.term) == ("recognised", option.term), text


@pytest.mark.parametrize("code", CODES)
def test_another_colour_or_shape_of_the_table_is_wrong_and_named(code):
    wanted = item(code, "red", "star")
    for option, colour, a, shape, b in phrases(code):
        expected = "wrong_colour" if colour != "red" else "wrong_shape" if shape != "star" else "recognised"
        verdict = judge(" ".join(ordered(code, option.label, a, b)), wanted)
        assert (verdict.outcome, verdict.term, verdict.colour, verdict.shape) == (expected, option.term, colour, shape)


@pytest.mark.parametrize("code", CODES)
def test_no_word_means_two_things_within_its_language(code):
    table = language(code)
    words = [plain(word) for words in (*table.colours.values(), *table.shapes.values()) for word in words]
    words += [plain(option.label) for option in table.demonstrative.options]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("code", "answer", "outcome"),
    [
        ("en", "ｔｈｉｓ　ｒｅｄ　ｓｔａｒ．", "recognised"),
        ("en", "This purple star", "wrong_colour"),
        ("en", "This red hexagon", "wrong_shape"),
        ("en", "This purple hexagon", "wrong_colour"),
        ("en", "this blue cross", "wrong_colour"),
        ("en", "This star red", "wrong_format"),
        ("en", "This That red star", "wrong_format"),
        ("en", "this red star and a blue cross", "wrong_format"),
        ("en", "The red star", "wrong_format"),
        ("en", "These red stars", "wrong_format"),
        ("en", "This is a red star", "wrong_format"),
        ("en", "This", "wrong_format"),
        ("en", "this red", "wrong_format"),
        ("en", "This this this", "wrong_format"),
        ("en", "", "unreadable"),
        ("en", " \n\t　", "unreadable"),
        ("en", "⭐🔴", "unreadable"),
        ("en", "この 赤い 星", "unreadable"),
        ("en", "thistle redder starling", "unreadable"),
        ("en", "I cannot help with it", "unreadable"),
        ("en", "\u200bThis red\u200d star\ufeff", "recognised"),
        ("ja", "この赤い星", "recognised"),
        ("ja", "この 赤い星です", "wrong_format"),
        ("ja", "この紫の星", "wrong_colour"),
        ("ja", "この赤い六角形", "wrong_shape"),
        ("ja", "この赤い星と青い十字", "wrong_format"),
        ("ja", "このその赤い星", "wrong_format"),
        ("ja", "円盤の上に星があります", "wrong_format"),
        ("ja", "this red star", "unreadable"),
        ("zh", "这个红色星形", "recognised"),
        ("zh", "这个红色的五角星。", "recognised"),
        ("zh", "这个紫色星形", "wrong_colour"),
        ("zh", "红色星形", "wrong_format"),
        ("zh", "对不起", "unreadable"),
        ("ko", "이 빨간색의 별.", "recognised"),
        ("ko", "이 빨간 별 모양", "recognised"),
        ("ko", "저는 모르겠습니다", "unreadable"),
        ("ko", "이 보라색 별", "wrong_colour"),
        ("ko", "이 그 빨간 별", "wrong_format"),
        ("es", "Esta estrella roja.", "recognised"),
        ("es", "¡Aquella estrella roja!", "recognised"),
        ("es", "Este estrella rojo", "recognised"),  # the wrong gender leaves no doubt about the term
        ("es", "Esta roja estrella", "wrong_format"),
        ("es", "Esto es una estrella roja", "wrong_format"),
        ("es", "Esta estrella morada", "wrong_colour"),
        ("es", "Esta cruz roja", "wrong_shape"),
        ("es", "this red star", "unreadable"),
        ("it", "Quella stella rossa", "recognised"),
        ("it", "quel stella rossa", "recognised"),
        ("it", "Questa rossa stella", "wrong_format"),
        ("it", "Questa stella viola", "wrong_colour"),
        ("it", "Codesta stella rossa", "wrong_format"),
        ("fi", "Tämä punainen tähti.", "recognised"),
        ("fi", "tuo punainen tähti", "recognised"),
        ("fi", "Se punainen tähti", "wrong_format"),
        ("fi", "TÄMÄ PUNAINEN TÄHTI", "recognised"),
        ("fi", "Tämä violetti tähti", "wrong_colour"),
        ("de", "Dieser rote Stern", "recognised"),
        ("de", "jenen roten Stern", "recognised"),
        ("de", "Dieses Rote Stern", "recognised"),
        ("de", "Der rote Stern da", "wrong_format"),
        ("de", "Dieser lila Stern", "wrong_colour"),
        ("de", "Dieser rote Kreis", "wrong_shape"),
    ],
)
def test_a_doubtful_answer_falls_into_its_class(code, answer, outcome):
    verdict = judge(answer, item(code))
    assert verdict.outcome == outcome
    assert verdict.right == (outcome == "recognised")


def test_an_answer_that_says_two_things_names_neither():
    verdict = judge("This or that red star, or a blue star", item("en"))
    assert (verdict.outcome, verdict.term, verdict.colour, verdict.shape) == ("wrong_format", None, None, "star")


@pytest.mark.parametrize("code", CODES)
def test_a_very_long_answer_is_read_and_is_not_right(code):
    table = language(code)
    phrase = f"{table.demonstrative.options[0].label} {table.colours['red'][0]} {table.shapes['star'][0]} "
    assert judge(phrase * 20_000, item(code)).outcome == "wrong_format"
    assert judge("?" * 200_000, item(code)).outcome == "unreadable"


@pytest.mark.parametrize("code", CODES)
def test_every_form_of_a_distance_is_read_and_only_the_truth_is_right(code):
    asked = item(code, task="distance")
    assert asked.truth == language(code).distance.options[1].label
    for option in asked.options:
        for form in option.forms:
            for answer in (form, f"{form}.", f"「{form.strip()}」", form.upper()):
                verdict = judge(answer, asked)
                assert verdict.option == option.label, answer
                assert verdict.outcome == ("correct" if option.label == asked.truth else "wrong")
        assert judge("".join(o.label + " " for o in asked.options), asked).outcome == "unreadable"


@pytest.mark.parametrize(
    ("code", "answer", "outcome"),
    [
        ("en", "Middle distance", "correct"),
        ("en", "far away", "wrong"),
        ("en", "not far", "unreadable"),
        ("en", "farther", "unreadable"),
        ("en", "near the middle", "unreadable"),
        ("en", "中间", "unreadable"),
        ("zh", "中间。", "correct"),
        ("zh", "远近", "unreadable"),
        ("ja", "遠いです", "wrong"),
        ("ko", "중간에 있습니다", "correct"),
        ("ko", "", "unreadable"),
    ],
)
def test_a_distance_is_read_only_where_one_option_is_said(code, answer, outcome):
    verdict = judge(answer, item(code, task="distance"))
    assert verdict.outcome == outcome
    assert verdict.right == (outcome == "correct")


def test_numbers_are_read_whole():
    options = tuple(Option(label=label, forms=(label,)) for label in ("0.4", "4", "40"))
    asked = replace(item("en", task="distance"), options=options, truth="4")
    assert [judge(answer, asked).option for answer in ("0.4", "4", "40", "4 m", "404")] == ["0.4", "4", "40", "4", None]


def test_an_item_without_truth_or_figure_cannot_be_judged():
    asked = replace(item("en"), groups={"scene": "a"})
    assert not can_judge(asked)
    with pytest.raises(ValueError, match="has no truth, and no colour and shape"):
        judge("this red star", asked)


def test_every_outcome_of_both_tasks_is_declared():
    said = {
        judge(answer, i).outcome
        for i in Items(ITEMS.values())
        for answer in ("", "this red star", "near", "この赤い星 x", "青", "this")
    }
    assert said <= {*TEMPLATE_OUTCOMES, *OPTION_OUTCOMES}
