"""Decimals in words, against another library and back."""

from decimal import Decimal

import pytest
from num2words import num2words

from deixis.benchmarks.spacenum.number_words import spelled

WHOLE = [*range(1101), 1999, 2024, 10_005, 12_345, 99_999, 100_000, 123_456, 340_016, 999_999]


def test_whole_numbers_are_spelled_as_num2words_spells_them():
    assert [spelled(str(n)) for n in WHOLE] == [num2words(n) for n in WHOLE]


def test_decimals_are_spelled_as_num2words_spells_them():
    numbers = [f"{Decimal(k) / 100}" for k in range(620) if k % 100]
    assert [spelled(n) for n in numbers] == [num2words(Decimal(n)) for n in numbers]


def test_a_minus_is_always_read():
    """num2words 0.5.14 drops it between minus one and zero."""
    below = [f"-{Decimal(k) / 100}" for k in range(101, 300) if k % 100]
    assert [spelled(n) for n in below] == [num2words(Decimal(n)) for n in below]
    assert spelled("-0.05") == "minus zero point zero five"


def test_every_digit_that_is_written_is_read():
    assert spelled("1.0") == "one point zero"
    assert spelled("0.40") == "zero point four zero"


@pytest.mark.parametrize("number", ["", "1e3", "1.", ".5", "1,5", "--1", "1000000", "nan"])
def test_what_is_no_decimal_is_refused(number):
    with pytest.raises(ValueError, match=r"can't be written in words; give a decimal such as '-0\.05', below 1,000,000"):
        spelled(number)
