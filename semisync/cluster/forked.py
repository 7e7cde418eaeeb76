"""A LocalCluster whose processes need not import TensorFlow.

Starting a process takes 5 s of CPU with TensorFlow 2, nearly all of it to import TensorFlow. So the
processes are forked from one that has imported it and done nothing else. Each is still a separate
process, with its own server, threads and sockets, and dies alone.
"""

import contextlib
import json
import multiprocessing
import os
import runpy
import sys
import threading
import time

from semisync.cluster.local import QUIET, LocalCluster

PRELOADED = ["semisync.common.compat"]  # before the first fork


class Forked:
    """The part of subprocess.Popen's interface that `LocalCluster` uses.

    Args:
        module: the module that it runs, as for `python -m`.
        spec: its argument, a dict without `parent`.
        log: the path of a file; what the process prints is added to it.
        cwd: its working directory.
    """

    def __init__(self, module, spec, log, cwd):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self._open, theirs = context.Pipe()  # ours ends with this process
        arguments = (theirs, module, spec, log, cwd)
        self._process = context.Process(target=_run, args=arguments, daemon=True)
        with _quiet(log):
            self._process.start()
        theirs.close()
        self.pid = self._process.pid
        assert self.pid is not None  # it is started
        # It can be killed as a group only once it leads one.
        while self.poll() is None and os.getpgid(self.pid) != self.pid:
            time.sleep(0.005)

    def poll(self):
        """The exit code, as of a Popen; None while it runs."""
        return self._process.exitcode

    @property
    def returncode(self):
        """The exit code, as `poll` returns it."""
        return self.poll()

    def wait(self):
        """Returns once it has ended."""
        self._process.join()


class ForkedCluster(LocalCluster):
    """Starts, watches and stops processes of this interpreter; use it as a context manager.

    The processes import the program that starts them, so that its work must stand below
    `if __name__ == "__main__"`.

    Args:
        module, ps, workers, logs, cwd: as of `LocalCluster`.
    """

    def __init__(self, module, ps, workers, logs, cwd=None):
        super().__init__(sys.executable, module, ps, workers, logs, cwd)

    def start(self, job, task, **spec):
        """Starts one process; returns its `Forked`."""
        spec = dict(spec, cluster=self.addresses, job=job, task=task)
        process = Forked(self._module, spec, self.log(job, task), self._cwd)
        self.processes[job, task] = process
        return process


@contextlib.contextmanager
def _quiet(log):
    """In the block, new processes write their stderr, with little of TensorFlow's, to the file
    `log`; a fork server that starts then keeps this stderr and this environment."""
    environment, stream = dict(os.environ), os.dup(2)
    os.environ.update(QUIET)
    try:
        with open(log, "ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(stream, 2)
        os.close(stream)
        os.environ.clear()
        os.environ.update(environment)


def _run(starter, module, spec, log, cwd):
    """`python -m MODULE SPEC` in this process, until the one that started it ends."""
    os.setpgid(0, 0)
    threading.Thread(
        target=_end_with, args=(starter,), name="semisync-starter", daemon=True
    ).start()
    with open(log, "ab", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.environ.update(QUIET)
    if cwd is not None:
        os.chdir(cwd)
        sys.path.insert(0, cwd)
    sys.argv = [module, json.dumps(dict(spec, parent=os.getppid()))]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with(starter):
    """Ends this process with the one at the other end of a connection, which sends nothing."""
    try:
        starter.recv()
    except (EOFError, OSError):
        os._exit(1)
