"""One run of a job: its script on a cluster of its own, every process until it ends by itself."""

import json
import multiprocessing
import multiprocessing.forkserver
import time

import tensorflow.compat.v1 as tf

from semisync.cluster.forked import ForkedCluster
from semisync.common.errors import SemisyncError

DEADLINE = 300.0  # seconds for a whole run, of which it needs a few
LAST_WORDS = 30  # lines of each log in a failure


def preload():
    """Has the processes forked from one that has imported tf.contrib, which takes seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["semisync.common.compat", "tensorflow.contrib"])
    multiprocessing.forkserver.ensure_running()


class _ChiefHasEnded(Exception):
    pass


class Run:
    """Starts every process; `wait` for their end, as often as you like, and then `stop`.

    Args:
        job: a `Job`.
        script: its text.
        directory: a new one, a pathlib.Path: the processes run there.
        data: paths of the workers' files.
        batch_size: rows.
        steps: how many global steps to train, for jobs that are told.
    """

    def __init__(self, job, script, directory, data, batch_size, steps):
        self.directory, self.model = directory, directory / "model"
        self._script = directory / (job.name + ".py")
        self._script.write_text(script)
        self._arguments = job.arguments
        self._told = {"model": self.model, "batch_size": batch_size, "steps": steps}
        self._deadline = time.monotonic() + DEADLINE
        self._cluster = ForkedCluster("tests.jobs.process", job.ps, len(data), directory)
        for task in range(job.ps):
            self._start("ps", task, data[0])
        for task, path in enumerate(data):
            self._start("worker", task, path)

    def _start(self, job, task, data):
        addresses = self._cluster.addresses
        told = dict(
            self._told,
            ps_hosts=",".join(addresses["ps"]),
            worker_hosts=",".join(addresses["worker"]),
            job=job,
            task=task,
            data=data,
        )
        self._cluster.start(
            job,
            task,
            script=str(self._script),
            arguments=[argument.format(**told) for argument in self._arguments],
            environment={"TF_CONFIG": tf_config(addresses, job, task)},
            directory=str(self.directory),
        )

    def wait(self, chief_only=False):
        """Waits until every worker has ended well, or the chief alone.

        Raises:
            AssertionError: one did not; with the last lines of every log.
        """
        chief = self._cluster.processes["worker", 0]

        def look():
            if chief_only and chief.poll() == 0:
                raise _ChiefHasEnded

        try:
            self._cluster.wait(self._deadline - time.monotonic(), tick=look)
        except _ChiefHasEnded:
            pass
        except SemisyncError as error:
            said = "{} ({:.0f} s a run)\n{}".format(error, DEADLINE, self._last_words())
            raise AssertionError(said) from error

    def _last_words(self):
        words = []
        for log in sorted(self.directory.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-LAST_WORDS:]
            words += ["--- " + log.name] + lines
        return "\n".join(words)

    def stop(self):
        """Ends what still runs, as the parameter servers do."""
        self._cluster.stop()

    def variables(self):
        """Every variable of the newest checkpoint, a dict of arrays by name."""
        return read_checkpoint(tf.train.latest_checkpoint(str(self.model)))


def read_checkpoint(prefix):
    """Every variable of a checkpoint, a dict of arrays by name."""
    reader = tf.train.NewCheckpointReader(prefix)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def tf_config(addresses, job, task):
    """TF_CONFIG of a process for an Estimator, whose chief is worker 0 here."""
    workers = addresses["worker"]
    cluster = {"chief": workers[:1], "worker": workers[1:], "ps": addresses["ps"]}
    place = {"type": job, "index": task}
    if job == "worker":
        place = {"type": "worker", "index": task - 1} if task else {"type": "chief", "index": 0}
    return json.dumps({"cluster": {k: v for k, v in cluster.items() if v}, "task": place})
