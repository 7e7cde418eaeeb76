"""How often a right migration is called wrong, and a planted fault is missed.

    python -m benchmarks.judgement --tf-python .venv-tf1/bin/python [--data ../shared/data]
        [--sets N] [--faults N] [--processes N]

1. TensorFlow 1.15 trains a canned and a hand-written model, with and without BatchNorm, on each
   data set with each optimizer but one, in turn: `judgement_parts/write_jobs.py`.
2. `semisync migrate` judges each: all are right, so that any verdict but MIGRATED is an error.
3. Faults are planted in torch's side of the same trainings, and `compare_training` judges again: a
   fault that it calls equal is missed. See `judgement_parts/faults.py`.

--sets takes the first data sets alone, --faults plants more than one fault per job, --processes is
how many data sets there are at once.
"""

import collections
import concurrent.futures
import io
import itertools
import multiprocessing
import os
import pathlib
import subprocess
import tempfile

from benchmarks.commands import TF1
from benchmarks.harness.options import options
from benchmarks.judgement_parts.data import DATA_SETS, write_rows
from benchmarks.judgement_parts.faults import FAULTS
from benchmarks.tables import table
from migrate.behaviour import training as behaviour
from migrate.behaviour.setting import Setting
from migrate.scoring.run import Reading
from semisync.common.errors import SemisyncError
from semisync.migration.run import migrate
from semisync.migration.settings import STEP_ROWS, STEPS, Settings

OPTIMIZERS = ["sgd", "momentum", "adagrad", "adam", "lazyadam", "rmsprop", "ftrl", "proximal"]


def written(data, optimizers, folder, source, python):
    """The jobs of a data set, in the order of their names."""
    to = folder / data.name.replace(" ", "-").replace(",", "")
    write_rows(data, source, to)
    subprocess.run(
        [python, "-m", "benchmarks.judgement_parts.write_jobs", str(to), *optimizers],
        check=True,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    return sorted(path for path in to.iterdir() if path.is_dir())


def judged(job, python):
    """The migration of a job."""
    settings = Settings(
        checkpoint=str(job),
        data=str(job.parent / "rows.parquet"),
        label="label",
        out=str(job / "migration"),
        python=python,
    )
    return migrate(settings, io.StringIO())


def planted(job, found, fault, python):
    """The report of the same training with a fault in torch; None: it has no place for it."""
    right, there = behaviour.Training, []

    def build(*arguments):
        training = right(*arguments)
        there.append(FAULTS[fault](training))
        return training

    settings = found.settings
    reading = Reading(size=STEP_ROWS)
    behaviour.Training = build
    try:
        report = behaviour.compare_training(
            settings.checkpoint,
            settings.converted,
            settings.data,
            Setting(meta=settings.meta, named=settings.named, reading=reading, python=python),
            STEPS,
        )
    finally:
        behaviour.Training = right
    return report if there[0] else None


def counted(number, args):
    """({verdict: jobs}, {fault: {"found" or "missed": jobs}}, what to say) of a data set."""
    data, verdicts, said = DATA_SETS[number], collections.Counter(), []
    faults = {name: collections.Counter() for name in FAULTS}
    left_out = OPTIMIZERS[number % len(OPTIMIZERS)]
    optimizers = [name for name in OPTIMIZERS if name != left_out]
    names = itertools.cycle(list(FAULTS)[number:] + list(FAULTS)[:number])
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(args.data)
        for job in written(data, optimizers, pathlib.Path(folder), source, args.tf_python):
            name = f"{data.name}, {job.name}"
            try:
                found = judged(job, args.tf_python)
            except SemisyncError as error:
                verdicts["refused"] += 1
                said.append(f"{name}: {error}")
                continue
            verdicts[found.verdict.value.replace("_", " ")] += 1
            if found.verdict.value != "MIGRATED":
                said.append(f"{name}: {found.verdict.value}: {found.sentence}")
            left = args.faults
            for fault in itertools.islice(names, len(FAULTS)):
                report = planted(job, found, fault, args.tf_python)
                if report is None:
                    continue
                faults[fault]["missed" if report.equal else "found"] += 1
                if report.equal:
                    said.append(f"{name}: {fault} was missed")
                left -= 1
                if not left:
                    break
    return verdicts, faults, said


def main():
    """The command line."""
    args = options(
        __doc__, tf_python=TF1, data="../shared/data", sets=len(DATA_SETS), faults=1, processes=2
    )
    verdicts = collections.Counter()
    faults = {name: collections.Counter() for name in FAULTS}
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(args.processes, mp_context=spawn) as pool:
        for done in pool.map(counted, range(args.sets), [args] * args.sets):
            verdicts += done[0]
            for name in faults:
                faults[name] += done[1][name]
            for line in done[2]:
                print(line, flush=True)
    kinds = ("MIGRATED", "NOT MIGRATED", "INCONCLUSIVE", "refused")
    right = [sum(verdicts.values()), *(verdicts[kind] for kind in kinds)]
    print(table(["right migrations", *kinds], [right]) + "\n")
    faults["all"] = sum(faults.values(), collections.Counter())
    rows = [[name, sum(found.values()), found["missed"]] for name, found in faults.items()]
    print(table("planted fault | jobs | missed", rows))


if __name__ == "__main__":
    main()
