"""Tags of reasoning traces: rules against labels by hand, and shares that were planted."""

import re
from dataclasses import replace

import numpy as np
import pytest

from deixis.analyses.choice_bias import cohens_kappa
from deixis.analyses.reasoning_tags import SHARE_COLUMNS, TRACE_COLUMNS, plot_reasoning_tags, reasoning_tags
from deixis.analyses.trace_rules import APPLIES, TAGS, tag_trace
from deixis.benchmarks import Items
from tests.analyses.labelled_traces import SEEN, UNSEEN
from tests.analyses.written_choices import always_right, planted, small_set

TRACES = {
    kind: next(trace for own, trace, labels in SEEN if own == kind and len(labels) == 2) for kind in ("transition", "layout")
}


def kappa_of(tag, traces):
    rows = [(tag[0] in labels, tag_trace(trace, kind)[tag]) for kind, trace, labels in traces if kind in APPLIES[tag]]
    by_hand, by_rule = zip(*rows, strict=True)
    return cohens_kappa(list(by_hand), list(by_rule))


def test_the_hand_labelled_sample_is_large_enough_and_holds_each_tag_and_its_absence():
    assert len({trace for _, trace, _ in (*SEEN, *UNSEEN)}) == len(SEEN) + len(UNSEEN) >= 40
    for tag in TAGS:
        for part in (SEEN, UNSEEN):
            labels = [tag[0] in labels for kind, _, labels in part if kind in APPLIES[tag]]
            assert 0.3 <= np.mean(labels) <= 0.75


# Measured: 0.91, 1.00, 1.00 where the rules were changed with the traces in view; 0.90, 0.64, 0.57 where they were not.
@pytest.mark.parametrize(
    ("tag", "seen", "unseen"), [("coarse_cue", 0.9, 0.9), ("image_space", 1.0, 0.63), ("no_counterfactual", 1.0, 0.57)]
)
def test_the_rules_agree_with_labels_by_hand(tag, seen, unseen):
    assert kappa_of(tag, SEEN) >= seen
    assert kappa_of(tag, UNSEEN) >= unseen


def test_the_agreement_can_fail():
    turned = [(kind, trace, "".join({"c", "i", "n"} - set(labels))) for kind, trace, labels in SEEN]
    assert all(kappa_of(tag, turned) < -0.5 for tag in TAGS)


def test_a_tag_is_there_for_its_own_kind_of_question_alone():
    assert set(tag_trace("The sofa moved.", "transition")) == {"coarse_cue", "no_counterfactual"}
    assert set(tag_trace("The sofa moved.", "layout")) == {"coarse_cue", "image_space"}
    with pytest.raises(ValueError, match="kind='memory' is not one of: 'layout', 'transition'"):
        tag_trace("The sofa moved.", "memory")
    with pytest.raises(ValueError, match="an empty trace has no tags"):
        tag_trace("  ", "layout")


def thinking(items, written):
    run = planted(items, always_right)
    run.answers = [written(item) for item in items]
    return run


def test_shares_are_counted_among_right_and_wrong_answers():
    items = small_set(4).filter(lambda i: i.groups["column"] in ("rotate L/R", "2D D") and i.groups["direction"] == "space2num")
    fine = "A turn of 70 degrees would push the sofa out of view; it moves by about 20 percent of the frame."

    def written(item):
        k = int(re.sub(r"\D", "", item.groups["scene"]))
        wrong = "A" if item.truth != "A" else "B"
        trace = TRACES[item.groups["kind"]] if k < 2 else fine
        return f"<think>{trace}</think>{item.truth if k % 2 else wrong}"

    found = reasoning_tags(thinking(items, written), n_boot=50)
    assert tuple(found.to_frame()) == TRACE_COLUMNS
    assert found.without_trace == 0
    shares = found.shares()
    assert tuple(shares) == SHARE_COLUMNS
    rows = shares.set_index(["kind", "outcome", "tag"])
    for outcome in ("right", "wrong"):
        assert rows.loc[("transition", outcome, "no_counterfactual"), ["share", "n"]].tolist() == [0.5, 2]
        assert rows.loc[("layout", outcome, "image_space"), ["share", "n"]].tolist() == [0.5, 2]
    assert rows.loc[("transition", "all", "coarse_cue"), ["share", "n", "n_scenes"]].tolist() == [0.5, 4, 4]
    assert ("layout", "all", "no_counterfactual") not in rows.index
    assert found.to_frame().loc[lambda f: f["kind"] == "layout", "no_counterfactual"].isna().all()
    ax = found.plot()
    assert sorted(float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "o") == [0.5] * 8
    with pytest.raises(ValueError, match="no traces of right or wrong answers"):
        plot_reasoning_tags(shares[shares["outcome"] == "all"])


def test_answers_without_reasoning_are_counted_and_refused_where_there_is_none():
    items = small_set(1)[:3]
    some = thinking(items, lambda i: f"<think>{TRACES['transition']}</think>A" if i.id == items[0].id else "A")
    assert reasoning_tags(some, n_boot=5).without_trace == 2
    with pytest.raises(ValueError, match="none of the 3 answers holds reasoning before its letter"):
        reasoning_tags(thinking(items, lambda _: "A"))


def test_in_the_condition_think_the_whole_answer_is_the_trace_and_thoughts_may_not_end():
    item = small_set(1)[0]
    item = replace(item, id=item.id + "+think", condition="think")
    row = reasoning_tags(thinking(Items([item]), lambda _: f"{TRACES['transition']} Answer: A"), n_boot=5).to_frame().iloc[0]
    assert row[["finished", "coarse_cue"]].tolist() == [True, 1.0]
    endless = reasoning_tags(thinking(Items([item]), lambda _: f"<think>{TRACES['transition']}"), n_boot=5).to_frame().iloc[0]
    assert endless[["finished", "outcome"]].tolist() == [False, "unreadable"]
