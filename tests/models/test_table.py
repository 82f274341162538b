"""The page of families is what the records give, and its example is all that a new family needs."""

import re
from pathlib import Path
from typing import Any

import pytest

from deixis.models import FAMILIES, wrap
from deixis.models.checking.comparing import QUANTISED, TOLERANCE
from deixis.models.checks import AT_LOAD
from deixis.models.families import LEFT_OUT
from deixis.models.sites import SITES
from deixis.models.table import HEADINGS, FamilyRow, family_markdown, family_rows
from tests.toys import toy_model, toy_processor

PAGE = Path(__file__).parents[2] / "docs" / "families.md"


def test_the_page_holds_the_table_that_the_records_give() -> None:
    text = PAGE.read_text("utf-8")
    table = text[text.index("-->\n") + 4 : text.index("<!-- /families -->")]
    assert table == family_markdown(), "run: python docs/write_families.py"


def test_every_record_and_every_family_left_out_is_in_the_table() -> None:
    assert [row.architecture for row in family_rows()] == list(FAMILIES)
    markdown = family_markdown()
    for family in FAMILIES.values():
        assert f"| {family.name} | `{family.architecture}` |" in markdown
    assert all(f"| {name} | {why}. |" in markdown for name, why in LEFT_OUT.items())
    assert set(HEADINGS) <= set(FamilyRow.__dataclass_fields__)


def test_the_page_names_every_check_site_and_tolerance() -> None:
    text = PAGE.read_text("utf-8")
    assert all(f"| {name} |" in text for name in AT_LOAD)
    assert all(f"`{name}`" in text for name in SITES)
    assert all(f"{value:g} in " in text for value in TOLERANCE.values() if value > 1e-7)
    assert f"{QUANTISED} with quantised weights" in text


def test_the_example_record_is_all_that_a_new_family_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's code, run as it stands; a model of that name then loads and passes its checks."""
    (code,) = re.findall(r"```python\n(from deixis\.models\.families.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    monkeypatch.setattr("deixis.models.families.FAMILIES", FAMILIES)
    scope: dict[str, Any] = {}
    try:
        exec(code, scope)
        processor = toy_processor()
        model = toy_model(processor)
        model.config.architectures = ["MyVLMForConditionalGeneration"]
        vlm = wrap(model, processor)
        assert vlm.family is scope["record"]
        assert vlm.unchecked == ()
    finally:
        FAMILIES.pop("MyVLMForConditionalGeneration", None)
