"""The command, in as much memory and time as a file of a stranger's may cost."""

import resource
import subprocess
import sys

MEMORY = 4_000_000 << 10  # bytes of address space, as of `ulimit -v 4000000`
SECONDS = 60  # of a processor


def run(*arguments, cwd):
    """`semisync` with these arguments, as a finished process with its output as text."""
    return subprocess.run(
        [sys.executable, "-m", "semisync", *map(str, arguments)],
        cwd=cwd,
        preexec_fn=_limit,
        capture_output=True,
        text=True,
        errors="surrogateescape",
    )


def refusal(*arguments, cwd):
    """What it says where it refuses what it was given: one sentence, with exit code 3."""
    done = run(*arguments, cwd=cwd)
    assert done.returncode == 3, done
    (sentence,) = done.stderr.splitlines()
    return sentence


def _limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
