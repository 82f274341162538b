"""Files are whole or not there."""

import hashlib
from pathlib import Path

import pytest

from deixis.activations.disk import replacing, sha256_of, write_text


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    def fail_while_writing() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    path = tmp_path / "a.json"
    write_text(path, "whole 距離\n")
    with pytest.raises(ZeroDivisionError):
        fail_while_writing()
    assert path.read_text("utf-8") == "whole 距離\n"
    assert list(tmp_path.iterdir()) == [path]


def test_the_hash_is_the_one_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc" * 100_000)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"abc" * 100_000).hexdigest()
