"""Every record is tested by existing."""

import subprocess
import sys
from pathlib import Path

import pytest
import transformers

import deixis.models.families as families
from deixis.models import FAMILIES
from tests.models.tiny import tiny_vlm


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


def test_an_architecture_is_named_once_in_the_package() -> None:
    root = Path(families.__file__).parents[1]
    for architecture in FAMILIES:
        found = sum(path.read_text().count(architecture) for path in root.rglob("*.py"))
        assert found == 1, architecture


def test_benchmarks_load_no_torch() -> None:
    code = "import sys, deixis.benchmarks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
