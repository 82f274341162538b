"""Language tables hold what the benchmark needs of them."""

import math
import os

import numpy as np
import pytest

from deixis.benchmarks import memory_game
from deixis.benchmarks.judge import _words as judge_words
from deixis.benchmarks.judge import judge
from deixis.benchmarks.languages import TERMS, LanguageError, add_language, language, languages
from deixis.benchmarks.languages.table import PROMPTS
from deixis.benchmarks.memory_game import COLOURS, SHAPES
from deixis.benchmarks.saved import items_from_jsonl, items_to_jsonl
from deixis.benchmarks.words import plain

TABLES = languages().values()
NAMES = ("standard", "paraphrase-1", "paraphrase-2")


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
    terms = {table.code: len(table.demonstrative.options) for table in TABLES}
    assert {code: terms[code] for code in ("en", "ja", "ko", "zh")} == {"en": 2, "ja": 3, "ko": 3, "zh": 2}
    assert language("ja").demonstrative_of("medial") == "その"
    assert language("en").demonstrative_of("medial") is None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("es", {"proximal": {"este", "esta"}, "medial": {"ese", "esa"}, "distal": {"aquel", "aquella"}}),
        ("it", {"proximal": {"questo", "questa"}, "distal": {"quello", "quel", "quella"}}),
        ("fi", {"proximal": {"tämä"}, "distal": {"tuo"}}),
        ("de", {"proximal": {"dieser", "diese", "dieses", "diesen", "dies"}, "distal": {"jener", "jene", "jenes", "jenen"}}),
    ],
)
def test_demonstratives_of_the_further_languages_have_their_genders_and_cases(code, expected):
    options = language(code).demonstrative.options
    assert {o.term: {form.strip().lower() for form in o.forms} for o in options} == expected


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.code)
def test_no_wording_names_a_demonstrative_outside_its_listing(table):
    """A prompt that itself says "in this order" would put one of the terms before the model."""
    forms = {plain(form) for option in table.demonstrative.options for form in option.forms}
    for wording in table.demonstrative.wordings:
        bare = plain(wording.replace("{terms}", " "))
        # 这三个词 is "these three words", そのまま "as it is": other words that the standard prompts hold.
        bare = bare.replace("这三个词", "").replace("そのまま", "")
        assert not (forms & set(bare.split()) if table.spaced else [form for form in forms if form in bare])


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.code)
def test_every_order_lists_every_option_once(table):
    for task in ("demonstrative", "distance"):
        question = table.question(task)
        found = {}
        for name in PROMPTS:
            prompt = question.prompt_of(name)
            begin = min(question.wordings[k].index("{terms}") for k in range(3) if name.startswith(NAMES[k]))
            at = [prompt.index(question.listing.each.replace("{}", said), begin) for said in question.listing.names]
            assert "{" not in prompt
            found.setdefault(name.partition(":")[0], set()).add(tuple(np.argsort(at)))
        n = len(question.options)
        assert {len(orders) for orders in found.values()} == {math.factorial(n)}
        assert len({question.prompt_of(name) for name in PROMPTS}) == 3 * math.factorial(n)


def test_an_order_is_spelt_by_the_terms_initials():
    assert "「あの」「この」「その」のいずれか" in language("ja").demonstrative.prompt_of("standard:dpm")
    assert 'Use "That" or "This" for' in language("en").demonstrative.prompt_of("standard:dpm")
    assert 'usa "Aquel/Aquella", "Ese/Esa" o "Este/Esta" como' in language("es").demonstrative.prompt_of("standard:dmp")
    assert "from you: far, near or middle?" in language("en").distance.prompt_of("standard:dpm")
    assert "离你有多远：远、近还是中？" in language("zh").distance.prompt_of("standard:dpm")


def test_the_english_prompt_is_the_published_one():
    prompt = language("en").demonstrative.prompt
    assert prompt.startswith("Analyze the image and identify the shape on the disk. Describe it by filling in")
    assert prompt.endswith("Do not include a period or any introductory text.")


def test_an_unknown_language_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="language='xx' is not one of: 'de', 'en', 'es', 'fi', 'it', 'ja', 'ko', 'zh'; use"):
        language("xx")


DUTCH = """
name = "Dutch"
spaced = true

[demonstrative]
prompt = "Beschrijf de vorm op de schijf met {terms}, een kleur en een vorm."
paraphrases = ["Noem de vorm op de schijf: {terms}, kleur, vorm.", "Wat ligt er op de schijf? Begin met {terms}."]
each = "'{}'"
between = ", "
last = " of "

[[demonstrative.options]]
term = "proximal"
words = ["deze", "dit"]
listed = "Deze/Dit"

[[demonstrative.options]]
term = "distal"
words = ["die", "dat"]

[distance]
prompt = "Hoe ver is de schijf: {terms}?"
paraphrases = ["Hoe ver weg? {terms}", "Kies: {terms}"]
each = "{}"
between = ", "
last = " of "

[[distance.options]]
region = 1
words = ["dichtbij"]

[[distance.options]]
region = 2
words = ["halverwege"]

[[distance.options]]
region = 3
words = ["ver weg", "ver"]

[colours]
black = ["zwarte", "zwart"]
blue = ["blauwe", "blauw"]
green = ["groene", "groen"]
red = ["rode", "rood"]

[shapes]
circle = ["cirkel"]
cross = ["kruis"]
square = ["vierkant"]
star = ["ster"]
triangle = ["driehoek"]
"""


@pytest.fixture(autouse=True)
def no_added_tables(monkeypatch):
    """What a test adds is gone after it."""
    monkeypatch.setattr("deixis.benchmarks.languages._added", {})
    yield
    judge_words.cache_clear()


@pytest.fixture
def dutch(tmp_path):
    path = tmp_path / "nl.toml"
    path.write_text(DUTCH, "utf-8")
    return path


def test_a_table_of_your_own_is_a_language_by_its_path(dutch):
    (item, *_) = items = memory_game(languages=("en", str(dutch)), shapes=("star",), colours=("red",), distances=(1.5,))
    assert [i.language for i in items] == ["en", "nl"]
    dutch_item = items[1]
    assert dutch_item.id.endswith("/nl")
    assert dutch_item.prompt == "Beschrijf de vorm op de schijf met 'Deze/Dit' of 'die', een kleur en een vorm."
    assert judge("Deze rode ster.", dutch_item).right
    assert judge("Dat rode kruis", dutch_item).outcome == "wrong_shape"
    assert judge("This red star", item).right
    assert language("nl") == language(dutch)
    assert languages()["nl"].name == "Dutch"


def test_another_program_finds_the_table_through_the_environment(dutch, monkeypatch):
    with pytest.raises(ValueError, match=r"language='nl' is not one of.* name its folder in \$DEIXIS_LANGUAGES"):
        language("nl")
    monkeypatch.setenv("DEIXIS_LANGUAGES", os.pathsep.join(["/no/such/folder", str(dutch.parent)]))
    assert language("nl").name == "Dutch"
    with pytest.raises(ValueError, match=r"language='\.\./nl' is not one of"):
        language("../nl")


def test_a_table_is_read_once_and_another_of_its_name_is_refused(dutch, tmp_path):
    assert add_language(dutch) is add_language(dutch)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "nl.toml"
    other.write_text(DUTCH.replace("Dutch", "Flemish"), "utf-8")
    with pytest.raises(LanguageError, match="another table with the code 'nl' was read before; give the file another name"):
        add_language(other)
    english = tmp_path / "en.toml"
    english.write_text(DUTCH, "utf-8")
    with pytest.raises(LanguageError, match="the code 'en' is that of a built-in table; name the file en-mine"):
        add_language(english)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "message", "at"),
    [
        ('green = ["groene", "groen"]\n', "", "[colours] has no word for 'green'; add the row green = [\"...\"]", "[colours]"),
        ('["ster"]', "[]", "star of [shapes] holds no word; write at least one", "star ="),
        ('["ster"]', '"ster"', "the field 'star' of [shapes] is 'ster', not a list", "star ="),
        ('["ster"]', '["ster", "!"]', "star of [shapes] holds '!', which no answer can be read as", "star ="),
        ('["ster"]', '["rode ster"]', "star of [shapes] holds 'rode ster'; the template takes one word only", "star ="),
        ('["ster"]', '["ster", "kruis"]', "the form 'kruis' means 'cross' and 'star'; take it out of one of them", "star ="),
        ('["ster"]', '["ster", "rood"]', "the form 'rood' means 'red' and 'star'; take it out of one of them", "star ="),
        ('["die", "dat"]', '["dit", "dat"]', "the form 'Dit' means 'proximal' and 'distal'; take it", 'words = ["dit", "dat"]'),
        (
            '["die", "dat"]',
            '["deze", "dat"]',
            "the form 'Deze' means 'proximal' and 'distal'; take it out of one of them",
            'words = ["deze", "dat"]',
        ),
        (
            '["halverwege"]',
            '["dichtbij"]',
            "the form 'Dichtbij' means 'region 1' and 'region 2'; take it out",
            'words = ["dichtbij"]\n\n[[distance.options]]\nregion = 3',
        ),
        ('["die", "dat"]', "[]", "words of [demonstrative.options] holds no word", "words = []"),
        (
            '["halverwege"]',
            '["ver"]',
            "the form 'Ver' means 'region 2' and 'region 3'; take it out",
            'words = ["ver weg", "ver"]',
        ),
        ('"distal"', '"far"', "term is 'far', which is not one of: proximal, medial, distal", 'term = "far"'),
        (
            '"distal"',
            '"proximal"',
            "[[demonstrative.options]] has the terms ['proximal', 'proximal']; give proximal and distal",
            "term =",
        ),
        ("region = 3", "region = 2", "[[distance.options]] has the regions [1.0, 2.0, 2.0]; give 1, 2 and 3", "region = 1"),
        ("region = 3", "region = 4", "region is 4, which is not one of: 1, 2, 3", "region = 4"),
        ("met {terms}, een", "met, een", "the prompt of [demonstrative] must hold {terms} once", "prompt ="),
        ("Begin met {terms}", "Begin", "the paraphrases of [demonstrative] must hold {terms} once", "paraphrases ="),
        (', "Kies: {terms}"', "", "[distance] needs 2 paraphrases, each a string", 'paraphrases = ["Hoe'),
        ('each = "{}"', 'each = ""', "each of [distance] is ''; write {} where an option's name stands", 'each = ""'),
        ("spaced = true", 'spaced = "yes"', "the field 'spaced' is 'yes', not a bool", "spaced ="),
        ("spaced = true", "spaced = true\nkleur = 1", "the field 'kleur' is not known; allowed are name, spaced,", "kleur ="),
        ("spaced = true", 'spaced = true\ntemplate = ["shape"]', "template is ['shape']; write", "template ="),
        ('region = 1\nwords = ["dichtbij"]', "region = 1", "the field 'words' of [distance.options] is missing", "[[distance.op"),
        ('name = "Dutch"\n', "", "the field 'name' is missing; needed are name, spaced, demonstrative,", None),
        ('["cirkel"]', '["cirkel", "terster"]', None, None),
    ],
)
def test_a_fault_in_a_table_is_named_with_its_line(old, new, message, at, dutch):
    assert DUTCH.count(old) >= 1
    text = DUTCH.replace(old, new, 1)
    dutch.write_text(text, "utf-8")
    if message is None:
        add_language(dutch)  # a strange word is no fault
        return
    with pytest.raises(LanguageError) as caught:
        add_language(dutch)
    where = f"{dutch}, line {line_of(text, at)}: " if at else f"{dutch}: "
    assert str(caught.value).startswith(where + message), str(caught.value)
    assert "nl" not in languages()  # and once it is put right it is taken
    dutch.write_text(DUTCH, "utf-8")
    assert add_language(dutch).name == "Dutch"


