"""The benchmark of conversion runs, and has a row for each way."""

import sys

import pytest

from tests.support.programs import output_of


@pytest.mark.long
def test_each_way_is_measured():
    command = [sys.executable, "-m", "benchmarks.convert", "--mb", "2"]
    command += ["--repeats", "1", "--sources", "mod", "--ways", "verified"]
    rows = [line.strip("| ").split(" | ") for line in output_of(*command).splitlines()[2:]]
    assert [row[:2] for row in rows] == [["mod", "cp"], ["mod", "verified"]]
    assert all(float(row[2].split()[0]) > 0 for row in rows)
