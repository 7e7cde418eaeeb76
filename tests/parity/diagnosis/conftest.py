"""Models trained once a test run: a torch one in the process, TensorFlow's in one of its own."""

import copy
import pathlib
import sys

import numpy as np
import pytest
import torch

import parity
from tests.parity.diagnosis.log import TEST, TRAIN, write_log
from tests.parity.diagnosis.torch_model import Model, score, train
from tests.support.written import written

_WRITER = pathlib.Path(__file__).with_name("write_models.py")


class Bench:
    """A trained baseline, its scores of a test log, and a way to compare another model with it."""

    def __init__(self):
        self.log, self.test = write_log(TRAIN, 1), write_log(TEST, 2)
        bags = np.split(self.test.tags, np.cumsum(self.test.lengths)[:-1])
        self.ids = {"user": self.test.user, "item": self.test.item, "tags": bags}
        self.days = np.arange(TEST) * 5 // TEST
        self.model = self.trained()
        self.scores = score(self.model, self.test)

    def trained(self, make=None, seed=0):
        """A model after one pass with the optimizer that `make` gives: Adam without it."""
        model = Model(seed)
        make = make or (lambda parameters: torch.optim.Adam(parameters, lr=0.005))
        return train(model, self.log, make(model.parameters()))

    def copy(self):
        """The baseline's model, to plant a fault in."""
        return copy.deepcopy(self.model)

    def diagnose(self, candidate, rows=TEST, ids=True, margin=5e-4, **more):
        """The comparison of some scores with the baseline's, on the first rows."""
        columns = [one[:rows] for one in (self.test.label, self.scores, candidate)]
        found = parity.compare(*columns, margin)
        looked_up = {name: values[:rows] for name, values in self.ids.items()} if ids else None
        parts = {"day": self.days[:rows]}
        return parity.diagnose(found, *columns, parts=parts, day="day", ids=looked_up, **more)


@pytest.fixture(scope="session")
def bench():
    """Trained in about two seconds, on one thread so that it is the same every time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield Bench()
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tensorflow_models():
    """Folder of the checkpoints and scores that `write_models.py` says."""
    return written(sys.executable, _WRITER, beside=["log.py"])
