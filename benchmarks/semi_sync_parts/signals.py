"""Signals between the processes and the orchestrator: files in one folder, read whole.

up-JOB-TASK            a process's server runs; once
and, in the folder of each mode:
ready-TASK             a worker is ready for the mode
begin                  all are ready: build the graph and train
warm-TASK              a worker has trained its warm-up
window.json            all are warm: train until `stop`, seconds since the epoch
result-TASK.json       a worker's measurements; see `training`
"""

import json
import os
import time

from semisync.common.errors import SemisyncError
from semisync.common.files import write_json

POLL_SECONDS = 0.01


def give(folder, name, value=None):
    """Gives the signal `name`, with a JSON value."""
    write_json(os.path.join(folder, name), value)


def given(folder, name):
    """Whether the signal `name` has been given."""
    return os.path.exists(os.path.join(folder, name))


def read(folder, name):
    """The value of the signal `name`."""
    with open(os.path.join(folder, name)) as file:
        return json.load(file)


def wait_for(folder, name, timeout):
    """Waits at most `timeout` seconds for the signal `name`."""
    deadline = time.monotonic() + timeout
    while not given(folder, name):
        if time.monotonic() > deadline:
            raise SemisyncError("no signal {} in {:.0f} s in {}".format(name, timeout, folder))
        time.sleep(POLL_SECONDS)
