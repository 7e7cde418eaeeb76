"""The benchmark of examples runs, and both sides have the same values."""

import pytest

from tests.support.programs import output_of


@pytest.mark.long
def test_every_case_has_tensorflows_values_and_a_row(interpreters):
    command = [interpreters / "python", "-W", "ignore", "-m", "benchmarks.examples"]
    command += ["--rows", "600", "--repeats", "1"]
    printed = output_of(*command, TF_CPP_MIN_LOG_LEVEL="3")
    assert printed.count(" a batch |") == 8
    assert printed.count("gzip |") == 2
