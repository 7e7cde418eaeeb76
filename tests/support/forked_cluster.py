"""A LocalCluster whose processes need not import TensorFlow.

Starting a process takes 4 s of CPU with TensorFlow 2, nearly all of it to import TensorFlow. So the
processes are forked from one that has imported it and done nothing else. Each is still a separate
process, with its own server, threads and sockets, and dies alone.
"""

import json
import multiprocessing
import os
import runpy
import sys
import time

from semisync.cluster.local import LocalCluster


class Forked:
    """What LocalCluster expects of a subprocess.Popen."""

    def __init__(self, module, spec, log):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["semisync.common.compat", "tests.support.no_deprecations"])
        self._process = context.Process(target=run, args=(module, spec, log), daemon=True)
        self._process.start()
        self.pid = self._process.pid
        # LocalCluster can kill it only once it leads its own process group.
        while self.poll() is None and os.getpgid(self.pid) != self.pid:
            time.sleep(0.005)

    def poll(self):
        return self._process.exitcode

    def wait(self):
        self._process.join()


class ForkedCluster(LocalCluster):
    """Starts, watches and stops the processes; use it as a context manager.

    Args:
      module: the module that each process runs, as for `python -m`.
      ps, workers: their numbers.
      logs: a directory; each process writes JOB-TASK.log there.
    """

    def __init__(self, module, ps, workers, logs):
        super().__init__(sys.executable, module, ps, workers, logs)

    def start(self, job, task, **spec):
        """Starts one process; returns its `Forked`."""
        spec = dict(spec, cluster=self.addresses, job=job, task=task)
        self.processes[job, task] = process = Forked(self._module, spec, self.log(job, task))
        return process


def asked(request):
    """[parameter] of the tests of the module that run, each once, in the order of the tests: the
    cases that a cluster is to train."""
    found = {}
    for item in request.session.items:
        if item.parent is request.node and hasattr(item, "callspec"):
            found.update(dict.fromkeys(item.callspec.params.values()))
    return list(found)


def run(module, spec, log):
    """What `python -m MODULE SPEC` does, in this process; what it prints goes to `log`."""
    os.setpgid(0, 0)
    with open(log, "ab", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="-1")
    sys.argv = [module, json.dumps(dict(spec, parent=os.getppid()))]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
