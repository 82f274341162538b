"""One check for lists of names."""

import inspect

import pytest

from deixis.benchmarks.names import checked_names

ALLOWED = {"near": 1, "middle": 2, "far": 3}


def test_names_come_back_once_and_in_order():
    assert checked_names("words", ["far", "near", "far"], ALLOWED) == ("far", "near")


@pytest.mark.parametrize("values", ["near", [], ()])
def test_one_string_or_nothing_is_no_list(values):
    with pytest.raises(ValueError, match=r"words=.* must be a non-empty list of: 'near', 'middle', 'far'\."):
        checked_names("words", values, ALLOWED)


@pytest.mark.parametrize("values", [None, 5])
def test_what_is_no_list_at_all_is_told_the_same(values):
    with pytest.raises(ValueError, match=rf"words={values} must be a non-empty list of"):
        inspect.unwrap(checked_names)("words", values, ALLOWED)


def test_an_unknown_name_is_refused_with_all_that_are_known():
    with pytest.raises(ValueError, match=r"words holds 'away', which is not one of: 'near', 'middle', 'far'\."):
        checked_names("words", ["near", "away"], ALLOWED)
