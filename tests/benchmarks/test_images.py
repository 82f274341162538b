"""Lazy pictures: cached by content, checked when read."""

import numpy as np
import pytest
from PIL import Image

from deixis.benchmarks.images import DrawnImage, FileImage, ImageError, ImageHandle, UniformImage, cache_folder, hash_pixels
from deixis.benchmarks.render import Camera, Figure, draw, memory_scene

FIGURE = Figure(shape="star", colour="red", distance_m=1.5)
IMAGE = DrawnImage(figure=FIGURE, pixels=48)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DEIXIS_CACHE", str(tmp_path / "cache"))


def test_a_drawn_picture_is_the_renderers_from_the_cache_too():
    expected = draw(memory_scene(FIGURE), Camera().view(48)).pixels
    first, second = IMAGE.load(), IMAGE.load()
    np.testing.assert_array_equal(np.asarray(first), expected)
    np.testing.assert_array_equal(np.asarray(second), expected)
    assert [p.name for p in (cache_folder() / "images").iterdir()] == [f"{IMAGE.key}.png"]


def test_a_broken_cache_file_is_drawn_again():
    expected = IMAGE.load().tobytes()
    path = cache_folder() / "images" / f"{IMAGE.key}.png"
    path.write_bytes(path.read_bytes()[:200])
    assert IMAGE.load().tobytes() == expected
    assert Image.open(path).convert("RGB").tobytes() == expected


def test_a_cache_that_cannot_be_written_keeps_no_one_from_drawing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DEIXIS_CACHE", str(tmp_path / "file"))
    assert IMAGE.load().size == (48, 48)


def test_the_cache_key_changes_with_everything_that_decides_the_bytes():
    others = [
        DrawnImage(figure=FIGURE, pixels=49),
        DrawnImage(figure=FIGURE, camera=Camera(pitch_deg=-43.0), pixels=48),
        *(DrawnImage(figure=Figure(**{**vars(FIGURE), name: value}), pixels=48) for name, value in OTHER.items()),
    ]
    assert len({IMAGE.key, *(other.key for other in others)}) == 1 + len(others)


OTHER = {"shape": "cross", "colour": "blue", "distance_m": 1.6, "x_m": 0.01, "brightness": 0.9, "disk_radius_m": 0.2}


def test_every_handle_gives_its_size_without_loading_and_hashes_pixels(tmp_path):
    IMAGE.load().save(tmp_path / "a.png")
    IMAGE.load().save(tmp_path / "a.bmp")
    for handle in (IMAGE, FileImage(path=tmp_path / "a.png"), FileImage(path=tmp_path / "a.bmp")):
        assert isinstance(handle, ImageHandle)
        assert handle.size == handle.load().size == (48, 48)
        assert handle.sha256 == IMAGE.sha256
    grey = UniformImage(width=3, height=2)
    assert grey.size == grey.load().size == (3, 2)
    assert grey.sha256 == hash_pixels(Image.new("RGB", (3, 2), (128, 128, 128)))
    assert grey.sha256 != UniformImage(width=2, height=3).sha256  # the same bytes in another shape


def test_a_file_that_cannot_be_used_says_why(tmp_path):
    with pytest.raises(ImageError, match="can't be read"):
        FileImage(path=tmp_path / "none.png").load()
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(ImageError, match="is no picture that pillow can read"):
        FileImage(path=tmp_path / "text.png").load()
    Image.effect_noise((64, 64), 40).save(tmp_path / "ok.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "ok.png").read_bytes()[:900])
    with pytest.raises(ImageError, match="is damaged"):
        FileImage(path=tmp_path / "cut.png").load()
    with pytest.raises(ImageError, match="is not the picture that was saved"):
        FileImage(path=tmp_path / "ok.png", expected="0").load()
