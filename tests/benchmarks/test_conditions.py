"""Conditions: what changes, what stays, what can be joined, and that shuffling leaks nothing."""

from dataclasses import replace

import numpy as np
import pytest

from deixis.benchmarks import Box, Item, Items, Option, load_items, memory_game
from deixis.benchmarks.conditions import CONDITIONS
from deixis.benchmarks.images import UniformImage
from deixis.benchmarks.saved import items_from_jsonl, items_to_jsonl
from tests.toys import toy_item, toy_vlm

ITEMS = memory_game(tasks=("demonstrative", "distance"), languages=("en", "ja"), shapes=("star", "cross"), size=32)
STAYS = ("prompt", "options", "truth", "targets", "language", "task")


def uniform(item_id: str, *greys: int, scene: str | None = None) -> Item:
    return Item(
        id=item_id,
        benchmark="mine",
        task="t",
        language="en",
        images=tuple(UniformImage(width=4, height=4, grey=grey) for grey in greys),
        prompt="?",
        options=(Option(label="A", forms=("A",)),),
        groups={} if scene is None else {"scene": scene},
        objects=(Box(name="o", left=0.0, top=0.0, right=float(greys[0] % 4 + 1), bottom=1.0),) if greys else (),
    )


@pytest.mark.parametrize("name", [*CONDITIONS, "shuffled+decoloured"])
def test_questions_truth_targets_and_scenes_stay_in_every_condition(name):
    changed = ITEMS.with_condition(name)
    for before, after in zip(ITEMS, changed, strict=True):
        assert (after.id, after.condition) == (f"{before.id}+{name}", name)
        assert [getattr(after, field) for field in STAYS] == [getattr(before, field) for field in STAYS]
        assert {key: after.groups[key] for key in before.groups} == before.groups
    assert list(items_from_jsonl(items_to_jsonl(changed))) == list(changed)
    assert changed.fingerprint != ITEMS.fingerprint


@pytest.mark.parametrize(("name", "grey"), [("blank", 128), ("black", 0)])
def test_blank_is_grey_and_black_is_black(name, grey):
    (item,) = ITEMS[:1].with_condition(name)
    assert item.images[0].load().getcolors() == [(32 * 32, (grey, grey, grey))]
    assert item.objects == ITEMS[0].objects


def test_text_only_items_have_no_picture_and_no_box():
    for item in ITEMS.with_condition("text_only"):
        assert item.images == ()
        assert item.objects == ()


def test_decoloured_pictures_have_equal_channels_and_the_luma_of_the_old():
    before = np.asarray(ITEMS[0].images[0].load(), float)
    after = np.asarray(ITEMS.with_condition("decoloured")[0].images[0].load(), float)
    assert (after == after[..., :1]).all()
    np.testing.assert_allclose(after[..., 0], before @ [0.299, 0.587, 0.114], atol=0.51)


def test_saved_items_of_every_condition_load_with_the_same_fingerprint(tmp_path):
    every = sum((ITEMS[:8].with_condition(name) for name in [*CONDITIONS, "shuffled+decoloured"]), start=ITEMS[:8])
    assert load_items(every.save(tmp_path / "all")).fingerprint == every.fingerprint


def test_a_shuffled_scene_shows_one_other_scene_and_no_two_show_the_same():
    """So a split by scene is a split by picture, and no picture stands on both sides of it."""
    own = {item.images: item.groups["scene"] for item in ITEMS}
    shown = {}
    for item in ITEMS.with_condition("shuffled"):
        assert own[item.images] == item.groups["shown"]
        shown.setdefault(item.groups["scene"], set()).add(item.groups["shown"])
    assert all(len(scenes) == 1 for scenes in shown.values())
    donors = [next(iter(scenes)) for scenes in shown.values()]
    assert sorted(donors) == sorted(shown)
    assert all(scene != donor for scene, donor in zip(shown, donors, strict=True))


def test_a_shuffled_item_has_the_box_and_the_nuisances_of_the_picture_that_it_shows():
    seen = {item.groups["scene"]: (item.objects, item.nuisances) for item in ITEMS}
    for name in ("shuffled", "shuffled+decoloured"):
        assert all((item.objects, item.nuisances) == seen[item.groups["shown"]] for item in ITEMS.with_condition(name))
    for name in set(CONDITIONS) - {"shuffled"}:
        assert [item.nuisances for item in ITEMS.with_condition(name)] == [item.nuisances for item in ITEMS]


@pytest.mark.parametrize(
    ("prompt", "left"),
    [
        ("What is this?", "What is this?"),
        ("<image>\nWhat is this?", "What is this?"),
        ("<image> <image>\n\nWhat  is\tthis?\n", "What  is\tthis?\n"),
        ("Is <image> left of <image>, or not?", "Is left of, or not?"),
        ("Left or right: <image>", "Left or right:"),
        ("この<image>は何？", "このは何？"),
        ("Look:<image> near?", "Look: near?"),
        ("  keep\n  <image> this", "  keep\n  this"),
        ("<image>", ""),
    ],
)
def test_text_only_prompts_have_no_marks_and_no_holes_where_they_stood(prompt, left):
    (item,) = Items([replace(uniform("a", 1, 2), prompt=prompt)]).with_condition("text_only")
    assert item.prompt == left
    (item,) = Items([replace(uniform("a", 1, 2), prompt=prompt)]).with_condition("blank")
    assert item.prompt == prompt  # its pictures are still there


