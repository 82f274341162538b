"""Words as answers and tables are compared: one plain spelling."""

import re
import unicodedata

# Anything but letters, digits and the marks that belong to them.
_NO_WORD_SIGN = re.compile(r"(?!(?<=\d)\.(?=\d))[\W_]")


def plain(text: str) -> str:
    """``text`` with compatibility forms unified (NFKC), in lower case, punctuation and signs turned into single spaces.

    A point between digits stays, so that 0.4 is not read as 4.
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_NO_WORD_SIGN.sub(_blank_unless_invisible, text).split())


def _blank_unless_invisible(match: re.Match[str]) -> str:
    category = unicodedata.category(match[0])
    return match[0] if category[0] == "M" else "" if category == "Cf" else " "
