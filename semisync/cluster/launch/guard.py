"""`python guard.py COMMAND...`: runs a command, and leaves nothing of it behind.

Linux gives a process whose parent has ended to the nearest ancestor that is a subreaper. The guard
is one, so whatever the command starts stays below the guard, in whichever group and session it is.

1. The guard starts the command in its own process group. The launcher signals that group, and the
   guard survives it.
2. When the command has ended, or the guard's standard input is closed, as by kill -9 of the
   launcher, it kills its children, and those that it is given then, until it has none.
3. It ends as the command has ended.

If the guard is killed, the command is too (PR_SET_PDEATHSIG). The file imports nothing of
semisync: it runs without the site's packages, which would take half a second.
"""

import ctypes
import errno
import os
import resource
import select
import signal
import sys
import time

SET_DEATH_SIGNAL, SET_SUBREAPER = 1, 36  # <linux/prctl.h>
SURVIVED = [
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGALRM,
    signal.SIGUSR1,
    signal.SIGUSR2,
]
PYTHON_IGNORES = signal.SIGPIPE, signal.SIGXFSZ  # and so would the command, after exec
KILL_AGAIN = 0.01  # seconds


def main(command):
    """Runs the command; returns its status from waitpid."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(SET_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "this kernel has no subreapers")
    woken, wake = os.pipe()
    os.set_blocking(wake, False)  # as set_wakeup_fd demands
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # before the fork: the command may end at once
    # Until the guard has its handlers: a signal to the group in between would end it.
    signal.pthread_sigmask(signal.SIG_BLOCK, SURVIVED)
    child = os.fork()
    if child == 0:
        _become(command, prctl)
    for number in SURVIVED:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as SIGHUP is under nohup
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SURVIVED)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)  # whoever reads the output sees its end when the command's own ends
    status = None
    while status is None:
        ready, _, _ = select.select([0, woken], [], [])
        if 0 in ready and not os.read(0, 1):
            break
        if woken in ready:
            os.read(woken, 4096)
        status = _reaped().get(child)
    return _end_all(child, status)


def _become(command, prctl):
    """The child's part: becomes the command."""
    try:
        prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in PYTHON_IGNORES:
            signal.signal(number, signal.SIG_DFL)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SURVIVED)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            os.execv("/bin/sh", ["sh", *command])  # a script without a first line that says by what
    except OSError as error:
        os.write(2, "{}: {}\n".format(command[0], error.strerror).encode())
    finally:
        os._exit(127)


def _reaped():
    """{process: status} of the children that have ended."""
    found: dict = {}
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if not process:
            return found
        found[process] = status


def _end_all(command, status):
    """Kills all descendants of this process; returns the command's status."""
    while True:
        children = _children()
        if not children:
            return status
        for process in children:
            os.kill(process, signal.SIGKILL)  # it is not reaped before, so the id is still its own
        time.sleep(KILL_AGAIN)
        status = _reaped().get(command, status)


def _children():
    """The ids of the processes whose parent is this one, those that have ended included."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/{}/stat".format(name), "rb") as file:
                # A process's name is in parentheses and may hold some: proc(5).
                parent = file.read().rpartition(b")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == os.getpid():
            found.append(int(name))
    return found


def _end_as(status):
    """Ends this process with the exit code or the signal of another."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has left its own core file
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    _end_as(main(sys.argv[1:]))
