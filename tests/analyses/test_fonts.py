"""Which font draws what, on any machine."""

import io
from types import SimpleNamespace

import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure

from deixis.analyses.fonts import _has_glyphs, family_for


@pytest.fixture(autouse=True)
def forget():
    family_for.cache_clear()
    yield
    family_for.cache_clear()


def fonts(*names):
    """DejaVu, which comes with matplotlib and has no Han, under other names."""
    path = font_manager.findfont("DejaVu Sans")
    entries = [font_manager.FontEntry(fname=path, name=name, style="normal", weight=400) for name in names]
    return SimpleNamespace(ttflist=entries, findfont=font_manager.fontManager.findfont)


def test_latin_is_drawn_in_matplotlibs_own_font():
    assert family_for("This, qué, größer, täällä") == "DejaVu Sans"


def test_without_a_font_that_has_the_characters_there_is_none(monkeypatch):
    monkeypatch.setattr(font_manager, "fontManager", fonts("Noto Sans CJK JP", "A", "B"))
    assert family_for("この", "ja") is None
    assert family_for("this") == "DejaVu Sans"


def test_a_font_made_for_the_language_comes_first(monkeypatch):
    """Whatever the fonts hold, the names decide: a Korean page must not show the Japanese form of a character."""
    monkeypatch.setattr(font_manager, "fontManager", fonts("Noto Serif CJK KR", "Noto Sans CJK KR", "Noto Sans CJK JP", "Aaa"))
    asked = []
    monkeypatch.setattr("deixis.analyses.fonts._has_glyphs", lambda *asking: bool(asked.append(asking)) or len(asked) > 1)
    assert family_for("이", "ko") == "Noto Sans CJK KR"


def test_a_font_file_that_is_gone_or_broken_has_no_glyph(tmp_path):
    assert not _has_glyphs(str(tmp_path / "gone.ttf"), "a")
    (tmp_path / "broken.ttf").write_bytes(b"nothing")
    assert not _has_glyphs(str(tmp_path / "broken.ttf"), "a")


@pytest.mark.parametrize(("text", "language"), [("この その あの", "ja"), ("이 그 저", "ko"), ("这个 那个", "zh")])
@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_what_is_promised_can_be_drawn(text, language, form):
    """matplotlib warns of every character that it has no glyph for, and warnings are errors here."""
    family = family_for(text, language)
    if family is None:
        pytest.skip("this machine has no font for it")
    figure = Figure()
    figure.text(0.5, 0.5, text, fontfamily=family)
    figure.savefig(io.BytesIO(), format=form)
