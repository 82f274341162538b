"""Pictures named as in the paper: a set that the project's own renderer drew stands in for the published one."""

import shutil
from itertools import product
from pathlib import Path

import pytest

from deixis.benchmarks import Camera, ImageError, load_items, memory_game
from deixis.benchmarks.judge import judge
from deixis.benchmarks.memory_pictures import picture_name
from deixis.benchmarks.saved import items_from_jsonl, items_to_jsonl

SMALL = {"shapes": ("star", "cross"), "colours": ("red", "green"), "languages": ("en", "ko")}
DRAWN = memory_game(**SMALL, size=32)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    for item in DRAWN:
        name = picture_name(item.groups["shape"], item.groups["colour"], item.targets["distance_m"])
        item.images[0].load().save(folder / name)
    (folder / "readme.txt").write_text("not a picture")
    return folder


@pytest.fixture
def folder(written, tmp_path) -> Path:
    """A copy to be spoiled."""
    return shutil.copytree(written, tmp_path / "pictures")


def test_names_are_those_of_the_paper():
    assert picture_name("star", "green", 0.25) == "pic_disk-0-25_star_green.png"
    assert picture_name("circle", "black", 1.5) == "pic_disk-1-5_circle_black.png"
    assert picture_name("triangle", "red", 2.75) == "pic_disk-2-75_triangle_red.png"


def test_the_questions_are_those_of_the_drawn_set_and_the_pictures_are_the_files(written):
    items = memory_game(**SMALL, images=written, tasks=("demonstrative",))
    assert len(items) == len(DRAWN) == 24
    for mine, drawn in zip(items, DRAWN, strict=True):
        assert (mine.prompt, mine.options, mine.language) == (drawn.prompt, drawn.options, drawn.language)
        assert mine.images[0].sha256 == drawn.images[0].sha256
        assert mine.targets == {name: drawn.targets[name] for name in ("distance_m", "region")}
        assert {k: v for k, v in mine.groups.items() if k != "scene"} == {k: v for k, v in drawn.groups.items() if k != "scene"}
        assert (mine.objects, mine.nuisances) == ((), {})
    assert len({item.groups["scene"] for item in items}) == 12
    assert judge("This green cross", items.filter(lambda i: i.groups["figure"] == "green cross")[0]).right


def test_truth_of_the_distance_task_comes_from_the_name(written):
    items = memory_game(**SMALL | {"languages": ("en",)}, images=str(written), tasks=("distance",))
    assert {(item.targets["distance_m"], item.truth) for item in items} == {(0.25, "near"), (1.5, "middle"), (2.75, "far")}


def test_a_part_of_the_pictures_can_be_asked_for(written):
    items = memory_game(shapes=("star",), colours=("red",), distances=(2.75,), languages=("en",), images=written)
    assert [item.groups["scene"] for item in items] == ["star-red-2.75m-pictures"]


def test_they_are_saved_recorded_and_shuffled_like_any_items(written, tmp_path):
    items = memory_game(**SMALL, images=written)
    assert load_items(items.save(tmp_path / "saved")).fingerprint == items.fingerprint
    assert items_from_jsonl(items_to_jsonl(items)).fingerprint == items.fingerprint
    assert items.with_condition("shuffled").fingerprint != items.fingerprint


def test_all_sixty_are_wanted_unless_less_is_said(written):
    with pytest.raises(ImageError, match=r"lacks 48 of 60 pictures: pic_disk-0-25_circle_black.png, .* and 43 more; add them"):
        memory_game(images=written)


def test_a_missing_picture_is_named(folder):
    (folder / "pic_disk-1-5_star_red.png").unlink()
    with pytest.raises(ImageError, match=r"lacks 1 of 12 pictures: pic_disk-1-5_star_red.png; add them, or ask for fewer"):
        memory_game(**SMALL, images=folder)


@pytest.mark.parametrize(
    "name",
    [
        "pic_disk-0-25_hexagon_red.png",
        "pic_disk-0-25_star_pink.png",
        "pic_disk-0-25_red_star.png",
        "pic_disk-0.25_star_red.png",
        "pic_disk-near_star_red.png",
        "disk-0-25_star_red.png",
        "pic_disk-0-25_star_red.jpg",
        "Pic_disk-0-25_star_red.PNG",
    ],
)
def test_a_picture_with_another_name_is_listed(name, folder):
    shutil.copy(folder / "pic_disk-0-25_star_red.png", folder / name)
    with pytest.raises(ImageError, match="holds pictures whose names say nothing: ") as caught:
        memory_game(**SMALL, images=folder)
    assert name in str(caught.value)
    assert "distance, then one of circle, cross, square, star, triangle, then one of black, blue, green, red" in str(caught.value)


def test_two_names_for_one_picture_are_refused(folder):
    shutil.copy(folder / "pic_disk-1-5_star_red.png", folder / "pic_disk-1-50_star_red.png")
    with pytest.raises(
        ImageError, match=r"pic_disk-1-50_star_red.png and pic_disk-1-5_star_red.png in .* say the same; keep one"
    ):
        memory_game(**SMALL, images=folder)


def test_a_damaged_picture_is_found_at_once_and_a_changed_one_when_it_is_used(folder):
    (folder / "pic_disk-0-25_star_red.png").write_bytes(b"nothing")
    with pytest.raises(ImageError, match=r"pic_disk-0-25_star_red.png is no picture that pillow can read"):
        memory_game(**SMALL, images=folder)
    shutil.copy(folder / "pic_disk-1-5_star_red.png", folder / "pic_disk-0-25_star_red.png")
    items = memory_game(**SMALL, images=folder)
    for path in folder.glob("*.png"):
        shutil.copy(folder / "pic_disk-2-75_star_green.png", path) if path.name != "pic_disk-2-75_star_green.png" else None
    with pytest.raises(ImageError, match="is not the picture that was saved"):
        items[0].images[0].load()


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(ImageError, match="is no folder; name the one that holds pic_disk-0-25_star_green"):
        memory_game(images=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"seed": 1}, "seed"),
        ({"size": 256}, "size"),
        ({"n": 3}, "n"),
        ({"camera": Camera()}, "camera"),
        ({"decouple": True, "seed": 2}, "decouple, seed"),
        ({"camera_sides": ("left",)}, "camera_sides"),
        ({"addressees": ("near",)}, "addressees"),
    ],
)
def test_what_decides_drawing_is_refused_and_not_ignored(arguments, named, written):
    message = f"images=... are pictures that are there already, so {named} can't change them; leave that out"
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        memory_game(**SMALL, images=written, **arguments)


def test_every_figure_and_distance_of_the_paper_has_a_name_that_is_read():
    from deixis.benchmarks.memory_pictures import _NAME

    for shape, colour, distance in product(
        ("circle", "cross", "square", "star", "triangle"), ("black", "blue", "green", "red"), (0.25, 1.5, 2.75)
    ):
        assert _NAME.fullmatch(picture_name(shape, colour, distance))
