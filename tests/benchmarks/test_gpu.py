"""What is to be seen on a GPU runs, for a rehearsal, on the CPU."""

import json

import pytest

from tests.support.programs import output_of


def gpu(interpreters, *arguments):
    """The output of the script."""
    return output_of(interpreters / "python", "-W", "ignore", "-m", "benchmarks.gpu", *arguments)


@pytest.mark.long
def test_every_part_is_measured_and_agrees_with_itself(interpreters, tmp_path):
    gpu(interpreters, "--write", str(tmp_path))
    figures = str(tmp_path / "gpu.json")
    gpu(interpreters, "--folder", str(tmp_path), "--device", "cpu", "--short", "--json", figures)
    parts = json.loads((tmp_path / "gpu.json").read_text())["parts"]
    assert {name: part["not measured"] for name, part in parts.items()} == dict.fromkeys(parts)
    errors = [
        value
        for part in parts.values()
        for row in part["rows"]
        if row.get("numbers") != "bf16"
        for name, value in row.items()
        if name.startswith("error") and value is not None
    ]
    assert len(errors) == 12 and max(errors) < 1e-6
    assert parts["raw_ids"]["rows"][0]["rows that differ"] == 0


@pytest.mark.long
def test_without_a_gpu_it_says_so(interpreters):
    assert "torch finds no GPU here" in gpu(interpreters)
