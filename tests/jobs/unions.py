"""The global batches of a run, rebuilt from its audit log and the workers' data."""

import collections
import re

from semisync import audit
from tests.jobs.data import batch


def numbered(log, has_chief):
    """The batches of every global step, lists of (worker, which of its batches, from 0).

    A worker reads its file in order, and the log keeps a worker's batches in order: the n-th batch
    that the log has of a worker is the n-th of its file.
    """
    seen, steps = collections.Counter(), []
    for step in audit.steps(log):
        steps.append([])
        for trained in step["batches"]:
            worker = _worker(trained["member"], has_chief)
            steps[-1].append((worker, seen[worker]))
            seen[worker] += 1
    return steps


def _worker(member, has_chief):
    """The number of the worker that an audited member names; a chief is number 0."""
    job, task = re.match(r"/job:(\w+)(?:/replica:0)?/task:(\d+) ", member).groups()
    return int(task) + (has_chief and job == "worker")


def rows_of(steps, size):
    """The rows of the global batches, one after another.

    A last, smaller global batch is repeated until it has `size` local batches. That keeps the mean
    over its rows, and a job that starts its data over cannot fill it with other rows.
    """
    whole = [batches * (size // len(batches)) for batches in steps]
    return [row for step in whole for worker, number in step for row in batch(worker, number)]
