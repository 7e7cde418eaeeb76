"""Which benchmarks `python -m benchmarks.run` runs."""

import datetime
import subprocess
import sys

import pytest

from benchmarks import results
from benchmarks.run import measured_since


@pytest.mark.long
def test_what_has_been_measured_since_is_left_out(tmp_path):
    results.write({"name": "files", "date": "2026-11-23"}, tmp_path)
    command = [sys.executable, "-m", "benchmarks.run", "files", "--since", "2026-11-23"]
    done = subprocess.run([*command, "--to", tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "files is left out: it was measured on 2026-11-23\n"


@pytest.mark.parametrize("name, date", [("files", "2026-11-24"), ("chaos", "2026-11-23")])
def test_what_is_older_or_not_there_is_not(name, date, tmp_path):
    results.write({"name": "files", "date": "2026-11-23"}, tmp_path)
    assert measured_since(name, tmp_path, datetime.date.fromisoformat(date)) is None
