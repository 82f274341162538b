"""Interventions: numbers are read back by another route, the truth stays, and what lacks truth is refused."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from num2words import num2words

from deixis.benchmarks import Item, Items, cyclic_permutations, interventions, load_items, memory_game, spacenum
from deixis.benchmarks.judge import judge
from deixis.benchmarks.saved import items_from_jsonl, items_to_jsonl
from deixis.benchmarks.spacenum.anchored import AnchoredImage
from deixis.benchmarks.spacenum.interventions import INTERVENTIONS
from deixis.benchmarks.spacenum.options import lettered, lettered_pictures
from deixis.benchmarks.spacenum.prompts import magnitude_text, transition_prompt
from tests.models.pictures import noise

MAGNITUDES = {"m": (0.4, 1.0, 2.2, 1.6), "deg": (20.0, 50.0, 70.0, 10.0)}
WORDS_BACK = {num2words(n): n for n in range(1000)}
DIGIT_OF = {num2words(n): str(n) for n in range(10)}


def transition(action: str, direction: str, right_at: int = 2) -> Item:
    unit = "deg" if action.startswith("rotate") else "m"
    values = MAGNITUDES[unit]
    texts = [magnitude_text(value, unit) for value in values]
    kinds = ("correct", "less_correct", "less_wrong", "wrong")
    rng = np.random.default_rng(1)
    if direction == "num2space":
        found, n = lettered_pictures(4, 2, values, kinds, right_at, rng), 5
    else:
        found, n = lettered(texts, values, kinds, right_at, rng), 2
    return Item(
        id=f"spacenum/{action.replace(' ', '-')}/transition-{direction}",
        benchmark="spacenum",
        task=f"transition-{direction}",
        language="en",
        images=tuple(noise(24, 24, k) for k in range(n)),
        prompt=transition_prompt(direction, action, texts[0] if direction == "num2space" else None, found.options, n),
        options=found.options,
        truth=found.truth,
        targets={"magnitude": values[0]},
        groups={"scene": "s", "kind": "transition", "direction": direction, "action": action, "letter": found.truth},
        facts={"action": action, "magnitude": values[0], "magnitudes": [values[k] for k in found.order]},
    )


TRANSITIONS = Items(
    transition(action, direction)
    for action in ("move left", "rotate left", "rotate up")
    for direction in ("num2space", "space2num")
)


@cache
def layouts() -> Items:
    return spacenum("layout", n=1, size=48, scales=("desk",), seed=3)


def plain_numbers(item: Item) -> list[float]:
    """Numbers in the brackets of the map, and those before a unit, of the prompt."""
    inside = [float(n) for block in re.findall(r"\[\([^\]]*\)\]", item.prompt) for n in re.findall(r"-?[\d.]+", block)]
    return inside or [float(n) for n in re.findall(r"(-?[\d.]+)\s(?:centimeters|meters|degrees)", item.prompt)]


def worded_numbers(item: Item) -> list[float]:
    """The same, read back from words with num2words' own spelling."""
    if '"' in item.prompt or "[(" in item.prompt:
        parts = [
            n for block in re.findall(r"\[\([^\]]*\)\]", item.prompt) for n in re.split(r"[\[\](),]+\s*", block) if n.strip()
        ]
    else:
        parts = re.findall(r"(?:by |^[A-D]\. )([a-z -]+?) (?:centimeters|meters|degrees)", item.prompt, re.M)
    return [number_of(part.strip()) for part in parts]


def number_of(words: str) -> float:
    sign = -1 if words.startswith("minus ") else 1
    whole, _, decimals = words.removeprefix("minus ").partition(" point ")
    digits = "".join(DIGIT_OF[word] for word in decimals.split()) or "0"
    return sign * float(f"{WORDS_BACK[whole]}.{digits}")


@pytest.mark.parametrize("which", ["transitions", "layouts"])
def test_numbers_in_words_are_the_numbers(which):
    items = TRANSITIONS if which == "transitions" else layouts()
    changed = interventions.numbers_as_words(items)
    for before, after in zip(items, changed, strict=True):
        assert worded_numbers(after) == plain_numbers(before)
        assert len(plain_numbers(before)) >= 1
        assert not plain_numbers(after)
        assert [o.value for o in after.options] == [o.value for o in before.options]


@pytest.mark.parametrize("which", ["transitions", "layouts"])
def test_numbers_in_centimetres_are_a_hundred_times_the_numbers_and_whole(which):
    items = TRANSITIONS if which == "transitions" else layouts()
    changed = interventions.numbers_as_integers(items)
    for before, after in zip(items, changed, strict=True):
        factor = 1 if before.groups.get("action", "").startswith("rotate") else 100
        assert plain_numbers(after) == pytest.approx([factor * n for n in plain_numbers(before)])
        assert all(n == int(n) for n in plain_numbers(after))
        assert not re.search(r"\d\.\d", after.prompt)
        if factor == 100:
            assert not re.search(r"(?<!centi)meters", after.prompt)
        listed = dict(re.findall(r"^([A-D])\. (.*)$", after.prompt, re.M))
        assert listed == {o.label: o.text for o in after.options}


