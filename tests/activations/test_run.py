"""Reading a run: from the shards by deixis, from the view by anything that reads HDF5."""

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from deixis.activations import (
    DamagedShardError,
    NotARunError,
    Run,
    RunError,
    SchemaError,
    UnfinishedRunError,
    open_run,
    record,
    recording,
)
from deixis.activations.settings import SCHEMA
from deixis.benchmarks import Items
from tests.toys import D_MODEL, N_LAYERS, toy_items, toy_vlm

N = 7


@pytest.fixture(scope="module")
def items() -> Items:
    return toy_items(N)


@pytest.fixture(scope="module")
def whole(items: Items, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two shards; tests that damage it copy it first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "SHARD_ITEMS", {"mean": 4, None: 4})
        path = tmp_path_factory.mktemp("runs") / "run"
        return record(toy_vlm(), items, path, batch_size=2, max_new_tokens=3, progress=False).path


@pytest.fixture
def run(whole: Path) -> Run:
    return open_run(whole)


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Run:
    return open_run(shutil.copytree(whole, tmp_path / "copy"))


def test_a_run_says_what_it_holds(run: Run) -> None:
    assert (run.sites, run.roles, run.layers("resid")) == (("resid",), ("answer", "object", "image"), [0, 1, 2, 3])
    assert run.finished
    assert run.resid(N_LAYERS).shape == (N, D_MODEL)
    assert run.resid(0, "image").dtype == np.float32
    assert "unfinished" not in repr(run)


def test_roles_without_tokens_are_nan_and_counted(run: Run, items: Items) -> None:
    empty = [not item.objects for item in items]
    assert np.isnan(run.resid(1, "object")).all(axis=1).tolist() == empty
    assert run.info["nan_rows"] == {"answer": 0, "object": sum(empty), "image": 0}
    assert run.info["whole_strings"] == sum(len(item.options) == 3 for item in items) == 1
    assert run.counts("image").tolist() == [4] * N


def test_options_are_a_row_each_in_item_order(run: Run, items: Items) -> None:
    frame = run.options
    assert list(frame) == ["item", "option", "term", "logit"]
    expected = [(item.id, option.label, option.term) for item in items for option in item.options]
    found = [(item, option, term if isinstance(term, str) else None) for item, option, term, _ in frame.itertuples(index=False)]
    assert found == expected
    assert np.isfinite(frame["logit"]).all()


def test_what_was_not_recorded_is_refused(run: Run) -> None:
    with pytest.raises(RunError, match="layer=9 was not recorded at resid; this run holds: 0, 1, 2, 3"):
        run.resid(9)
    with pytest.raises(RunError, match="role='text' was not recorded; this run holds: answer, object, image"):
        run.resid(0, "text")
    with pytest.raises(RunError, match="site='head' was not recorded; this run holds: resid"):
        run.activations("head", 0, "answer")
    with pytest.raises(RunError, match=r"holds means over tokens \(pool='mean'\); record with pool=None"):
        run.tokens("resid", 0, "image")


def test_several_tokens_an_item_are_not_taken_for_one_vector(items: Items, tmp_path: Path) -> None:
    run = record(toy_vlm(), items[:2], tmp_path / "run", roles=("image",), pool=None, answers=False, progress=False)
    with pytest.raises(RunError, match=r"'image' has several tokens an item in this run .* read them with \.tokens"):
        run.resid(0, "image")


def test_the_view_is_read_by_plain_h5py_from_anywhere(run: Run, items: Items, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.sep)
    with h5py.File(run.path / "run.h5") as file:
        for layer in run.layers("resid"):
            for role in run.roles:
                np.testing.assert_array_equal(file[f"resid/{layer}/{role}"][()], run.resid(layer, role))
        np.testing.assert_array_equal(file["options/logit"][()], run.options["logit"])
        assert [name.decode() for name in file["item"][()]] == [item.id for item in items]
        assert file["answers/utf8"][()].tobytes().decode() == "".join(run.answers)


