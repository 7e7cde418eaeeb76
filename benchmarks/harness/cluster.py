"""A TensorFlow cluster of processes on this machine, which run a module of the benchmarks."""

import os

from semisync.cluster.local import LocalCluster

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def cluster_of(module, python, ps, workers, logs):
    """A LocalCluster that has not started yet."""
    return LocalCluster(python, module, ps=ps, workers=workers, logs=logs, cwd=ROOT)


def train(module, python, ps, workers, logs, seconds, **spec):
    """Runs the processes with the entries of `spec`, until all workers have ended.

    Args:
        logs: a folder.
        seconds: how long that may take.
    """
    with cluster_of(module, python, ps, workers, logs) as cluster:
        cluster.start_all(**spec)
        cluster.wait(seconds)
