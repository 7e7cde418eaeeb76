"""What the processes and the orchestrator tell each other: files in one folder, read whole.

up-JOB-TASK            a process's server runs; once
and, in the folder of each mode:
ready-TASK             a worker stands before the mode
begin                  all stand: build the graph and train
warm-TASK              a worker has trained its warm-up
window.json            all have: train on until `stop`, seconds since the epoch
result-TASK.json       what a worker measured; see `training`
"""

import json
import os
import time

from semisync.common.errors import SemisyncError
from semisync.common.files import write_json

LOOK_EVERY = 0.01  # seconds


def give(folder, name, value=None):
    """Tells `value`, anything that JSON holds, under `name`."""
    write_json(os.path.join(folder, name), value)


def given(folder, name):
    """True once `name` was told."""
    return os.path.exists(os.path.join(folder, name))


def read(folder, name):
    """What was told under `name`."""
    with open(os.path.join(folder, name)) as file:
        return json.load(file)


def wait_for(folder, name, timeout):
    """Waits `timeout` seconds at most until `name` is told."""
    deadline = time.monotonic() + timeout
    while not given(folder, name):
        if time.monotonic() > deadline:
            raise SemisyncError("no word of {} in {:.0f} s in {}".format(name, timeout, folder))
        time.sleep(LOOK_EVERY)
