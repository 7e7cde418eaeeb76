"""A short run of fuzz.py; the long one is `python -m tests.migrate.fuzz --checkpoints FOLDER`."""

import subprocess
import sys

from tests.support.require import ROOT, environment


def test_six_hundred_damaged_sources_give_the_truth_or_one_sentence(tf2_checkpoints):
    command = [sys.executable, "-m", "tests.migrate.fuzz", "--checkpoints", str(tf2_checkpoints)]
    done = subprocess.run(
        [*command, "--count", "600", "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment(),
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    outcomes = {tuple(line.split()[:2]) for line in done.stdout.splitlines()}
    assert {("tensors", "right"), ("tensors", "refused"), ("tables", "refused")} <= outcomes
