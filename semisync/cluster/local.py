"""A real TensorFlow cluster on this machine: separate processes, on ports that the kernel picks.

Each process runs `python -m MODULE SPEC`. SPEC is a JSON object with `cluster`, `job`, `task`,
`parent` (this process's id, for `process.end_with_parent`) and whatever the caller adds.

The ports are held until the cluster stops (`semisync.cluster.launch.port`), so that none is lost
between choosing and using it.
"""

import json
import os
import signal
import subprocess
import time

from semisync.cluster.launch.port import HeldPort
from semisync.common.errors import SemisyncError, UsageError
from semisync.common.logs import last_error

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}


def environment():
    """The environment variables of a process with its own TensorFlow, a dict."""
    found = dict(os.environ, **QUIET)
    # Importing TensorFlow 2.x sets it, and it would make 1.15 behave like 2.x.
    found.pop("TF2_BEHAVIOR", None)
    return found


class LocalCluster:
    """Starts, watches and stops the processes; use it as a context manager.

    Args:
        python: an interpreter with TensorFlow.
        module: the module that each process runs, as for `python -m`.
        ps, workers: their numbers.
        logs: a directory; each process writes JOB-TASK.log there.
        cwd: the processes' working directory.
    """

    def __init__(self, python, module, ps, workers, logs, cwd=None):
        self._python = python
        self._module = module
        self._logs = logs
        self._cwd = cwd
        self.processes = {}
        self._held = [HeldPort() for _ in range(ps + workers)]
        addresses = ["127.0.0.1:{}".format(held.number) for held in self._held]
        self.addresses = {"ps": addresses[:ps], "worker": addresses[ps:]}

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.stop()

    def log(self, job, task):
        """The path of a process's log."""
        return os.path.join(str(self._logs), "{}-{}.log".format(job, task))

    def start(self, job, task, **spec):
        """Starts one process; returns its Popen."""
        spec = dict(spec, cluster=self.addresses, job=job, task=task, parent=os.getpid())
        with open(self.log(job, task), "ab") as log:
            try:
                process = subprocess.Popen(
                    [self._python, "-m", self._module, json.dumps(spec)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self._cwd,
                    env=environment(),
                    start_new_session=True,  # a group of its own, which `stop` kills
                )
            except OSError as error:
                raise UsageError(
                    "{} cannot be run: {}".format(self._python, error.strerror)
                ) from error
        self.processes[job, task] = process
        return process

    def start_all(self, **spec):
        """Starts every process of the cluster, the PS first."""
        for job in ("ps", "worker"):
            for task in range(len(self.addresses[job])):
                self.start(job, task, **spec)

    def wait(self, timeout, tick=lambda: None):
        """Waits until every worker has ended without an error.

        Args:
            timeout: seconds, in total.
            tick: called about ten times per second.

        Raises:
            SemisyncError: a process failed, with the last error in its log; or a worker did not end
                in time.
        """
        deadline = time.monotonic() + timeout
        while True:
            for (job, task), process in self.processes.items():
                code = process.poll()
                if code not in (None, 0):
                    raise SemisyncError(
                        "{} {} ended with exit code {}: {}".format(
                            job, task, code, self._last_error(job, task)
                        )
                    )
            running = [
                key for key, p in self.processes.items() if key[0] == "worker" and p.poll() is None
            ]
            if not running:
                return
            if time.monotonic() > deadline:
                raise SemisyncError(
                    "{} did not end in {:.0f} s; the logs are in {}".format(
                        ", ".join("{} {}".format(*key) for key in running), timeout, self._logs
                    )
                )
            tick()
            time.sleep(0.1)

    def _last_error(self, job, task):
        with open(self.log(job, task), "rb") as log:
            return last_error(log)

    def stop(self):
        """Kills every process that still runs, and releases the ports."""
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for held in self._held:
            held.close()
        self._held = []
