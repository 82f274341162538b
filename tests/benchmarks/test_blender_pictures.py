"""Pictures through Blender: names in the cache, descriptions, what can be drawn; the drawing itself where Blender is."""

import json
import os
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

from deixis.benchmarks import Items, ItemsError, interventions, memory_game, spacenum
from deixis.benchmarks.blender_pictures import BlenderImage, staged
from deixis.benchmarks.handles import described, rebuilt
from deixis.benchmarks.images import CachedImage, DrawnImage, ImageHandle, UniformImage
from deixis.benchmarks.render import blender as renderer
from deixis.benchmarks.render.blender import BLENDER_PYTHON, SAMPLES
from deixis.benchmarks.saved import items_from_jsonl, items_to_jsonl
from deixis.benchmarks.spacenum.actions import Pose
from deixis.benchmarks.spacenum.anchored import AnchoredImage
from deixis.benchmarks.spacenum.layout_picture import LayoutImage
from deixis.benchmarks.spacenum.rooms import RoomImage, RoomKey, built

ROOM = RoomImage(
    room=RoomKey(0, 0, 0), pose=Pose(position_m=(0.0, 0.0, 1.5), yaw_deg=20.0, pitch_deg=0.0, focal_mm=20.0), pixels=24
)


@cache
def game() -> Items:
    return memory_game(shapes=("star",), colours=("red",), languages=("en",), size=32)[:2]


@cache
def desks() -> Items:
    return spacenum("layout", n=1, size=48, scales=("desk",), seed=3)


def sources() -> list[ImageHandle]:
    return [game()[0].images[0], ROOM, desks()[0].images[0]]


def test_every_kind_of_scene_has_a_name_of_its_own_for_each_number_of_samples():
    pictures = [BlenderImage(source=source, samples=samples) for source in sources() for samples in (8, 16)]
    keys = {picture.key for picture in pictures} | {source.key for source in sources() if isinstance(source, CachedImage)}
    assert len(keys) == 9
    assert [picture.key for picture in pictures] == [replace(picture).key for picture in pictures]
    assert BlenderImage(source=ROOM).key == BlenderImage(source=ROOM, samples=SAMPLES).key


def test_another_release_of_blender_has_other_names(monkeypatch):
    before = BlenderImage(source=ROOM).key
    monkeypatch.setattr("deixis.benchmarks.blender_pictures.VERSION", "9.9")
    assert BlenderImage(source=ROOM).key != before


@pytest.mark.parametrize("k", range(3))
def test_a_picture_is_made_again_from_its_description(k):
    picture = BlenderImage(source=sources()[k], samples=24)
    entry = json.loads(json.dumps(described(picture)))
    again = rebuilt(entry)
    assert again == picture
    assert isinstance(again, BlenderImage)
    assert (again.key, again.size) == (picture.key, picture.source.size)


@pytest.mark.parametrize("entry", [{"samples": 16}, {"source": {"uniform": {"width": 3, "height": 2, "grey": 1}}, "samples": 16}])
def test_what_no_program_wrote_is_refused(entry):
    with pytest.raises(ItemsError, match=r"can't be rebuilt"):
        rebuilt({"blender": entry})


def test_samples_out_of_range_are_refused_in_a_description():
    with pytest.raises(ItemsError, match=r"samples=0 is no whole number from 1 to 4096"):
        rebuilt({"blender": {"source": described(ROOM), "samples": 0}})


def test_the_scene_and_the_camera_are_those_of_the_source():
    drawn, room, desk = sources()
    assert isinstance(drawn, DrawnImage)
    assert isinstance(desk, LayoutImage)
    assert staged(drawn)[1] == drawn.camera.view(32)
    assert staged(drawn)[0].scene.names[-2:] == ["disk", "figure"]
    assert staged(room) == (built(ROOM.room)[1], ROOM.pose.view(24))
    assert staged(desk)[1] == desk.eye.view(48)
    assert {"anchor_a", "anchor_b", "target"} <= set(staged(desk)[0].scene.names)


def test_the_condition_changes_the_pictures_and_nothing_else():
    for items in (game(), desks()):
        for before, after in zip(items, interventions.blender(items, samples=8), strict=True):
            assert [picture.source for picture in after.images] == list(before.images)
            assert {picture.samples for picture in after.images} == {8}
            assert after == replace(before, id=f"{before.id}+blender", condition="blender", images=after.images)


def test_items_are_written_and_read_again():
    items = interventions.blender(desks())
    again = items_from_jsonl(items_to_jsonl(items))
    assert list(again) == list(items)
    assert {picture.samples for item in again for picture in item.images} == {SAMPLES}


def test_it_lies_below_lines_and_above_what_is_left_out_whichever_came_first():
    items = desks()[:1]
    one = interventions.blender(interventions.fewer_objects(interventions.visual_anchors(items)), samples=4)
    other = interventions.visual_anchors(interventions.fewer_objects(interventions.blender(items, samples=4)))
    assert one[0].id == other[0].id == f"{items[0].id}+fewer_objects+blender+visual_anchors"
    assert one[0].images == other[0].images
    source = items[0].images[0]
    assert isinstance(source, LayoutImage)
    assert one[0].images[0] == AnchoredImage(source=BlenderImage(source=source.without_clutter(), samples=4))


def test_what_is_no_scene_is_refused():
    with pytest.raises(
        ValueError, match=r"item '.*as_points': a picture of class AbstractLayout is no scene that Blender could draw"
    ):
        interventions.blender(interventions.as_points(desks()))
    with pytest.raises(ValueError, match=r"a picture of class AbstractLayout is no scene"):
        interventions.as_points(interventions.blender(desks()))
    with pytest.raises(ValueError, match=r"a picture of class UniformImage is no scene that Blender could draw; take items of"):
        BlenderImage(source=UniformImage(width=3, height=2))
    with pytest.raises(ValueError, match=r"samples=0 is no whole number"):
        interventions.blender(desks(), samples=0)


def test_without_blender_making_items_works_and_looking_at_them_says_what_is_missing(monkeypatch):
    monkeypatch.delenv(BLENDER_PYTHON, raising=False)
    monkeypatch.setattr(renderer, "find_spec", lambda _name: None)
    picture = interventions.blender(game(), samples=3)[0].images[0]
    with pytest.raises(ImportError, match=r"drawing with Blender needs the package bpy; make an environment"):
        picture.load()


@pytest.mark.skipif(BLENDER_PYTHON not in os.environ and find_spec("bpy") is None, reason="no Blender here")
def test_with_blender_a_desk_looks_alike_and_is_kept():
    picture = interventions.blender(desks(), samples=8)[0].images[0]
    assert isinstance(picture, BlenderImage)
    shown, ours = (np.asarray(p.load(), float) for p in (picture, picture.source))
    assert picture.path.is_file()
    assert shown.shape == ours.shape == (48, 48, 3)
    assert abs(shown.mean() / ours.mean() - 1) < 0.2
    assert np.corrcoef(shown.ravel(), ours.ravel())[0, 1] > 0.9
    assert np.corrcoef(shown[:, ::-1].ravel(), ours.ravel())[0, 1] < 0.8
