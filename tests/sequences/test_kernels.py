"""The kernels for GPUs, interpreted on the CPU: see tests/sequences/kernels.py."""

import subprocess
import sys

from tests.support.require import ROOT, environment, skip_without

TRITON = ROOT / ".triton"


def test_interpreted_they_give_the_states_and_gradients_of_the_blocks():
    if not (TRITON / "triton").exists():
        skip_without("triton", "there is no .triton: `make test` installs it")
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*pytest, "tests/sequences/kernels.py"],
        cwd=ROOT,
        env=environment(TRITON_INTERPRET="1", PYTHONPATH=f"{ROOT}:{TRITON}"),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout + done.stderr
