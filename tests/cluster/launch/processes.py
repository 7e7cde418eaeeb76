"""Launchers in processes of their own, which meet in ZooKeeper, each with a log."""

import subprocess
import sys

from tests.support.require import ROOT, environment
from tests.support.waiting import DEADLINE


class Launchers:
    """Starts launchers of one job; use `stop` at the end.

    Args:
        folder: a pathlib directory, in which they run and where their logs are.
        options: of all of them, a list.
        python: the interpreter.
    """

    def __init__(self, folder, options, python=sys.executable):
        self.folder, self._options, self._python = folder, options, python
        self.running = {}

    def launch(self, key, role, *options, folder=None):
        """Starts a launcher, in a folder of its own perhaps; its lines are in `words(key)`."""
        with open(str(self.folder / (key + ".log")), "wb") as log:
            self.running[key] = subprocess.Popen(
                [
                    self._python,
                    "-m",
                    "semisync",
                    "launch",
                    *self._options,
                    "--role",
                    role,
                    *options,
                ],
                cwd=str(folder or self.folder),
                env=environment(
                    PYTHONPATH=str(ROOT), TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="-1"
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def words(self, key):
        return (self.folder / (key + ".log")).read_text(errors="replace")

    def ended(self, key):
        """The exit code."""
        return self.running[key].wait(timeout=DEADLINE)

    def stop(self):
        for launcher in self.running.values():
            launcher.kill()
            launcher.wait()
