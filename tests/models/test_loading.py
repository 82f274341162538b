"""Loading, wrapping, and the errors of both."""

from pathlib import Path
from typing import Any

import pytest
import torch

import deixis as dx
from deixis.models import ModelError
from tests.toys import toy_items, toy_model, toy_processor


@pytest.fixture(scope="module")
def processor() -> Any:
    return toy_processor()


def test_a_saved_model_loads_through_the_same_path_and_gives_the_same_logits(processor: Any, tmp_path: Path) -> None:
    model = toy_model(processor)
    model.save_pretrained(tmp_path / "toy")
    processor.save_pretrained(tmp_path / "toy")
    loaded, held = dx.load(str(tmp_path / "toy"), device="cpu"), dx.wrap(model, processor)
    items = list(toy_items(3))
    with torch.inference_mode():
        one, two = (vlm.model(**vlm.prepare(items)).logits for vlm in (loaded, held))
    torch.testing.assert_close(one, two)
    assert loaded.name == str(tmp_path / "toy")
    assert not loaded.model.training


def test_dtype_is_passed_on(processor: Any, tmp_path: Path) -> None:
    toy_model(processor).save_pretrained(tmp_path / "toy")
    processor.save_pretrained(tmp_path / "toy")
    assert dx.load(str(tmp_path / "toy"), device="cpu", dtype="bfloat16").model.dtype == torch.bfloat16


def test_an_unknown_word_is_no_hub_name() -> None:
    with pytest.raises(ModelError, match=r"'picco' is neither bundled .*pico.*, nor a folder, nor a hub name"):
        dx.load("picco")


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="can't be loaded"):
        dx.load(str(tmp_path))


def test_a_model_in_training_mode_is_refused(processor: Any) -> None:
    with pytest.raises(ModelError, match=r"training mode.*model\.eval\(\)"):
        dx.wrap(toy_model(processor).train(), processor)


def test_a_bare_tokenizer_is_no_processor(processor: Any) -> None:
    with pytest.raises(ModelError, match="no processor of pictures and text"):
        dx.wrap(toy_model(processor), processor.tokenizer)


def test_an_architecture_without_a_record_names_the_known_ones(processor: Any) -> None:
    model = toy_model(processor)
    model.config.architectures = ["SomeOtherVLM"]
    with pytest.raises(ModelError, match=r"no family record for 'SomeOtherVLM'; known: .*Qwen3VL.*families\.py"):
        dx.wrap(model, processor)


def test_a_dtype_or_device_that_is_not_there_is_named(processor: Any, tmp_path: Path) -> None:
    toy_model(processor).save_pretrained(tmp_path / "toy")
    processor.save_pretrained(tmp_path / "toy")
    with pytest.raises(ModelError, match=r"dtype='float99' is no dtype of torch; use 'auto'"):
        dx.load(str(tmp_path / "toy"), dtype="float99")
    with pytest.raises(ModelError, match=r"device='xyz' can't be used: .* Use 'auto', 'cpu'"):
        dx.load(str(tmp_path / "toy"), device="xyz")
