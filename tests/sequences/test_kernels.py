"""The kernels for GPUs, interpreted on the CPU: see tests/sequences/kernels.py."""

import subprocess
import sys

import pytest

from tests.support.require import ROOT, environment

TRITON = ROOT / ".triton"


def test_interpreted_they_give_the_states_and_gradients_of_the_blocks():
    if not (TRITON / "triton").exists():
        pytest.skip("there is no .triton: `make test` installs it")
    path = f"{ROOT}:{TRITON}"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/sequences/kernels.py",
        ],
        cwd=ROOT,
        env=environment(TRITON_INTERPRET="1", PYTHONPATH=path),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout + done.stderr
