"""A training that was killed goes on as if nothing had happened."""

import os
import random
import signal
import subprocess
import time

import pytest
import torch

from migrate.training.checkpoints import CHECKPOINTS, Checkpoints
from tests.id_tables.process import flip
from tests.support.programs import output_of
from tests.support.require import ROOT, environment
from tests.training.kills import (
    EVERY,
    STEPS,
    command,
    contents,
    differing,
    killed,
    whole,
)

TWO = ["--standalone", "--nproc-per-node", "2", "--monitor-interval", "0.1"]


def two(python, job, out, *more, restarts=0):
    """The command of a training in two processes under torchrun, without dropout."""
    alone = command(python, job, out, "--still", *more)
    launcher = ["-m", "torch.distributed.run", *TWO, "--max-restarts", str(restarts)]
    return [*alone[:3], *launcher, *alone[3:]]


@pytest.fixture(scope="module")
def python(interpreters):
    return interpreters / "python"


@pytest.fixture(scope="module")
def in_two(job, python, tmp_path_factory):
    """The folder of a training in two processes that nothing interrupted."""
    out = tmp_path_factory.mktemp("two")
    output_of(*two(python, job, out))
    return out


@pytest.mark.long
def test_killed_at_any_instant_it_ends_with_the_same_bits(job, python, tmp_path):
    seconds = whole(python, job, tmp_path / "whole")
    steps = killed(python, job, tmp_path / "killed", 4, seconds, random.Random(7))
    assert all(step % EVERY == 0 for step in steps)
    (last, wanted), (ended, found) = contents(tmp_path / "whole"), contents(tmp_path / "killed")
    assert last == ended == STEPS
    assert differing(wanted, found) == []
    logs = [(tmp_path / name / "log.jsonl").read_text() for name in ("whole", "killed")]
    assert logs[0] == logs[1]


@pytest.mark.long
@pytest.mark.parametrize("damaged", [False, True])
def test_a_killed_process_is_started_anew_with_the_others_and_all_go_on(
    job, python, in_two, tmp_path, damaged
):
    """From the newest checkpoint, or, where that was damaged meanwhile, from the one before it."""
    arguments = two(python, job, tmp_path, "--resume", restarts=1)
    process = subprocess.Popen(
        arguments, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    checkpoints = Checkpoints(str(tmp_path / CHECKPOINTS))
    while len(checkpoints.steps) < 2:
        assert process.poll() is None, process.stdout.read().decode()
        time.sleep(0.01)
    pids = [int((tmp_path / f"pid.{rank}").read_text()) for rank in (0, 1)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)  # no newer checkpoint is written
    newest = tmp_path / CHECKPOINTS / f"step-{checkpoints.steps[-1]:08d}"
    if damaged:
        flip(newest / "__0_0.distcp", 0.5)
    os.kill(pids[1], signal.SIGKILL)
    os.kill(pids[0], signal.SIGCONT)
    output = process.communicate(timeout=120)[0].decode()
    assert process.returncode == 0, output
    assert int((tmp_path / "pid.1").read_text()) != pids[1]
    assert (f"{newest} is damaged: " in output) == damaged
    (_, wanted), (step, found) = contents(in_two), contents(tmp_path)
    assert step == STEPS
    assert differing(wanted, found) == []


@pytest.mark.long
def test_two_processes_take_the_steps_of_one(job, python, in_two, tmp_path):
    output_of(*command(python, job, tmp_path, "--still"))
    (_, one), (_, of_two) = contents(tmp_path), contents(in_two)
    of_two.pop("random.1")
    assert set(one) == set(of_two)
    for name, value in one.items():
        if not name.startswith(("random", "metrics")):
            torch.testing.assert_close(of_two[name], value, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.long
def test_one_process_goes_on_where_two_stopped(job, python, in_two, tmp_path):
    output_of(*two(python, job, tmp_path, "--steps", "45"))
    output_of(*command(python, job, tmp_path, "--still", "--resume"))
    (_, wanted), (step, found) = contents(in_two), contents(tmp_path)
    assert step == STEPS
    rows = sum(int(value.sum()) for name, value in found.items() if name.endswith(".rows"))
    assert rows == 64 * STEPS
    for name, value in found.items():
        if not name.startswith(("random", "metrics")):
            torch.testing.assert_close(value, wanted[name], rtol=1e-4, atol=1e-5, msg=name)