def test_text_only_items_of_prompts_with_marks_can_be_asked():
    """The input is the one of the same question written without marks and pictures."""
    vlm = toy_vlm()
    (marked,) = Items([toy_item(0, prompt="This <image> star")]).with_condition("text_only")
    inputs, bare = (vlm.prepare([item])["input_ids"] for item in (marked, toy_item(0, prompt="This star", images=(), objects=())))
    assert inputs.tolist() == bare.tolist()


def test_the_seed_alone_decides_who_shows_whom():
    def shown(items, seed=0):
        return {item.groups["scene"]: item.groups["shown"] for item in items.with_condition("shuffled", seed=seed)}

    assert shown(ITEMS) == shown(ITEMS[::-1]) == shown(ITEMS.filter(lambda item: item.language == "ja"))
    assert shown(ITEMS) != shown(ITEMS, seed=1)


def test_every_other_scene_is_shown_about_equally_often_over_seeds():
    """No scene is tied to another: five scenes, four possible givers each, 400 seeds."""
    items = Items(uniform(name, k, scene=name) for k, name in enumerate("abcde"))
    counts = np.zeros((5, 5))
    for seed in range(400):
        for item in items.with_condition("shuffled", seed=seed):
            counts["abcde".index(item.id[0]), "abcde".index(item.groups["shown"])] += 1
    assert (np.diag(counts) == 0).all()
    off = counts[~np.eye(5, dtype=bool)]
    assert ((off - 100) ** 2 / 100).sum() < 40  # chi-square with about 15 degrees of freedom: 37.7 at 0.1 %


def test_items_with_unequal_numbers_of_pictures_are_shuffled_among_their_like():
    items = Items(
        [uniform("a", 1, scene="a"), uniform("b", 2, scene="b"), uniform("c", 3, 4, scene="c"), uniform("d", 5, 6, scene="d")]
    )
    greys = [[image.grey for image in item.images] for item in items.with_condition("shuffled")]
    assert greys == [[2], [1], [5, 6], [3, 4]]


def test_a_scene_with_several_pictures_gives_them_all():
    items = Items([*(uniform(f"a{k}", k, scene="a") for k in range(3)), *(uniform(f"b{k}", 9 + k, scene="b") for k in range(3))])
    greys = [item.images[0].grey for item in items.with_condition("shuffled")]
    assert greys == [9, 10, 11, 0, 1, 2]


def test_shuffling_needs_two_scenes_and_no_picture_in_both():
    with pytest.raises(ValueError, match="'shuffled' needs at least two scenes with 1 pictures each; add more"):
        Items([uniform("a", 1, scene="s"), uniform("b", 2, scene="s")]).with_condition("shuffled")
    with pytest.raises(ValueError, match=r"the scenes '.' and '.' share a picture; give what shares pictures one scene"):
        Items([uniform("a", 1), uniform("b", 1)]).with_condition("shuffled")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mirrored", "condition='mirrored' is not one of: 'blank', 'black', 'text_only', 'shuffled', 'decoloured', 'fewer_o"),
        ("blank+mirrored", "condition='blank\\+mirrored' holds 'mirrored', which is not one of: 'blank', "),
        ("", "condition='' is not one of"),
        ("blank+", "condition='blank\\+' holds '', which is not one of"),
        ("blank+blank", "condition='blank\\+blank' holds a condition twice; name each once"),
        ("blank+black", "contradicts itself: 'blank' leaves no scene that the other could change; name it alone"),
        ("shuffled+text_only", "contradicts itself: 'text_only' leaves no scene"),
        ("decoloured+black", "contradicts itself: 'black' leaves no scene"),
        ("real+blank", "contradicts itself: 'real' changes nothing; name it alone"),
    ],
)
def test_an_unknown_or_contradictory_condition_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        ITEMS.with_condition(name)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("blank", "blank"),
        ("blank", "shuffled"),
        ("shuffled", "black"),
        ("text_only", "blank"),
        ("shuffled+decoloured", "shuffled"),
    ],
)
def test_what_was_done_is_not_undone_by_another_condition(first, then):
    changed = ITEMS.with_condition(first)
    message = f"in condition '{first}' already, to which '{then}' can't be joined; start from the real"
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        changed.with_condition(then)


def test_joining_has_no_order():
    together = ITEMS.with_condition("decoloured+shuffled")
    assert {item.condition for item in together} == {"shuffled+decoloured"}
    assert list(ITEMS.with_condition("shuffled").with_condition("decoloured")) == list(together)
    assert list(ITEMS.with_condition("decoloured").with_condition("shuffled")) == list(together)


def test_an_item_without_picture_has_no_conditions():
    with pytest.raises(ValueError, match="item 'a' has no picture, and a condition changes pictures; leave it out"):
        Items([uniform("a")]).with_condition("blank")


def test_a_condition_of_another_program_is_not_joined():
    foreign = Items([replace(uniform("a", 1), condition="cropped")])
    with pytest.raises(ValueError, match="'a' is in condition 'cropped' already, to which 'blank' can't be joined"):
        foreign.with_condition("blank")
