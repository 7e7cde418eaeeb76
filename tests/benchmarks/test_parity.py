"""The benchmark of parity counts a Parquet file: how fast, in how much memory, how surely."""

import pathlib
import subprocess
import sys

from tests.support.require import environment

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_counting_from_parquet_is_measured():
    command = [sys.executable, "-m", "benchmarks.parity", "--rows", "--parquet", "20000"]
    command += ["--repeats", "1"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(PYTHONPATH=str(ROOT)), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows, seconds, _, memory, bound = done.stdout.splitlines()[-1].strip("| ").split(" | ")
    assert rows == "20,000"
    assert float(seconds.split()[0]) > 0
    assert 20 < float(memory) < 1000
    assert 0 < float(bound) < 1e-4
