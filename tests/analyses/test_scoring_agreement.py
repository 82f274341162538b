"""Three ways to read one choice."""

import numpy as np
import pandas as pd
import pytest

import deixis as dx
from deixis.analyses.scoring_agreement import COLUMNS, ITEM_COLUMNS, agreement_of, plot_scoring_agreement, scoring_agreement
from deixis.benchmarks import Items
from tests.pico_runs import loaded, pico_run
from tests.toys import SHARED_START, THIS_THAT, toy_item, toy_vlm


def test_agreement_is_counted_over_items_that_both_could_read():
    items = pd.DataFrame(
        [
            ("m", "en", "1", "a", "this", "this", "this"),
            ("m", "en", "2", "a", "this", "that", "that"),
            ("m", "en", "3", "b", None, "that", "that"),
            ("m", "en", "4", "b", "that", "that", None),
        ],
        columns=list(ITEM_COLUMNS),
    )
    frame = agreement_of(items, n_boot=200)
    assert tuple(frame) == COLUMNS
    cell = frame.set_index(["one", "other"])
    assert cell.loc[("first_token", "whole_string"), ["agreement", "n", "unread"]].tolist() == [2 / 3, 3, 1]
    assert cell.loc[("first_token", "written"), ["agreement", "n", "unread"]].tolist() == [1 / 2, 2, 2]
    assert cell.loc[("whole_string", "written"), ["agreement", "low", "high", "n"]].tolist() == [1, 1, 1, 3]
    assert cell.loc[("first_token", "whole_string"), "low"] == 0.5  # figure a twice
    nothing = agreement_of(items.assign(written=None), n_boot=5).set_index(["one", "other"])
    assert np.isnan(nothing.loc[("whole_string", "written"), "agreement"])
    assert len(plot_scoring_agreement(frame).lines) == 6
    with pytest.raises(ValueError, match="no rows to draw"):
        plot_scoring_agreement(frame.iloc[:0])


def test_in_pico_all_three_agree_and_the_first_is_what_the_run_holds():
    run = pico_run("pico")
    found = scoring_agreement(run, loaded("pico"), batch_size=20, n_boot=50)
    items = found.items()
    options = run.options.loc[run.options.groupby("item", sort=False)["logit"].idxmax()].set_index("item")["option"]
    assert items["first_token"].tolist() == options.loc[items["item"]].tolist()
    # Every term is one token here, so that the two scores differ by a constant.
    assert (items["first_token"] == items["whole_string"]).all()
    frame = found.to_frame()
    assert len(frame) == 2 * 3
    assert (frame[frame["other"] == "written"]["agreement"] > 0.9).all()
    assert repr(found).startswith("ScoringAgreement('pico'")
    with pytest.raises(ValueError, match="other weights than those of pico-collapsed"):
        scoring_agreement(run, loaded("pico-collapsed"))


def test_options_that_share_a_first_token_are_read_as_strings_alone(tmp_path):
    """Terms on the toy's options: every other item's cannot be told apart by first tokens."""
    vlm = toy_vlm()
    terms = ("proximal", "medial", "distal")
    shared = tuple(
        dx.Option(label=option.label, forms=option.forms, term=term) for option, term in zip(SHARED_START, terms, strict=True)
    )
    items = Items(toy_item(number, options=shared if number % 2 else THIS_THAT) for number in range(6))
    run = dx.record(vlm, items, tmp_path / "run", roles=("answer",), max_new_tokens=2, progress=False)
    read = scoring_agreement(run, vlm, batch_size=4, n_boot=5).items()
    assert read["first_token"].isna().tolist() == [False, True] * 3
    assert read["whole_string"].notna().all()
    assert read["written"].isna().all()  # the toy writes nonsense, and has no colour and shape to be judged by
    best = run.options.loc[run.options.groupby("item", sort=False)["logit"].idxmax(), "option"].tolist()
    mixed = read["first_token"].fillna(read["whole_string"]).tolist()
    assert mixed == best
    with pytest.raises(ValueError, match="no real demonstrative items"):
        scoring_agreement(
            dx.record(
                vlm,
                Items([toy_item(0, options=(dx.Option(label="a", forms=("red",)), dx.Option(label="b", forms=("far",))))]),
                tmp_path / "other",
                roles=("answer",),
                progress=False,
            ),
            vlm,
        )
