"""Pictures written without their pixels, and made again."""

import hashlib
import json
from importlib import import_module

import pytest

from deixis.benchmarks import ItemsError, memory_game
from deixis.benchmarks.handles import HANDLES, described, rebuilt
from deixis.benchmarks.images import CachedImage, DecolouredImage, FileImage, ImageHandle, UniformImage
from deixis.benchmarks.saved import items_to_jsonl

GREY = UniformImage(width=3, height=2, grey=7)


def star() -> CachedImage:
    (image,) = memory_game(shapes=("star",), colours=("red",), languages=("en",), size=32)[0].images
    assert isinstance(image, CachedImage)
    return image


@pytest.mark.parametrize(
    "image", [star(), GREY, DecolouredImage(source=star()), DecolouredImage(source=GREY)], ids=lambda i: type(i).__name__
)
def test_a_picture_is_made_again_from_its_description(image):
    entry = json.loads(json.dumps(described(image)))
    again = rebuilt(entry)
    assert again == image
    assert described(again) == entry
    assert again.load().tobytes() == image.load().tobytes()


def test_a_file_is_described_by_its_path_and_its_pixels(tmp_path):
    GREY.load().save(tmp_path / "a.png")
    entry = described(FileImage(path=tmp_path / "a.png"))
    assert entry == {"file": str(tmp_path / "a.png"), "sha256": GREY.sha256}
    assert rebuilt(entry) == FileImage(path=tmp_path / "a.png", expected=GREY.sha256)


def test_the_memory_games_lines_are_the_bytes_of_earlier_versions():
    """The hash of what the version before the registry wrote."""
    items = memory_game(shapes=("star",), colours=("red",), languages=("en",), size=32)
    items = items + items.with_condition("decoloured") + items.with_condition("blank")
    assert (
        hashlib.sha256(items_to_jsonl(items).encode()).hexdigest()
        == "35191c692a4aac3dfcd18866f2df2516873a14bb9884203dbd01eb3c4a099ba0"
    )


@pytest.mark.parametrize("name", HANDLES)
def test_every_registered_class_is_there_and_can_be_written_and_made_again(name):
    module, _, kind = HANDLES[name].partition(":")
    found = getattr(import_module(module), kind)
    assert issubclass(found, ImageHandle)
    assert found.to_json is not ImageHandle.to_json
    assert callable(found.from_json)


def test_a_class_of_ones_own_is_refused_with_the_way_out():
    class Mine(UniformImage):
        pass

    with pytest.raises(
        ItemsError, match=r"class Mine, which another program could not rebuild; write the items with Items\.save"
    ):
        described(Mine(width=1, height=1))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"painted": {}}, "an entry of images is neither drawn, uniform, .* nor a file with its hash; record the run again"),
        ({"uniform": {"width": 3, "height": 2, "grey": 1}, "drawn": {}}, "is neither drawn"),
        ("a.png", "is neither drawn"),
        ({"file": 3, "sha256": "x"}, "is neither drawn"),
        ({"uniform": {"width": 3}}, r"can't be rebuilt \('grey'\)"),
        ({"uniform": {"width": 3, "height": 10**9, "grey": 1}}, "a side of 1000000000 pixels, where 1 to 16384 are possible"),
        ({"uniform": {"width": 3, "height": 2.5, "grey": 1}}, "a side of 2.5 pixels"),
        ({"uniform": [3]}, "can't be rebuilt"),
        ({"decoloured": {"uniform": None}}, "can't be rebuilt"),
        ({"drawn": {"figure": {}, "camera": {}, "pixels": 10}}, "can't be rebuilt"),
    ],
)
def test_what_no_program_wrote_is_refused(entry, message):
    with pytest.raises(ItemsError, match=message):
        rebuilt(entry)
