"""Lazy pictures: cached by content, checked when read."""

import struct
import zlib

import numpy as np
import pytest
from PIL import ExifTags, Image

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
    with pytest.raises(ImageError, match="is no picture that pillow can read; use PNG or JPEG"):
        FileImage(path=tmp_path / "text.png").load()
    Image.effect_noise((64, 64), 40).save(tmp_path / "ok.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "ok.png").read_bytes()[:900])
    with pytest.raises(ImageError, match="is damaged"):
        FileImage(path=tmp_path / "cut.png").load()
    with pytest.raises(ImageError, match="is not the picture that was saved"):
        FileImage(path=tmp_path / "ok.png", expected="0").load()


def sixteen_bit_png(path, colour_type, channels):
    """Written by hand, because pillow writes no 16-bit colour."""
    row = b"\0" + struct.pack(f">{2 * channels}H", *range(1000, 1000 + 2 * channels))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 2, 1, 16, colour_type, 0, 0, 0)), (b"IDAT", zlib.compress(row)), (b"IEND", b""))
    parts = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("grey.png", "I;16"),
        ("grey-alpha.png", "LA;16B"),
        ("colour.png", "RGB;16B"),
        ("colour-alpha.png", "RGBA;16B"),
        ("float.tif", "F"),
        ("whole.tif", "I"),
        ("colour.ppm", "RGB up to 65535"),
    ],
)
def test_a_picture_of_more_than_eight_bits_is_refused(tmp_path, kind, mode):
    path = tmp_path / kind
    if path.suffix == ".png":
        sixteen_bit_png(path, *{"grey": (0, 1), "grey-alpha": (4, 2), "colour": (2, 3), "colour-alpha": (6, 4)}[path.stem])
    elif path.suffix == ".ppm":
        path.write_bytes(b"P6 2 1 65535\n" + bytes(12))
    else:
        Image.fromarray(np.full((3, 4), 0.5 if mode == "F" else 70_000, "f4" if mode == "F" else "i4")).save(path)
    with pytest.raises(ImageError, match=f"{kind} has the mode {mode}, .*; convert it to 8 bits a channel"):
        FileImage(path=path).load()
    with pytest.raises(ImageError, match=f"has the mode {mode}"):
        _ = FileImage(path=path).size


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB"])
def test_an_opaque_picture_of_eight_bits_keeps_its_bytes(tmp_path, mode):
    picture = IMAGE.load().convert(mode)
    picture.save(tmp_path / "a.png")
    assert FileImage(path=tmp_path / "a.png").load().tobytes() == picture.convert("RGB").tobytes()


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_turned_as_exif_says_and_its_size_with_it(tmp_path, suffix, orientation):
    upright = np.full((32, 48, 3), 255, np.uint8)
    upright[:16, :16] = 0  # a black corner, top left
    # What a camera held that way stores (EXIF 2.32, 4.6.4: where the stored row 0 and column 0 lie in the scene).
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: upright.transpose(1, 0, 2)[::-1],
        7: upright.transpose(1, 0, 2)[::-1, ::-1],
        8: upright.transpose(1, 0, 2)[:, ::-1],
    }[orientation]
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(np.ascontiguousarray(stored)).save(path, exif=exif)
    handle = FileImage(path=path)
    assert handle.size == handle.load().size == (48, 32)
    assert np.abs(np.asarray(handle.load()).astype(int) - upright).max() < 20


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_transparent_parts_are_on_white(tmp_path, mode):
    """Left pixel clear, right pixel opaque and black; half-clear black in RGBA is middle grey."""
    path = tmp_path / "a.png"
    if mode in ("RGBA", "LA"):
        alpha = Image.new("RGBA", (3, 1), (0, 0, 0, 255))
        alpha.putpixel((0, 0), (0, 0, 0, 0))
        alpha.putpixel((2, 0), (0, 0, 0, 128))
        alpha.convert(mode).save(path)
        expected = [255, 0, 127]
    else:
        plain = Image.new("L", (3, 1), 0)
        plain.putpixel((0, 0), 90)
        plain = plain.convert(mode)
        clear = plain.getpixel((0, 0))
        plain.save(path, transparency=clear)
        expected = [255, 0, 0]
    assert np.asarray(FileImage(path=path).load())[0].tolist() == [[value] * 3 for value in expected]


@pytest.mark.parametrize(("width", "said"), [(20_000, "too many pixels"), (10_000, "10000 x 10000 pixels")])
def test_a_picture_far_too_large_is_called_too_large(tmp_path, width, said):
    Image.new("1", (width, 10_000)).save(tmp_path / "huge.png")
    with pytest.raises(ImageError, match=f"huge.png has {said}; at most 64 megapixels are read. Reduce it first"):
        FileImage(path=tmp_path / "huge.png").load()


def test_the_size_of_a_missing_file_is_refused_as_its_pixels_are(tmp_path):
    with pytest.raises(ImageError, match="can't be read"):
        _ = FileImage(path=tmp_path / "none.png").size


def test_a_picture_with_half_a_head_of_exif_is_called_damaged(tmp_path):
    Image.new("RGB", (6, 4)).save(tmp_path / "a.png", exif=b"Exif\0\0MM\0*")
    with pytest.raises(ImageError, match=r"a.png is damaged: .*Copy it again from its source"):
        FileImage(path=tmp_path / "a.png").load()
