"""Which device a process has, and what is refused."""

import pytest
import torch

from migrate.training import device_of
from semisync.common.errors import UsageError

TORCHRUN = {"TORCHELASTIC_RUN_ID": "one", "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "3"}


@pytest.fixture
def one_of_four(monkeypatch):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)


def test_the_cpu_is_every_process_s(one_of_four):
    assert device_of("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["nowhere", "meta", "mps"])
def test_a_device_where_torch_cannot_compute_is_refused(name):
    with pytest.raises(UsageError, match=f"--device {name}: torch cannot compute there"):
        device_of(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused_in_one_sentence():
    with pytest.raises(UsageError, match="--device cuda: torch cannot compute there"):
        device_of("cuda")


def test_of_several_processes_none_says_which_gpu(one_of_four):
    with pytest.raises(UsageError, match="of 4 processes each takes its own GPU; say cuda"):
        device_of("cuda:1")


def test_more_processes_than_gpus_are_refused(one_of_four, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UsageError, match="has 2 GPUs, none for its process 3"):
        device_of("cuda")
