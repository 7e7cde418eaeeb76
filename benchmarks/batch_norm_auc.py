"""The AUC with BatchNorm's moving statistics shared or moved by every worker, by seeds.

    python -m benchmarks.batch_norm_auc [--scenario slow|hang] [--seeds N]
        [--modes MODE ...] [--momentum M] [--python PATH] [--data PATH]
        [--set NAME=VALUE ...] [--json FILE]

The model and the cluster of `auc_evidence`, with a BatchNorm in each hidden layer; each worker
reads one part of the rows, which are partitioned by skill. Scores use the moving statistics, as a
served model does.

    slow    one worker is always five times as slow; momentum 0.99
    hang    one worker hangs from the middle of the run on, in a batch that it delivers when the
            others have ended; momentum 0.9

The modes ("hang" has only those that do not wait for the worker):

    semi-sync         GlobalBatchOptimizer(batch_norm="aggregate"): shared statistics
    semi-sync, async  the same with batch_norm="async": every worker moves them, even a late one
    sync              the exact global batch and its statistics
    async             the plain optimizer

Two comparisons. Within a run, the workers also keep statistics beside the model's own, in the
forms that graphs use (`batch_norm_auc_parts.norm`): the same weights are scored with each, and with
statistics recomputed from the training rows, so that only the statistics differ. Between modes,
seed by seed, the training differs too. Progress goes to stderr, Markdown to stdout.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import namedtuple

import numpy as np

from benchmarks.auc_evidence_parts import options, plan, runs
from benchmarks.batch_norm_auc_parts import report as norm_report
from semisync.common.files import write_json

MODES = {  # how the mode trains, and GlobalBatchOptimizer's batch_norm
    "semi-sync": ("semi-sync", "aggregate"),
    "semi-sync, async": ("semi-sync", "async"),
    "sync": ("sync", "aggregate"),
    "async": ("async", None),
}
# settings; momentum of the moving statistics; hangs: whether the last worker does.
Scenario = namedtuple("Scenario", "settings momentum hangs")
_CHOSEN = plan.CHOSEN._replace(epochs=1, most_steps=250)  # steps: two thirds of an epoch
SCENARIOS = {
    "slow": Scenario(_CHOSEN._replace(slow_worker=5), momentum=0.99, hangs=False),
    "hang": Scenario(_CHOSEN._replace(slow_worker=1), momentum=0.9, hangs=True),
}
STATISTICS = ("own", "layers", "keras", "by-hand", "recomputed", "batch")


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scenario", choices=list(SCENARIOS), default="slow")
    options.declare(parser)
    parser.add_argument("--json", help="where to write the runs")
    parser.add_argument("--modes", nargs="*", choices=list(MODES))
    parser.add_argument("--momentum", type=float, help="default: the scenario's")
    args = parser.parse_args()
    scenario = SCENARIOS[args.scenario]
    possible = [mode for mode in MODES if not (scenario.hangs and mode == "sync")]
    args.modes = args.modes or possible
    if not set(args.modes) <= set(possible):
        parser.error("sync waits for the worker that hangs, which waits for the others to end")
    if args.momentum is None:
        args.momentum = scenario.momentum
    args.settings = options.settings(parser, args, scenario.settings)
    return args


def carry_out(experiment, args):
    """Carries out all runs, one cluster per seed; returns their figures."""
    labels, results = experiment.labels(), []
    for seed in range(1, args.seeds + 1):
        at = seed % len(args.modes)  # each seed starts with another mode than the one before
        modes = args.modes[at:] + args.modes[:at]
        specs = [specification(experiment, args, mode, seed) for mode in modes]
        module = "benchmarks.batch_norm_auc_parts.job"
        runs.train(experiment, specs, module, "logs-{}".format(seed))
        for mode, spec in zip(modes, specs):
            result = dict(spec, mode=mode, **collected(experiment, spec["name"], labels))
            results.append(result)
            own = result["scored"]["own"]
            line = "seed {} {}: AUC {auc:.5f}, log loss {log_loss:.5f}"
            print(line.format(seed, mode, **own), file=sys.stderr, flush=True)
    return sorted(results, key=lambda run: (args.modes.index(run["mode"]), run["seed"]))


def specification(experiment, args, mode, seed):
    """One entry of the job's `runs`."""
    way, batch_norm = MODES[mode]
    return {
        "name": "{}-{}".format(mode.replace(", ", "-"), seed),
        "mode": way,
        "seed": seed,
        "learning_rate": experiment.settings.learning_rate,
        "momentum": args.momentum,
        "batch_norm": batch_norm,
        "hangs": SCENARIOS[args.scenario].hangs,
    }


def collected(experiment, name, labels):
    """The figures of one run, and of its model with each of STATISTICS."""
    folder = os.path.join(experiment.out, name)
    figures = runs.measured(experiment, name)
    figures["scored"] = {
        which: norm_report.figures(labels, np.load(os.path.join(folder, which + ".npy")))
        for which in STATISTICS
    }
    with open(os.path.join(folder, "distances.json")) as file:
        figures["distances"] = json.load(file)
    return figures


def main():
    """The command line."""
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        results = carry_out(runs.prepared(args, args.settings, folder), args)
    if args.json:
        write_json(args.json, {"results": results})
    for name in ("scenario", "settings", "momentum"):
        print("{}: {}".format(name, getattr(args, name)))
    print("\nModes, each with its own statistics:\n\n" + norm_report.modes_table(results))
    for mode in dict.fromkeys(result["mode"] for result in results):
        print("\n{}: {}".format(mode, norm_report.lateness(results, mode)))
        if MODES[mode][1] == "aggregate":
            print("The same weights, other statistics:\n")
            print(norm_report.statistics_table(results, mode))


if __name__ == "__main__":
    main()