def test_paraphrases_are_needed_only_where_they_are_asked_for(dutch):
    bare = "\n".join(line for line in DUTCH.split("\n") if not line.startswith("paraphrases"))
    dutch.write_text(bare, "utf-8")
    few = {"languages": (str(dutch),), "shapes": ("star",), "colours": ("red",), "distances": (1.5,)}
    asked = memory_game(**few, prompts=("standard", "standard:dmp"), tasks=("demonstrative", "distance"))
    assert [item.groups["prompt"] for item in asked] == ["standard", "standard:dmp"] * 2
    for task in ("demonstrative", "distance"):
        message = rf"the table nl\.toml has no paraphrases of \[{task}\]; add them there, or leave out 'paraphrase-2:dmp'"
        with pytest.raises(ValueError, match=message):
            memory_game(**few, tasks=(task,), prompts=("standard", "paraphrase-2:dmp"))


def test_answers_in_a_language_that_this_program_lacks_say_the_way_out(dutch, monkeypatch):
    """As where a run is scored in a new program: the items come from disk, and nobody has read the table yet."""
    items = memory_game(languages=(str(dutch),), shapes=("star",), colours=("red",), distances=(1.5,))
    text = items_to_jsonl(items)
    monkeypatch.setattr("deixis.benchmarks.languages._added", {})
    (item,) = items_from_jsonl(text)
    with pytest.raises(ValueError, match=r"'nl' .* read a table of your own with dx.add_language\(path\), or name its folder"):
        judge("Deze rode ster", item)
    add_language(dutch)
    assert judge("Deze rode ster", item).right


def test_words_that_run_together_into_two_meanings_are_refused(dutch):
    text = DUTCH.replace('"rood"]', '"roodkr"]').replace('["cirkel"]', '["uis"]').replace('"rode"', '"rood"')
    dutch.write_text(text, "utf-8")
    with pytest.raises(LanguageError, match="'deze rood kruis' and 'deze roodkr uis' are alike without spaces"):
        add_language(dutch)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nl.toml", b'name = "\xff"', "is not UTF-8 text .invalid start byte at byte 8.; save it as UTF-8"),
        ("nl.toml", b'name = "Dutch', "is not TOML: Unterminated string"),
        ("n!.toml", b"", "'n!' is no language code; name the file like nl.toml or nl-be.toml"),
        ("nl.toml", None, "can't be read .No such file or directory.; name a .toml file"),
    ],
)
def test_a_file_that_is_no_table_is_refused(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(LanguageError, match=message):
        add_language(tmp_path / name)