def test_what_is_no_whole_number_of_centimetres_is_refused():
    item = TRANSITIONS[1]
    options = tuple(replace(o, text=o.text.replace("0.4", "0.425")) for o in item.options)
    odd = replace(item, options=options, prompt=item.prompt.replace("0.4", "0.425"))
    with pytest.raises(ValueError, match=r"0\.425 is 42\.5 centimeters, no whole number; leave the item out"):
        interventions.numbers_as_integers(Items([odd]))


@pytest.mark.parametrize("name", ["numbers_as_words", "numbers_as_integers"])
def test_items_without_numbers_are_refused(name):
    with pytest.raises(ValueError, match=f"has no number with a unit and no coordinates, so {name} changes nothing in it"):
        getattr(interventions, name)(memory_game(languages=("en",), size=32)[:1])


def test_a_turn_the_other_way_round_is_the_same_turn():
    turns = TRANSITIONS.filter(lambda item: item.groups["action"].startswith("rotate"))
    other = {"left": "right", "up": "down"}
    for before, after in zip(turns, interventions.rotational_equivalent(turns), strict=True):
        way = before.groups["action"].split()[1]
        assert f"rotate {way}" not in after.prompt
        assert f"rotate {other[way]}" in after.prompt
        assert [a + b for a, b in zip(plain_numbers(before), plain_numbers(after), strict=True)] == [360] * len(
            plain_numbers(before)
        )
        assert [a.value + b.value for a, b in zip(before.options, after.options, strict=True)] == [360] * 4
        # Where one ends up: turned left by a is turned right by 360 - a, on the circle.
        start = 1j ** (plain_numbers(before)[0] / 90)
        end = 1j ** (-plain_numbers(after)[0] / 90)
        assert start == pytest.approx(end)
        assert [o.kind for o in after.options] == [o.kind for o in before.options]
        assert after.targets == before.targets
        assert judge(after.truth, after).right
    with pytest.raises(
        ValueError, match="asks for no rotation by degrees, and only rotations have an equivalent the other way round"
    ):
        interventions.rotational_equivalent(TRANSITIONS)


def test_a_turn_of_a_whole_circle_has_no_equivalent():
    item = TRANSITIONS[2]
    odd = replace(item, prompt=item.prompt.replace("20 degrees", "360 degrees"))
    with pytest.raises(ValueError, match="360 degrees is no turn between 0 and 360"):
        interventions.rotational_equivalent(Items([odd]))


def test_thinking_is_asked_for_or_forbidden_in_the_last_line_and_nowhere_else():
    for before, thinks, answers in zip(
        TRANSITIONS, interventions.think(TRANSITIONS), interventions.no_think(TRANSITIONS), strict=True
    ):
        assert thinks.prompt.splitlines()[:-1] == answers.prompt.splitlines()[:-1] == before.prompt.splitlines()[:-1]
        assert "<think>" in thinks.prompt.splitlines()[-1]
        assert "Do not reason" in answers.prompt.splitlines()[-1]
        assert judge(f"<think>A? No. {before.truth}.</think>\nAnswer: {before.truth}", thinks).right
    with pytest.raises(ValueError, match="is told already whether to reason; start from the real items"):
        TRANSITIONS.with_condition("think+no_think")
    bare = replace(TRANSITIONS[1], prompt=TRANSITIONS[1].prompt.rpartition("\n")[0])
    assert interventions.think(Items([bare]))[0].prompt.startswith(bare.prompt), "behind a prompt without such a line"


def test_visual_anchors_lie_over_every_picture():
    for before, after in zip(TRANSITIONS, interventions.visual_anchors(TRANSITIONS), strict=True):
        assert [image.source for image in after.images] == list(before.images)
        assert all(isinstance(image, AnchoredImage) for image in after.images)
        assert after.prompt == before.prompt


@pytest.mark.parametrize("name", ["as_points", "as_boxes_2d", "as_boxes_3d"])
def test_abstractions_replace_the_picture_and_leave_the_question(name):
    changed = getattr(interventions, name)(layouts())
    for before, after in zip(layouts(), changed, strict=True):
        assert after.prompt == before.prompt
        assert len(after.images) == len(before.images)
        assert all(image.sha256 not in {old.sha256 for old in before.images} for image in after.images)
        assert [image.size for image in after.images] == [image.size for image in before.images]
        # Pictures of different placements stay different.
        assert len({image.sha256 for image in after.images}) == len(after.images)
    assert items_from_jsonl(items_to_jsonl(changed)).fingerprint == changed.fingerprint


