"""Writing a folder of items: killed anywhere and begun again, it ends as the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from deixis.benchmarks import Items, load_items, memory_game
from deixis.benchmarks.images import FileImage, ImageError
from deixis.benchmarks.saving import UnfinishedFolder, write_pictures
from tests.models.pictures import noise
from tests.toys import toy_item


def items(n: int = 4, seed: int = 0) -> Items:
    return memory_game(languages=("en", "ja"), n=n, size=32, seed=seed)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write(chosen: Items, folder: Path, scenes: int | None = None) -> list[int]:
    """Write, up to some number of scenes; returns how many pictures each scene still lacked."""
    unfinished = UnfinishedFolder(chosen, folder)
    lacking = []
    for number, images in enumerate(unfinished.missing()):
        if number == scenes:
            unfinished.close()
            return lacking
        lacking.append(len(images))
        unfinished.note(images, write_pictures(images, unfinished.place))
    unfinished.finish()
    return lacking


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DEIXIS_CACHE", str(tmp_path / "cache"))


def test_a_folder_that_was_begun_is_finished_as_the_same_bytes(tmp_path):
    items().save(tmp_path / "whole")
    assert write(items(), tmp_path / "parts", scenes=1) == [1]
    assert not (tmp_path / "parts").exists()
    assert write(items(), tmp_path / "parts", scenes=2) == [1, 1]
    assert write(items(), tmp_path / "parts") == [1]
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert load_items(tmp_path / "parts").fingerprint == items().fingerprint
    assert not (tmp_path / ".parts.unfinished").exists()


def test_what_a_kill_cuts_off_is_made_again(tmp_path):
    items().save(tmp_path / "whole")
    write(items(), tmp_path / "parts", scenes=3)
    place = tmp_path / ".parts.unfinished"
    notes = (place / "done.jsonl").read_text()
    lines = notes.splitlines(keepends=True)
    (place / "done.jsonl").write_text(lines[0] + lines[1] + lines[2][:30])  # a line cut off
    first = json.loads(lines[0])["sha256"]
    (place / "images" / f"{first}.png").unlink()  # noted, but gone
    (place / "images" / "abc.tmp").write_bytes(b"half a pict")
    assert write(items(), tmp_path / "parts") == [1, 1, 1]
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_part_of_other_items_is_not_gone_on_with(tmp_path):
    write(items(), tmp_path / "parts", scenes=1)
    before = contents(tmp_path / ".parts.unfinished")
    for other in (items(5), items(seed=1), Items(replace(item, prompt="?") for item in items())):
        with pytest.raises(FileExistsError, match=r"holds a part of other items, .* delete it, repeat the command that began it"):
            UnfinishedFolder(other, tmp_path / "parts")
    assert contents(tmp_path / ".parts.unfinished") == before


def test_items_that_can_not_be_written_are_refused_before_anything_is_drawn(tmp_path):
    bad = replace(items()[0], facts={"a": {1}})
    with pytest.raises(ValueError, match="has facts that JSON does not know"):
        UnfinishedFolder(Items([bad]), tmp_path / "parts")
    gone = replace(items()[0], images=(FileImage(path=tmp_path / "gone.png"),))
    with pytest.raises(ImageError, match="can't be read"):
        UnfinishedFolder(Items([gone]), tmp_path / "parts")
    assert list(tmp_path.iterdir()) == []


def test_pictures_that_nobody_else_can_make_are_written_too(tmp_path):
    chosen = Items([toy_item(0, images=(noise(8, 8),)), toy_item(1, images=(noise(8, 8, 1), noise(8, 8, 2)))])
    write(chosen, tmp_path / "parts", scenes=1)
    assert write(chosen, tmp_path / "parts") == [1, 2], "what is of no known class is written again"
    assert load_items(tmp_path / "parts").fingerprint == chosen.fingerprint


def test_pictures_come_scene_by_scene_and_each_once(tmp_path):
    chosen = items(3) + items(3).with_condition("blank")
    unfinished = UnfinishedFolder(chosen, tmp_path / "parts")
    parts = list(unfinished.missing())
    assert [len(images) for images in parts] == [2, 1, 1], "the one grey picture once, with the first scene"
    assert unfinished.n_pictures == 4
    unfinished.remove()
    assert list(tmp_path.glob(".parts*")) == []


def test_the_command_goes_on_after_a_kill_and_ends_as_the_same_bytes(tmp_path):
    def command(folder: str) -> list[str]:
        options = ("--languages", "en", "--n", "6", "--size", "128", "--workers", "1")
        return [sys.executable, "-m", "deixis", "render", "memory-game", str(tmp_path / folder), *options]

    environment = os.environ | {"DEIXIS_CACHE": str(tmp_path / "cache-killed")}
    process = subprocess.Popen(command("killed"), env=environment, stdout=subprocess.DEVNULL)
    notes = tmp_path / ".killed.unfinished" / "done.jsonl"
    patience = time.monotonic() + 300
    while not (notes.exists() and notes.read_text().count("\n") >= 2):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < patience
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    written = notes.read_text().count("\n")
    assert not (tmp_path / "killed").exists()
    assert 2 <= written < 6
    subprocess.run(command("killed"), env=environment, check=True, stdout=subprocess.DEVNULL)
    memory_game(languages=("en",), n=6, size=128).save(tmp_path / "whole")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
