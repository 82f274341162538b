"""Fonts that can draw a text: no picture shows an empty box where a character should be."""

from functools import cache
from pathlib import Path

_KNOWN = {
    "ja": ("CJK JP", "Sans JP", "Hiragino", "Yu Gothic", "Meiryo", "MS Gothic", "IPA", "TakaoGothic", "VL Gothic"),
    "ko": ("CJK KR", "Sans KR", "Apple SD Gothic Neo", "AppleGothic", "Malgun Gothic", "Nanum", "Baekmuk"),
    "zh": ("CJK SC", "Sans SC", "PingFang", "Heiti", "Microsoft YaHei", "SimHei", "WenQuanYi", "Droid Sans Fallback"),
}
"""Parts of the names of fonts that are made for a language, the best first: Han characters look different in each."""


@cache
def family_for(text: str, language: str = "") -> str | None:
    """The family to draw ``text`` in: matplotlib's own if it has every character, else an installed one that has; else None.

    Args:
        text: Every character but spaces needs a glyph.
        language: Code of a language whose fonts are preferred.
    """
    from matplotlib import font_manager
    from matplotlib.font_manager import FontProperties

    own = FontProperties()
    if _has_glyphs(font_manager.findfont(own), text):
        return own.get_name()
    upright = [font for font in font_manager.fontManager.ttflist if font.style == "normal" and font.weight in (400, "normal")]
    for font in sorted(upright, key=lambda font: _preference(font.name, language)):
        if _has_glyphs(font.fname, text):
            return font.name
    return None


def _preference(name: str, language: str) -> tuple[int, int, str]:
    """Fonts for the language first, sans serif before serif and monospaced, then by name so that a picture never changes."""
    known = [rank for rank, part in enumerate(_KNOWN.get(language, ())) if part.casefold() in name.casefold()]
    return (known[0] if known else len(_KNOWN.get(language, ())), int("Serif" in name) + int("Mono" in name), name)


@cache
def _has_glyphs(path: str, text: str) -> bool:
    from matplotlib.font_manager import get_font

    if not Path(path).exists():  # matplotlib remembers fonts that have been taken off since
        return False
    try:
        font = get_font(path)
    except (OSError, RuntimeError):  # not every file that is listed can be opened
        return False
    return all(font.get_char_index(ord(sign)) for sign in text if not sign.isspace())
