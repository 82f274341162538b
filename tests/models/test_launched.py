"""Processes that a launcher started side by side."""

import pytest

from deixis.models import loading


@pytest.mark.parametrize(
    ("environment", "n_gpus", "device"),
    [
        ({}, 0, "cpu"),
        ({"LOCAL_RANK": "1"}, 0, "cpu"),
        ({}, 4, "cuda"),
        ({"LOCAL_RANK": "1"}, 4, "cuda:1"),
        ({"LOCAL_RANK": "1"}, 1, "cuda"),
        ({"SLURM_LOCALID": "3"}, 4, "cuda"),
        ({"SLURM_LOCALID": "3", "DEIXIS_SLURM": "1"}, 4, "cuda:3"),
    ],
)
def test_each_process_of_a_launcher_takes_its_own_gpu(environment: dict[str, str], n_gpus: int, device: str) -> None:
    assert loading._own_gpu(environment, n_gpus) == device
