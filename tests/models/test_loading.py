"""Loading, wrapping, and the errors of both."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import deixis as dx
from deixis.models import ModelError, loading
from deixis.models.checking.comparing import QUANTISED, TOLERANCE, tolerance
from tests.models.tiny import tiny_vlm
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


def test_a_class_without_a_record_is_resolved_or_told_which_are_known(processor: Any) -> None:
    model = toy_model(processor)
    model.config.architectures = ["SomethingElse"]
    assert dx.wrap(model, processor).family.architecture == "SomethingElse"
    del model.model.language_model.norm  # nothing between the blocks and the head
    with pytest.raises(ModelError, match=r"no family record for 'SomethingElse' \(known: .*Qwen3VLForConditionalGeneration"):
        dx.wrap(model, processor)


def test_a_dtype_or_device_that_is_not_there_is_named(processor: Any, tmp_path: Path) -> None:
    toy_model(processor).save_pretrained(tmp_path / "toy")
    processor.save_pretrained(tmp_path / "toy")
    with pytest.raises(ModelError, match=r"dtype='float99' is no dtype of torch; use 'auto'"):
        dx.load(str(tmp_path / "toy"), dtype="float99")
    with pytest.raises(ModelError, match=r"device='xyz' can't be used: .* Use 'auto', 'cpu'"):
        dx.load(str(tmp_path / "toy"), device="xyz")


def saved_without(tmp_path: Path, processor: Any, *names: str) -> Path:
    """A saved toy that lacks some files."""
    toy_model(processor).save_pretrained(tmp_path / "toy")
    processor.save_pretrained(tmp_path / "toy")
    for name in names:
        (tmp_path / "toy" / name).unlink()
    return tmp_path / "toy"


def test_a_model_without_a_processor_says_so(processor: Any, tmp_path: Path) -> None:
    toy_model(processor).save_pretrained(tmp_path / "toy")
    with pytest.raises(ModelError) as caught:
        dx.load(str(tmp_path / "toy"), device="cpu")
    assert re.search(
        r"comes without a whole processor of pictures and text \([^.]*\); put the files .* use dx\.wrap\.$", str(caught.value)
    )


def test_a_model_without_a_tokenizer_says_so(tmp_path: Path) -> None:
    vlm = tiny_vlm("InternVLForConditionalGeneration")
    vlm.model.save_pretrained(tmp_path / "tiny")
    vlm.processor.save_pretrained(tmp_path / "tiny")
    for path in (tmp_path / "tiny").glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ModelError, match=r"without a whole processor of pictures and text \(Can't make its processor: "):
        dx.load(str(tmp_path / "tiny"), device="cpu")


def test_a_model_without_a_chat_template_says_so_before_it_is_checked(processor: Any, tmp_path: Path) -> None:
    folder = saved_without(tmp_path, processor, "chat_template.jinja")
    with pytest.raises(ModelError, match=r"has no chat template, .* set processor\.chat_template .* and use dx\.wrap"):
        dx.load(str(folder), device="cpu")
    assert dx.load(str(folder), device="cpu", check=False).processor.chat_template is None


def test_a_text_only_folder_is_refused(processor: Any, tmp_path: Path) -> None:
    text_only().save_pretrained(tmp_path / "text")
    processor.tokenizer.save_pretrained(tmp_path / "text")
    with pytest.raises(ModelError, match=r"LlamaConfig is of no model that takes pictures"):
        dx.load(str(tmp_path / "text"), device="cpu")


def text_only() -> Any:
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 333}
    return LlamaForCausalLM(LlamaConfig(**size)).eval()


def test_a_text_only_model_in_memory_is_refused(processor: Any) -> None:
    with pytest.raises(ModelError, match="LlamaForCausalLM takes text only"):
        dx.wrap(text_only(), processor)


def test_a_model_with_code_of_its_own_says_what_is_needed(processor: Any, tmp_path: Path) -> None:
    """As Ovis2.5 has it: the config names a class in a file beside it."""
    folder = saved_without(tmp_path, processor)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "ovis2_5", "architectures": ["Ovis2_5"]}
    config["auto_map"] = {
        "AutoConfig": "configuration_ovis2_5.Ovis2_5_Config",
        "AutoModelForCausalLM": "modeling_ovis2_5.Ovis2_5",
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"comes with code of its own; read that code, then pass trust_remote_code=True"):
        dx.load(str(folder), device="cpu")


def test_another_word_for_check_is_refused(processor: Any) -> None:
    with pytest.raises(ModelError, match=r"check='slow' is not one of: True, False, 'full'"):
        dx.wrap(toy_model(processor), processor, check="slow")


def test_what_was_not_checked_is_said(processor: Any) -> None:
    model = toy_model(processor)
    assert dx.wrap(model, processor).unchecked == ()
    assert dx.wrap(model, processor, check=False).unchecked == ("nothing was checked: check=False.",)
    mllama = tiny_vlm("MllamaForConditionalGeneration")
    assert [said.partition(":")[0] for said in dx.wrap(mllama.model, mllama.processor).unchecked] == ["image"]


class Adapted:
    """What peft puts around a model, as far as wrapping looks at it."""

    training = False

    def __init__(self, model: Any, **settings: Any) -> None:
        self.peft_config = {"default": SimpleNamespace(peft_type="PREFIX_TUNING", **settings)}
        self._model = model

    def get_base_model(self) -> Any:
        return self._model


def test_an_adapter_in_the_layers_is_seen_through_and_one_before_the_prompt_refused(processor: Any) -> None:
    model = toy_model(processor)
    assert dx.wrap(Adapted(model, is_prompt_learning=False), processor).model is model
    with pytest.raises(ModelError, match=r"the adapter 'default' \(PREFIX_TUNING\) puts positions of its own before the prompt"):
        dx.wrap(Adapted(model, is_prompt_learning=True), processor)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # peft asks transformers by an old name
def test_a_real_adapter_is_part_of_what_is_watched(processor: Any) -> None:
    peft = pytest.importorskip("peft")
    model = toy_model(processor)
    plain = dx.wrap(model, processor).prepare(list(toy_items(1)))
    before = model(**plain).logits.detach().clone()
    tuned = peft.get_peft_model(model, peft.LoraConfig(target_modules=["q_proj", "o_proj"], init_lora_weights=False)).eval()
    vlm = dx.wrap(tuned, processor)
    with torch.no_grad():
        vlm.reset()
        after = vlm.model(**plain).logits
        vlm.reset()
        torch.testing.assert_close(after, tuned(**plain).logits)
    assert float((after - before).abs().max()) > 0.1


def test_weights_kept_on_disk_are_run_and_what_cannot_be_checked_is_said(processor: Any, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    folder = saved_without(tmp_path, processor)
    parts = {"model.visual": "cpu", "model.language_model": "disk", "lm_head": "disk"}
    vlm = dx.load(str(folder), device_map=parts, offload_folder=str(tmp_path / "off"))
    assert any(said.startswith("logits: the head's weights are not in memory") for said in vlm.unchecked)


def test_quantised_weights_are_left_where_they_are(processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """bitsandbytes refuses to move its weights; the tolerance is that of quantised weights."""
    model = toy_model(processor)
    monkeypatch.setattr(loading, "_from_pretrained", lambda *_: (model, processor))
    model.config.quantization_config = SimpleNamespace(quant_method="bitsandbytes", to_dict=dict)
    monkeypatch.setattr(type(model), "to", lambda *_: pytest.fail("moved"))
    vlm = dx.load("owner/quantised", device="cpu", check=False)
    assert tolerance(vlm) == QUANTISED > max(TOLERANCE.values())
