"""Figure 2: what is drawn where, what is missing, and whether every reader can tell the colours apart."""

import io
import zlib
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from deixis.analyses import fonts
from deixis.analyses.behaviour import behaviour, plot_behaviour
from deixis.analyses.style import PALETTES, luminance
from deixis.benchmarks import memory_game
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER
from tests.analyses.fake_run import FakeRun, by_term

ITEMS = memory_game(size=64)


def noisy(item):
    rng = np.random.default_rng(zlib.crc32(item.groups["scene"].encode()))
    shares = SYNTHETIC_SPEAKER[item.language][int(item.targets["region"])]
    return by_term(item, dict(zip(shares, rng.dirichlet(8 * np.array(list(shares.values()))), strict=True)))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    one, two = (behaviour(FakeRun(ITEMS, noisy, model=name), "synthetic", n_boot=100).to_frame() for name in ("one", "two"))
    return pd.concat([one, two], ignore_index=True)


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_the_bars_are_as_long_as_the_shares_and_the_reference_lies_at_the_bottom(frame):
    ax = plot_behaviour(frame)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["1", "2", "3"] * 3
    assert [text for text in texts(ax) if text in ("one", "two", "reference")] == ["one", "two", "reference"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # down is larger
    bottom = max(patch.get_y() for patch in ax.patches)
    last = [patch for patch in ax.patches if patch.get_y() == bottom]
    expected = [share for regions in SYNTHETIC_SPEAKER.values() for share in regions[3].values()]
    np.testing.assert_allclose([patch.get_width() for patch in last], expected)
    colours = [to_hex(patch.get_facecolor()) for patch in last[:5]]
    assert colours == [PALETTES["paper"][t].lower() for t in ("proximal", "distal", "proximal", "distal", "proximal")]
    top = [patch for patch in ax.patches if patch.get_y() == min(patch.get_y() for patch in ax.patches)]
    rows = frame[(frame["model"] == "one") & (frame["region"] == 1)]
    np.testing.assert_allclose([patch.get_width() for patch in top], rows["proportion"])
    assert [text for text in texts(ax) if text in ("English", "Chinese", "Japanese", "Korean")] == [
        "English",
        "Chinese",
        "Japanese",
        "Korean",
    ]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["proximal", "medial", "distal"]
    assert ax.get_legend().get_title().get_text() == "share of each term, %; 20 items a bar"


def test_whiskers_are_the_intervals_of_the_first_and_the_last_term(frame):
    rows = frame[(frame["model"] == "one") & (frame["language"] == "ja") & (frame["region"] == 2)]
    ax = plot_behaviour(rows.assign(reference=np.nan))
    found = rows.set_index("term")
    spans = sorted(tuple(segment[:, 0]) for bars in ax.collections for segment in bars.get_segments())
    expected = [tuple(found.loc["proximal", ["low", "high"]]), tuple(1 - found.loc["distal", ["high", "low"]])]
    np.testing.assert_allclose(spans, sorted(expected))
    english = frame[(frame["model"] == "one") & (frame["language"] == "en") & (frame["region"] == 2)]
    assert len(plot_behaviour(english.assign(reference=np.nan)).collections) == 1  # two terms, one boundary


def test_a_cell_of_too_few_items_is_a_hatched_frame_with_its_count(frame):
    gone = (frame["model"] == "two") & (frame["language"] == "ko") & (frame["region"] == 3)
    few = frame.assign(n=frame["n"].where(~gone, 4))
    few.loc[gone, ["proportion", "low", "high"]] = np.nan
    ax = plot_behaviour(few)
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert [(patch.get_width(), patch.get_facecolor()[3]) for patch in hatched] == [(1, 0)]
    assert texts(ax).count("n = 4") == 1
    assert "too few" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_counts_that_differ_are_written_beside_the_bars(frame):
    fewer = frame.assign(n=frame["n"].where(frame["language"] != "en", 13))
    ax = plot_behaviour(fewer)
    assert texts(ax).count("13") == 6
    assert texts(ax).count("20") == 18 + sum(f"{100 * share:.0f}" == "20" for share in labelled(fewer))
    assert ax.get_legend().get_title().get_text() == ""


def labelled(frame) -> list[float]:
    reference = frame.drop_duplicates(["language", "region", "term"])["reference"]
    return [share for share in [*frame["proportion"], *reference] if share >= 0.2]


def test_a_column_is_one_printed_column_wide_and_nothing_in_it_is_smaller_than_five_points(frame):
    ax = plot_behaviour(frame)
    assert ax.figure.get_figwidth() <= 3.5
    assert min(text.get_fontsize() for text in [*ax.texts, *ax.get_legend().get_texts(), *ax.get_yticklabels()]) >= 5


def test_one_model_in_one_language_has_room_for_its_legend(frame):
    """Drawn for good: matplotlib warns where the layout does not fit, and warnings are errors."""
    small = frame[(frame["model"] == "one") & (frame["language"] == "en")].assign(reference=np.nan)
    ax = plot_behaviour(small)
    ax.figure.savefig(io.BytesIO())
    assert ax.get_position().height * ax.figure.get_figheight() > 0.3  # inches, for three bars


def test_native_words_are_left_out_where_no_font_draws_them(frame, monkeypatch):
    drawn = plot_behaviour(frame)
    assert "this · that" in texts(drawn)
    if fonts.family_for("この", "ja"):
        assert "この · その · あの" in texts(drawn)
    monkeypatch.setattr(
        "deixis.analyses.behaviour_plot.family_for", lambda text, _: None if not text.isascii() else "DejaVu Sans"
    )
    without = plot_behaviour(frame)
    assert all(ord(sign) < 0x2000 for text in texts(without) for sign in text)
    assert "Japanese" in texts(without)
    assert "this · that" not in texts(plot_behaviour(frame, native=False))


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_the_figure_is_written_as_pixels_and_as_vectors(frame, form):
    file = io.BytesIO()
    plot_behaviour(frame[(frame["model"] == "one") & frame["language"].isin(("ja", "ko"))]).figure.savefig(file, format=form)
    assert file.getvalue()[:5] in (b"\x89PNG\r", b"<?xml", b"%PDF-")


def test_an_unknown_palette_and_an_empty_frame_are_refused(frame):
    with pytest.raises(ValueError, match="palette='grey' is not one of: 'paper', 'ordered'"):
        plot_behaviour(frame, palette="grey")
    with pytest.raises(ValueError, match="no row of the condition 'real'"):
        plot_behaviour(frame.assign(condition="blank"))


# Machado, Oliveira and Fernandes 2009: what readers without one kind of cone see, in linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}


def lab(colour: str, seen: np.ndarray) -> np.ndarray:
    """CIELAB (D65) of a colour as a reader sees it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(seen @ linear, 0, 1)
    xyz = (
        np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
        @ linear
    )
    x, y, z = np.cbrt(xyz / np.array([0.95047, 1.0, 1.08883]))  # none of the colours is dark enough for the linear part
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize(
    ("palette", "seen"), [*(("ordered", seen) for seen in BLINDNESS), *(("paper", s) for s in ("none", "protan", "deutan"))]
)
def test_colour_blind_readers_tell_the_terms_apart(palette, seen):
    """A difference of 20 is seen at a glance; 2.3 is the smallest that can be seen at all."""
    assert least_difference(palette, seen) > 20


def least_difference(palette, seen):
    colours = [lab(colour, BLINDNESS[seen]) for colour in PALETTES[palette].values()]
    return min(np.linalg.norm(a - b) for a, b in combinations(colours, 2))


def test_the_published_colours_are_hard_for_readers_without_blue_cones_and_so_there_are_others():
    assert least_difference("paper", "tritan") < 17 < 30 < least_difference("ordered", "tritan")


def test_the_ordered_palette_survives_a_grey_print_in_the_order_of_the_terms():
    lightness = [lab(PALETTES["ordered"][term], BLINDNESS["none"])[0] for term in ("proximal", "medial", "distal")]
    assert np.diff(lightness).min() > 20
    # Second route to the lightness: the luminance that decides between black and white ink.
    np.testing.assert_allclose([116 * np.cbrt(luminance(c)) - 16 for c in PALETTES["ordered"].values()], lightness, atol=0.1)
