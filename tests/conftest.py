"""What every test runs under: no model hub, no window, no picture cache of the user's."""

import os
import sys
from collections.abc import Iterator

import pytest

# Read when transformers and matplotlib are first imported, so before any test module.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture(scope="session", autouse=True)
def picture_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Pictures are drawn once a session: a renderer that draws something new is never hidden by old pictures."""
    before = os.environ.get("DEIXIS_CACHE")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # the worker processes of one session share what they draw
        folder = folder.parent
    os.environ["DEIXIS_CACHE"] = str(folder / "picture-cache")
    yield
    if before is None:
        del os.environ["DEIXIS_CACHE"]
    else:
        os.environ["DEIXIS_CACHE"] = before


@pytest.fixture(autouse=True)
def no_open_figures() -> Iterator[None]:
    """A test that draws leaves no figure open (matplotlib warns from the twentieth on, and warnings are errors)."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
