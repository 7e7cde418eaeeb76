"""Trainings that are killed and go on, until they have ended.

    python -m tests.training.kills JOB FOLDER [KILLS]

kills a training in one process KILLS times (20), each at a random instant, and says whether what it
ends with is, bit for bit, what an uninterrupted one ends with.
"""

import pathlib
import random
import subprocess
import sys
import time

import torch

from migrate.training.checkpoints import CHECKPOINTS, Checkpoints
from tests.support.programs import output_of
from tests.support.require import ROOT, environment

STEPS, EVERY = 90, 3
DTYPES = {"metrics": torch.int64, "random": torch.uint8}


def command(python, job, out, *more, steps=STEPS):
    """Of a training in one process."""
    given = [str(job), str(out), "--steps", str(steps), "--every", str(EVERY), *more]
    return [str(python), "-W", "ignore", "-m", "tests.training.process", *given]


def whole(python, job, out, steps=STEPS):
    """Trains without interruption; returns the seconds from the first batch to the end."""
    output_of(*command(python, job, out, steps=steps))
    return time.time() - (out / "begun.0").stat().st_mtime


def killed(python, job, out, kills, seconds, draw, steps=STEPS):
    """Kills a training so often, and lets it end; returns the newest checkpoint's step each time.

    Args:
        seconds: of an uninterrupted one; each life lasts up to twice its share of them.
    """
    reached = []
    arguments = command(python, job, out, "--resume", steps=steps)
    begun = out / "begun.0"
    for _ in range(kills):
        begun.unlink(missing_ok=True)
        process = subprocess.Popen(
            arguments, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=sys.stderr
        )
        while not begun.exists() and process.poll() is None:
            time.sleep(0.001)
        try:
            process.wait(draw.uniform(0, 2 * seconds / kills))
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        reached += [(Checkpoints(str(out / CHECKPOINTS)).steps or [0])[-1]]
    output_of(*arguments)
    return reached


def contents(out):
    """(the last step, all tensors of its checkpoint by name)"""
    checkpoints = Checkpoints(str(out / CHECKPOINTS))
    step = checkpoints.steps[-1]
    tensors = {}
    for name, size in checkpoints.sizes(step).items():
        kind = "metrics" if name == "counter.global_step" else name.partition(".")[0]
        dtype = DTYPES.get(kind, torch.float32)
        tensors[name] = torch.empty(size, dtype=dtype)
    checkpoints.load(step, tensors)
    return step, tensors


def differing(first, second):
    """The names of tensors that are not bit for bit the same."""
    assert set(first) == set(second)
    return [name for name in first if not torch.equal(first[name], second[name])]


def main():
    job, folder = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    kills = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    steps, draw = 60 * kills, random.Random(1)  # long enough to live through them
    seconds = whole(sys.executable, job, folder / "whole", steps)
    reached = killed(sys.executable, job, folder / "killed", kills, seconds, draw, steps)
    (last, wanted), (_, found) = contents(folder / "whole"), contents(folder / "killed")
    print(f"went on from the steps {reached}, and ended at {last}")
    print(f"tensors that differ: {differing(wanted, found) or 'none'}, of {len(wanted)}")


if __name__ == "__main__":
    main()
