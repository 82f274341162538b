"""Whatever ``run.json`` holds: the run is refused in a sentence of ours, or is what the header says."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deixis.activations import RunError, open_run, record
from tests.activations.fuzz import little_memory
from tests.benchmarks.test_fuzz_readers import JSON, places, replaced
from tests.toys import toy_items, toy_vlm

QUICK = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
LONG = settings(QUICK, max_examples=3000)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(toy_vlm(), toy_items(2), tmp_path_factory.mktemp("runs") / "run", max_new_tokens=2, progress=False).path


@pytest.fixture(scope="module")
def header(path: Path) -> dict[str, Any]:
    return json.loads((path / "run.json").read_text("utf-8"))


def used(path: Path, text: str | bytes) -> bool:
    """Whether everything could be read, by every way of reading."""
    (path / "run.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        run = open_run(path)
        assert isinstance(repr(run), str)
    except RunError:
        return False
    whole = True
    for reading in (
        lambda: run.items,
        lambda: run.resid(1),
        lambda: run.counts("image"),
        lambda: run.options,
        lambda: run.answers,
        lambda: run.info,
        run.verify,
        lambda: run.finished,
        lambda: run.attention(),
    ):
        try:
            reading()
        except RunError:
            whole = False
    return whole


@pytest.fixture(scope="module", autouse=True)
def restored(path: Path, header: dict[str, Any]):
    yield
    (path / "run.json").write_text(json.dumps(header))


@pytest.mark.parametrize("effort", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)], ids=["quick", "long"])
def test_a_header_with_anything_in_any_place_is_refused_or_right(path: Path, header: dict[str, Any], effort: Any):
    @effort
    @given(place=st.sampled_from(places(header)), new=JSON)
    def changed(place: tuple[Any, ...], new: Any) -> None:
        used(path, json.dumps(replaced(header, place, new)))

    with little_memory():
        changed()


@pytest.mark.parametrize("effort", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)], ids=["quick", "long"])
def test_any_json_is_refused(path: Path, effort: Any):
    @effort
    @given(value=JSON)
    def refused(value: Any) -> None:
        assert not used(path, json.dumps(value))

    with little_memory():
        refused()


@pytest.mark.parametrize("number", [10**18, 2**63, 10**400, 1, 3])
@pytest.mark.parametrize("name", ["n_items", "shard_items"])
def test_huge_promises_take_no_time_and_no_memory(path: Path, header: dict[str, Any], name: str, number: int):
    used(path, json.dumps(header | {name: number}))


def test_flipped_bytes_are_refused_or_read(path: Path, header: dict[str, Any]):
    right, chance = json.dumps(header).encode(), random.Random(0)
    for _ in range(60):
        data = bytearray(right)
        data[chance.randrange(len(data))] = chance.randrange(256)
        used(path, bytes(data))


def test_nesting_without_end_is_refused(path: Path):
    assert not used(path, "[" * 100_000)
