"""What identifies a run, and how a difference is told."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from deixis.activations import NotARunError, SchemaError, SettingsError
from deixis.activations.settings import (
    SCHEMA,
    check_same,
    describe_model,
    processor_fingerprint,
    read_header,
    weights_fingerprint,
    write_header,
)
from tests.toys import toy_items, toy_vlm

FINE: dict[str, Any] = {
    "model": "toy",
    "n_items": 6,
    "shard_items": 4,
    "layers": {"resid": [0]},
    "roles": ["answer"],
    "pool": "mean",
    "answers": True,
    "weights": "",
    "items_file": "",
}


def test_the_fingerprint_follows_the_weights() -> None:
    vlm = toy_vlm()
    before = weights_fingerprint(vlm.model)
    assert weights_fingerprint(toy_vlm().model) == before
    assert weights_fingerprint(toy_vlm(seed=1).model) != before
    assert weights_fingerprint(toy_vlm(torch.bfloat16).model) != before
    with torch.no_grad():
        vlm.blocks[1].self_attn.q_proj.weight += 1e-3
    assert weights_fingerprint(vlm.model) != before


def test_a_model_is_described_by_what_decides_its_numbers() -> None:
    described = describe_model(toy_vlm(torch.bfloat16))
    assert described["dtype"] == "bfloat16"
    assert described["family"] == "Qwen3VLForConditionalGeneration"
    assert described["attention_implementation"] == "sdpa"
    assert (described["n_layers"], described["d_model"], described["device"]) == (3, 32, "cpu")


def test_every_difference_is_shown(tmp_path: Path) -> None:
    there, here = {"pool": "mean", "dtype": "float32", "n": 1}, {"pool": None, "dtype": "float32", "n": 2}
    with pytest.raises(SettingsError, match="pool is 'mean' there and None here; n is 1 there and 2 here; use these settings"):
        check_same(tmp_path, there, here, finished=True)


def test_library_versions_count_only_while_a_run_goes_on(tmp_path: Path) -> None:
    there, here = {"libraries": {"torch": "2"}, "device": "cuda"}, {"libraries": {"torch": "3"}, "device": "cpu"}
    check_same(tmp_path, there, here, finished=True)
    with pytest.raises(SettingsError, match=r"libraries is {'torch': '2'} there and {'torch': '3'} here; device is 'cuda' there"):
        check_same(tmp_path, there, here, finished=False)


def test_a_header_is_read_or_refused(tmp_path: Path) -> None:
    with pytest.raises(NotARunError, match=r"is no run, it holds no run\.json; name a directory that dx\.record wrote"):
        read_header(tmp_path)
    with pytest.raises(NotARunError, match="is no directory; name a directory"):
        read_header(tmp_path / "nowhere")
    header = tmp_path / "run.json"
    header.write_text("{half", "utf-8")
    with pytest.raises(NotARunError, match=r"run\.json can't be read"):
        read_header(tmp_path)
    header.write_text("[]", "utf-8")
    with pytest.raises(NotARunError, match="is not a run's header"):
        read_header(tmp_path)
    header.write_text(json.dumps({"schema": SCHEMA + 1}), "utf-8")
    with pytest.raises(SchemaError, match=f"has schema version {SCHEMA + 1} and this deixis reads version {SCHEMA}"):
        read_header(tmp_path)
    header.write_text(write_header(FINE | {"model": "模型"}), "utf-8")
    assert read_header(tmp_path) == {"schema": SCHEMA} | FINE | {"model": "模型"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_change_of_any_single_weight_is_seen(dtype: torch.dtype) -> None:
    model = torch.nn.Linear(300, 70, dtype=dtype)
    before = weights_fingerprint(model)
    rng = torch.Generator().manual_seed(0)
    for at in torch.randint(300 * 70, (40,), generator=rng).tolist():
        with torch.no_grad():
            flat = model.weight.view(-1)
            kept = flat[at].clone()
            flat[at] = kept * 1.5 + 1
            assert weights_fingerprint(model) != before, at
            flat[at] = kept
    assert weights_fingerprint(model) == before
    with torch.no_grad():  # the same values in another order
        model.weight.copy_(model.weight.flip(1))
    assert weights_fingerprint(model) != before


def test_chunks_do_not_change_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.nn.Linear(50, 41)
    before = weights_fingerprint(model)
    monkeypatch.setattr("deixis.activations.settings._CHUNK", 7)
    assert weights_fingerprint(model) == before


def test_the_processor_is_part_of_what_made_a_run() -> None:
    vlm = toy_vlm()
    before = processor_fingerprint(vlm)
    vlm.prepare(list(toy_items(2)))  # padding leaves a trace in the tokenizer that means nothing
    assert processor_fingerprint(vlm) == before
    vlm.processor.image_processor.image_mean = [0.0, 0.0, 0.0]
    assert processor_fingerprint(vlm) != before
    other = toy_vlm()
    other.processor.chat_template = other.processor.chat_template + " "
    assert processor_fingerprint(other) != before


@pytest.mark.parametrize(
    ("name", "value"), [("n_items", "6"), ("n_items", 0), ("shard_items", 0), ("layers", None), ("roles", "answer"), ("pool", 3)]
)
def test_a_header_that_no_recorder_wrote_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    (tmp_path / "run.json").write_text(write_header(FINE | {name: value}))
    with pytest.raises(NotARunError, match=rf"run.json has been changed: {name} cannot be right"):
        read_header(tmp_path)
