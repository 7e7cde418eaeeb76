"""The benchmark of conversion runs, and its JSON has the shape that is promised."""

import json
import pathlib
import sys

import pytest

from tests.support.programs import output_of

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_each_way_is_measured(tmp_path):
    report = tmp_path / "report.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "convert.py"), "--mb", "2"]
    command += ["--repeats", "1", "--sources", "mod", "--ways", "cp", "verified"]
    command += ["--dir", str(tmp_path), "--json", str(report)]
    printed = output_of(*command, PYTHONPATH=str(ROOT))
    (measured,) = json.loads(report.read_text())["mod"]
    assert set(measured) == {"cp", "verified"}
    assert all(one["seconds"] > 0 for one in measured.values())
    assert "| mod | verified |" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
