import pandas as pd
import pytest

from deixis.analyses.demo import DEMO_MODELS, demo_items, in_words, run_demo


def gap(*rows: tuple[str, str, str]) -> pd.DataFrame:
    """A gap frame of the demonstratives: model, language, case."""
    frame = pd.DataFrame(rows, columns=["model", "language", "case"]).assign(target="region", task="demonstrative")
    others = frame.assign(target="distance", task="distance", case="absent")  # must not be looked at
    return pd.concat([others, frame], ignore_index=True)


def test_two_models_that_encode_and_one_that_uses():
    found = in_words(gap(("pico", "en", "encoded and used"), ("pico-collapsed", "en", "encoded, unused")))
    assert found == (
        "Distance is encoded in both models. It drives the demonstratives of pico. "
        "The demonstratives of pico-collapsed do not use it."
    )


def test_the_words_follow_the_cases_and_not_the_names():
    found = in_words(gap(("pico", "en", "encoded, unused"), ("pico-collapsed", "en", "encoded and used")))
    assert "drives the demonstratives of pico-collapsed." in found
    assert "demonstratives of pico do not use it" in found


def test_a_model_that_does_not_encode_is_not_counted():
    found = in_words(gap(("a", "en", "prior only"), ("b", "en", "encoded and used")))
    assert found == "Distance is encoded in b. It drives the demonstratives of b. a: prior only (en)."


def test_nothing_encoded_is_said():
    assert in_words(gap(("a", "en", "absent"), ("b", "en", "undecided"))).startswith("Distance is encoded in none of the models.")


def test_languages_that_differ_are_listed():
    found = in_words(gap(("a", "en", "encoded and used"), ("a", "ja", "encoded, unused")))
    assert found == "Distance is encoded in a. a: encoded and used (en); encoded, unused (ja)."


def test_the_demo_asks_both_tasks_in_four_languages_real_and_blank():
    frame = demo_items().to_frame()
    counts = frame.groupby(["task", "language", "condition"]).size()
    assert len(counts) == 2 * 4 * 2
    assert set(counts) == {60}


def test_no_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match=f"no model was named; the demo's own are: {', '.join(DEMO_MODELS)}"):
        run_demo(tmp_path, [])
