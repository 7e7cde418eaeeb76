"""Jobs of `write_steps`, trained by TensorFlow 1.15 and 2.x once a version of the script."""

import pathlib
import sys

import pytest

from tests.model.training.recorded import jobs
from tests.support.require import LONG, tf1_python
from tests.support.written import written

_WRITER = pathlib.Path(__file__).with_name("write_steps.py")
# References and resources, slots of each kind, a rate that the graph computes, clipping.
OF_2 = [
    "adagrad", "adam", "adam_ref", "bert", "bert_resource", "centered_rmsprop", "ftrl", "nesterov",
]  # fmt: skip
SOME = ["adagrad", "adam", "adam_ref", "bert", "fed", "momentum", "nesterov", "sgd"]


@pytest.fixture(scope="session")
def jobs_tf1():
    """{name: Job} by TensorFlow 1.15; without LONG=1 those of SOME alone."""
    return jobs(written(tf1_python(), _WRITER, *([] if LONG else SOME)))


@pytest.fixture(scope="session")
def jobs_tf2():
    """Those of OF_2 by TensorFlow 2.x."""
    return jobs(written(sys.executable, _WRITER, *OF_2))
