"""``dx.spacenum``: what it hands on, and what it refuses."""

from collections import Counter
from typing import Any

import pytest

import deixis as dx
from deixis.benchmarks.items import IMAGE_MARK


def test_items_of_both_kinds_have_what_the_tables_and_probes_ask_for():
    items = dx.spacenum("transition", n=4, size=16) + dx.spacenum("layout", n=2, size=16, scales=("desk",))
    for item in items:
        assert item.benchmark == "spacenum"
        assert item.task == f"{item.groups['kind']}-{item.groups['direction']}"
        assert item.prompt.count(IMAGE_MARK) == len(item.images)
        right = next(option for option in item.options if option.label == item.truth)
        assert right.kind == "correct"
        assert item.groups["letter"] == item.truth
        assert item.groups["permutation"] == "0"
        assert {"scene", "column"} <= set(item.groups)
        assert item.facts
    columns = Counter(item.groups["column"] for item in items if item.groups["kind"] == "transition")
    assert columns == {"move F/B": 2, "move L/R": 2, "rotate U/D": 2, "rotate L/R": 2}


def test_the_same_arguments_give_the_same_pictures():
    for kind, more in (("transition", {}), ("layout", {"scales": ("desk",)})):
        first, again = (dx.spacenum(kind, n=1, size=16, **more) for _ in range(2))
        assert first.fingerprint == again.fingerprint
        assert first.fingerprint != dx.spacenum(kind, n=1, size=16, seed=1, **more).fingerprint


def test_permutations_keep_pictures_and_poses_together():
    items = dx.spacenum("transition", n=1, size=16, directions=("num2space",))
    pose_of = {image.sha256: pose for image, pose in zip(items[0].images, items[0].facts["poses"], strict=True)}
    for item in dx.cyclic_permutations(items):
        assert [pose_of[image.sha256] for image in item.images] == item.facts["poses"]
        assert [option.value for option in item.options] == item.facts["magnitudes"]
        for box in item.objects:
            assert box.name in item.facts["visible"][box.image]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "room"}, "kind holds 'room', which is not one of: 'transition', 'layout'"),
        ({"n": 0}, "n=0 is not a whole number of 1 or more"),
        ({"seed": -1}, "seed=-1 is not a whole number of 0 or more"),
        ({"size": 8}, "size=8 is not a whole number between 16 and 4096 pixels"),
        ({"directions": ()}, "directions=.. must be a non-empty list of: 'num2space', 'space2num'"),
        ({"maps": ("1D",)}, "maps can't change kind='transition'; leave that out, or choose the other kind"),
        ({"kind": "layout", "actions": ("move left",)}, "actions can't change kind='layout'"),
        ({"kind": "layout", "magnitudes": {}}, "magnitudes can't change kind='layout'"),
        ({"magnitudes": {"rotate up": (10.0, 20.0, 30.0)}}, "give at least 4, none twice"),
        ({"actions": ["rotate up"], "magnitudes": {"rotate down": (5, 15, 25, 35)}}, "which is not among actions=..rotate up"),
        ({"magnitudes": {"jump": (1.0, 2.0, 3.0, 4.0)}}, "magnitudes has 'jump', which is not one of: 'move forward'"),
    ],
)
def test_arguments_outside_what_is_allowed_are_refused(arguments: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        dx.spacenum(**arguments)