def test_where_a_shard_is_missing_the_view_shows_nan_and_deixis_an_error(copied: Run) -> None:
    (copied.path / "shards" / "000001.h5").unlink()
    with h5py.File(copied.path / "run.h5") as file:
        rows = file["resid/2/answer"][()]
    assert np.isnan(rows).all(axis=1).tolist() == [False] * 4 + [True] * 3
    with pytest.raises(UnfinishedRunError, match=r"lacks 1 of 2 shards \(000001\.h5\)"):
        copied.resid(2)
    with pytest.raises(DamagedShardError, match=r"000001\.h5 is missing"):
        copied.verify()


def test_verify_names_every_damaged_shard(copied: Run, run: Run) -> None:
    assert run.verify() == 2
    for name in ("000000.h5", "000001.h5"):
        path = copied.path / "shards" / name
        path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DamagedShardError, match=r"000000\.h5 does not match its checksum.*000001\.h5 does not match"):
        copied.verify()
    with pytest.raises(DamagedShardError, match=r"000000\.h5 is damaged or truncated"):
        copied.resid(0)


def test_reading_one_layer_does_not_touch_another(copied: Run, run: Run) -> None:
    """Layer 3's bytes are damaged: layer 2 still reads, layer 3 does not."""
    path = copied.path / "shards" / "000000.h5"
    whole = bytearray(path.read_bytes())
    at = whole.index(run.resid(3)[1].tobytes())
    whole[at + 5] ^= 64
    path.write_bytes(whole)
    np.testing.assert_array_equal(copied.resid(2), run.resid(2))
    with pytest.raises(DamagedShardError, match=r"000000\.h5 is damaged at resid/3/answer"):
        copied.resid(3)


def test_no_run_other_schema_and_lost_items_are_named(copied: Run, tmp_path: Path) -> None:
    with pytest.raises(NotARunError, match="is no directory"):
        open_run(tmp_path / "nowhere")
    header = copied.path / "run.json"
    text = header.read_text("utf-8")
    header.write_text(text.replace('"n_items": 7', '"n_items": 6'), "utf-8")
    with pytest.raises(NotARunError, match="holds 7 items where 6 were recorded"):
        _ = open_run(copied.path).items
    lines = copied.path / "items.jsonl"
    lines.write_text("".join(lines.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
    header.write_text(text, "utf-8")
    with pytest.raises(NotARunError, match=r"items\.jsonl is not the list that was recorded"):
        _ = open_run(copied.path).options
    lines.unlink()
    with pytest.raises(NotARunError, match=r"items\.jsonl can't be read"):
        _ = open_run(copied.path).items
    header.write_text(text.replace(f'"schema": {SCHEMA}', '"schema": 99'), "utf-8")
    with pytest.raises(SchemaError, match="schema version 99"):
        open_run(copied.path)


def test_a_list_of_items_with_a_flipped_bit_is_refused_in_a_sentence(copied: Run) -> None:
    lines = copied.path / "items.jsonl"
    whole = lines.read_bytes()
    for bit in (0x80, 0x01):  # no text any more, and still text
        lines.write_bytes(whole[:40] + bytes([whole[40] ^ bit]) + whole[41:])
        with pytest.raises(NotARunError, match=r"items\.jsonl is not the list that was recorded .its hash differs."):
            _ = open_run(copied.path).items


def test_items_that_were_changed_or_put_in_another_order_are_refused(copied: Run) -> None:
    lines = (copied.path / "items.jsonl").read_text("utf-8").splitlines(keepends=True)
    (copied.path / "items.jsonl").write_text("".join(reversed(lines)), "utf-8")
    with pytest.raises(NotARunError, match=r"items\.jsonl is not the list that was recorded"):
        _ = open_run(copied.path).options
    with pytest.raises(NotARunError, match=r"items\.jsonl is not the list that was recorded"):
        open_run(copied.path).verify()
