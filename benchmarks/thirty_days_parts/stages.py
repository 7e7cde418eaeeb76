"""The stages of one seed, each in processes of its own; a day that is done is not repeated.

    FOLDER/rows         the days' rows
    FOLDER/semi         TensorFlow, semi-synchronous, all days
    FOLDER/exact        TensorFlow from the switch on, paced: every global batch exactly
    FOLDER/whole        TensorFlow, paced, all days, if the plan has it
    FOLDER/converted    `semisync convert --model` of the checkpoint before the switch
    FOLDER/verified.json   `semisync verify` of it
    FOLDER/batches      exact's global batches as files
    FOLDER/torchrec     `semisync train` over those files, in two processes
    FOLDER/NAME.parquet the scores of semi, exact, whole and torchrec, from the switch on

The scores of TensorFlow's local batches come with the global step whose parameters gave them. Paced
these are the global batch's own, so that its rows are known, and TorchRec trains on the same rows
in the same steps.
"""

import collections
import glob
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import cluster
from benchmarks.thirty_days_parts import data
from benchmarks.thirty_days_parts.plan import Plan
from semisync import audit

TIMEOUT = 3600.0  # seconds per stage, far more than one needs
PROCESSES = 2  # of TorchRec


class Seed(NamedTuple):
    """A seed's plan, folder, `data.prepare`'s folder, and a Python with TensorFlow."""

    number: int
    plan: Plan
    folder: str
    prepared: str
    python: str

    def path(self, *names):
        """A path below its folder."""
        return os.path.join(self.folder, *names)


def carry_out(seed):
    """Carries out all stages that are not done."""
    if not os.path.isdir(seed.path("rows")):
        os.makedirs(seed.path("rows.tmp"), exist_ok=True)
        data.write_seed(seed.prepared, seed.path("rows.tmp"), seed.number, seed.plan)
        os.rename(seed.path("rows.tmp"), seed.path("rows"))
    switch = seed.plan.switch
    trained(seed, "semi", 0, paced=False)
    trained(seed, "exact", switch, paced=True)
    convert(seed)
    write_batches(seed)
    train_on(seed)
    if seed.plan.whole:
        trained(seed, "whole", 0, paced=True)
    for stage in of_tensorflow(seed.plan):
        write_scores(seed, stage)


def of_tensorflow(plan):
    """The stages that TensorFlow trains."""
    return ("semi", "exact", "whole") if plan.whole else ("semi", "exact")


def checkpoint(seed, stage, day):
    """The prefix of the checkpoint at the end of a day."""
    return seed.path(stage, "day-{:02d}".format(day))


def trained(seed, stage, first, paced):
    """Trains TensorFlow's days from `first` on that have no checkpoint yet."""
    out = seed.path(stage)
    os.makedirs(out, exist_ok=True)
    done = [day for day in range(first, seed.plan.days) if _is_done(seed, stage, day)]
    since = first + len(done)
    if since == seed.plan.days:
        return
    if since:  # the checkpoint to go on from, as the Saver names it
        before = checkpoint(seed, stage if done else "semi", since - 1)
        with open(os.path.join(out, "checkpoint"), "w") as file:
            file.write('model_checkpoint_path: "{}"\n'.format(before))
    plan = seed.plan
    cluster.train(
        "benchmarks.thirty_days_parts.job",
        seed.python,
        plan.ps,
        plan.workers,
        out,
        TIMEOUT,
        plan=plan._asdict(),
        seed=seed.number,
        rows=seed.path("rows"),
        out=out,
        days=[since, plan.days],
        paced=paced,
    )


def _is_done(seed, stage, day):
    return os.path.exists(checkpoint(seed, stage, day) + ".index")


def batches(seed, stage, day):
    """(number [batches], step [batches], logits [batches, local_batch]) of a day, by step."""
    files = sorted(glob.glob(checkpoint(seed, stage, day) + ".[0-9]*.npz"))
    parts = [np.load(path) for path in files]
    parts = [part for part in parts if len(part["number"])]
    number, step, logits = (
        np.concatenate([part[name] for part in parts]) for name in ("number", "step", "logits")
    )
    # The last key is the primary one: by step, and within a step by number.
    order = np.lexsort([number, step])
    return number[order], step[order], logits[order]


def _rows(number, plan):
    """The rows of local batches, in their order."""
    return (number[:, None] * plan.local_batch + np.arange(plan.local_batch)).ravel()


def convert(seed):
    """`semisync convert --model` and `semisync verify` of the checkpoint before the switch."""
    if os.path.exists(seed.path("verified.json")):
        return
    prefix = checkpoint(seed, "semi", seed.plan.switch - 1)
    _semisync("convert", prefix, seed.path("converted"), "--model", "--resume")
    said = _semisync("verify", prefix, seed.path("converted"), "--json")
    with open(seed.path("verified.json"), "w") as file:
        file.write(said)


def write_batches(seed):
    """Writes the global batches of the stage `exact`, a file per day."""
    folder, plan = seed.path("batches"), seed.plan
    os.makedirs(folder, exist_ok=True)
    for day in range(plan.switch, plan.days):
        number, step, _ = batches(seed, "exact", day)
        assert (np.diff(step.reshape(-1, plan.batches_per_step)) == 0).all(), "not whole batches"
        path = data.name(folder, day, "parquet")
        columns = data.read(seed.path("rows"), day)
        data.write_parquet(plan.log, columns, _rows(number, plan), day, path)


def train_on(seed):
    """`semisync train` from the checkpoint before the switch."""
    if os.path.exists(seed.path("torchrec.parquet")):
        return
    given = ["--data", seed.path("batches"), "--batch-size", str(seed.plan.global_batch)]
    given += ["--label", "label", "--day", "day", "--key", "key", "--checkpoint-every", "100"]
    given += ["--meta", seed.path("semi", "plain.meta")]
    given += ["--scores", seed.path("torchrec.parquet"), "--nproc", str(PROCESSES), "--resume"]
    prefix = checkpoint(seed, "semi", seed.plan.switch - 1)
    _semisync("train", prefix, "--out", seed.path("torchrec"), *given)


def scores(seed, stage, day):
    """(labels, logits) of a day's rows, in the order of the steps."""
    number, _, logits = batches(seed, stage, day)
    labels = data.read(seed.path("rows"), day)["label"]
    return labels[_rows(number, seed.plan)], logits.ravel()


def staleness(seed, stage):
    """Counter of the local batches by their staleness in global steps."""
    found = collections.Counter()
    for event in audit.steps(seed.path(stage, "audit.jsonl")):
        found.update(batch["staleness"] for batch in event["batches"])
    return found


def write_scores(seed, stage):
    """Writes TensorFlow's scores from the switch on, as `semisync train --scores` does."""
    days = []
    for day in range(seed.plan.switch, seed.plan.days):
        number, _, logits = batches(seed, stage, day)
        rows, columns = _rows(number, seed.plan), data.read(seed.path("rows"), day)
        table = {name: columns[name][rows] for name in ("key", "label", "user")}
        logit = logits.ravel().astype(np.float32)
        score = (1 / (1 + np.exp(-logit.astype(np.float64)))).astype(np.float32)
        table.update(day=np.full(len(rows), day), score=score, logit=logit)
        days.append(pa.table(table))
    pq.write_table(pa.concat_tables(days), seed.path(stage + ".parquet"))


def _semisync(*arguments):
    """Runs a command, and returns what it printed."""
    command = [sys.executable, "-m", "semisync.cli", *arguments]
    return subprocess.check_output(command, cwd=cluster.ROOT, encoding="utf-8", timeout=TIMEOUT)
