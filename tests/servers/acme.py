"""The plug-in of docs/servers.md and the job that needs it."""

import pathlib
import re
import shutil
import sys

import numpy as np
import pytest

from tests.support.require import ROOT
from tests.support.written import written

SIZE, STEPS = 32, 6  # as in `write_job`


def source():
    """The code of the page."""
    page = (ROOT / "docs" / "servers.md").read_text()
    return re.search(r"```python\n(# file: acme_server.py.*?)```", page, re.DOTALL)[1]


class Job:
    """prefix: of a checkpoint of its own that a test may change. recorded: what TensorFlow gave."""

    def __init__(self, folder):
        self.prefix = str(folder / "model.ckpt")
        self.recorded = dict(np.load(folder / "recorded.npz"))
        self.dump = pathlib.Path(self.prefix + ".acme")

    def rows(self, which):
        """Columns of "before" or "after"."""
        start = which + "/"
        return {k[len(start) :]: v for k, v in self.recorded.items() if k.startswith(start)}


@pytest.fixture
def job(tmp_path):
    """Acme's job."""
    made = written(sys.executable, pathlib.Path(__file__).with_name("write_job.py"))
    shutil.copytree(made, tmp_path / "job")
    return Job(tmp_path / "job")


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """The path of acme_server.py, which is known to this process."""
    path = tmp_path / "acme_server.py"
    path.write_text(source())
    monkeypatch.setenv("SEMISYNC_PLUGINS", str(path))
    return path
