"""The folder of a training: one training at a time writes there, and a full disk is a sentence."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from migrate.targets.work_directory import locked
from migrate.training import Checkpoints
from semisync.cli import main
from tests.support.programs import ended
from tests.support.require import ROOT, environment
from tests.training.command import arguments, refusal

HOLDER = """
import sys, time
from migrate.training.at_work import at_work
with at_work(sys.argv[1]):
    print("held", flush=True)
    time.sleep(100)
"""


def test_a_second_training_is_told_who_is_at_work_there(job, clicks, tmp_path, capsys):
    with locked(str(tmp_path), str(tmp_path)):
        said = refusal(arguments(job, clicks, tmp_path, "--steps", "1"), capsys)
    holder = f"process {os.getpid()} on {socket.gethostname()}, since "
    assert f"another process is at work in {tmp_path} ({holder}" in said
    assert main(arguments(job, clicks, tmp_path, "--steps", "1")) == 0


@pytest.mark.long
def test_who_was_killed_holds_no_folder(job, clicks, tmp_path):
    program = [sys.executable, "-W", "ignore", "-c", HOLDER, str(tmp_path)]
    holder = subprocess.Popen(program, cwd=ROOT, env=environment(), stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert main(arguments(job, clicks, tmp_path, "--steps", "1")) == 0


@pytest.mark.long
def test_a_full_disk_names_the_checkpoint_and_what_to_do(job, clicks, tmp_path):
    given = arguments(job, clicks, tmp_path / "out", "--checkpoint-every", "4")
    program = [sys.executable, "-W", "ignore", "-m", "semisync", *given]
    done = ended("bash", "-c", 'ulimit -f 8; exec "$@"', "bash", *program)
    assert done.returncode == 3
    message = done.stderr.splitlines()[-1]
    path = Checkpoints(str(tmp_path / "out" / "checkpoints")).path(4)
    assert f"{path}: the checkpoint was not written: " in message and "Traceback" not in message
    assert "File too large" in message
    assert message.endswith("; make room there and go on with --resume")
    assert not os.path.exists(path)
    assert main([*given, "--resume", "--steps", "8"]) == 0
