"""Every record is tested by existing."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers

import deixis.models.families as families
from deixis.models import FAMILIES
from tests.models.pictures import noise, shown
from tests.models.tiny import TINY, tiny_vlm


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda f: f.architecture)
def test_a_record_names_a_class_of_transformers(family: families.Family) -> None:
    assert hasattr(transformers, family.architecture)


@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_path_of_a_record_resolves(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    family = vlm.family
    assert family is FAMILIES[architecture]
    for path in (family.blocks, family.final_norm, family.head, family.embeddings):
        assert vlm.model.get_submodule(path) is not None
    if family.merger is not None:
        assert any(True for _ in vlm.merger_module.parameters())
    if family.vision_blocks is not None and family.vision_attention is not None:
        for number, block in enumerate(vlm.vision_block_modules):
            assert vlm.vision_attention_of(number) in list(block.children())
    for layer in range(vlm.n_layers):
        name, attention = vlm.attention_of(layer)
        assert attention is getattr(vlm.blocks[layer], name)
        assert any(True for _ in vlm.mlp_of(layer).parameters())


@pytest.mark.parametrize("architecture", FAMILIES)
def test_a_config_selects_its_record_and_reads_pictures(architecture: str) -> None:
    config = tiny_vlm(architecture).model.config
    assert families.family_of(config) is FAMILIES[architecture]
    assert families.reads_pictures(config)


def test_every_tiny_model_has_a_record_and_the_other_way_round() -> None:
    assert list(TINY) == list(FAMILIES)
    assert all(family.name for family in FAMILIES.values())
    assert len({family.name for family in FAMILIES.values()}) == len(FAMILIES)


def test_a_text_only_model_is_told_from_an_unknown_one() -> None:
    text = transformers.Qwen3Config(architectures=["Qwen3ForCausalLM"])
    with pytest.raises(KeyError, match=r"'Qwen3ForCausalLM' is a text-only model: its config has no vision part"):
        families.family_of(text)
    unknown = transformers.Qwen3VLConfig(architectures=["NewVLM"])
    with pytest.raises(KeyError, match=r"no family record for 'NewVLM'; known: .*Add one in deixis/models/families\.py"):
        families.family_of(unknown)


@pytest.mark.parametrize("architecture", families.REMOTE_CODE)
def test_a_class_that_comes_with_its_model_is_named_with_the_reason(architecture: str) -> None:
    config = transformers.Qwen3VLConfig(architectures=[architecture])
    with pytest.raises(KeyError, match=rf"no family record for '{architecture}': .*comes with the model"):
        families.family_of(config)
    assert families.REMOTE_CODE[architecture] in families.LEFT_OUT


def test_a_block_or_tower_without_the_part_that_its_record_names_is_an_error() -> None:
    vlm = tiny_vlm("InternVLForConditionalGeneration")
    wrong = replace(vlm, family=replace(vlm.family, attention=("attn", "attention")))
    with pytest.raises(ValueError, match=r"block 0 of InternVLFor.* has no attn or attention; correct the record's attention"):
        wrong.attention_of(0)
    without = replace(vlm, family=replace(vlm.family, merger=None))
    with pytest.raises(ValueError, match=r"InternVLFor.* has no merger; its record says so"):
        _ = without.merger_module
    assert replace(vlm, family=replace(vlm.family, out_proj=("no_such",))).out_proj_of(0) is None


def test_blocks_of_a_second_part_of_a_tower_follow_on_the_first() -> None:
    vlm = tiny_vlm("MllamaForConditionalGeneration")
    tower = vlm.model.model.vision_model
    assert list(vlm.vision_block_modules) == [*tower.transformer.layers, *tower.global_transformer.layers]
    order: list[int] = []
    hooks = [b.register_forward_hook(lambda *_, i=i: order.append(i)) for i, b in enumerate(vlm.vision_block_modules)]
    with torch.inference_mode():
        vlm.model(**vlm.prepare([shown([noise(40, 40)])]))
    for hook in hooks:
        hook.remove()
    assert order == list(range(len(vlm.vision_block_modules)))


def test_an_architecture_is_named_once_in_the_package() -> None:
    root = Path(families.__file__).parents[1]
    for architecture in FAMILIES:
        found = sum(path.read_text().count(architecture) for path in root.rglob("*.py"))
        assert found == 1, architecture


def test_benchmarks_load_no_torch() -> None:
    code = "import sys, deixis.benchmarks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
