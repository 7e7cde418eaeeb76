"""LocalCluster says who failed, who is missing, and leaves nothing running."""

import os
import pathlib
import subprocess
import sys

import psutil
import pytest

from semisync.cluster.forked import ForkedCluster
from semisync.cluster.local import LocalCluster
from semisync.common.errors import SemisyncError
from semisync.demo.tensorflow.training import Stopwatch

ROOT = str(pathlib.Path(__file__).resolve().parents[2])


each_way = pytest.mark.parametrize("forked", [True, False], ids=["forked", "started"])


def cluster(tmp_path, ps=1, workers=2, forked=False):
    more = ("tests.support.puppet", ps, workers, tmp_path, ROOT)
    return ForkedCluster(*more) if forked else LocalCluster(sys.executable, *more)


def test_each_process_has_a_port_of_its_own(tmp_path):
    with cluster(tmp_path, ps=3, workers=5) as started:
        addresses = started.addresses["ps"] + started.addresses["worker"]
        assert len(set(addresses)) == 8
        assert all(address.startswith("127.0.0.1:") for address in addresses)


@each_way
@pytest.mark.few(1)
def test_waiting_ends_when_the_workers_have_ended(tmp_path, forked):
    with cluster(tmp_path, forked=forked) as started:
        started.start_all(do={"ps": "sleep", "worker": "end"})
        started.wait(timeout=120)
        assert started.processes["ps", 0].poll() is None
    assert started.processes["ps", 0].returncode == -9


@pytest.mark.few(1)
@each_way
def test_a_failure_is_told_with_its_last_words(tmp_path, forked):
    with cluster(tmp_path, forked=forked) as started:
        started.start_all(do={"ps": "sleep", "worker": "fail"})
        with pytest.raises(
            SemisyncError, match=r"worker \d ended with exit code 1: ValueError: .*fire"
        ):
            started.wait(timeout=120)


def test_a_missing_worker_is_named(tmp_path):
    with cluster(tmp_path) as started:
        started.start_all(do={"ps": "sleep", "worker": "sleep"})
        with pytest.raises(SemisyncError, match="worker 0, worker 1 did not end in 1 s"):
            started.wait(timeout=1)


def test_nothing_outlives_the_cluster(tmp_path):
    with cluster(tmp_path) as started:
        started.start_all(do={"ps": "sleep", "worker": "sleep"})
    for process in started.processes.values():
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)


KILLED = """
import os, pathlib, sys
from tests.demo.test_local_cluster import cluster
cluster = cluster(pathlib.Path(sys.argv[1]), 1, 1, sys.argv[2] == "forked")
cluster.start_all(do={"ps": "sleep", "worker": "sleep"})
print(*(process.pid for process in cluster.processes.values()), flush=True)
os.kill(os.getpid(), 9)
"""


@each_way
@pytest.mark.few(1)
def test_nothing_outlives_a_killed_parent(tmp_path, forked):
    command = [sys.executable, "-c", KILLED, str(tmp_path), "forked" if forked else "started"]
    killed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    started = {int(pid) for pid in killed.stdout.split()}
    processes = [process for process in psutil.process_iter() if process.pid in started]
    assert len(started) == 2
    assert psutil.wait_procs(processes, timeout=60)[1] == []


def test_the_stopwatch_leaves_the_warm_up_out():
    now = iter(range(100))
    stopwatch = Stopwatch(last_step=20, per_step=4, clock=lambda: float(next(now)))
    stopwatch.look(staleness=0, step=1)
    assert stopwatch.batches_per_second == 0.0
    for step in (2, 4, 8, 20):
        stopwatch.look(staleness=1, step=step)
    assert stopwatch.batches_per_second == (20 - 2) * 4 / 3
    assert stopwatch.share == 1.0
    assert stopwatch.staleness == {0: 1, 1: 4}
