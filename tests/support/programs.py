"""Programs that tests start, to their ends."""

import subprocess

from tests.support.require import ROOT, environment


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


def output_of(*command, **more):
    """What a program prints, which must end well."""
    done = ended(*command, **more)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout
