"""A command that runs as a child and never outlives the launcher.

The command runs below a guard (`semisync.cluster.launch.guard`), a process that ends when the
command does, with the same status. It kills all other processes of the command, in its group or out
of it, when the command ends and when the launcher does, even by kill -9. The command's output comes
in whole lines to a function.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from typing import Any

from semisync.cluster.launch import guard
from semisync.common.errors import UsageError

PYTHON = "/proc/self/exe"  # what runs this; sys.executable may be a script in front of it
BLOCK = 1 << 16  # bytes; a line that is longer is passed on in parts
LAST_OUTPUT = 2.0  # seconds for output that is still in the pipe


class Child:
    """A command that runs from the start.

    Args:
        command: a list of words.
        environment: variables besides those of this process.
        say: takes a list of lines, bytes, and True for those of stderr; called in other threads.
        ended: called in another thread when the command has ended.
        folder: where it runs; None: where this process does.
    """

    def __init__(self, command, environment, say, ended, folder=None):
        self._ended = ended
        self.code = None  # as of subprocess.Popen; None while it runs
        self._process: Any = subprocess.Popen(
            [os.readlink(PYTHON), "-I", "-S", guard.__file__, *command],
            stdin=subprocess.PIPE,  # closed when this process ends
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ, **environment),
            start_new_session=True,
            cwd=folder,
        )
        self._pumps = [
            threading.Thread(target=_pump, args=(stream, say, is_error), daemon=True)
            for stream, is_error in ((self._process.stdout, False), (self._process.stderr, True))
        ]
        for pump in self._pumps:
            pump.start()
        self._waiter = threading.Thread(target=self._wait, name="semisync-child", daemon=True)
        self._waiter.start()

    @property
    def pid(self):
        """The guard's process id, which is that of the command's group."""
        return self._process.pid

    def _wait(self):
        # The guard is left a zombie until the rest of its group is gone, which is so already unless
        # it was killed: until then its id, which is the group's, cannot be reused.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self._signal(signal.SIGKILL)
        for pump in self._pumps:
            pump.join(LAST_OUTPUT)
        self.code = self._process.wait()
        self._process.stdin.close()
        self._ended()

    def _signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def stop(self, grace):
        """Ends it: SIGTERM, and SIGKILL after `grace` seconds; returns when it has ended."""
        if self._waiter.is_alive():
            self._signal(signal.SIGTERM)
            self._waiter.join(grace)
        if self._waiter.is_alive():
            # The guard takes this as the launcher's end, and kills all that it has below it.
            self._process.stdin.close()
            self._waiter.join()


def _pump(stream, say, is_error):
    rest = b""
    with stream:
        # os.read returns what is there; `stream.read` would wait for a whole block.
        for block in iter(lambda: os.read(stream.fileno(), BLOCK), b""):
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            if len(rest) >= BLOCK:
                lines, rest = [*lines, rest], b""
            if lines:
                say(lines, is_error)
    if rest:
        say([rest], is_error)


def check(command):
    """Raises UsageError unless the command can be run."""
    if not command:
        raise UsageError("the command is missing: end with -- and the command, as python train.py")
    comes_along = "/" in command[0] and not os.path.isabs(command[0])  # with the job's files
    if not comes_along and shutil.which(command[0]) is None:
        raise UsageError("{} is not a program that can be run".format(command[0]))


def in_words(code):
    """How a process ended, for people."""
    if code >= 0:
        return "exit code {}".format(code)
    return "killed by {}".format(signal.Signals(-code).name)
