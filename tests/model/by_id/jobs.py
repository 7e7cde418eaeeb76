"""The jobs of `write_jobs`, read."""

import pathlib

import numpy as np
import pytest
import torch

from tests.support.require import tfra_python
from tests.support.written import written

SIZE, STEPS = 32, 6


class Job:
    """prefix: its checkpoint. recorded: what `write_jobs` says."""

    def __init__(self, folder):
        self.folder = folder
        self.prefix = str(folder / "model.ckpt")
        self.recorded = dict(np.load(folder / "recorded.npz"))

    def rows(self, which):
        """Columns of "before" or "after"."""
        start = which + "/"
        return {k[len(start) :]: v for k, v in self.recorded.items() if k.startswith(start)}

    def batch(self, number):
        """What a recorded step was fed."""
        rows = self.rows("after")
        start = number * SIZE % len(rows["user"])
        return {name: torch.tensor(v[start : start + SIZE]) for name, v in rows.items()}

    def table(self, name):
        """{id: row} after the last step, of all shards of a table or a slot, by its last name."""
        found = {}
        for key, ids in self.recorded.items():
            if key.startswith("ids/") and f"/{name}_mht_" in key:
                found.update(zip(ids.tolist(), self.recorded["rows" + key[3:]]))
        assert found, name
        return found


@pytest.fixture(scope="session")
def by_id():
    """A function: the job of a name, or the folder of them all."""
    folder = written(tfra_python(), pathlib.Path(__file__).with_name("write_jobs.py"))
    return lambda name=None: folder if name is None else Job(folder / name)
