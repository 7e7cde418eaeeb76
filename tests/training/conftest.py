"""The job of `write_job`, trained by TensorFlow once a version of the script."""

import pathlib
import sys

import pytest

from tests.support.written import written


@pytest.fixture(scope="session")
def job():
    """The folder with its checkpoint and rows."""
    return written(sys.executable, pathlib.Path(__file__).with_name("write_job.py"))
