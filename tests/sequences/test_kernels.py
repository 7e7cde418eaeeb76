"""The kernels for GPUs, interpreted on the CPU: see tests/sequences/kernels.py."""

import sys

import pytest

from tests.support.programs import output_of
from tests.support.require import ROOT, skip_without

TRITON = ROOT / ".triton"


@pytest.mark.long
def test_interpreted_they_give_the_states_and_gradients_of_the_blocks():
    if not (TRITON / "triton").exists():
        skip_without("triton", "there is no .triton: `make test` installs it")
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command = [*pytest, "tests/sequences/kernels.py"]
    printed = output_of(*command, TRITON_INTERPRET="1", PYTHONPATH=f"{ROOT}:{TRITON}")
    assert "9 passed" in printed
