"""A real torch job of two nodes over a real ZooKeeper, one of whose processes is killed."""

import os
import signal
import subprocess
import sys

import pytest

from tests.cluster.waiting import DEADLINE, until
from tests.support.require import ROOT, environment

pytest.importorskip("torch")
STEPS = 20


@pytest.fixture
def launchers(server, tmp_path):
    """The launchers of two nodes, running."""
    command = [sys.executable, "-m", "semisync", "launch"]
    command += ["--zookeeper", server.hosts + "/torch", "--job", "torch", "--role", "torch"]
    command += ["--nodes", "2", "--restarts", "5", "--session-timeout", "3", "--", sys.executable]
    command += ["-m", "torch.distributed.run", "--nproc-per-node", "1"]
    command += [str(ROOT / "tests/cluster/launch/torch_job.py"), str(tmp_path), str(STEPS)]
    started = [
        subprocess.Popen(
            command,
            cwd=str(tmp_path),
            env=environment(PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1"),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
        for _ in range(2)
    ]
    yield started
    for launcher in started:
        launcher.kill()
        launcher.communicate()


@pytest.mark.long
def test_a_killed_rank_is_started_again_and_the_job_ends_well(launchers, tmp_path):
    pids = [tmp_path / "pid-{}".format(rank) for rank in range(2)]
    until(lambda: all(pid.exists() for pid in pids))
    os.kill(int(pids[1].read_text()), signal.SIGKILL)
    (tmp_path / "go").touch()
    words = [launcher.communicate(timeout=DEADLINE)[1] for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], "\n".join(words)
    assert "start 2 of at most 6" in words[0] + words[1]
    sums = [float((tmp_path / "sum-{}".format(rank)).read_text()) for rank in range(2)]
    assert sums == [3.0 * STEPS] * 2
