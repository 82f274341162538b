"""Every record is tested by existing."""

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import transformers

import deixis.models.families as families
from deixis.models import FAMILIES
from tests.toys import toy_vlm


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda f: f.architecture)
def test_a_record_names_a_class_of_transformers(family: families.Family) -> None:
    assert hasattr(transformers, family.architecture)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda f: f.architecture)
def test_every_path_of_a_record_resolves(family: families.Family) -> None:
    vlm = toy_vlm()
    assert vlm.family is family
    for field in fields(family):
        value = getattr(family, field.name)
        if isinstance(value, str) and field.name not in ("architecture", "checked_with"):
            vlm.model.get_submodule(value)


def test_an_architecture_is_named_once_in_the_package() -> None:
    root = Path(families.__file__).parents[1]
    for architecture in FAMILIES:
        found = sum(path.read_text().count(architecture) for path in root.rglob("*.py"))
        assert found == 1, architecture


def test_benchmarks_load_no_torch() -> None:
    code = "import sys, deixis.benchmarks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
