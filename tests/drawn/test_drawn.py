"""Whole jobs drawn by their number: scores, three steps, and the way back.

A longer campaign: `python tests/drawn/write_drawn.py FOLDER 0 1000`, with the Python of either
TensorFlow, and `python -m tests.drawn.test_drawn FOLDER`.
"""

import pathlib
import sys
import tempfile
import traceback

import numpy as np
import pytest

import migrate
from migrate.model.training.build import build_training
from migrate.model.training.steps import TOLERANCE, compare_steps
from semisync import cli
from tests.back.same import assert_same
from tests.drawn.job import Job
from tests.model.features import loaded, outputs_of
from tests.support.require import LONG, ROOT, tf1_python
from tests.support.written import written

_WRITER = pathlib.Path(__file__).with_name("write_drawn.py")
_BESIDE = ["draw.py", "features.py", "nets.py", "optimizing.py"]
_BATCH = 10 if LONG else 4
_GRADIENT = 2e-4  # of a row: what saturates is near 0, and the rounding of its terms is not
_AVERAGE = "/ExponentialMovingAverage"  # is copied


@pytest.mark.parametrize("python", [tf1_python, lambda: sys.executable], ids=["tf1", "tf2"])
@pytest.mark.parametrize("first", range(0, 50, _BATCH))
@pytest.mark.few(1)
def test_jobs(python, first, tmp_path):
    given = {"variables.py": (ROOT / "tests" / "support" / "variables.py").read_bytes()}
    folder = written(python(), _WRITER, str(first), str(_BATCH), beside=_BESIDE, given=given)
    failed = {}
    for number in range(first, first + _BATCH):
        job = Job(folder / str(number))
        try:
            check(job, tmp_path / str(number))
        except Exception:  # the others are looked at too
            failed[number] = job.said + traceback.format_exc()
    assert not failed, "\n".join(f"{number}: {text}" for number, text in failed.items())


def check(job, folder):
    """That torch has its scores, takes its steps, and gives all back."""
    options = ["--model", "--output", "scores"]
    assert cli.main(["convert", job.prefix, str(folder / "out"), *options]) == 0
    (scores,) = outputs_of(loaded(folder / "out"), job.rows)
    np.testing.assert_allclose(scores, job.scores, rtol=1e-5, atol=1e-6)
    migrate.write_checkpoint(folder / "out", folder / "same", original=job.prefix)
    assert_same(job.prefix, folder / "same")
    training = build_training(job.prefix, feeds={"training": True})
    report = compare_steps(training, job.steps)
    assert report.neutral == {}
    for kind, difference in report.largest.items():
        bound = _GRADIENT if kind == "gradient" else TOLERANCE
        assert difference.relative <= bound, difference
    back = migrate.write_checkpoint(training, folder / "back", original=job.prefix)
    _assert_values(back.prefix, job.values)


def _assert_values(prefix, values):
    with migrate.open_checkpoint(prefix) as checkpoint:
        assert set(checkpoint) == set(values)
        for name, value in values.items():
            if _AVERAGE not in name:
                np.testing.assert_allclose(
                    checkpoint.read(name), value, rtol=1e-5, atol=1e-6, err_msg=name
                )


if __name__ == "__main__":
    for place in sorted(pathlib.Path(sys.argv[1]).iterdir(), key=lambda path: int(path.name)):
        one = Job(place)
        with tempfile.TemporaryDirectory() as out:
            try:
                check(one, pathlib.Path(out))
                print(place.name, "right", flush=True)
            except Exception as error:
                print(place.name, repr(error)[:400], "|", one.said, flush=True)
