"""Plots of attention show the numbers of their frames, with units and names."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from deixis.analyses.attention_plots import (
    KIND_COLOURS,
    plot_attention_collapse,
    plot_attention_distance,
    plot_attention_heads,
    plot_attention_map,
    plot_object_lift,
)
from deixis.benchmarks import Box


def heads(**columns: list[float] | list[str]) -> pd.DataFrame:
    """Layers 2 and 3 with two heads each; layer 3 lacks head 1."""
    return pd.DataFrame({"model": "m", "layer": [2, 2, 3], "head": [0, 1, 0]} | columns)


def test_a_heat_map_has_the_means_of_every_layer_and_head() -> None:
    frame = pd.concat([heads(object_lift=[1.0, 2.0, 4.0]), heads(object_lift=[3.0, 2.0, 4.0])])
    ax = plot_attention_heads(frame)
    np.testing.assert_array_equal(np.ma.filled(ax.images[0].get_array().astype(float), np.nan), [[2.0, 2.0], [4.0, np.nan]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("head", "layer")
    assert ax.yaxis.get_major_formatter()(0, 0) == "2", "layers keep their numbers"
    assert ax.images[0].norm.vmin == pytest.approx(1 / ax.images[0].norm.vmax), "lifts are drawn around 1"
    assert ax.figure.axes[1].get_ylabel() == "object: weight over its uniform share"


def test_masses_are_drawn_from_nothing_to_all() -> None:
    ax = plot_attention_heads(heads(bos_mass=[0.1, 0.2, 0.3]), "bos_mass")
    assert (ax.images[0].norm.vmin, ax.images[0].norm.vmax) == (0, 1)


def test_wrong_frames_are_refused() -> None:
    with pytest.raises(ValueError, match="statistic='lift' is not one of: bos_mass"):
        plot_attention_heads(heads(bos_mass=[0.1, 0.2, 0.3]), "lift")
    two = pd.concat([heads(bos_mass=[0.1, 0.2, 0.3]), heads(bos_mass=[0.1, 0.2, 0.3]).assign(model="n")])
    with pytest.raises(ValueError, match="the frame holds the models m, n; draw one of them at a time"):
        plot_attention_heads(two, "bos_mass")


def test_kinds_are_colours_and_indices_hundredths() -> None:
    ax = plot_attention_collapse(heads(kind=["sink", "none", "fixed"], index=[0.987, 0.2, 0.93]))
    assert [text.get_text() for text in ax.texts] == ["99", "93"]
    assert [text.get_position() for text in ax.texts] == [(0, 0), (0, 1)]
    names = list(KIND_COLOURS)
    assert np.ma.filled(ax.images[0].get_array().astype(float), np.nan)[0].tolist() == [names.index("sink"), names.index("none")]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["sink", "fixed", "none"]


def test_a_map_lies_where_its_tokens_are_with_the_objects_box() -> None:
    frame = pd.DataFrame(
        {"left": [0.0, 8.0, np.nan], "top": [0.0, 0.0, np.nan], "right": [8.0, 16.0, np.nan], "bottom": [8.0, 8.0, np.nan]}
    ).assign(weight=[0.1, 0.4, 0.5])
    box = Box(name="disk", left=9.0, top=1.0, right=15.0, bottom=7.0)
    ax = plot_attention_map(frame, np.zeros((8, 16, 3), np.uint8), [box])
    np.testing.assert_array_equal(ax.collections[0].get_array(), [0.1, 0.4])
    drawn = next(patch for patch in ax.patches if isinstance(patch, Rectangle))
    assert drawn.get_bbox().extents.tolist() == [9, 1, 15, 7]
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 16), (8, 0)), "rows go down, as in the picture"


def test_lines_by_language_and_by_distance() -> None:
    frame = pd.DataFrame({"layer": [1, 0, 0, 1], "language": ["en", "en", "ja", "ja"], "object_lift": [2.0, 1.0, 3.0, 4.0]})
    ax = plot_object_lift(frame)
    assert [line.get_ydata().tolist() for line in ax.lines[:2]] == [[1.0, 2.0], [3.0, 4.0]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["English", "Japanese"]
    rows = pd.DataFrame({"layer": 4, "statistic": "object_lift", "distance_m": [1.5, 0.25], "mean": [2.0, 3.0]})
    ax = plot_attention_distance(rows.assign(low=rows["mean"] - 1, high=rows["mean"] + 1))
    assert ax.lines[0].get_xdata().tolist() == [0.25, 1.5]
    assert ax.lines[0].get_ydata().tolist() == [3.0, 2.0]
    assert ax.get_xlabel() == "distance of the object, m"
