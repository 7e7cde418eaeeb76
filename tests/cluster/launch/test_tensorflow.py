"""A real job of TensorFlow 1.15, its script unchanged, over a real ZooKeeper.

Worker 2 comes when the others train, and worker 1 is killed: the job does not mind.
"""

import os
import re
import signal

import psutil
import pytest

from tests.cluster.launch.processes import Launchers
from tests.jobs import data
from tests.support.processes import running_with
from tests.support.require import ROOT, tf1_python
from tests.support.waiting import until

pytestmark = [pytest.mark.one_tensorflow, pytest.mark.long]

SCRIPT = ROOT / "tests/jobs/scripts/fed_learning_rate.py"
# Runs a script without TensorFlow's fixed sleeps.
HASTE = """
import runpy, sys
from tests.jobs.haste import make_haste
make_haste()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SCRIPT_WORDS = (
    "--ps_hosts={ps_hosts} --worker_hosts={worker_hosts} --job_name={job_name} "
    "--task_index={task_index} --data=part-{task_index}.csv --ckpt_dir=model --epochs=40"
)
BUILDS = "tf.train.replica_device_setter is deprecated"  # what TensorFlow says as a worker begins


class Job(Launchers):
    """Two parameter servers and three workers, launched one by one."""

    def __init__(self, hosts, folder):
        options = ["--zookeeper", hosts, "--job", "real", "--ps", "2", "--workers", "3"]
        # The launcher runs under the users' own Python, too.
        super().__init__(folder, [*options, "--session-timeout", "3"], tf1_python())
        for worker in range(3):
            data.write(folder / "part-{}.csv".format(worker), data.rows(worker))

    def start(self, role, number):
        command = [tf1_python(), "-c", HASTE, str(SCRIPT), *SCRIPT_WORDS.split()]
        self.launch("{}-{}".format(role, number), role, "--index", str(number), "--", *command)

    def steps(self, number):
        """The global steps at which a worker trained."""
        return [
            int(s) for s in re.findall(r"\] step (\d+),", self.words("worker-{}".format(number)))
        ]

    def command_of(self, key):
        """The number of the process of a launcher's command."""
        return running_with("fed_learning_rate", below=self.running[key].pid)[0]


@pytest.fixture(scope="module")
def ended(server, tmp_path_factory):
    """The job after its end; (job, exit codes, the step at which worker 2 was launched)."""
    job = Job(server.hosts + "/real", tmp_path_factory.mktemp("job"))
    try:
        for role, number in (("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)):
            job.start(role, number)
        until(lambda: job.steps(0) and job.steps(1))
        chief = job.command_of("worker-0")
        os.kill(chief, signal.SIGSTOP)  # or it might end before worker 2 has begun
        os.kill(job.command_of("worker-1"), signal.SIGKILL)
        launched_at = job.steps(0)[-1]
        job.start("worker", 2)
        until(lambda: BUILDS in job.words("worker-2"))
        os.kill(chief, signal.SIGCONT)
        yield job, {key: job.ended(key) for key in job.running}, launched_at
    finally:
        job.stop()


def test_every_launcher_ends_well_the_servers_too(ended):
    job, codes, _ = ended
    assert set(codes.values()) == {0}, "\n".join(job.words(key)[-2000:] for key in codes)


def test_a_killed_worker_is_started_again_and_trains(ended):
    job, _, _ = ended
    before, words, after = job.words("worker-1").partition("killed by SIGKILL; start 2 of")
    assert words and "] step" in before and "] step" in after


def test_a_late_worker_trains_with_the_others(ended):
    job, _, launched_at = ended
    assert len(job.steps(2)) == 40 * data.BATCHES
    assert job.steps(2)[0] > launched_at


def test_nothing_of_the_job_is_left(ended):
    folder = str(ended[0].folder)  # where every process of the job runs
    assert [p for p in psutil.process_iter(["cwd"]) if p.info["cwd"] == folder] == []
