"""The reference page has an entry for everything that is public."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import deixis as dx

PAGE = (Path(__file__).parents[1] / "docs" / "reference.md").read_text("utf-8")
ROOMS = ("benchmarks", "models", "hooks", "activations", "analyses", "probes")
ENTRIES = re.findall(r"^::: (\S+)\.(\w+)$", PAGE, flags=re.MULTILINE)


def entries() -> dict[str, Any]:
    """What each entry of the page stands for, by its last name."""
    return {name: getattr(import_module(module), name) for module, name in ENTRIES}


def test_every_name_at_the_top_has_an_entry_that_is_that_object() -> None:
    found = entries()
    for name in set(dx.__all__) - {"__version__"}:
        assert found.get(name) is getattr(dx, name), name
    assert "`dx.__version__`" in PAGE


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_room_is_on_the_page(room: str) -> None:
    there, found = import_module(f"deixis.{room}"), entries()
    for name in there.__all__:
        if name.isupper() and name not in ("VLM",):  # tables of values have a word in the text
            assert f"`{name}`" in PAGE, name
        else:
            assert found.get(name) is getattr(there, name), name


def test_no_entry_comes_twice() -> None:
    names = [name for _, name in ENTRIES]
    assert len(names) == len(set(names))
    assert PAGE.count("\n::: ") == len(names)
