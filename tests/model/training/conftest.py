"""Jobs of `write_steps`, trained by TensorFlow 1.15 and 2.x once a version of the script."""

import pathlib
import sys

import pytest

from tests.model.training.recorded import jobs
from tests.support.require import tf1_python
from tests.support.written import written

_WRITER = pathlib.Path(__file__).with_name("write_steps.py")


@pytest.fixture(scope="session")
def jobs_tf1():
    """{name: Job} by TensorFlow 1.15."""
    return jobs(written(tf1_python(), _WRITER))


@pytest.fixture(scope="session")
def jobs_tf2():
    """The same by TensorFlow 2.x, without contrib's."""
    return jobs(written(sys.executable, _WRITER))
