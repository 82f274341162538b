"""Decimals in English words, exactly and digit by digit behind the point: ``-0.05`` is "minus zero point zero five"."""

import re

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = ("ten", "eleven", "twelve", *(f"{stem}teen" for stem in ("thir", "four", "fif", "six", "seven", "eigh", "nine")))
_SMALL = (*_DIGITS, *_TEENS)
_TENS = tuple(f"{stem}ty" for stem in ("twen", "thir", "for", "fif", "six", "seven", "eigh", "nine"))
_DECIMAL = re.compile(r"(-?)(\d+)(?:\.(\d+))?")
_MOST = 1_000_000
"""Whole parts are below this; maps and grids stay far from it."""


def spelled(number: str) -> str:
    """A decimal, as it is written, in words.

    Args:
        number: Such as ``"340"``, ``"1.0"`` or ``"-0.05"``; every digit that is written is read.

    Raises:
        ValueError: It is no decimal, or a million or more.
    """
    match = _DECIMAL.fullmatch(number)
    if match is None or int(match[2]) >= _MOST:
        raise ValueError(f"{number!r} can't be written in words; give a decimal such as '-0.05', below {_MOST:,}.")
    sign, whole, decimals = match.groups()
    words = [*(["minus"] if sign else []), _whole(int(whole))]
    if decimals:
        words += ["point", *(_DIGITS[int(digit)] for digit in decimals)]
    return " ".join(words)


def _whole(value: int) -> str:
    if value < len(_SMALL):
        return _SMALL[value]
    if value < 100:
        tens, ones = divmod(value, 10)
        return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")
    size, name, joint = (100, "hundred", " and ") if value < 1000 else (1000, "thousand", ", ")
    count, rest = divmod(value, size)
    # "one thousand and five", but "one thousand, two hundred and five".
    joint = " and " if rest < 100 else joint
    return f"{_whole(count)} {name}" + (f"{joint}{_whole(rest)}" if rest else "")