def test_fewer_objects_leaves_anchors_and_target_alone():
    changed = interventions.fewer_objects(layouts())
    for before, after in zip(layouts(), changed, strict=True):
        assert before.facts["clutter"]
        assert after.facts["clutter"] == []
        assert {box.name for box in after.objects} == {"anchor_a", "anchor_b", "target"}
        for old, new in zip(before.images, after.images, strict=True):
            assert [thing.role for thing in new.things] == [thing.role for thing in old.things if thing.role != "clutter"]
            assert new.sha256 != old.sha256


@pytest.mark.parametrize("name", ["fewer_objects", "as_points", "as_boxes_2d", "as_boxes_3d"])
def test_layouts_read_from_a_folder_are_changed_like_those_that_were_drawn(name, tmp_path):
    drawn = Items(layouts()[:2])
    drawn.save(tmp_path / "items")
    read = load_items(tmp_path / "items")
    after, expected = (getattr(interventions, name)(items) for items in (read, drawn))
    assert after.fingerprint == expected.fingerprint
    assert [(item.objects, item.facts) for item in after] == [(item.objects, item.facts) for item in expected]
    worded = getattr(interventions, name)(interventions.numbers_as_words(read))
    assert worded.fingerprint == getattr(interventions, name)(interventions.numbers_as_words(drawn)).fingerprint


@pytest.mark.parametrize("condition", ["shuffled", "decoloured", "visual_anchors", "black"])
def test_pictures_that_were_changed_before_they_were_saved_are_not_drawn_from_the_facts(condition, tmp_path):
    spacenum("layout", n=2, seed=3, size=32, directions=("num2space",), maps=("2D",)).with_condition(condition).save(
        tmp_path / "items"
    )
    with pytest.raises(ValueError, match=r"no drawn layout|already, to which 'as_points' can't be joined"):
        interventions.as_points(load_items(tmp_path / "items"))


@pytest.mark.parametrize("name", ["fewer_objects", "as_points", "as_boxes_2d", "as_boxes_3d"])
def test_what_needs_a_layout_refuses_other_pictures(name):
    with pytest.raises(ValueError, match=rf"has a picture that is no drawn layout, and {name} needs to know what stands where"):
        getattr(interventions, name)(TRANSITIONS)


@pytest.mark.parametrize("name", INTERVENTIONS)
def test_ids_conditions_truth_and_targets(name):
    items = layouts() if name in ("fewer_objects", "as_points", "as_boxes_2d", "as_boxes_3d", "blender") else TRANSITIONS[2:]
    for before, after in zip(items, getattr(interventions, name)(items), strict=True):
        assert (after.id, after.condition) == (f"{before.id}+{name}", name)
        assert after.truth == before.truth
        assert after.targets == before.targets
        assert after.groups == before.groups
        assert [o.label for o in after.options] == [o.label for o in before.options]
        assert [o.kind for o in after.options] == [o.kind for o in before.options]


def test_interventions_are_joined_with_plus_in_one_order():
    items = TRANSITIONS[2:3]
    one = interventions.black(interventions.numbers_as_words(interventions.rotational_equivalent(items)))
    other = items.with_condition("numbers_as_words+black+rotational_equivalent")
    assert one.fingerprint == other.fingerprint
    assert one[0].id == f"{items[0].id}+black+rotational_equivalent+numbers_as_words"
    assert "three hundred and forty degrees" in one[0].prompt
    assert one[0].images[0].load().getpixel((0, 0)) == (0, 0, 0)


def test_permutations_and_interventions_commute():
    items = TRANSITIONS[1:2] + layouts()[5:6]
    first = cyclic_permutations(interventions.numbers_as_words(items))
    second = interventions.numbers_as_words(cyclic_permutations(items))
    assert [item.id for item in first] == [item.id for item in second]
    assert [item.prompt for item in first] == [item.prompt for item in second]
    assert list(first) == list(second)


def test_what_leaves_no_scene_takes_no_other_change_of_pictures():
    with pytest.raises(ValueError, match="contradicts itself: 'black' leaves no scene that the other could change"):
        TRANSITIONS.with_condition("black+visual_anchors")
    with pytest.raises(ValueError, match="to which 'visual_anchors' can't be joined"):
        interventions.visual_anchors(interventions.blank(TRANSITIONS))


def test_each_function_is_the_condition_of_its_name():
    for name in [*INTERVENTIONS, "blank", "black"]:
        assert callable(getattr(interventions, name))
