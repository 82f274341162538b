"""Language tables hold what the benchmark needs of them."""

import pytest

from deixis.benchmarks.languages import TERMS, language, languages
from deixis.benchmarks.memory_game import COLOURS, SHAPES

TABLES = languages().values()


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.code)
def test_every_table_names_all_colours_shapes_terms_and_regions(table):
    assert set(table.colours) == set(COLOURS)
    assert set(table.shapes) == set(SHAPES)
    terms = [option.term for option in table.demonstrative.options]
    assert terms == [term for term in TERMS if term in terms]
    assert {"proximal", "distal"} <= set(terms)
    assert [option.value for option in table.distance.options] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.code)
def test_every_option_has_its_form_with_and_without_a_leading_space(table):
    for option in (*table.demonstrative.options, *table.distance.options):
        bare = {form for form in option.forms if not form.startswith(" ")}
        assert set(option.forms) == bare | {f" {form}" for form in bare}
        assert option.label in bare


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.code)
def test_the_prompt_names_every_option_and_forms_mean_one_thing(table):
    for question in (table.demonstrative, table.distance):
        forms = [form for option in question.options for form in option.forms]
        assert len(forms) == len(set(forms))
        for option in question.options:
            assert any(form in question.prompt for form in option.forms)


def test_the_number_of_terms_is_that_of_the_study():
    assert {table.code: len(table.demonstrative.options) for table in TABLES} == {"en": 2, "ja": 3, "ko": 3, "zh": 2}
    assert language("ja").demonstrative_of("medial") == "その"
    assert language("en").demonstrative_of("medial") is None


def test_the_english_prompt_is_the_published_one():
    prompt = language("en").demonstrative.prompt
    assert prompt.startswith("Analyze the image and identify the shape on the disk. Describe it by filling in")
    assert prompt.endswith("Do not include a period or any introductory text.")


def test_an_unknown_language_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="language='xx' is not one of: 'en', 'ja', 'ko', 'zh'"):
        language("xx")
