"""Thirty days: a job of TensorFlow moves to TorchRec after fifteen; does its AUC stay?

    python -m benchmarks.thirty_days --out FOLDER [--python PATH] [--data PATH] [--seeds N]
        [--tables declared|hash] [--quick] [--plot FILE]

A DeepFM reads raw rows, day by day. Every row is scored before the model is trained on it; AUC is
of these scores. The rows are those of ASSISTments 2017 (text that is hashed, ids, a list), and the
tables have declared sizes. With `--tables hash` the rows are of a log that is made, whose users and
films come and go; the tables are TFRA's, and `--python` is an interpreter that has TFRA.

1. TensorFlow trains semi-synchronously on a cluster of two parameter servers and four workers, with
   a checkpoint per day. After day 14, `semisync convert --model` and `semisync verify`.
2. From that checkpoint three go on to day 29: the job itself; the same job paced, which makes every
   global batch exactly; and `semisync train`, in two processes, on the rows of the paced job's
   global batches, in their order.
3. TorchRec is compared with the paced job, whose steps it repeats; with the semi-synchronous one;
   with hash tables also with a job that is paced from the first day on; and the paced jobs of two
   seeds with one another, which is what a seed does.

FOLDER keeps everything; what is done there is not repeated. --quick is of four short days, and no
evidence. Progress goes to stderr, Markdown to
stdout.
"""

import collections
import os
import sys

import numpy as np
import pyarrow.parquet as pq

import parity
from benchmarks.harness.options import options, refuse
from benchmarks.harness.seeds import MARGIN
from benchmarks.thirty_days_parts import comparisons, stages, tables
from benchmarks.thirty_days_parts.plan import FULL, QUICK


def arguments():
    """The command line."""
    args = options(
        __doc__,
        out="out/thirty_days",
        python=sys.executable,
        tables="declared",
        data=str,
        seeds=3,
        quick=False,
        plot=str,
    )
    if args.tables not in FULL:
        refuse("--tables {}: expected {}".format(args.tables, " or ".join(FULL)))
    args.plan = (QUICK if args.quick else FULL)[args.tables]
    args.data = args.data or args.plan.log.DEFAULT
    if args.data and not os.path.isfile(args.data):
        refuse("{} is not there: pass --data interactions.parquet".format(args.data))
    return args


def trained(args, plan):
    """The seeds, all of whose stages are done."""
    out = os.path.abspath(args.out)
    prepared = os.path.join(out, "data")
    if not os.path.isdir(prepared):
        plan.log.prepare(args.data, prepared + ".tmp", plan)
        os.rename(prepared + ".tmp", prepared)
    seeds = []
    for number in range(1, args.seeds + 1):
        folder = os.path.join(out, "seed-{}".format(number))
        python = os.path.abspath(args.python)
        seeds.append(stages.Seed(number, plan, folder, prepared, python))
        stages.carry_out(seeds[-1])
        print("seed {} is done".format(number), file=sys.stderr, flush=True)
    return seeds


def staleness(seeds):
    """{stage: {staleness: local batches}} of all seeds, in global steps, from the audit logs."""
    found = {}
    for stage in stages.of_tensorflow(seeds[0].plan):
        counts = collections.Counter()
        for seed in seeds:
            counts.update(stages.staleness(seed, stage))
        found[stage] = dict(sorted(counts.items()))
    return found


def semi_by_day(seeds):
    """{day: AUC}, means over the seeds, of the semi-synchronous job from its first day on."""
    found = collections.defaultdict(list)
    for seed in seeds:
        for day in range(seed.plan.days):
            label, logit = stages.scores(seed, "semi", day)
            found[day].append(parity.auc(label, logit))
    return {day: float(np.mean(aucs)) for day, aucs in found.items()}


def main():
    args = arguments()
    plan = args.plan
    seeds = trained(args, plan)
    found, late = comparisons.all_of(seeds), staleness(seeds)
    rows = pq.read_metadata(seeds[0].path("exact.parquet")).num_rows
    print("{} seeds, {:,} rows compared from day {} on".format(len(seeds), rows, plan.switch))
    for stage, counts in late.items():
        total = sum(counts.values())
        mean = sum(age * count for age, count in counts.items()) / total
        beyond = sum(count for age, count in counts.items() if age > plan.bound) / total
        said = "staleness of the local batches, {}: {:.2f} on average, {:.1%} beyond {}"
        print(said.format(stage, mean, beyond, plan.bound))
    print("\n" + tables.pooled(found) + "\n\n" + tables.by_day(found))
    if args.plot:
        from benchmarks.thirty_days_parts import plot

        plot.draw(semi_by_day(seeds), found, MARGIN, args.plot)


if __name__ == "__main__":
    main()
