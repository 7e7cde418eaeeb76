"""The benchmark of examples runs, and both sides have the same values."""

import subprocess

import pytest

from tests.support.require import ROOT, environment


@pytest.mark.long
def test_every_case_has_tensorflows_values_and_a_row(interpreters):
    command = [str(interpreters / "python"), "-W", "ignore", "-m", "benchmarks.examples"]
    done = subprocess.run(
        [*command, "--rows", "600", "--repeats", "1"],
        cwd=str(ROOT),
        env=environment(TF_CPP_MIN_LOG_LEVEL="3"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.count(" a batch |") == 8
    assert done.stdout.count("gzip |") == 2
