"""The benchmark of parity counts a Parquet file: how fast, in how much memory, how surely."""

import pathlib
import sys

import pytest

from tests.support.programs import output_of

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_counting_from_parquet_is_measured():
    command = [sys.executable, "-m", "benchmarks.parity", "--rows", "--parquet", "20000"]
    command += ["--repeats", "1"]
    printed = output_of(*command)
    rows, seconds, _, memory, bound = printed.splitlines()[-1].strip("| ").split(" | ")
    assert rows == "20,000"
    assert float(seconds.split()[0]) > 0
    assert 20 < float(memory) < 1000
    assert 0 < float(bound) < 1e-4
