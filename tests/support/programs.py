"""Programs that tests start, to their ends."""

import subprocess
import sys

from tests.support.require import ROOT, environment, forked_tensorflow


def ended(*command, cwd=ROOT, timeout=3600, **variables):
    """A program's `returncode`, `stdout` and `stderr`, with `variables` in its environment."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=str(cwd),
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def killed(code, *arguments):
    """Runs Python code until it prints "now", ends it by kill -9; the lines before that."""
    command = [forked_tensorflow(sys.executable), "-c", code, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=environment(), encoding="utf-8"
    ) as process:
        lines = []
        for line in process.stdout:
            if line == "now\n":
                process.kill()  # its output ends when the fork has ended, too
            lines.append(line)
    assert lines.count("now\n") == 1, lines
    return lines[: lines.index("now\n")]


def output_of(*command, **more):
    """What a program prints, which must end well."""
    done = ended(*command, **more)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout
